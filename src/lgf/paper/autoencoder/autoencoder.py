"""Grammar quantisation autoencoder: derivations <-> tokens."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from lgf.errors import LgfError
from lgf.grammar import Extent, Grammar, extent, unpad
from lgf.paper.autoencoder.block_autoencoder import BlockAutoencoder, block_shapes
from lgf.paper.autoencoder.quantisation import to_codes, to_tokens
from lgf.paper.autoencoder.sequence_autoencoder import SequenceAutoencoder, sequence_shapes
from lgf.paper.layout import Layout
from lgf.settings.ranges import Count, Weight
from lgf.trained.layers import Shapes, Weights

Autoencoder = BlockAutoencoder | SequenceAutoencoder
CHANNELS = 4
ROWS = 512  # encoded or decoded at a time


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


@dataclass(frozen=True)
class Design:
    """An autoencoder without its weights; `extent` is None for `sequence`, which holds any sentence."""

    grammar: Grammar
    settings: AutoencoderSettings
    extent: Extent | None

    def __post_init__(self):
        if self.settings.architecture != "sequence" and (self.settings.architecture != "blocks" or not self.extent):
            raise LgfError(
                f"architecture is {self.settings.architecture!r}; give 'sequence', or 'blocks' and an extent."
            )

    @property
    def layout(self) -> Layout:
        """The layout of its tokens."""
        settings, size = self.settings, self.extent
        if size is None:
            return Layout(settings.positions * CHANNELS, levels=settings.levels)
        header = settings.header_tokens if size.header else 0
        return Layout(header, size.summands, settings.summand_tokens, settings.levels)

    def shapes(self) -> Shapes:
        """The names and shapes of its weights."""
        if self.extent is None:
            return sequence_shapes(self.grammar, self.layout)
        return block_shapes(self.grammar, self.layout, self.extent, self.settings.width, self.settings.depth)

    def with_weights(self, weights: Weights) -> Autoencoder:
        """The autoencoder with these weights."""
        if self.extent is None:
            return SequenceAutoencoder(self.grammar, self.layout, weights)
        return BlockAutoencoder(self.grammar, self.layout, self.extent, self.settings.depth, weights)


def design(grammar: Grammar, settings: AutoencoderSettings, derivations: ArrayLike) -> Design:
    """The autoencoder of these settings that is large enough for the padded derivations."""
    size = None if settings.architecture == "sequence" else extent(grammar, unpad(grammar, derivations))
    return Design(grammar, settings, size)


def encode(model: Autoencoder, derivations: ArrayLike) -> NDArray[np.int8]:
    """Tokens [n, D] of padded derivations [n, max_length]."""
    arranged = model.arrange(derivations)
    parts = [to_tokens(model.latent(part), model.layout.levels) for part in _split(arranged)]
    return np.concatenate([np.empty((0, model.layout.tokens), np.int8), *parts])


def decode(
    model: Autoencoder, tokens: ArrayLike, allowed: ArrayLike | None = None, max_order: int | None = None
) -> NDArray[np.int32]:
    """Padded derivations [n, max_length] of tokens [n, D]. They are always complete and use allowed rules only."""
    codes = to_codes(np.asarray(tokens), model.layout.levels)
    parts = [model.derive(part, allowed, max_order) for part in _split(codes)]
    return np.concatenate([np.empty((0, model.grammar.max_length), np.int32), *parts])


def exact_share(model: Autoencoder, derivations: ArrayLike) -> float:
    """The share of padded derivations that are reconstructed exactly."""
    rows = np.asarray(derivations)
    return float((decode(model, encode(model, rows)) == rows).all(1).mean())


def _split(rows: NDArray) -> list[NDArray]:
    return [rows[begin : begin + ROWS] for begin in range(0, len(rows), ROWS)]
