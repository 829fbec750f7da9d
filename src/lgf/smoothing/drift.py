"""Drift of an integrated record, and the record without it.

The noise of an accelerometer, and an offset of it, integrate to a drift of the displacement that soon exceeds the
oscillation itself. What changes more slowly than the oscillation by far has accelerations that are lost in the noise,
so nothing that was measured is removed with it. Of all motions that fit a measured derivative about as well, the one
with the least sum of squares has no such drift either.
"""

from collections.abc import Callable

import numpy as np

from lgf.smoothing.b_spline import b_splines

_LEAST_PERIODS = 10  # of a record; in fewer, the drift cannot be told from the motion
_PERIODS = 3.0  # between two knots of the drift
_PIECES = 40  # of the correction of the least motion, over the record
_WORSE = 0.02  # by this share the squared residuals of the measured derivative may grow under it
_STEPS = 60
_DEGREE = 5

Curve = Callable[[np.ndarray, int], np.ndarray]
"""(times, k) -> the k-th derivative of the state at these times."""


def without_drift(derivative: Curve, t: np.ndarray, lead: int) -> Curve:
    """The curve without its drift, if its `lead`-th derivative oscillates often and the drift exceeds the rest."""
    start, window = float(t[0]), float(t[-1] - t[0])
    periods = window * _middle_frequency(derivative(np.linspace(t[0], t[-1], 2 * len(t)), lead), window)
    if periods < _LEAST_PERIODS:
        return derivative
    knots = np.linspace(0.0, 1.0, max(int(periods / _PERIODS), 1) + 1)
    knots = np.concatenate([np.zeros(_DEGREE), knots, np.ones(_DEGREE)])
    curve = derivative(t, 0)
    basis = b_splines((t - start) / window, knots, _DEGREE)
    coefficients = np.linalg.lstsq(basis, curve, rcond=None)[0]
    drift = basis @ coefficients
    if np.std(drift) <= np.std(curve - drift):
        return derivative

    def steady(times: np.ndarray, order: int) -> np.ndarray:
        slow = b_splines((times - start) / window, knots, _DEGREE, order) @ coefficients
        return derivative(times, order) - slow / window**order

    return steady


def _middle_frequency(values: np.ndarray, window: float) -> float:
    """The frequency below which half of the power of a signal lies, in oscillations per unit of time."""
    power = np.abs(np.fft.rfft(values - values.mean())) ** 2
    total = np.cumsum(power)
    return float(np.searchsorted(total, 0.5 * total[-1])) / window


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
