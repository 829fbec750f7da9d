"""Sampling of latent tokens by the guided continuous-time Markov chain of the discrete flow."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from lgf.latent.flow import Denoiser, Noise, noise
from lgf.latent.guidance import Guide, exact_log_ratio, taylor_log_ratio
from lgf.settings.flow import SamplingSettings

LARGEST_LOG_RATIO = 80.0
FINE = 100  # default number of steps for a chain that needs time steps

DEFAULTS = SamplingSettings()


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
    known = torch.as_tensor(np.asarray(tokens), dtype=torch.long)
    hidden = torch.as_tensor(np.array(masked), dtype=torch.bool)
    if known.ndim != 2 or known.shape != hidden.shape or known.shape[1] != layout.tokens:
        raise ValueError(
            f"tokens have shape {tuple(known.shape)} and masked {tuple(hidden.shape)}; "
            f"the model needs [n, {layout.tokens}] for both."
        )
    if ((known < 0) | (known >= layout.levels))[~hidden].any():
        raise ValueError(f"tokens must be levels 0 to {layout.levels - 1}; mark what is to be sampled in masked.")
    start = 1 - hidden.double().mean(1) if time is None else torch.as_tensor(np.array(time, dtype=float))
    start = start.clamp(max=1 - 1e-6).expand(len(known)).float()
    generator = torch.Generator().manual_seed(seed)
    x = torch.where(hidden, noise(layout, denoiser.kind, tuple(known.shape), generator), known)
    chain = _Chain(denoiser, guides, settings, generator)
    final = denoiser.kind == Noise.MASK and settings.eta == 0  # a token that was drawn does not change again
    walk = _walk if not final else _unmask if settings.steps is None else _unmask_in_steps
    was_training = denoiser.training
    denoiser.eval()
    for rows in torch.arange(len(x)).split(settings.batch):
        x[rows] = walk(chain, x[rows], ~hidden[rows], start[rows])
    denoiser.train(was_training)
    return x.numpy().astype(np.int8)


class _Chain(NamedTuple):
    """The Markov chain: denoiser, guides, settings and random generator."""

    denoiser: Denoiser
    guides: Sequence[Guide]
    settings: SamplingSettings
    generator: torch.Generator

    def posterior(self, x: Tensor, t: Tensor, guided: Tensor) -> Tensor:
        """Probabilities p(x_1 | x_t) [n, D, levels] at the set temperature; p(x_1 | x_t, y) where `guided` [n, D].

        By Bayes' rule, p(x_1 | x_t, y) = p(x_1 | x_t) p(y | x_t with the token) / p(y | x_t). It is exact for a masked
        token. Under uniform noise it is an approximation that guides too little.
        """
        with torch.no_grad():
            score = self.denoiser(x, t) / self.settings.x1_temperature
        if self.guides:
            log_ratio = exact_log_ratio if self.settings.exact_guidance else taylor_log_ratio
            ratio = log_ratio(self.guides, x, t, guided)[..., :-1]
            score = score + ratio.clamp(max=LARGEST_LOG_RATIO)
        return score.softmax(-1)


def _unmask(chain: _Chain, x: Tensor, fixed: Tensor, start: Tensor) -> Tensor:
    """The tokens with the masked ones drawn one after the other, conditional on all before."""
    hidden = (x == chain.denoiser.layout.mask) & ~fixed
    order = torch.rand(x.shape, generator=chain.generator).masked_fill(~hidden, 2.0).argsort(1)
    count = hidden.sum(1)
    every = torch.arange(len(x))
    for turn in range(int(count.max()) if len(x) else 0):
        token = order[:, turn]
        here = functional.one_hot(token, x.shape[1]).bool() & (turn < count)[:, None]
        t = start + (1 - start) * (turn / count.clamp(min=turn + 1))
        drawn = _draw(chain.posterior(x, t, here)[every, token], chain.generator)
        x = torch.where(here, drawn[:, None], x)
    return x


def _unmask_in_steps(chain: _Chain, x: Tensor, fixed: Tensor, start: Tensor) -> Tensor:
    """The tokens with the masked ones drawn in steps, all tokens of a step at once.

    Guides change the state that a token jumps to, not the time, so they are evaluated for jumping tokens only.
    """
    steps = chain.settings.steps or FINE
    hidden = (x == chain.denoiser.layout.mask) & ~fixed
    for step in range(steps):
        t = start + (1 - start) * (step / steps)
        jumping = hidden & (torch.rand(x.shape, generator=chain.generator) * (steps - step) < 1)
        x = torch.where(jumping, _draw(chain.posterior(x, t, jumping), chain.generator), x)
        hidden &= ~jumping
    return x


def _walk(chain: _Chain, x: Tensor, fixed: Tensor, start: Tensor) -> Tensor:
    """The tokens after equal time steps; a token that is still masked takes its most likely state.

    Guidance acts on the stochastic part only through p(x_1 | x_t, y), to keep its two directions in balance.
    """
    denoiser, settings = chain.denoiser, chain.settings
    steps = settings.steps or FINE
    dt = (1 - start) / steps
    for step in range(steps):
        t = start + step * dt
        guided = ~fixed & (x == denoiser.layout.mask) if denoiser.kind == Noise.MASK else ~fixed
        last = step == steps - 1
        rate = jump_rates(denoiser.kind, chain.posterior(x, t, guided), x, t, 0.0 if last else settings.eta)
        x = torch.where(fixed, x, _jump(rate * dt[:, None, None], x, chain.generator))
    with torch.no_grad():
        best = denoiser(x, torch.ones_like(start)).argmax(-1)
    return torch.where(x == denoiser.layout.mask, best, x)


def jump_rates(kind: Noise, p: Tensor, x: Tensor, t: Tensor, eta: float) -> Tensor:
    """Jump rates [n, D, S] from x [n, D] to each state; p [n, D, levels] is the posterior. The rate to stay is 0.

    The rate is the sum of flow and stochasticity `eta`; the latter does not change the marginals.
    """
    levels = p.shape[-1]
    time = t[:, None, None]
    here = functional.one_hot(x, levels + 1).to(p.dtype)
    rate = torch.zeros_like(here)
    if kind == Noise.MASK:
        masked = here[..., -1:]
        rate[..., :-1] = masked * p * (1 + eta * time) / (1 - time)
        rate[..., -1:] = (1 - masked) * eta
    else:
        stays = (p * here[..., :-1]).sum(-1, keepdim=True)
        rate[..., :-1] = p * (1 + eta + eta * (levels - 1) * time) / (1 - time) + eta * stays
    return rate * (1 - here)


def _jump(change: Tensor, x: Tensor, generator: torch.Generator) -> Tensor:
    """The next states, drawn with the probabilities `change` [n, D, S] of leaving for each state."""
    change = change / change.sum(-1, keepdim=True).clamp(min=1)
    stay = (1 - change.sum(-1, keepdim=True)).clamp(min=0)
    return _draw(change.scatter_add(-1, x[..., None], stay), generator)


def _draw(p: Tensor, generator: torch.Generator) -> Tensor:
    """States [...] drawn with weights p [..., states]."""
    edges = p.cumsum(-1)
    drawn = torch.rand(p.shape[:-1], generator=generator)[..., None] * edges[..., -1:]
    return (drawn >= edges).sum(-1).clamp(max=p.shape[-1] - 1)
