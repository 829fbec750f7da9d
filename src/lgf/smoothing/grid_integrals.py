"""Integration on the common grid, as matrices and their singular vectors.

The left singular vectors are modes of what integration makes, the slowest first: the k-th is close to a sine of k/2
cycles. The integral of white noise is mostly in the first ones.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.smoothing.b_spline import b_splines
from lgf.threads import one_blas_thread

GRID = 128
"""The number of grid points. They are even over the window, both ends included."""

TAU = np.linspace(0.0, 1.0, GRID)


@dataclass(frozen=True, eq=False)
class GridIntegrals:
    """The integrals from 0, over a window of length 1: `repeated[k - 1]` [GRID, GRID] is the k-fold one.

    The last of them is modes @ diag(sizes) @ sources.T.
    """

    repeated: tuple[np.ndarray, ...]
    modes: np.ndarray
    sizes: np.ndarray
    sources: np.ndarray


@lru_cache(maxsize=2)
def grid_integrals(times: int) -> GridIntegrals:
    """The integrals up to so many times, 1 or 2."""
    # cubic splines through the grid points, without a knot at the second and at the last but one
    knots = np.concatenate([np.zeros(4), TAU[2:-2], np.ones(4)])
    with one_blas_thread():
        interpolation = np.linalg.inv(b_splines(TAU, knots, 3))
        repeated = tuple(b_splines(TAU, knots, 3, -k) @ interpolation for k in range(1, times + 1))
        modes, sizes, sources = np.linalg.svd(repeated[-1])
    # with two integrals the last two sizes vanish, as both integrals are 0 at the begin
    return GridIntegrals(repeated, modes, np.maximum(sizes, 1e-12), sources.T.copy())
