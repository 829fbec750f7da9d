"""Layers of networks in NumPy, in single precision. Weights have the names and shapes that torch gives them.

A layer `name` with arguments (weights, name, x) reads `name.weight` and `name.bias`; a function that ends in `_shapes`
gives the shapes of these, for the check of a file before anything is computed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Weights = Mapping[str, Array]
Shapes = dict[str, tuple[int, ...]]
LAYER_NORM_EPSILON = 1e-5
LARGEST_EXPONENT = 80.0  # of exp in single precision


def below(weights: Weights, name: str) -> dict[str, Array]:
    """The weights whose names begin with `name` and a dot, without these."""
    return {key[len(name) + 1 :]: value for key, value in weights.items() if key.startswith(f"{name}.")}


def named(name: str, shapes: Shapes) -> Shapes:
    """The shapes with `name` and a dot put before their names."""
    return {f"{name}.{key}": shape for key, shape in shapes.items()}


def linear_shapes(inputs: int, outputs: int) -> Shapes:
    """Of a linear layer."""
    return {"weight": (outputs, inputs), "bias": (outputs,)}


def linear(weights: Weights, name: str, x: Array) -> Array:
    """A linear layer on the last axis."""
    weight = weights[f"{name}.weight"]
    # One product of two matrices: NumPy multiplies stacks of small ones one by one.
    out = x.reshape(-1, x.shape[-1]) @ weight.T
    out += weights[f"{name}.bias"]
    return out.reshape(*x.shape[:-1], len(weight))


def norm_shapes(width: int) -> Shapes:
    """Of a layer norm."""
    return {"weight": (width,), "bias": (width,)}


def layer_norm(weights: Weights, name: str, x: Array) -> Array:
    """A layer norm on the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    variance = np.einsum("...i,...i->...", centred, centred)[..., None] / np.float32(x.shape[-1])
    centred *= 1 / np.sqrt(variance + np.float32(LAYER_NORM_EPSILON))
    centred *= weights[f"{name}.weight"]
    centred += weights[f"{name}.bias"]
    return centred


def row_sum(table: Array, rows: NDArray[np.integer]) -> Array:
    """The sums [..., width] of the table's rows of these numbers [..., m]."""
    total = np.zeros((*rows.shape[:-1], table.shape[1]), dtype=np.float32)
    for place in range(rows.shape[-1]):
        total += table[rows[..., place]]
    return total


def token_sum(table: Array, x: NDArray[np.integer], states: int) -> Array:
    """A linear layer without bias on the one-hots of tokens x [..., places], by summing rows of the table.

    table   [places * states, width]
    """
    return row_sum(table, x + np.arange(x.shape[-1]) * states)


def attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(q k' / sqrt(d)) v for [..., blocks, d]."""
    scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
    return softmax(scores) @ v


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    out = np.minimum(-x, np.float32(LARGEST_EXPONENT))
    np.exp(out, out=out)
    out += 1
    return np.divide(1, out, out=out)


def silu(x: Array) -> Array:
    """X sigmoid(x)."""
    out = sigmoid(x)
    out *= x
    return out


def relu(x: Array) -> Array:
    """max(x, 0)."""
    return np.maximum(x, 0)


def elu(x: Array) -> Array:
    """X where it is positive, exp(x) - 1 elsewhere."""
    return np.maximum(x, 0) + (np.exp(np.minimum(x, 0)) - 1)


def elu_slope(x: Array) -> Array:
    """The derivative of `elu`."""
    return np.exp(np.minimum(x, 0))


def softmax(x: Array) -> Array:
    """Probabilities on the last axis."""
    p = np.exp(x - x.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return p


def log_softmax(x: Array) -> Array:
    """Log-probabilities on the last axis."""
    shifted = x - x.max(-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(-1, keepdims=True))
    return shifted
