"""The default autoencoder: header and summands of a sentence have separate codes; all summands share one coder.

Changing the tokens of one summand changes only that summand. Summands may be exchanged.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.grammar import Derivation, Extent, Grammar
from lgf.paper.derivations import arrangement
from lgf.paper.derivations.block_decoding import decode_blocks
from lgf.paper.derivations.rule_slots import left_sides, logits_by_position, occurrences, used_once
from lgf.paper.layout import Layout
from lgf.trained.layers import (
    Array,
    Shapes,
    Weights,
    layer_norm,
    linear,
    linear_shapes,
    named,
    norm_shapes,
    row_sum,
    silu,
)


@dataclass(frozen=True)
class BlockAutoencoder:
    """Rules of header and summands <-> codes. `arrange` makes [n, header + summands * summand] rule numbers."""

    grammar: Grammar
    layout: Layout
    extent: Extent
    depth: int
    weights: Weights

    @cached_property
    def left_sides(self) -> NDArray[np.int64]:
        """The number of each rule's left-hand side."""
        return left_sides(self.grammar)

    @cached_property
    def once(self) -> NDArray[np.bool_]:
        """Whether a header uses a rule's left-hand side at most once."""
        return used_once(self.grammar)

    def fits(self, derivation: Derivation) -> bool:
        """Whether the sentence fits into the model."""
        return arrangement.fits(self.grammar, self.extent, derivation)

    def arrange(self, derivations: ArrayLike) -> NDArray[np.int64]:
        """Rows of rule numbers, split into header and summands; absent slots are padding."""
        return arrangement.arrange(self.grammar, self.extent, derivations)

    def latent(self, arranged: NDArray[np.int64]) -> Array:
        """The latent z [n, D], neither bounded nor rounded."""
        size = self.extent
        header = arranged[:, : size.header]
        summands = arranged[:, size.header :].reshape(-1, size.summand)
        parts = []
        if self.layout.header:
            places = np.where(self.once[header], 0, np.arange(size.header))
            parts.append(self._encoded("header", header, places))
        # Many slots hold the same summand, and most are absent.
        distinct, which = np.unique(summands, axis=0, return_inverse=True)
        slots = self._encoded("summand", distinct, occurrences(self.left_sides, distinct))[which.ravel()]
        return np.concatenate([*parts, slots.reshape(len(arranged), -1)], 1)

    def derive(self, codes: Array, allowed: ArrayLike | None, max_order: int | None) -> NDArray[np.int32]:
        """Padded, complete derivations of the codes."""
        head, slots = self.layout.cut(codes)
        distinct, which = np.unique(slots.reshape(-1, self.layout.summand), axis=0, return_inverse=True)
        logits = self.decoded("summand", distinct)
        summands = logits_by_position(self.grammar, logits, allowed, max_order)[which.ravel()]
        header = np.zeros((len(codes), 0, self._rules), dtype=np.float32)
        if self.layout.header:
            header = self.decoded("header", head)
            header = np.where(self.once, header[:, :1], header)
        summands = summands.reshape(len(codes), self.layout.slots, *logits.shape[1:])
        return decode_blocks(self.grammar, header, summands, allowed, max_order)

    @property
    def _rules(self) -> int:
        return self.grammar.n_rules + 1

    def _encoded(self, coder: str, sequence: NDArray[np.int64], places: NDArray[np.int64]) -> Array:
        """Latent [..., tokens] of rule numbers [..., length] and their places; one unit per (place, rule)."""
        x = row_sum(self.weights[f"{coder}.enter.weight"], places * self._rules + sequence)
        for layer in range(self.depth):
            x = self._residual(f"{coder}.down.{layer}", x)
        return linear(self.weights, f"{coder}.down.{self.depth}", x)

    def decoded(self, coder: str, codes: Array) -> Array:
        """Logits [..., length, rules] by place."""
        x = linear(self.weights, f"{coder}.up.0", codes)
        for layer in range(self.depth):
            x = self._residual(f"{coder}.up.{layer + 1}", x)
        return linear(self.weights, f"{coder}.leave", x).reshape(*codes.shape[:-1], -1, self._rules)

    def _residual(self, name: str, x: Array) -> Array:
        normed = layer_norm(self.weights, f"{name}.inner.0", x)
        return x + linear(self.weights, f"{name}.inner.3", silu(linear(self.weights, f"{name}.inner.1", normed)))


def block_shapes(grammar: Grammar, layout: Layout, extent: Extent, width: int, depth: int) -> Shapes:
    """The names and shapes of a block autoencoder's weights."""
    shapes = _coder_shapes(extent.summand, grammar.n_rules + 1, layout.summand, width, depth, "summand")
    if layout.header:
        shapes |= _coder_shapes(extent.header, grammar.n_rules + 1, layout.header, width, depth, "header")
    return shapes


def _coder_shapes(length: int, rules: int, tokens: int, width: int, depth: int, name: str) -> Shapes:
    shapes = {"enter.weight": (length * rules, width)}
    shapes |= named(f"down.{depth}", linear_shapes(width, tokens)) | named("up.0", linear_shapes(tokens, width))
    shapes |= named("leave", linear_shapes(width, length * rules))
    for residual in [f"down.{i}" for i in range(depth)] + [f"up.{i + 1}" for i in range(depth)]:
        shapes |= named(f"{residual}.inner.0", norm_shapes(width))
        shapes |= named(f"{residual}.inner.1", linear_shapes(width, width))
        shapes |= named(f"{residual}.inner.3", linear_shapes(width, width))
    return named(name, shapes)
