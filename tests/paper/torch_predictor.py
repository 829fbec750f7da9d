"""Predictors p(y | x_t, t) in torch: the slow counterpart of those in NumPy, and of their gradients."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from lgf.paper.flow.predictor import LEAST_LOG_SIGMA
from lgf.paper.layout import Layout


class Predictor(nn.Module):
    """p(y | x_t, t): a category of `classes`, or with classes = 0 a number, N(mu(x_t, t), sigma_t).

    sigma_t = t sigma_1 + (1 - t) sigma_0, both learned. The order of the slots does not matter.
    """

    def __init__(self, layout: Layout, classes: int, width: int = 128):
        super().__init__()
        self.layout = layout
        self.classes = classes
        self.width = width
        states = layout.states
        self.header = nn.Linear(layout.header * states, width) if layout.header else None
        self.slot = nn.Linear(layout.summand * states, width) if layout.slots else None
        self.time = nn.Linear(1, width)
        self.inner = nn.Linear(width, width) if layout.slots else None
        self.joint = nn.Linear(width, width) if layout.slots else None
        self.out = nn.Linear(width, max(classes, 1))
        self.log_sigma = nn.Parameter(torch.zeros(2))

    def forward(self, hot: Tensor, t: Tensor) -> Tensor:
        """Log-probabilities [n, classes], or means [n, 1], of one-hot tokens [n, D, S] at times [n]."""
        return self._leave(self._block(self._enter(hot, t)).sum(1))

    def _enter(self, hot: Tensor, t: Tensor) -> Tensor:
        """First-layer outputs [n, blocks, width], header first; linear in the one-hot tokens."""
        header, slots = self.layout.cut(hot)
        parts = [] if self.header is None else [self.header(header.flatten(1))[:, None]]
        if self.slot is not None:
            parts.append(self.slot(slots.flatten(2)))
        return torch.cat(parts, 1) + self.time(t[:, None])[:, None]

    def _block(self, entered: Tensor) -> Tensor:
        hidden = functional.elu(entered)
        return hidden if self.inner is None else functional.elu(self.inner(hidden))

    def _leave(self, pooled: Tensor) -> Tensor:
        if self.joint is not None:
            pooled = functional.elu(self.joint(pooled))
        out = self.out(pooled)
        return out.log_softmax(-1) if self.classes else out

    def sigma(self, t: Tensor) -> Tensor:
        """sigma_t [n] of a continuous predictor."""
        noisy, clean = self.log_sigma.clamp(min=LEAST_LOG_SIGMA).exp()
        return t * clean + (1 - t) * noisy
