"""The distribution of a constant that varies by experiment: c_e ~ N(mean, deviation^2).

Each experiment determines its own value with a standard error s_e. The mean and the deviation maximise the likelihood
of these values, c_e ~ N(mean, deviation^2 + s_e^2).
"""

import math
from typing import Any

import numpy as np


def distribution(values: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """(mean, deviation) of the values; the deviation is 0 if their errors explain the differences."""
    from scipy.optimize import minimize_scalar  # imported late: a search starts sooner

    known = np.isfinite(errors)
    values, variances = values[known], errors[known] ** 2
    if len(values) < 2:
        return (float(values[0]) if len(values) else math.nan), 0.0

    def mean_at(deviation: float) -> float:
        weights = 1.0 / (deviation**2 + variances)
        return float(np.average(values, weights=weights))

    def length(deviation: float) -> float:
        total = deviation**2 + variances
        with np.errstate(over="ignore"):  # an exact value far from the mean is infinitely unlikely
            return float(np.sum((values - mean_at(deviation)) ** 2 / total + np.log(total)))

    largest = 2.0 * float(np.ptp(values)) + 1e-300
    smallest = 1e-3 * math.sqrt(float(variances.min()) + 1e-300)
    limits = math.log(smallest), math.log(max(largest, 2 * smallest))
    best: Any = minimize_scalar(lambda z: length(math.exp(z)), bounds=limits, method="bounded")
    deviation = math.exp(float(best.x))
    if length(deviation) > length(smallest) - 1e-6:
        deviation = 0.0
    return mean_at(deviation), deviation


def random_length(
    values: np.ndarray, errors: np.ndarray, mean: float, deviation: float, samples: np.ndarray | None = None
) -> float:
    """Description length of the values of a random constant, given its distribution (Laplace's approximation).

    Twice the negative logarithm of the prior and of the volume of the likelihood: the sum of
    (c_e - mean)^2 / deviation^2 + ln(1 + deviation^2 / s_e^2). With `samples` [E], a value costs no more than a free
    one, ln(samples of its experiment), as every fitted initial value does: otherwise initial values would be the
    cheaper way to differ.
    """
    if not deviation > 0.0:
        return 0.0
    ratio = np.where(np.isfinite(errors), deviation / np.maximum(errors, 1e-100 * deviation), 0.0)
    each = ((values - mean) / deviation) ** 2 + np.log1p(ratio**2)
    return float(np.sum(each if samples is None else np.minimum(each, np.log(np.maximum(samples, 1)))))
