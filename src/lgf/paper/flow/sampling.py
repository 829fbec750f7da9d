"""Sampling of latent tokens by the guided continuous-time Markov chain of the discrete flow."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lgf.paper.flow.denoiser import Denoiser
from lgf.paper.flow.guidance import Guide, taylor_log_ratio
from lgf.trained.layers import Array, softmax

LARGEST_LOG_RATIO = np.float32(80.0)
_MARGIN = np.float32(1.0001)  # for rounding, in the probability to leave the mask
ROWS = 500  # sampled at a time
Tokens = NDArray[np.int64]
Mask = NDArray[np.bool_]


def sample(
    denoiser: Denoiser,
    n: int,
    seed: int,
    guides: Sequence[Guide] = (),
    steps: int | None = None,
    eta: float = 0.0,
) -> NDArray[np.int8]:
    """`n` rows of tokens [n, D], from pure noise.

    In `steps` of equal time any number of tokens may jump; `eta` is the stochasticity, and larger values need more
    steps. Without steps one token is drawn after the other in random order, and does not change again.
    """
    layout = denoiser.layout
    x = np.full((n, layout.tokens), layout.mask)
    chain = _Chain(denoiser, guides, np.random.default_rng(seed))
    for begin in range(0, n, ROWS):
        rows = slice(begin, begin + ROWS)
        x[rows] = _unmask(chain, x[rows]) if steps is None else _walk(chain, x[rows], steps, eta)
    return x.astype(np.int8)


class _Chain(NamedTuple):
    """The Markov chain: denoiser, guides and random generator."""

    denoiser: Denoiser
    guides: Sequence[Guide]
    rng: np.random.Generator

    def posterior(self, x: Tokens, t: Array, guided: Mask, only: bool = False) -> Array:
        """Probabilities p(x_1 | x_t) [n, D, levels]; p(x_1 | x_t, y) where `guided` [n, D].

        With `only` the probabilities elsewhere are not computed, and mean nothing.

        By Bayes' rule, p(x_1 | x_t, y) = p(x_1 | x_t) p(y | x_t with the token) / p(y | x_t).
        """
        score = self.denoiser(x, t, guided if only else None)
        if self.guides:
            ratio = taylor_log_ratio(self.guides, x, t, guided)[..., :-1]
            score = score + np.minimum(ratio, LARGEST_LOG_RATIO)
        return softmax(score)


def _unmask(chain: _Chain, x: Tokens) -> Tokens:
    """The masked tokens drawn one after the other, conditional on all before."""
    order = chain.rng.random(x.shape).argsort(1)
    every, count = np.arange(len(x)), x.shape[1]
    for turn in range(count):
        token = order[:, turn]
        here = np.arange(count) == token[:, None]
        t = np.full(len(x), turn / count, dtype=np.float32)
        drawn = _draw(chain.posterior(x, t, here)[every, token], chain.rng)
        x = np.where(here, drawn[:, None], x)
    return x


def _walk(chain: _Chain, x: Tokens, steps: int, eta: float) -> Tokens:
    """The tokens after equal time steps; a token that is still masked takes its most likely state.

    Guidance acts on the stochastic part only through p(x_1 | x_t, y), to keep its two directions in balance.
    """
    denoiser, dt = chain.denoiser, np.full(len(x), 1 / np.float32(steps))
    for step in range(steps):
        t = step * dt
        stochastic = 0.0 if step == steps - 1 else eta
        chance = chain.rng.random(x.shape)
        # When a token leaves the mask does not depend on the networks, so they are asked about leaving ones only.
        leaving = (1 + stochastic * t) / (1 - t) * dt
        needed = (x == denoiser.layout.mask) & (chance < _MARGIN * leaving[:, None])
        rows = needed.any(1)
        p = np.full((*x.shape, denoiser.layout.levels), 1 / denoiser.layout.levels, dtype=np.float32)
        if rows.any():
            p[rows] = chain.posterior(x[rows], t[rows], needed[rows], only=True)
        rate = jump_rates(p, x, t, stochastic)
        x = _jump(rate * dt[:, None, None], x, chance)
    best = denoiser(x, np.ones_like(dt)).argmax(-1)
    return np.where(x == denoiser.layout.mask, best, x)


def jump_rates(p: Array, x: Tokens, t: Array, eta: float) -> Array:
    """Jump rates [n, D, S] from x [n, D] to each state; p [n, D, levels] is the posterior. The rate to stay is 0.

    The rate is the sum of flow and stochasticity `eta`; the latter does not change the marginals.
    """
    levels = p.shape[-1]
    time = t[:, None, None]
    here = np.eye(levels + 1, dtype=p.dtype)[x]
    rate = np.zeros_like(here)
    masked = here[..., -1:]
    rate[..., :-1] = masked * p * (1 + eta * time) / (1 - time)
    rate[..., -1:] = (1 - masked) * eta
    return rate * (1 - here)


def _jump(change: Array, x: Tokens, chance: Array) -> Tokens:
    """The next states, with the probabilities `change` [n, D, S] of leaving for each, by uniform numbers [n, D]."""
    change = change / np.maximum(change.sum(-1, keepdims=True), 1)
    stay = np.maximum(1 - change.sum(-1, keepdims=True), 0)
    there = np.take_along_axis(change, x[..., None], -1)
    np.put_along_axis(change, x[..., None], there + stay, -1)
    return _states_at(change, chance)


def _draw(p: Array, rng: np.random.Generator) -> Tokens:
    """States [...] drawn with weights p [..., states]."""
    return _states_at(p, rng.random(p.shape[:-1]))


def _states_at(p: Array, chance: Array) -> Tokens:
    """The states [...] at these quantiles [...] of the weights p [..., states]."""
    edges = p.cumsum(-1)
    drawn = chance[..., None] * edges[..., -1:]
    return np.minimum((drawn >= edges).sum(-1), p.shape[-1] - 1)
