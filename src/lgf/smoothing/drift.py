"""Drift of an integrated record, and the record without it.

The noise of an accelerometer, and an offset of it, integrate to a drift of the displacement that soon exceeds the
oscillation itself. What changes more slowly than the oscillation by far has accelerations that are lost in the noise,
so nothing that was measured is removed with it.
"""

from collections.abc import Callable

import numpy as np

from lgf.smoothing.b_spline import b_splines

_LEAST_PERIODS = 10  # of a record; in fewer, the drift cannot be told from the motion
_PERIODS = 3.0  # between two knots of the drift
_DEGREE = 5


def without_drift(
    derivative: Callable[[np.ndarray, int], np.ndarray], t: np.ndarray, lead: int
) -> Callable[[np.ndarray, int], np.ndarray]:
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
