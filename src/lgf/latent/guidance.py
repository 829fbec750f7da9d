"""Predictors p(y | x_t, t) on noised tokens, and the ratio by which they guide the flow.

The first layer is linear on one-hots, so that the gradient with respect to them prices every single-token change at
once (the Taylor approximation); the exact ratio evaluates each changed row.
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
        self.joint = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, max(classes, 1))
        self.log_sigma = nn.Parameter(torch.zeros(2))

    def forward(self, hot: Tensor, t: Tensor) -> Tensor:
        """Log-probabilities [n, classes], or means [n, 1], of one-hot tokens [n, D, S] at times [n]."""
        header, slots = self.layout.cut(hot)
        time = self.time(t[:, None])
        pooled = functional.elu(time if self.header is None else self.header(header.flatten(1)) + time)
        if self.slot is not None:
            each = functional.elu(self.slot(slots.flatten(2)) + time[:, None])
            pooled = functional.elu(self.joint(torch.cat([pooled, each.sum(1)], 1)))
        out = self.out(pooled)
        return out.log_softmax(-1) if self.classes else out

    def sigma(self, t: Tensor) -> Tensor:
        """sigma_t [n] of a continuous predictor."""
        noisy, clean = self.log_sigma.clamp(min=math.log(1e-2)).exp()
        return t * clean + (1 - t) * noisy


@dataclass(frozen=True)
class Guide:
    """What samples should have: the category `target`, or a value at most `target` if the predictor is continuous."""

    predictor: Predictor
    target: float
    temperature: float = 1.0

    def log_probability(self, hot: Tensor, t: Tensor) -> Tensor:
        """(1 / temperature) log p(y | x_t, t) [n]: of the category, or log Phi((target - mu) / sigma_t)."""
        out = self.predictor(hot, t)
        if self.predictor.classes:
            return out[:, int(self.target)] / self.temperature
        return torch.special.log_ndtr((self.target - out[:, 0]) / self.predictor.sigma(t)) / self.temperature


def taylor_log_ratio(guides: Sequence[Guide], x: Tensor, t: Tensor) -> Tensor:
    """Log-ratios [n, D, S] of p(y | x with one token changed, t) and p(y | x, t), to first order."""
    hot = functional.one_hot(x, guides[0].predictor.layout.states).float().requires_grad_()
    with torch.enable_grad():
        total = torch.stack([guide.log_probability(hot, t) for guide in guides]).sum()
    (gradient,) = torch.autograd.grad(total, hot)
    return gradient - gradient.gather(-1, x[..., None])


@torch.no_grad()
def exact_log_ratio(guides: Sequence[Guide], x: Tensor, t: Tensor) -> Tensor:
    """The same log-ratios, each changed row evaluated."""
    n, tokens = x.shape
    states = guides[0].predictor.layout.states

    def log_probability(rows: Tensor) -> Tensor:
        hot = functional.one_hot(rows, states).float()
        times = t.repeat_interleave(len(rows) // n)
        return torch.stack([guide.log_probability(hot, times) for guide in guides]).sum(0)

    changed = x[:, None, None].repeat(1, tokens, states, 1)
    every = torch.arange(tokens)
    changed[:, every, :, every] = torch.arange(states).expand(tokens, n, states)
    return log_probability(changed.reshape(-1, tokens)).view(n, tokens, states) - log_probability(x)[:, None, None]


@dataclass(frozen=True)
class PredictorSettings:
    """Training of a predictor, in steps of batches drawn at random."""

    steps: int = 60
    batch: int = 512
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2


DEFAULTS = PredictorSettings()


def train_predictor(
    predictor: Predictor,
    tokens: ArrayLike,
    y: ArrayLike,
    seed: int,
    settings: PredictorSettings = DEFAULTS,
) -> Predictor:
    """A copy of the predictor, new or trained before, trained further on tokens [n, D] and their labels [n]."""
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
    """Mean -log p(y | x_t, t) at one random time per row, the label being that of x_1."""
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
