"""Training of a predictor, as during a search: a few steps of AdamW on the candidates so far."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.paper.flow.denoiser import noised
from lgf.paper.flow.predictor import LEAST_LOG_SIGMA, Predictor
from lgf.trained.layers import Array

BATCH = 128
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2
MOMENTS = (0.9, 0.999)
EPSILON = 1e-8


def train_predictor(
    predictor: Predictor,
    tokens: ArrayLike,
    y: ArrayLike,
    seed: int,
    steps: int,
    batch: int = BATCH,
    learning_rate: float = LEARNING_RATE,
) -> Predictor:
    """The predictor, trained further on tokens [n, D] and their labels [n], in so many steps."""
    rng = np.random.default_rng(seed)
    x1 = np.asarray(tokens)
    labels = np.asarray(y, dtype=np.int64 if predictor.classes else np.float32)
    optimiser = AdamW(predictor.weights, learning_rate, WEIGHT_DECAY)
    for _ in range(steps):
        rows = rng.integers(len(x1), size=min(batch, len(x1)))
        t = rng.random(len(rows), dtype=np.float32)
        x = noised(predictor.layout, x1[rows], t, rng)
        optimiser.step(loss_slopes(predictor.with_weights(optimiser.weights), x, t, labels[rows])[1])
    return predictor.with_weights(optimiser.weights)


def loss_slopes(predictor: Predictor, x: NDArray[np.integer], t: Array, labels: NDArray) -> tuple[float, dict]:
    """(mean -log p(y | x_t, t), its derivatives by the weights)."""
    n, layout = len(x), predictor.layout
    trace = predictor.trace(x, t)
    of_outputs = np.zeros_like(trace.out)
    log_sigma = np.zeros(2, dtype=np.float32)
    if predictor.classes:
        every = np.arange(n)
        loss = -trace.out[every, labels].mean()
        of_outputs[every, labels] = -1 / n
    else:
        sigma = predictor.sigma(t)
        off = (trace.out[:, 0] - labels) / sigma
        loss = (off**2 / 2 + np.log(sigma)).mean()
        of_outputs[:, 0] = off / sigma / n
        by_sigma = (1 - off**2) / sigma / n
        scales = predictor.weights["log_sigma"]
        parts = np.array([by_sigma @ (1 - t), by_sigma @ t], dtype=np.float32) * np.exp(scales)
        log_sigma = np.where(scales >= LEAST_LOG_SIGMA, parts, 0).astype(np.float32)
    entered, slopes = predictor.slopes(trace, of_outputs)
    hot = np.eye(layout.states, dtype=np.float32)[x]
    header, slots = layout.cut(hot)
    for name, part, blocks in (("header", header[:, None], slice(0, 1)), ("slot", slots, slice(-layout.slots, None))):
        if f"{name}.weight" in predictor.weights:
            flat = entered[:, blocks].reshape(-1, predictor.width)
            slopes[f"{name}.weight"] = flat.T @ part.reshape(len(flat), -1)
            slopes[f"{name}.bias"] = flat.sum(0)
    by_row = entered.sum(1)
    slopes |= {"time.weight": (t @ by_row)[:, None], "time.bias": by_row.sum(0), "log_sigma": log_sigma}
    return float(loss), slopes


class AdamW:
    """Adam with decoupled weight decay, on a copy of the weights."""

    def __init__(self, weights: Mapping[str, Array], learning_rate: float, weight_decay: float):
        self.weights = {name: value.copy() for name, value in weights.items()}
        self._means = {name: np.zeros_like(value) for name, value in weights.items()}
        self._squares = {name: np.zeros_like(value) for name, value in weights.items()}
        self._rate = learning_rate
        self._decay = np.float32(1 - learning_rate * weight_decay)
        self._steps = 0

    def step(self, slopes: Mapping[str, Array]) -> None:
        """Moves the weights down the slopes."""
        self._steps += 1
        first, second = MOMENTS
        rate = np.float32(self._rate / (1 - first**self._steps))
        correction = np.float32(1 / np.sqrt(1 - second**self._steps))
        for name, value in self.weights.items():
            slope, mean, square = slopes[name], self._means[name], self._squares[name]
            mean += np.float32(1 - first) * (slope - mean)
            square *= np.float32(second)
            square += np.float32(1 - second) * slope**2
            value *= self._decay
            value -= rate * mean / (np.sqrt(square) * correction + np.float32(EPSILON))
