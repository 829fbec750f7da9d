"""The linear response of a trajectory to terms added to its equation."""

import numpy as np
from numba import njit

from lgf.solver.kernels import FASTEST, KERNEL
from lgf.solver.kernels.machine import BLOCK


@njit(**KERNEL, fastmath=FASTEST)
def respond(transition, sensitivity, steps, columns, begin, measured, scale, out, first):
    """Write to out [block, first + row, BLOCK] how the measured values answer to added terms of the highest derivative.

    transition [N - 1, n, n] takes a deviation of the states from one sample to the next, sensitivity [N, n] gives the
    highest derivative's change by the states, columns [block, begin + sample, BLOCK] are the added terms along the
    trajectory, measured lists the derivatives that count and scale [measured, N] their weights. Rows run over the
    measured derivatives, then time.
    """
    N, n = sensitivity.shape
    state = np.zeros((n, BLOCK))
    moved = np.zeros((n, BLOCK))
    for b in range(columns.shape[0]):
        state[:] = 0.0
        for i in range(N):
            if i > 0:
                h = 0.5 * steps[i - 1]
                for k in range(BLOCK):
                    state[n - 1, k] += h * columns[b, begin + i - 1, k]
                for d in range(n):
                    for k in range(BLOCK):
                        moved[d, k] = 0.0
                    for j in range(n):
                        a = transition[i - 1, d, j]
                        for k in range(BLOCK):
                            moved[d, k] += a * state[j, k]
                for d in range(n):
                    for k in range(BLOCK):
                        state[d, k] = moved[d, k]
                for k in range(BLOCK):
                    state[n - 1, k] += h * columns[b, begin + i, k]
            for m in range(measured.shape[0]):
                d = measured[m]
                s = scale[m, i]
                row = first + m * N + i
                if d < n:
                    for k in range(BLOCK):
                        out[b, row, k] = s * state[d, k]
                else:
                    for k in range(BLOCK):
                        out[b, row, k] = s * columns[b, begin + i, k]
                    for j in range(n):
                        a = s * sensitivity[i, j]
                        for k in range(BLOCK):
                            out[b, row, k] += a * state[j, k]
