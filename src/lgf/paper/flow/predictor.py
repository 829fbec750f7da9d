"""Predictors p(y | x_t, t) on noised tokens, with their gradients.

The first layer is linear in one-hot tokens, and each block passes the next layer alone; then the blocks are summed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.paper.layout import Layout
from lgf.trained.layers import (
    Array,
    Shapes,
    Weights,
    elu,
    elu_slope,
    linear,
    linear_shapes,
    log_softmax,
    named,
    token_sum,
)

LEAST_LOG_SIGMA = math.log(1e-2)


class Trace(NamedTuple):
    """What a predictor computes on the way, [n, blocks, width] or [n, width]; None for a layer that it lacks."""

    entered: Array
    inner: Array | None
    pooled: Array
    joint: Array | None
    out: Array


@dataclass(frozen=True)
class Predictor:
    """p(y | x_t, t): a category of `classes`, or with classes = 0 a number, N(mu(x_t, t), sigma_t).

    sigma_t = t sigma_1 + (1 - t) sigma_0, both learned. The order of the slots does not matter.
    """

    layout: Layout
    classes: int
    width: int
    weights: Weights

    def __call__(self, x: NDArray[np.integer], t: Array) -> Array:
        """Log-probabilities [n, classes], or means [n, 1], of tokens [n, D] at times [n]."""
        return self.trace(x, t).out

    def trace(self, x: NDArray[np.integer], t: Array) -> Trace:
        """The outputs, with what was computed on the way."""
        entered = self._enter(x, t)
        hidden = elu(entered)
        inner = linear(self.weights, "inner", hidden) if self.layout.slots else None
        pooled = (hidden if inner is None else elu(inner)).sum(1)
        joint = linear(self.weights, "joint", pooled) if self.layout.slots else None
        return Trace(entered, inner, pooled, joint, self._out(pooled if joint is None else elu(joint)))

    def sigma(self, t: Array) -> Array:
        """sigma_t [n] of a continuous predictor."""
        noisy, clean = np.exp(np.maximum(self.weights["log_sigma"], np.float32(LEAST_LOG_SIGMA)))
        return t * clean + (1 - t) * noisy

    def slopes(self, trace: Trace, of_outputs: Array) -> tuple[Array, dict[str, Array]]:
        """Derivatives by the first layer's outputs [n, blocks, width], and by the weights of all later layers.

        of_outputs   derivatives [n, ...] by the outputs
        """
        by_weights: dict[str, Array] = {}

        def back(name: str, inputs: Array, slope: Array) -> Array:
            flat = slope.reshape(-1, slope.shape[-1])
            by_weights[f"{name}.weight"] = flat.T @ inputs.reshape(-1, inputs.shape[-1])
            by_weights[f"{name}.bias"] = flat.sum(0)
            return (flat @ self.weights[f"{name}.weight"]).reshape(inputs.shape)

        slope = of_outputs
        if self.classes:
            slope = slope - np.exp(trace.out) * slope.sum(-1, keepdims=True)
        if trace.joint is None or trace.inner is None:
            pooled = back("out", trace.pooled, slope)
            return pooled[:, None] * elu_slope(trace.entered), by_weights
        joint = back("out", elu(trace.joint), slope) * elu_slope(trace.joint)
        pooled = back("joint", trace.pooled, joint)
        hidden = back("inner", elu(trace.entered), pooled[:, None] * elu_slope(trace.inner))
        return hidden * elu_slope(trace.entered), by_weights

    def slopes_by_tokens(self, entered: Array) -> Array:
        """Derivatives [n, D, S] by one-hot tokens, of derivatives by the first layer's outputs."""
        first = 1 if self.layout.header else 0
        parts = []
        if first:
            parts.append(entered[:, 0] @ self.weights["header.weight"])
        if self.layout.slots:
            slots = entered[:, first:].reshape(-1, self.width) @ self.weights["slot.weight"]
            parts.append(slots.reshape(len(entered), -1))
        return np.concatenate(parts, 1).reshape(len(entered), self.layout.tokens, self.layout.states)

    @cached_property
    def _tables(self) -> dict[str, Array]:
        """The first layer's weights by block, [tokens * states, width]."""
        tables = {name: self.weights.get(f"{name}.weight") for name in ("header", "slot")}
        return {name: np.ascontiguousarray(table.T) for name, table in tables.items() if table is not None}

    def _enter(self, x: NDArray[np.integer], t: Array) -> Array:
        """First-layer outputs [n, blocks, width], header first; linear in the one-hot tokens."""
        header, slots = self.layout.cut(x)
        parts = []
        for name, tokens in (("header", header[:, None]), ("slot", slots)):
            if name in self._tables:
                entered = token_sum(self._tables[name], tokens, self.layout.states)
                entered += self.weights[f"{name}.bias"]
                parts.append(entered)
        return np.concatenate(parts, 1) + linear(self.weights, "time", t[:, None])[:, None]

    def _out(self, hidden: Array) -> Array:
        out = linear(self.weights, "out", hidden)
        return log_softmax(out) if self.classes else out

    def with_weights(self, weights: Mapping[str, Array]) -> "Predictor":
        """The predictor with other weights."""
        return replace(self, weights=weights)


def predictor_shapes(layout: Layout, classes: int, width: int) -> Shapes:
    """The names and shapes of a predictor's weights."""
    shapes: Shapes = {"log_sigma": (2,)}
    if layout.header:
        shapes |= named("header", linear_shapes(layout.header * layout.states, width))
    if layout.slots:
        shapes |= named("slot", linear_shapes(layout.summand * layout.states, width))
        shapes |= named("inner", linear_shapes(width, width)) | named("joint", linear_shapes(width, width))
    return shapes | named("time", linear_shapes(1, width)) | named("out", linear_shapes(width, max(classes, 1)))


def new_predictor(layout: Layout, classes: int, seed: int, width: int = 128) -> Predictor:
    """An untrained predictor, with random weights of the usual size: uniform within 1 / sqrt(inputs)."""
    rng = np.random.default_rng(seed)
    shapes = predictor_shapes(layout, classes, width)
    weights = {"log_sigma": np.zeros(2, dtype=np.float32)}
    for name, shape in shapes.items():
        if name != "log_sigma":
            inputs = shapes[name.replace(".bias", ".weight")][1]
            weights[name] = rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(math.sqrt(inputs))
    return Predictor(layout, classes, width, weights)


def predict(predictor: Predictor, tokens: ArrayLike) -> Array:
    """Probabilities [n, classes], or means [n], for clean tokens [n, D]."""
    x = np.asarray(tokens)
    out = predictor(x, np.ones(len(x), dtype=np.float32))
    return np.exp(out) if predictor.classes else out[:, 0]
