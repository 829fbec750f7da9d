"""The linear response of a trajectory to terms added to its equation."""

import numpy as np
from numba import njit

from lgf.ode.kernels import FASTEST, KERNEL

_BLOCK = 8


@njit(**KERNEL, fastmath=FASTEST)
def respond(transition, sensitivity, steps, columns, measured, scale, out):
    """Write to out [column, row] how the measured values answer to an added column of the highest derivative.

    transition [N - 1, n, n] takes a deviation of the states from one sample to the next, sensitivity [N, n] gives the
    highest derivative's change by the states, columns [c, N] are the added terms along the trajectory, measured lists
    the derivatives that count and scale [measured, N] their weights. Rows run over the measured derivatives, then time.
    """
    c, N = columns.shape
    n = transition.shape[1]
    state = np.zeros((n, _BLOCK))
    moved = np.zeros((n, _BLOCK))
    for first in range(0, c, _BLOCK):
        width = min(_BLOCK, c - first)
        for d in range(n):
            for k in range(_BLOCK):
                state[d, k] = 0.0
        for i in range(N):
            if i > 0:
                h = 0.5 * steps[i - 1]
                for k in range(width):
                    state[n - 1, k] += h * columns[first + k, i - 1]
                for d in range(n):
                    for k in range(_BLOCK):
                        moved[d, k] = 0.0
                    for j in range(n):
                        a = transition[i - 1, d, j]
                        for k in range(_BLOCK):
                            moved[d, k] += a * state[j, k]
                for d in range(n):
                    for k in range(_BLOCK):
                        state[d, k] = moved[d, k]
                for k in range(width):
                    state[n - 1, k] += h * columns[first + k, i]
            for m in range(measured.shape[0]):
                d = measured[m]
                s = scale[m, i]
                for k in range(width):
                    if d < n:
                        value = state[d, k]
                    else:
                        value = columns[first + k, i]
                        for j in range(n):
                            value += sensitivity[i, j] * state[j, k]
                    out[first + k, m * N + i] = value * s
