"""The jumps of inputs that are held from sample to sample, at which the steps of the integrator end."""

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import INNER


@njit(**INNER)
def jump_width(table):
    """The longest step that only crosses a jump of a held input; 0 if no input is held. See `execute` for the table."""
    width = 0.0
    for i in range(int(table[0, 2]) if table.shape[0] > 0 else 0):
        if table[i, 3] > np.floor(table[i, 3]):
            width = max(width, 3.0 * _beside_jump(table, i))
    return width


@njit(**INNER)
def _beside_jump(table, i):
    """How near to a jump of input i a step ends: at a time that differs from it, however late the times are."""
    end = table[i, 0] + table[i, 3] / table[i, 1]
    return max(1e-7 / table[i, 1], 1e-15 * max(abs(table[i, 0]), abs(end)))


@njit(**INNER)
def next_break(table, now):
    """The next time at which a step of the integrator must end because an input jumps.

    A jump lies in a tiny step of its own, which is always accepted: slopes on either side of it must not be mixed, and
    the last slope of a step is the first one of the next.
    """
    nearest = np.inf
    for i in range(int(table[0, 2])):
        if table[i, 3] == np.floor(table[i, 3]):
            continue
        start, rate, first, pieces = table[i, 0], table[i, 1], int(table[i, 2]), int(table[i, 3])
        j = max(int(np.floor((now - start) * rate)), 0)
        m = j + 1
        while m < pieces and table[first + m, 0] == table[first + j, 0]:
            m += 1
        if m < pieces:
            jump, side = start + m / rate, _beside_jump(table, i)
            nearest = min(nearest, jump - side if now < jump - 1.5 * side else jump + side)
    return nearest
