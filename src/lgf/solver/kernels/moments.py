"""Mean and deviation of a program's value over many vectors of constants."""

import numpy as np
from numba import njit

from lgf.solver.kernels import KERNEL
from lgf.solver.kernels.machine import WIDE, evaluate_wide


@njit(**KERNEL)
def moments(code, outputs, literals, n_registers, n, constants, t, states, largest):
    """(mean, deviation) of the first output at every sample over the rows of constants [draw, p].

    Values are cut at +-largest before they enter the moments; what is not a number counts as `largest`.
    """
    draws, p = constants.shape
    N = t.shape[0]
    R = np.zeros((n_registers, WIDE))
    B = np.zeros((1, N))
    forcing = np.zeros(N)
    total = np.zeros(N)
    squares = np.zeros(N)
    for i in range(draws):
        evaluate_wide(code, outputs[:1], literals, n, p, constants[i], t, states, forcing, R, B)
        for k in range(N):
            value = B[0, k]
            value = value if value > -largest else -largest
            value = value if value < largest else largest  # NaN fails both comparisons and ends here
            total[k] += value
            squares[k] += value * value
    for k in range(N):
        total[k] /= draws
        spread = squares[k] / draws - total[k] * total[k]
        squares[k] = np.sqrt(spread) if spread > 0.0 else 0.0
    return total, squares
