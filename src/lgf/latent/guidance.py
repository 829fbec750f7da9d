"""Predictors p(y | x_t, t) on noised tokens, and the likelihood ratios that guide the flow.

The first layer is linear in one-hot tokens. One gradient therefore estimates the effect of every single-token change
(the Taylor approximation). The exact ratio evaluates each changed row.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from lgf.latent.flow import Noise, noised
from lgf.latent.layout import Layout
from lgf.settings.flow import PredictorSettings


class Predictor(nn.Module):
    """p(y | x_t, t): a category of `classes`, or with classes = 0 a number, N(mu(x_t, t), sigma_t).

    sigma_t = t sigma_1 + (1 - t) sigma_0, both learned. The order of the slots does not matter.
    """

    def __init__(self, layout: Layout, classes: int, width: int = 128, noise: Noise = Noise.MASK):
        super().__init__()
        self.layout = layout
        self.classes = classes
        self.width = width
        self.noise = noise
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

    def changed(self, x: Tensor, t: Tensor, where: Tensor) -> Tensor:
        """The outputs [m, S, ...] for tokens x [n, D] with one of the m tokens `where` [n, D] set to each state.

        A change affects one block only, through the linear first layer, so the other blocks are not evaluated again.
        """
        layout, states = self.layout, self.layout.states
        before = self._enter(functional.one_hot(x, states).float(), t)
        pooled = self._block(before)
        total = pooled.sum(1)
        row, token = where.nonzero(as_tuple=True)
        # The header, if there is one, is the first block and holds the first tokens.
        inside = (token - layout.header) % max(layout.summand, 1)
        block = (token - layout.header) // max(layout.summand, 1) + (layout.header > 0)
        table = torch.cat([layer.weight.T for layer in (self.header, self.slot) if layer is not None])
        first = torch.where(token < layout.header, token, layout.header + inside) * states
        block = torch.where(token < layout.header, 0, block)
        weights = table[first[:, None] + torch.arange(states)]
        after = before[row, block][:, None] + weights - table[first + x[row, token]][:, None]
        rest = (total[row] - pooled[row, block])[:, None]
        return self._leave(rest + self._block(after))

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
        noisy, clean = self.log_sigma.clamp(min=math.log(1e-2)).exp()
        return t * clean + (1 - t) * noisy


@dataclass(frozen=True)
class Guide:
    """The goal of guidance: the category `target`, or a value of at most `target` for a continuous predictor."""

    predictor: Predictor
    target: float
    temperature: float = 1.0

    def log_probability(self, out: Tensor, t: Tensor) -> Tensor:
        """(1 / temperature) log p(y | x_t, t) of the predictor's outputs; log Phi((target - mu) / sigma_t) of means."""
        if self.predictor.classes:
            return out[..., int(self.target)] / self.temperature
        return torch.special.log_ndtr((self.target - out[..., 0]) / self.predictor.sigma(t)) / self.temperature


def taylor_log_ratio(guides: Sequence[Guide], x: Tensor, t: Tensor, where: Tensor) -> Tensor:
    """Log-ratios [n, D, S] of p(y | x with one token changed, t) to p(y | x, t), to first order; 0 outside `where`."""
    hot = functional.one_hot(x, guides[0].predictor.layout.states).float().requires_grad_()
    with torch.enable_grad():
        total = torch.stack([guide.log_probability(guide.predictor(hot, t), t) for guide in guides]).sum()
    (gradient,) = torch.autograd.grad(total, hot)
    return (gradient - gradient.gather(-1, x[..., None])) * where[..., None]


@torch.no_grad()
def exact_log_ratio(guides: Sequence[Guide], x: Tensor, t: Tensor, where: Tensor) -> Tensor:
    """The exact log-ratios [n, D, S]: every change of the tokens `where` [n, D] is evaluated."""
    row = where.nonzero(as_tuple=True)[0]
    total = torch.zeros(len(row), guides[0].predictor.layout.states)
    for guide in guides:
        values = guide.log_probability(guide.predictor.changed(x, t, where), t[row][:, None])
        total += values - values.gather(-1, x[where][:, None])
    ratio = torch.zeros(*x.shape, total.shape[-1])
    ratio[where] = total
    return ratio


DEFAULTS = PredictorSettings()


def train_predictor(
    predictor: Predictor,
    tokens: ArrayLike,
    y: ArrayLike,
    seed: int,
    settings: PredictorSettings = DEFAULTS,
) -> Predictor:
    """A copy of the predictor, trained further on tokens [n, D] and their labels [n]."""
    trained = copy.deepcopy(predictor)
    x1 = torch.as_tensor(np.asarray(tokens), dtype=torch.long)
    labels = torch.as_tensor(np.asarray(y), dtype=torch.long if trained.classes else torch.float32)
    optimiser = torch.optim.AdamW(trained.parameters(), settings.learning_rate, weight_decay=settings.weight_decay)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(settings.steps):
            rows = torch.randint(len(x1), (min(settings.batch, len(x1)),))
            loss = predictor_loss(trained, x1[rows], labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return trained


def predictor_loss(predictor: Predictor, x1: Tensor, labels: Tensor) -> Tensor:
    """Mean -log p(y | x_t, t) at one random time per row; y is the label of x_1."""
    t = torch.rand(len(x1))
    x = noised(predictor.layout, predictor.noise, x1, t)
    out = predictor(functional.one_hot(x, predictor.layout.states).float(), t)
    if predictor.classes:
        return functional.nll_loss(out, labels)
    sigma = predictor.sigma(t)
    return (((labels - out[:, 0]) / sigma) ** 2 / 2 + sigma.log()).mean()


@torch.no_grad()
def predict(predictor: Predictor, tokens: ArrayLike) -> NDArray[np.float32]:
    """Probabilities [n, classes], or means [n], for clean tokens [n, D]."""
    x = torch.as_tensor(np.asarray(tokens), dtype=torch.long)
    out = predictor(functional.one_hot(x, predictor.layout.states).float(), torch.ones(len(x)))
    return (out.exp() if predictor.classes else out[:, 0]).numpy()
