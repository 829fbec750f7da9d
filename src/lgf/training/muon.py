"""Muon: matrices move along their orthogonalised momentum, all other parameters by Adam."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
ADAM = (0.9, 0.999)
# The quintic of K. Jordan's Muon: five rounds take singular values of 0.002 to 1 into 0.7 to 1.2.
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
TINY = 1e-8


class Muon(torch.optim.Optimizer):
    """Of a parameter with two or more axes all directions of its momentum get the same step, rare ones too.

    A step changes an entry by about `lr`, as one of Adam does.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One update by the gradients; there is no closure."""
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                change = (_muon if parameter.ndim > 1 else _adam)(parameter.grad, self.state[parameter])
                parameter.add_(change, alpha=-group["lr"])


def _muon(slope: Tensor, state: dict[str, Any]) -> Tensor:
    momentum = state.setdefault("momentum", torch.zeros_like(slope))
    momentum.lerp_(slope, 1 - MOMENTUM)
    matrix = torch.lerp(slope, momentum, MOMENTUM).flatten(1)
    return orthogonalised(matrix).mul_(math.sqrt(max(matrix.shape))).view_as(slope)


def orthogonalised(matrix: Tensor) -> Tensor:
    """The matrix with singular values near 1; those below a five-hundredth of its norm become smaller than that."""
    wide = matrix.shape[0] <= matrix.shape[1]
    x = (matrix if wide else matrix.T) / (matrix.norm() + TINY)
    a, b, c = QUINTIC
    for _ in range(ROUNDS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide else x.T.contiguous()


def _adam(slope: Tensor, state: dict[str, Any]) -> Tensor:
    step = state.setdefault("step", torch.zeros(()))
    mean, square = (state.setdefault(name, torch.zeros_like(slope)) for name in ("mean", "square"))
    step += 1
    mean.lerp_(slope, 1 - ADAM[0])
    square.mul_(ADAM[1]).addcmul_(slope, slope, value=1 - ADAM[1])
    size = (square / (1 - ADAM[1] ** step)).sqrt_().add_(TINY)
    return mean / (1 - ADAM[0] ** step) / size
