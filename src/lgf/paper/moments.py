"""Mean and deviation of a program's value over many vectors of constants."""

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import KERNEL
from lgf.solver.kernels.machine import WIDE, evaluate


@njit(**KERNEL)
def moments(program, constants, t, columns, largest):
    """(mean, deviation) of the first output at every sample over the rows of constants [draw, p].

    Values are clipped at +-largest before the moments; NaN counts as `largest`.
    """
    draws = constants.shape[0]
    N = t.shape[0]
    R = np.zeros((program.n_registers, WIDE))
    B = np.zeros((1, N))
    inputs = np.zeros((0, N))
    total = np.zeros(N)
    squares = np.zeros(N)
    for i in range(draws):
        evaluate(program, constants[i], t, columns, inputs, R, B)
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
