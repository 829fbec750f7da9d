"""The paper's smoother: a small neural network y(t) of three hidden layers of 32 SiLU units, in plain NumPy.

The paper trains by 10,000 epochs of a first-order method. A quasi-Newton method on the same loss needs fewer
iterations, `_ITERATIONS` at most. It ends when the residual is as small as the noise: a record of many oscillations
needs thousands of iterations, and a smooth one is overfitted by them.
"""

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit

from lgf.data.noise import rough_noise

_GRID = 2001
_WIDTHS = (32, 32, 32)  # the paper's
_ITERATIONS = 4000  # most
_STARTS = 2  # most; another one if the residual stays above the noise
_ENOUGH = 1.2  # times the variance of the noise, which is itself estimated


def fit_perceptron(t: np.ndarray, y: np.ndarray, weight: np.ndarray) -> BSpline:
    """The trained network as a quintic spline through its values on a fine grid."""
    shapes = _shapes(_WIDTHS)
    middle, half, mean, size = (t[0] + t[-1]) / 2, np.ptp(t) / 2, np.average(y, weights=weight), np.std(y) or 1.0
    x, target, share = (t - middle) / half, (y - mean) / size, weight / weight.sum()
    noise = _ENOUGH * (rough_noise(t, y) / size) ** 2

    def until_noise(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun <= noise:
            raise StopIteration

    steepness = max(1.0, np.count_nonzero(np.diff(target > 0.0)) / 2)
    options = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "maxcor": 20, "ftol": 0, "gtol": 1e-7}
    best, least = np.zeros(0), np.inf
    for seed in range(_STARTS):
        start = _start(shapes, seed, steepness)
        result = minimize(
            _loss, start, (x[:, None], target, share, shapes), "L-BFGS-B", True, options=options, callback=until_noise
        )
        if result.fun < least:
            best, least = result.x, result.fun
        if least <= noise:
            break
    grid = np.linspace(-1.0, 1.0, _GRID)
    values = _forward(_unpack(best, shapes), grid[:, None])[0][-1][:, 0]
    return make_interp_spline(grid * half + middle, values * size + mean, k=5)


def _shapes(widths: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(zip((1, *widths), (*widths, 1), strict=True))


def _start(shapes: list[tuple[int, int]], seed: int, steepness: float) -> np.ndarray:
    """Random weights; the bends of the first layer are spread over the record, as steep as its oscillations."""
    rng = np.random.default_rng(seed)
    layers = [rng.uniform(-1, 1, (i + 1) * o) / np.sqrt(i) for i, o in shapes]
    slopes, bends = np.split(layers[0], 2)
    layers[0] = np.concatenate([steepness * slopes, -steepness * slopes * bends])
    return np.concatenate(layers)


def _unpack(theta: np.ndarray, shapes: list[tuple[int, int]]) -> list[np.ndarray]:
    """One matrix per layer, its last row the bias."""
    ends = np.cumsum([(i + 1) * o for i, o in shapes])[:-1]
    return [part.reshape(i + 1, o) for part, (i, o) in zip(np.split(theta, ends), shapes, strict=True)]


def _forward(layers: list[np.ndarray], x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The input of each layer with the output of the network last, and the slope of each activation."""
    inputs, slopes = [x], []
    for number, layer in enumerate(layers):
        a = inputs[-1] @ layer[:-1] + layer[-1]
        if number < len(layers) - 1:
            gate = expit(a)
            slopes.append(gate * (1.0 + a * (1.0 - gate)))
            a = a * gate
        inputs.append(a)
    return inputs, slopes


def _loss(
    theta: np.ndarray, x: np.ndarray, y: np.ndarray, share: np.ndarray, shapes: list[tuple[int, int]]
) -> tuple[float, np.ndarray]:
    """Weighted mean squared error and its gradient, by backpropagation."""
    layers = _unpack(theta, shapes)
    inputs, slopes = _forward(layers, x)
    error = inputs[-1][:, 0] - y
    back = (2 * share * error)[:, None]
    gradients = []
    for number in range(len(layers) - 1, -1, -1):
        gradients.append(np.concatenate([inputs[number].T @ back, back.sum(axis=0, keepdims=True)]).ravel())
        if number > 0:
            back = (back @ layers[number][:-1].T) * slopes[number - 1]
    return float(share @ error**2), np.concatenate(gradients[::-1])
