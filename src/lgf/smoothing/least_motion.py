"""The smallest motion that explains a measured derivative: integrals without the drift of integrated noise.

The integrals of a noisy derivative drift, by functions so slow that their derivatives are lost in the noise. Of all
motions that fit the measured derivative about as well, the one with the least sum of squares has no such drift.
"""

from collections.abc import Callable

import numpy as np

from lgf.smoothing.b_spline import b_splines

_DEGREE = 5
_PIECES = 40  # of the correction, over the record
_WORSE = 0.02  # by this share the squared residuals of the measured derivative may grow
_STEPS = 60

Curve = Callable[[np.ndarray, int], np.ndarray]


def least_motion(curve: Curve, t: np.ndarray, y: np.ndarray, lead: int, known: int) -> Curve:
    """The curve with a slow correction, under which its `lead`-th derivative still fits the samples y at t.

    The first `known` derivatives at the first time (0: none, 1: u, 2: u and u') stay as they are.
    """
    start, window = float(t[0]), float(np.ptp(t))
    knots = np.concatenate([np.zeros(_DEGREE), np.linspace(0.0, 1.0, _PIECES + 1), np.ones(_DEGREE)])

    def basis(times: np.ndarray, order: int) -> np.ndarray:
        # a clamped spline whose first coefficients vanish begins with vanishing derivatives
        return b_splines((times - start) / window, knots, _DEGREE, order)[:, known:] / window**order

    level, bend = basis(t, 0), basis(t, lead)
    motion, residual = curve(t, 0), y - curve(t, lead)
    most = (1.0 + _WORSE) * float(residual @ residual)
    squares, scale = bend.T @ bend, np.linalg.norm(bend) ** 2 / np.linalg.norm(level) ** 2
    coefficients = np.zeros(level.shape[1])
    low, high = -12.0, 6.0  # of the logarithm of the penalty
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        penalty = scale * 10.0**middle
        normal = squares + penalty * level.T @ level
        trial = np.linalg.lstsq(normal, bend.T @ residual - penalty * (level.T @ motion), rcond=None)[0]
        left = residual - bend @ trial
        if float(left @ left) <= most:
            low, coefficients = middle, trial
        else:
            high = middle

    def corrected(times: np.ndarray, order: int) -> np.ndarray:
        return curve(times, order) + basis(times, order) @ coefficients

    return corrected
