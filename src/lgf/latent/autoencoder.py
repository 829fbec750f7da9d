"""Grammar quantisation autoencoder: derivations <-> tokens, and its training losses."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from torch import Tensor

from lgf.errors import LgfError
from lgf.grammar import Extent, Grammar, extent, unpad
from lgf.latent.block_autoencoder import BlockAutoencoder
from lgf.latent.layout import Layout
from lgf.latent.quantisation import bounded, quantised, to_codes, to_tokens
from lgf.latent.sequence_autoencoder import SequenceAutoencoder
from lgf.settings.ranges import Count, Weight

Autoencoder = BlockAutoencoder | SequenceAutoencoder


@dataclass(frozen=True)
class AutoencoderSettings:
    """Size of an autoencoder; architecture `blocks` is aligned to summands, `sequence` is the paper's.

    header_tokens, summand_tokens   tokens of the header and of each summand, for `blocks`
    positions                       d, positions of four channels each, for `sequence`
    scale, weight                   lambda and beta of the behavioural loss; weight 0 turns it off
    """

    architecture: Literal["blocks", "sequence"] = "blocks"
    levels: Annotated[int, Field(ge=3, le=64)] = 9
    header_tokens: Count = 4
    summand_tokens: Count = 8
    width: Count = 128
    depth: Count = 1
    positions: Count = 17
    scale: Weight = 0.1
    weight: Weight = 1e-3


CHANNELS = 4


def new_autoencoder(grammar: Grammar, settings: AutoencoderSettings, derivations: ArrayLike) -> Autoencoder:
    """An untrained autoencoder, large enough for the padded derivations."""
    size = None if settings.architecture == "sequence" else extent(grammar, unpad(grammar, derivations))
    return empty_autoencoder(grammar, settings, size)


def empty_autoencoder(grammar: Grammar, settings: AutoencoderSettings, size: Extent | None) -> Autoencoder:
    """An untrained autoencoder; `blocks` holds sentences of that extent, `sequence` any sentence."""
    if settings.architecture == "sequence":
        return SequenceAutoencoder(grammar, Layout(settings.positions * CHANNELS, levels=settings.levels))
    if settings.architecture != "blocks" or size is None:
        raise LgfError(f"architecture is {settings.architecture!r}; give 'sequence', or 'blocks' and an extent.")
    layout = Layout(
        settings.header_tokens if size.header else 0, size.summands, settings.summand_tokens, settings.levels
    )
    return BlockAutoencoder(grammar, layout, size, settings.width, settings.depth)


@torch.no_grad()
def encode(model: Autoencoder, derivations: ArrayLike) -> NDArray[np.int8]:
    """Tokens [n, D] of padded derivations [n, max_length]."""
    levels = model.layout.levels
    parts = [
        to_tokens(quantised(model.latent(part), levels), levels) for part in model.arrange(derivations).split(2048)
    ]
    return torch.cat(parts).numpy().astype(np.int8)


@torch.no_grad()
def decode(
    model: Autoencoder, tokens: ArrayLike, allowed: ArrayLike | None = None, max_order: int | None = None
) -> NDArray[np.int32]:
    """Padded derivations [n, max_length] of tokens [n, D]. They are always complete and use allowed rules only."""
    codes = to_codes(torch.as_tensor(np.asarray(tokens), dtype=torch.long), model.layout.levels)
    return np.concatenate([model.derive(part, allowed, max_order) for part in codes.split(512)])


@torch.no_grad()
def latent(model: Autoencoder, derivations: ArrayLike) -> NDArray[np.float32]:
    """Bounded, unrounded latent vectors of padded derivations; the behavioural loss shapes their distances."""
    parts = [model.place(_bounded(model, model.latent(part))) for part in model.arrange(derivations).split(2048)]
    return torch.cat(parts).numpy()


def autoencoder_loss(
    model: Autoencoder,
    arranged: Tensor,
    behaviour: Tensor | None,
    settings: AutoencoderSettings,
    practice: Tensor | None = None,
) -> Tensor:
    """Reconstruction loss of the arranged and practice rows, plus the behavioural loss of the arranged rows."""
    rows = arranged if practice is None else torch.cat([arranged, practice])
    z = model.latent(rows)
    reconstruction = model.reconstruction_loss(rows, quantised(z, model.layout.levels))
    if behaviour is None or settings.weight == 0:
        return reconstruction
    place = model.place(_bounded(model, z[: len(arranged)]))
    return reconstruction + settings.weight * behavioural_loss(place, behaviour, settings.scale)


def behavioural_loss(z: Tensor, behaviour: Tensor, scale: float) -> Tensor:
    """Mean over all pairs of (|z_i - z_j| - scale d_VF(i, j))^2, d_VF = max(log |b_i - b_j|^2, 0)."""
    target = squared_distances(behaviour.double()).clamp(min=1).log().float()
    return ((squared_distances(z) + 1e-6).sqrt() - scale * target).square().mean()


def squared_distances(x: Tensor) -> Tensor:
    """|x_i - x_j|^2 [n, n] from the Gram matrix, clipped at zero."""
    gram = x @ x.T
    squares = gram.diagonal()
    return (squares[:, None] + squares - 2 * gram).clamp(min=0)


def _bounded(model: Autoencoder, z: Tensor) -> Tensor:
    levels = model.layout.levels
    return bounded(z, levels) / (levels // 2)
