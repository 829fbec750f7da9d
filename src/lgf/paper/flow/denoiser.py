"""The denoiser p(x_1 | x_t, t) of the discrete flow on latent tokens, and its noise.

Time runs from 0 (noise) to 1 (data). At time t each token is data with probability t, independently, and
noise otherwise: the mask state.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from lgf.errors import LgfError
from lgf.paper.layout import Layout
from lgf.settings.ranges import Count
from lgf.trained.layers import (
    Array,
    Shapes,
    Weights,
    attention,
    layer_norm,
    linear,
    linear_shapes,
    named,
    norm_shapes,
    relu,
    silu,
    token_sum,
)


def noised(layout: Layout, x1: NDArray[np.integer], t: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Noised tokens x_t [n, D] of data x_1 [n, D] at times t [n]."""
    return np.where(rng.random(x1.shape, dtype=np.float32) < t[:, None], x1, layout.mask)


@dataclass(frozen=True)
class DenoiserSettings:
    """Size of a denoiser; architecture `blocks` is equivariant under exchange of slots, `mlp` is the paper's.

    The paper's: architecture="mlp", width=5000, depth=2, dropout=0.2.
    """

    architecture: Literal["blocks", "mlp"] = "blocks"
    width: Count = 128
    depth: Count = 3
    heads: Count = 4
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def __post_init__(self):
        if self.architecture not in ("blocks", "mlp"):
            raise LgfError(f"architecture is {self.architecture!r}; give 'blocks' or 'mlp'.")
        if self.architecture == "blocks" and self.width % self.heads:
            raise LgfError(f"a width of {self.width} cannot be shared by {self.heads} heads; give a multiple of them.")


@dataclass(frozen=True)
class Denoiser:
    """Logits [n, D, levels] of x_1, given noised tokens [n, D] and times [n]."""

    layout: Layout
    settings: DenoiserSettings
    weights: Weights

    def __call__(self, x: NDArray[np.integer], t: Array, where: NDArray[np.bool_] | None = None) -> Array:
        """Logits [n, D, levels]; if `where` [n, D] is given, only those of its tokens are meant."""
        logits = self._from_blocks(x, t, where) if self.settings.architecture == "blocks" else self._from_row(x, t)
        return logits.reshape(len(x), self.layout.tokens, self.layout.levels)

    def _from_row(self, x: NDArray[np.integer], t: Array) -> Array:
        entered = token_sum(self.weights["net.first.table.weight"], x, self.layout.states)
        hidden = relu(entered + linear(self.weights, "net.time", t[:, None]))
        for layer in range(1, self.settings.depth):
            hidden = relu(linear(self.weights, f"net.rest.{3 * layer - 1}", hidden))
        return linear(self.weights, f"net.rest.{3 * self.settings.depth - 1}", hidden)

    def _from_blocks(self, x: NDArray[np.integer], t: Array, where: NDArray[np.bool_] | None) -> Array:
        """Attention between blocks. Slots share all weights, so exchanging two slots exchanges their outputs."""
        header, slots = self.layout.cut(x)
        parts = [self._entered("header_in", header)[:, None], self._entered("slot_in", slots)]
        hidden = np.concatenate(parts, 1)
        hidden += linear(self.weights, "net.time", t[:, None])[:, None]
        wanted = None
        for layer in range(self.settings.depth):
            if where is not None and layer == self.settings.depth - 1:
                header, slots = self.layout.cut(where)
                wanted = np.concatenate([header.any(1)[:, None], slots.any(2)], 1)
            hidden = self._attended(f"net.layers.{layer}", hidden, wanted)
        out = [self._left("header_out", hidden[:, 0]), self._left("slot_out", hidden[:, 1:])]
        return np.concatenate([part.reshape(len(x), -1) for part in out], 1)

    def _entered(self, name: str, x: NDArray[np.integer]) -> Array:
        if not x.shape[-1]:
            return np.zeros((*x.shape[:-1], self.settings.width), dtype=np.float32)
        return token_sum(self.weights[f"net.{name}.table.weight"], x, self.layout.states)

    def _left(self, name: str, x: Array) -> Array:
        if f"net.{name}.layer.1.weight" not in self.weights:
            return x[..., :0]
        return linear(self.weights, f"net.{name}.layer.1", layer_norm(self.weights, f"net.{name}.layer.0", x))

    def _attended(self, name: str, x: Array, wanted: NDArray[np.bool_] | None) -> Array:
        """The layer's outputs [n, blocks, width], of the `wanted` blocks only if they are given."""
        weights, heads = self.weights, self.settings.heads
        joint = linear(weights, f"{name}.joint", layer_norm(weights, f"{name}.norm", x))
        q, k, v = joint.reshape(*x.shape[:2], 3, heads, -1).transpose(2, 0, 3, 1, 4)
        attended = attention(q, k, v).swapaxes(1, 2).reshape(x.shape)
        if wanted is None:
            return self._alone(name, x, attended)
        outputs = np.zeros_like(x)
        outputs[wanted] = self._alone(name, x[wanted], attended[wanted])
        return outputs

    def _alone(self, name: str, x: Array, attended: Array) -> Array:
        """What a layer does with each block for itself."""
        x = x + linear(self.weights, f"{name}.out", attended)
        alone = linear(self.weights, f"{name}.alone.1", layer_norm(self.weights, f"{name}.alone.0", x))
        return x + linear(self.weights, f"{name}.alone.4", silu(alone))


def denoiser_shapes(layout: Layout, settings: DenoiserSettings) -> Shapes:
    """The names and shapes of a denoiser's weights."""
    width = settings.width
    shapes = named("net.time", linear_shapes(1, width))
    if settings.architecture == "mlp":
        shapes["net.first.table.weight"] = (layout.tokens * layout.states, width)
        for layer in range(1, settings.depth):
            shapes |= named(f"net.rest.{3 * layer - 1}", linear_shapes(width, width))
        return shapes | named(f"net.rest.{3 * settings.depth - 1}", linear_shapes(width, layout.tokens * layout.levels))
    for block, tokens in (("header", layout.header), ("slot", layout.summand)):
        if tokens:
            shapes[f"net.{block}_in.table.weight"] = (tokens * layout.states, width)
            shapes |= named(f"net.{block}_out.layer.0", norm_shapes(width))
            shapes |= named(f"net.{block}_out.layer.1", linear_shapes(width, tokens * layout.levels))
    for layer in range(settings.depth):
        parts = {
            "norm": norm_shapes(width), "joint": linear_shapes(width, 3 * width), "out": linear_shapes(width, width),
            "alone.0": norm_shapes(width), "alone.1": linear_shapes(width, 2 * width),
            "alone.4": linear_shapes(2 * width, width),
        }  # fmt: skip
        for part, part_shapes in parts.items():
            shapes |= named(f"net.layers.{layer}.{part}", part_shapes)
    return shapes
