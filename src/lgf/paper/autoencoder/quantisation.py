"""Finite scalar quantisation: each channel is bounded and rounded to one of a few levels, without a codebook."""

import math

import numpy as np
from numpy.typing import NDArray

from lgf.trained.layers import Array

EPSILON = 1e-3


def bounded(z: Array, levels: int) -> Array:
    """b(z) = tanh(z + atanh(o / h)) h - o, within half a level of the outermost levels, before rounding."""
    half = (levels - 1) * (1 + EPSILON) / 2
    offset = 0.0 if levels % 2 else 0.5
    return np.tanh(z + np.float32(math.atanh(offset / half))) * np.float32(half) - np.float32(offset)


def to_tokens(z: Array, levels: int) -> NDArray[np.int8]:
    """The level numbers 0 .. levels - 1 of the latent z."""
    return (np.rint(bounded(z, levels)) + levels // 2).astype(np.int8)


def to_codes(tokens: NDArray[np.integer], levels: int) -> Array:
    """The codes from -1 to 1 of level numbers."""
    return ((tokens.astype(np.float32) - levels // 2) / (levels // 2)).astype(np.float32)
