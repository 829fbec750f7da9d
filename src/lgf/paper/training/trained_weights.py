"""Weights of a torch network as arrays, for the networks in NumPy."""

import numpy as np
from torch import nn

from lgf.paper.flow.denoiser import Denoiser
from lgf.paper.training import denoiser as flow
from lgf.trained.layers import Array


def arrays(module: nn.Module) -> dict[str, Array]:
    """Copies of the weights, by name."""
    return {name: value.detach().numpy().astype(np.float32, copy=True) for name, value in module.state_dict().items()}


def to_denoiser(module: flow.Denoiser) -> Denoiser:
    """The denoiser with the module's weights."""
    return Denoiser(module.layout, module.settings, arrays(module))
