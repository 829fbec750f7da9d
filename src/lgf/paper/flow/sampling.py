"""Sampling of latent tokens by the guided continuous-time Markov chain of the discrete flow."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.paper.flow.denoiser import Denoiser
from lgf.paper.flow.guidance import Guide, exact_log_ratio, taylor_log_ratio
from lgf.paper.layers import Array, softmax
from lgf.settings.flow import SamplingSettings

LARGEST_LOG_RATIO = np.float32(80.0)
LATEST_START = 1 - 1e-6
FINE = 100  # default number of steps for a chain that needs time steps
_MARGIN = np.float32(1.0001)  # for rounding, in the probability to leave the mask

DEFAULTS = SamplingSettings()
ROWS = 500  # sampled at a time
Tokens = NDArray[np.int64]
Mask = NDArray[np.bool_]


def sample(
    denoiser: Denoiser,
    n: int,
    seed: int,
    guides: Sequence[Guide] = (),
    settings: SamplingSettings = DEFAULTS,
) -> NDArray[np.int8]:
    """`n` rows of tokens [n, D], from pure noise."""
    everything = np.ones((n, denoiser.layout.tokens), dtype=bool)
    return resample(denoiser, np.zeros(everything.shape), everything, seed, guides, settings, time=0.0)


def resample(
    denoiser: Denoiser,
    tokens: ArrayLike,
    masked: ArrayLike,
    seed: int,
    guides: Sequence[Guide] = (),
    settings: SamplingSettings = DEFAULTS,
    time: ArrayLike | None = None,
) -> NDArray[np.int8]:
    """The tokens [n, D] with the `masked` ones [n, D] sampled anew, conditional on the others, which stay.

    The chain starts at `time`, one number or one per row; None means the share of unmasked tokens.
    """
    layout = denoiser.layout
    known = np.asarray(tokens, dtype=np.int64)
    hidden = np.asarray(masked, dtype=bool)
    if known.ndim != 2 or known.shape != hidden.shape or known.shape[1] != layout.tokens:
        raise ValueError(
            f"tokens have shape {known.shape} and masked {hidden.shape}; the model needs [n, {layout.tokens}] for both."
        )
    if ((known < 0) | (known >= layout.levels))[~hidden].any():
        raise ValueError(f"tokens must be levels 0 to {layout.levels - 1}; mark what is to be sampled in masked.")
    start = 1 - hidden.mean(1) if time is None else np.asarray(time, dtype=float)
    start = np.broadcast_to(np.minimum(start, LATEST_START), len(known)).astype(np.float32)
    rng = np.random.default_rng(seed)
    x = np.where(hidden, layout.mask, known)
    chain = _Chain(denoiser, guides, settings, rng)
    final = settings.eta == 0  # a token that was drawn does not change again
    walk = _walk if not final else _unmask if settings.steps is None else _unmask_in_steps
    for begin in range(0, len(x), ROWS):
        rows = slice(begin, begin + ROWS)
        x[rows] = walk(chain, x[rows], ~hidden[rows], start[rows])
    return x.astype(np.int8)


class _Chain(NamedTuple):
    """The Markov chain: denoiser, guides, settings and random generator."""

    denoiser: Denoiser
    guides: Sequence[Guide]
    settings: SamplingSettings
    rng: np.random.Generator

    def posterior(self, x: Tokens, t: Array, guided: Mask, only: bool = False) -> Array:
        """Probabilities p(x_1 | x_t) [n, D, levels] at the set temperature; p(x_1 | x_t, y) where `guided` [n, D].

        With `only` the probabilities elsewhere are not computed, and mean nothing.

        By Bayes' rule, p(x_1 | x_t, y) = p(x_1 | x_t) p(y | x_t with the token) / p(y | x_t). It is exact for a masked
        token.
        """
        score = self.denoiser(x, t, guided if only else None) / np.float32(self.settings.x1_temperature)
        if self.guides:
            log_ratio = exact_log_ratio if self.settings.exact_guidance else taylor_log_ratio
            ratio = log_ratio(self.guides, x, t, guided)[..., :-1]
            score = score + np.minimum(ratio, LARGEST_LOG_RATIO)
        return softmax(score)


def _unmask(chain: _Chain, x: Tokens, fixed: Mask, start: Array) -> Tokens:
    """The tokens with the masked ones drawn one after the other, conditional on all before."""
    hidden = (x == chain.denoiser.layout.mask) & ~fixed
    order = np.where(hidden, chain.rng.random(x.shape), 2.0).argsort(1)
    count = hidden.sum(1)
    every, places = np.arange(len(x)), np.arange(x.shape[1])
    for turn in range(int(count.max()) if len(x) else 0):
        token = order[:, turn]
        here = (places == token[:, None]) & (turn < count)[:, None]
        t = (start + (1 - start) * (turn / np.maximum(count, turn + 1))).astype(np.float32)
        drawn = _draw(chain.posterior(x, t, here)[every, token], chain.rng)
        x = np.where(here, drawn[:, None], x)
    return x


def _unmask_in_steps(chain: _Chain, x: Tokens, fixed: Mask, start: Array) -> Tokens:
    """The tokens with the masked ones drawn in steps, all tokens of a step at once.

    Guides change the state that a token jumps to, not the time, so they are evaluated for jumping tokens only.
    """
    steps = chain.settings.steps or FINE
    hidden = (x == chain.denoiser.layout.mask) & ~fixed
    for step in range(steps):
        t = start + (1 - start) * np.float32(step / steps)
        jumping = hidden & (chain.rng.random(x.shape) * (steps - step) < 1)
        x = np.where(jumping, _draw(chain.posterior(x, t, jumping), chain.rng), x)
        hidden &= ~jumping
    return x


def _walk(chain: _Chain, x: Tokens, fixed: Mask, start: Array) -> Tokens:
    """The tokens after equal time steps; a token that is still masked takes its most likely state.

    Guidance acts on the stochastic part only through p(x_1 | x_t, y), to keep its two directions in balance.
    """
    denoiser, settings = chain.denoiser, chain.settings
    steps = settings.steps or FINE
    dt = (1 - start) / np.float32(steps)
    for step in range(steps):
        t = start + step * dt
        eta = 0.0 if step == steps - 1 else settings.eta
        chance = chain.rng.random(x.shape)
        # When a token leaves the mask does not depend on the networks, so they are asked about leaving ones only.
        leaving = (1 + eta * t) / (1 - t) * dt
        needed = ~fixed & (x == denoiser.layout.mask) & (chance < _MARGIN * leaving[:, None])
        rows = needed.any(1)
        p = np.full((*x.shape, denoiser.layout.levels), 1 / denoiser.layout.levels, dtype=np.float32)
        if rows.any():
            p[rows] = chain.posterior(x[rows], t[rows], needed[rows], only=True)
        rate = jump_rates(p, x, t, eta)
        x = np.where(fixed, x, _jump(rate * dt[:, None, None], x, chance))
    best = denoiser(x, np.ones_like(start)).argmax(-1)
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
