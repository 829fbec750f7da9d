"""The paper's autoencoder: convolutions over the whole sequence of rules, and a recurrent decoder."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from lgf.grammar import Derivation, Grammar, decode
from lgf.paper.layout import Layout
from lgf.trained.layers import Array, Shapes, Weights, elu, linear, linear_shapes, named, relu, sigmoid

KERNELS = (7, 8, 9)
RESIDUAL = 60
RECURRENT = 80
_DIRECTIONS = ("l0", "l0_reverse", "l1", "l1_reverse")


@dataclass(frozen=True)
class SequenceAutoencoder:
    """One-hot rules [n, N, R] <-> codes [n, D]; `arrange` returns padded derivations unchanged."""

    grammar: Grammar
    layout: Layout
    weights: Weights

    def fits(self, derivation: Derivation) -> bool:
        """Whether the sentence fits into the model."""
        return len(derivation) <= self.grammar.max_length

    def arrange(self, derivations: ArrayLike) -> NDArray[np.int64]:
        """The padded derivations [n, N]."""
        return np.asarray(derivations, dtype=np.int64)

    def latent(self, arranged: NDArray[np.int64]) -> Array:
        """The latent z [n, D], neither bounded nor rounded."""
        x = np.eye(self.grammar.n_rules + 1, dtype=np.float32)[arranged].swapaxes(1, 2)
        for i in range(len(KERNELS)):
            x = relu(self._convolution(f"encoder.{2 * i}", x))
        first = 2 * len(KERNELS) + 1  # after the convolutions, their activations and the flattening
        hidden = linear(self.weights, f"encoder.{first}", x.reshape(len(x), -1))
        for i in (first + 1, first + 2):
            inner = relu(linear(self.weights, f"encoder.{i}.inner.0", hidden))
            hidden = relu(hidden + linear(self.weights, f"encoder.{i}.inner.2", inner))
        return linear(self.weights, f"encoder.{first + 3}", hidden)

    def derive(self, codes: Array, allowed: ArrayLike | None, max_order: int | None) -> NDArray[np.int32]:
        """Padded, complete derivations of the codes."""
        return decode(self.grammar, self.logits(codes), allowed, max_order)

    def logits(self, codes: Array) -> Array:
        """Logits [n, N, R] of the rules."""
        entered = elu(linear(self.weights, "enter.0", codes))
        x = np.repeat(entered[:, None], self.grammar.max_length, axis=1)
        for layer in (0, 1):
            forth, back = _DIRECTIONS[2 * layer : 2 * layer + 2]
            backwards = self._recurrent(back, x[:, ::-1])[:, ::-1]
            x = np.concatenate([self._recurrent(forth, x), backwards], -1)
        return linear(self.weights, "leave", x)

    def _convolution(self, name: str, x: Array) -> Array:
        """Of x [n, channels, length]."""
        kernel = self.weights[f"{name}.weight"]
        windows = sliding_window_view(x, kernel.shape[-1], axis=2).transpose(0, 2, 1, 3)
        flat = {f"{name}.weight": kernel.reshape(len(kernel), -1), f"{name}.bias": self.weights[f"{name}.bias"]}
        return linear(flat, name, windows.reshape(*windows.shape[:2], -1)).swapaxes(1, 2)

    def _recurrent(self, direction: str, x: Array) -> Array:
        """The hidden states [n, N, RECURRENT] of a layer of gated recurrent units."""
        weights = {
            f"{kind}.{name}": self.weights[f"recurrent.{name}_{kind}_{direction}"]
            for kind in ("ih", "hh")
            for name in ("weight", "bias")
        }
        entered = linear(weights, "ih", x)
        state = np.zeros((len(x), RECURRENT), dtype=np.float32)
        states = np.empty((*x.shape[:2], RECURRENT), dtype=np.float32)
        for place in range(x.shape[1]):
            here, before = entered[:, place], linear(weights, "hh", state)
            gates = sigmoid(here[:, : 2 * RECURRENT] + before[:, : 2 * RECURRENT])
            reset, update = gates[:, :RECURRENT], gates[:, RECURRENT:]
            new = np.tanh(here[:, 2 * RECURRENT :] + reset * before[:, 2 * RECURRENT :])
            state = (1 - update) * new + update * state
            states[:, place] = state
        return states


def sequence_shapes(grammar: Grammar, layout: Layout) -> Shapes:
    """The names and shapes of a sequence autoencoder's weights."""
    rules = grammar.n_rules + 1
    left = grammar.max_length - sum(KERNELS) + len(KERNELS)
    first = 2 * len(KERNELS) + 1
    shapes: Shapes = {}
    for i, kernel in enumerate(KERNELS):
        shapes |= {f"encoder.{2 * i}.weight": (rules, rules, kernel), f"encoder.{2 * i}.bias": (rules,)}
    shapes |= named(f"encoder.{first}", linear_shapes(rules * left, RESIDUAL))
    for i in (first + 1, first + 2):
        for layer in (0, 2):
            shapes |= named(f"encoder.{i}.inner.{layer}", linear_shapes(RESIDUAL, RESIDUAL))
    shapes |= named(f"encoder.{first + 3}", linear_shapes(RESIDUAL, layout.tokens))
    shapes |= named("enter.0", linear_shapes(layout.tokens, RECURRENT)) | named(
        "leave", linear_shapes(2 * RECURRENT, rules)
    )
    for direction in _DIRECTIONS:
        inputs = RECURRENT if direction.startswith("l0") else 2 * RECURRENT
        for kind, size in (("ih", inputs), ("hh", RECURRENT)):
            shapes[f"recurrent.weight_{kind}_{direction}"] = (3 * RECURRENT, size)
            shapes[f"recurrent.bias_{kind}_{direction}"] = (3 * RECURRENT,)
    return shapes
