"""Finite scalar quantisation in torch, with a gradient that ignores the rounding."""

import math

import torch
from torch import Tensor

from lgf.paper.autoencoder.quantisation import EPSILON


def bounded(z: Tensor, levels: int) -> Tensor:
    """b(z) = tanh(z + atanh(o / h)) h - o, within half a level of the outermost levels, before rounding."""
    half = (levels - 1) * (1 + EPSILON) / 2
    offset = 0.0 if levels % 2 else 0.5
    return torch.tanh(z + math.atanh(offset / half)) * half - offset


def quantised(z: Tensor, levels: int) -> Tensor:
    """The codes of z, from -1 to 1, rounded to levels; the gradient ignores the rounding (straight-through)."""
    b = bounded(z, levels)
    return (b + (b.round() - b).detach()) / (levels // 2)
