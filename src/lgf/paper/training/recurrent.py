"""Bidirectional gated recurrent units over a constant input, about 1.4 times as fast as those of torch on one core."""

from typing import Any

import torch
from torch import Tensor, nn


def recurrent_states(units: nn.GRU, x: Tensor, length: int) -> Tensor:
    """The hidden states [length, n, 2 H] of two bidirectional layers whose input is x [n, W] at every place."""
    entered = torch.baddbmm(_both(units, "bias_ih_l0")[:, None], x.expand(2, *x.shape), _turned(units, "weight_ih_l0"))
    below = _layer(units, 0, entered[:, None], length)
    both = torch.stack([below, below.flip(0)]).flatten(1, 2)
    entered = torch.baddbmm(_both(units, "bias_ih_l1")[:, None], both, _turned(units, "weight_ih_l1"))
    return _layer(units, 1, entered.unflatten(1, (length, -1)), length)


def _layer(units: nn.GRU, layer: int, entered: Tensor, length: int) -> Tensor:
    weight, bias = (_both(units, f"{name}_hh_l{layer}") for name in ("weight", "bias"))
    forth, back = _States.apply(entered, weight, bias, length)  # pyright: ignore[reportGeneralTypeIssues]
    return torch.cat([forth, back.flip(0)], -1)


def _both(units: nn.GRU, name: str) -> Tensor:
    """The parameter of both directions [2, ...]."""
    return torch.stack([getattr(units, name), getattr(units, f"{name}_reverse")])


def _turned(units: nn.GRU, name: str) -> Tensor:
    return _both(units, name).transpose(1, 2)


class _States(torch.autograd.Function):
    """Hidden states of one layer; both directions are one product a step, and so are the gradients of the weights."""

    @staticmethod
    def forward(ctx: Any, entered: Tensor, weight: Tensor, bias: Tensor, length: int) -> Tensor:
        """The states [2, length, n, H] of inputs [2, length or 1, n, 3 H] after their linear layer."""
        places, n, width = entered.shape[1], entered.shape[2], weight.shape[-1]
        states = entered.new_zeros(2, length + 1, n, width)
        gates, before = entered.new_empty(2, 2, length, n, 3 * width)
        turned = weight.transpose(1, 2)
        for place in range(length):
            here, inner, gate = entered[:, place % places], before[:, place], gates[:, place]
            torch.baddbmm(bias[:, None], states[:, place], turned, out=inner)
            torch.add(here[..., : 2 * width], inner[..., : 2 * width], out=gate[..., : 2 * width]).sigmoid_()
            reset, update, new = gate.split(width, -1)
            torch.addcmul(here[..., 2 * width :], reset, inner[..., 2 * width :], out=new)
            # tanh(x) = 2 sigmoid(2 x) - 1, six times as fast as tanh
            new.mul_(2).sigmoid_().mul_(2).sub_(1)
            torch.lerp(new, states[:, place], update, out=states[:, place + 1])
        ctx.save_for_backward(weight, states, gates, before)
        ctx.places = places
        return states[:, 1:]

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """The gradients of entered, weight and bias."""
        weight, states, gates, before = ctx.saved_tensors
        width = weight.shape[-1]
        of_entered, of_inner = torch.empty_like(gates), torch.empty_like(gates)
        of_state = torch.zeros_like(states[:, 0])
        for place in reversed(range(gates.shape[1])):
            reset, update, new = gates[:, place].split(width, -1)
            of_reset, of_update, of_new = of_entered[:, place].split(width, -1)
            of_state.add_(slopes[0][:, place])
            torch.mul(of_state, 1 - update, out=of_new)
            of_new.addcmul_(of_new * new, new, value=-1)
            torch.mul(of_new, before[:, place, :, 2 * width :], out=of_reset).mul_(reset).mul_(1 - reset)
            torch.mul(of_state, states[:, place] - new, out=of_update).mul_(update).mul_(1 - update)
            inner = of_inner[:, place]
            inner[..., : 2 * width] = of_entered[:, place, :, : 2 * width]
            torch.mul(of_new, reset, out=inner[..., 2 * width :])
            of_state = torch.baddbmm(of_state * update, inner, weight)
        flat = of_inner.flatten(1, 2)
        of_weight = flat.transpose(1, 2) @ states[:, :-1].flatten(1, 2)
        if ctx.places == 1:
            of_entered = of_entered.sum(1, keepdim=True)
        return of_entered, of_weight, flat.sum(1), None
