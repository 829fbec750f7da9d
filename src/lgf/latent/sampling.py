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
FINE = 100  # steps of a chain that cannot be walked in continuous time

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
    """The tokens [n, D] with those `masked` [n, D] noised and sampled anew, given the others, which stay as they are.

    The chain starts at `time`, one number or one per row; None is the share of tokens not masked.
    """
    layout = denoiser.layout
    given = torch.as_tensor(np.asarray(tokens), dtype=torch.long)
    hidden = torch.as_tensor(np.array(masked), dtype=torch.bool)
    if given.ndim != 2 or given.shape != hidden.shape or given.shape[1] != layout.tokens:
        raise ValueError(
            f"tokens have shape {tuple(given.shape)} and masked {tuple(hidden.shape)}; "
            f"the model needs [n, {layout.tokens}] for both."
        )
    if ((given < 0) | (given >= layout.levels))[~hidden].any():
        raise ValueError(f"tokens must be levels 0 to {layout.levels - 1}; mark what is to be sampled in masked.")
    start = 1 - hidden.double().mean(1) if time is None else torch.as_tensor(np.array(time, dtype=float))
    start = start.clamp(max=1 - 1e-6).expand(len(given)).float()
    generator = torch.Generator().manual_seed(seed)
    x = torch.where(hidden, noise(layout, denoiser.kind, tuple(given.shape), generator), given)
    chain = _Chain(denoiser, guides, settings, generator)
    settled = denoiser.kind == Noise.MASK and settings.eta == 0  # what was drawn once stays
    walk = _walk if not settled else _unmask if settings.steps is None else _unmask_in_steps
    was_training = denoiser.training
    denoiser.eval()
    for rows in torch.arange(len(x)).split(settings.batch):
        x[rows] = walk(chain, x[rows], ~hidden[rows], start[rows])
    denoiser.train(was_training)
    return x.numpy().astype(np.int8)


class _Chain(NamedTuple):
    """What moves the tokens: the denoiser, steered by the guides, and the chance."""

    denoiser: Denoiser
    guides: Sequence[Guide]
    settings: SamplingSettings
    generator: torch.Generator

    def posterior(self, x: Tensor, t: Tensor, guided: Tensor) -> Tensor:
        """Probabilities p(x_1 | x_t) [n, D, levels] at the set temperature; p(x_1 | x_t, y) where `guided` [n, D].

        By Bayes' rule the second is p(x_1 | x_t) p(y | x_t with the token) / p(y | x_t). It holds for a masked token;
        under uniform noise, where a token may be what it is by chance, it is an approximation that guides too little.
        """
        with torch.no_grad():
            score = self.denoiser(x, t) / self.settings.x1_temperature
        if self.guides:
            log_ratio = exact_log_ratio if self.settings.exact_guidance else taylor_log_ratio
            ratio = log_ratio(self.guides, x, t, guided)[..., :-1]
            score = score + ratio.clamp(max=LARGEST_LOG_RATIO)
        return score.softmax(-1)


def _unmask(chain: _Chain, x: Tensor, kept: Tensor, start: Tensor) -> Tensor:
    """Every masked token in turn, given all drawn before."""
    hidden = (x == chain.denoiser.layout.mask) & ~kept
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


def _unmask_in_steps(chain: _Chain, x: Tensor, kept: Tensor, start: Tensor) -> Tensor:
    """The same with all tokens of a step drawn at once.

    The guides decide where a masked token goes, not when, so that only those need be priced that jump.
    """
    steps = chain.settings.steps or FINE
    hidden = (x == chain.denoiser.layout.mask) & ~kept
    for step in range(steps):
        t = start + (1 - start) * (step / steps)
        jumping = hidden & (torch.rand(x.shape, generator=chain.generator) * (steps - step) < 1)
        x = torch.where(jumping, _draw(chain.posterior(x, t, jumping), chain.generator), x)
        hidden &= ~jumping
    return x


def _walk(chain: _Chain, x: Tensor, kept: Tensor, start: Tensor) -> Tensor:
    """The tokens at the end of equal steps in time; one that rounding leaves masked becomes what is likeliest.

    Stochasticity is not guided but through p(x_1 | x_t, y): its two directions must stay in balance.
    """
    denoiser, settings = chain.denoiser, chain.settings
    steps = settings.steps or FINE
    dt = (1 - start) / steps
    for step in range(steps):
        t = start + step * dt
        unsure = ~kept & (x == denoiser.layout.mask) if denoiser.kind == Noise.MASK else ~kept
        last = step == steps - 1
        rate = jump_rates(denoiser.kind, chain.posterior(x, t, unsure), x, t, 0.0 if last else settings.eta)
        x = torch.where(kept, x, _jump(rate * dt[:, None, None], x, chain.generator))
    with torch.no_grad():
        best = denoiser(x, torch.ones_like(start)).argmax(-1)
    return torch.where(x == denoiser.layout.mask, best, x)


def jump_rates(kind: Noise, p: Tensor, x: Tensor, t: Tensor, eta: float) -> Tensor:
    """Rates [n, D, S] of jumping from x [n, D] to each state, with p [n, D, levels] the denoiser's; 0 to stay.

    Flow and stochasticity `eta` together: the second leaves the marginals as they are.
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
    """One state [...] each, by the weights p [..., states]."""
    edges = p.cumsum(-1)
    drawn = torch.rand(p.shape[:-1], generator=generator)[..., None] * edges[..., -1:]
    return (drawn >= edges).sum(-1).clamp(max=p.shape[-1] - 1)
