"""The linear response of a trajectory to terms added to its equation."""

import numpy as np
from numba import njit

from lgf.solver.kernels import FASTEST, KERNEL
from lgf.solver.kernels.machine import BLOCK


@njit(**KERNEL, fastmath=FASTEST)
def respond(transition, sensitivity, steps, columns, begin, state, rate, measured, scale, out, first):
    """Write to out [block, first + row, BLOCK] the response of the measured values to terms added to one equation.

    transition [N - 1, n, n] takes a deviation of the state vector from one sample to the next, sensitivity [N, m, n]
    gives the change of the highest derivatives by the state vector, columns [block, begin + sample, BLOCK] are the
    terms along the trajectory, added to the equation of a state that drives the variable `rate` of the state vector,
    measured lists the columns of the frame that count and scale [measured, N] their weights. Rows run over the
    measured columns, then time.
    """
    N, _, n = sensitivity.shape
    y = np.zeros((n, BLOCK))
    moved = np.zeros((n, BLOCK))
    for b in range(columns.shape[0]):
        y[:] = 0.0
        for i in range(N):
            if i > 0:
                h = 0.5 * steps[i - 1]
                for k in range(BLOCK):
                    y[rate, k] += h * columns[b, begin + i - 1, k]
                for d in range(n):
                    for k in range(BLOCK):
                        moved[d, k] = 0.0
                    for j in range(n):
                        a = transition[i - 1, d, j]
                        for k in range(BLOCK):
                            moved[d, k] += a * y[j, k]
                for d in range(n):
                    for k in range(BLOCK):
                        y[d, k] = moved[d, k]
                for k in range(BLOCK):
                    y[rate, k] += h * columns[b, begin + i, k]
            for m in range(measured.shape[0]):
                d = measured[m]
                s = scale[m, i]
                row = first + m * N + i
                if d < n:
                    for k in range(BLOCK):
                        out[b, row, k] = s * y[d, k]
                else:
                    own = s if d - n == state else 0.0
                    for k in range(BLOCK):
                        out[b, row, k] = own * columns[b, begin + i, k]
                    for j in range(n):
                        a = s * sensitivity[i, d - n, j]
                        for k in range(BLOCK):
                            out[b, row, k] += a * y[j, k]
