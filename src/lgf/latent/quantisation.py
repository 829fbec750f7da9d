"""Finite scalar quantisation: each channel is bounded and rounded to one of a few levels, without a codebook."""

import math

import torch
from torch import Tensor

EPSILON = 1e-3


def bounded(z: Tensor, levels: int) -> Tensor:
    """b(z) = tanh(z + atanh(o / h)) h - o, within half a level of the outermost levels, before rounding."""
    half = (levels - 1) * (1 + EPSILON) / 2
    offset = 0.0 if levels % 2 else 0.5
    return torch.tanh(z + math.atanh(offset / half)) * half - offset


def quantised(z: Tensor, levels: int) -> Tensor:
    """The codes of z, from -1 to 1, rounded to levels; the gradient ignores the rounding (straight-through)."""
    b = bounded(z, levels)
    return (b + (b.round() - b).detach()) / (levels // 2)


def to_tokens(codes: Tensor, levels: int) -> Tensor:
    """The level numbers 0 .. levels - 1 of codes."""
    return (codes * (levels // 2)).round().long() + levels // 2


def to_codes(tokens: Tensor, levels: int) -> Tensor:
    """The codes of level numbers: the inverse of `to_tokens`."""
    return (tokens - levels // 2) / (levels // 2)
