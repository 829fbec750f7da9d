"""The noise of a measured column, estimated before smoothing, its sampling, random walks, and correlated residuals."""

from collections.abc import Sequence

import numpy as np

_FULL_PRECISION = 12  # significant digits from which numbers count as not rounded
_NEIGHBOURS, _HARDLY_ALIKE, _LEAST_FOR_NOISE = 4, 0.4, 40  # lags, correlation below which noise, samples
_LONGEST_LAG = 200  # samples
_LONG_ENOUGH_FOR_A_WALK = 100  # samples; in shorter records the noise of the correlations hides those of a curve


def rough_noise(t: np.ndarray, y: np.ndarray) -> float:
    """Standard deviation of white noise on a smooth signal; the median makes a few outliers harmless."""
    if len(y) < 5:
        return 0.1 * float(np.std(y))
    return float(np.median(np.abs(neighbour_distances(t, y))) / 0.6745)


def is_noise_alone(parts: Sequence[np.ndarray]) -> bool:
    """Whether no sample is like one of its four neighbours, in forty samples or more of one or several records.

    An oscillation that is sampled too slowly is like one of them: k times an angle is near 0 or pi for some k up to 4.

    >>> is_noise_alone([np.random.default_rng(0).normal(size=100)]), is_noise_alone([np.sin(1.4 * np.arange(100))])
    (True, False)
    """
    likeness = _likeness(parts)
    return likeness is not None and likeness < _HARDLY_ALIKE


def is_patterned(parts: Sequence[np.ndarray]) -> bool:
    """Whether samples are like one of their four neighbours, in forty samples or more: they are more than noise."""
    likeness = _likeness(parts)
    return likeness is not None and likeness >= _HARDLY_ALIKE


def _likeness(parts: Sequence[np.ndarray]) -> float | None:
    """The largest correlation of samples with one of their four neighbours; None if there are too few samples."""
    parts = [part[np.isfinite(part)] for part in parts]
    parts = [part - part.mean() for part in parts if len(part) > _NEIGHBOURS]
    power = sum(float(part @ part) for part in parts)
    if sum(map(len, parts)) < _LEAST_FOR_NOISE or power <= 0.0:
        return None
    lags = range(1, _NEIGHBOURS + 1)
    return max(abs(sum(float(part[:-k] @ part[k:]) for part in parts)) / power for k in lags)


def rounding_error(y: np.ndarray) -> float:
    """The root mean square rounding error of values written with few digits; 0 for numbers of full precision.

    Values may have the same number of decimals or the same number of significant digits.

    >>> round(rounding_error(np.array([1.25, 0.5, 10.75])) * 12**0.5, 3)
    0.01
    """
    y = y[np.isfinite(y) & (y != 0.0)]
    if not len(y):
        return 0.0
    decade = np.floor(np.log10(np.abs(y))).astype(int)
    texts = (np.format_float_scientific(v, trim="-").split("e") for v in y)
    digits = np.array([len(mantissa.lstrip("-").replace(".", "")) for mantissa, _ in texts])
    if digits.max() >= _FULL_PRECISION:
        return 0.0
    by_decimals = np.min(decade - digits + 1)
    by_digits = decade - digits.max() + 1
    return float(np.sqrt(np.mean(100.0 ** np.maximum(by_digits, by_decimals)) / 12.0))


def neighbour_distances(t: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The distance of each inner sample from the cubic through its four neighbours, in deviations of one sample.

    A short record takes the line through two neighbours. The one or two samples at each end are left out.
    """
    width = 2 if len(y) >= 12 else 1
    inner = np.arange(width, len(y) - width)
    near = inner + np.array([k for k in range(-width, width + 1) if k != 0])[:, None]
    at, here = t[near], t[inner]
    lagrange = np.ones_like(at)
    for i in range(2 * width):
        for j in range(2 * width):
            if i != j:
                lagrange[i] *= (here - at[j]) / (at[i] - at[j])
    return (y[inner] - np.sum(lagrange * y[near], axis=0)) / np.sqrt(1.0 + np.sum(lagrange**2, axis=0))


def correlation_time(series: Sequence[np.ndarray]) -> float:
    """1 + 2 * (sum of the autocorrelations of residuals until the first one below 2/sqrt(n)), in samples; 1 is white.

    The products of all series (experiments, columns) are pooled, each in the same units.
    """
    n = sum(len(part) for part in series)
    total = float(sum(part @ part for part in series))
    time = 1.0
    for lag in range(1, min(max((len(part) for part in series), default=0) // 2, _LONGEST_LAG)):
        products = sum(float(part[lag:] @ part[:-lag]) for part in series if lag < len(part) // 2)
        rho = products / total if total > 0 else 0.0
        if rho < 2.0 / np.sqrt(n):
            break
        time += 2.0 * rho
    return time


def is_random_walk(y: np.ndarray) -> bool:
    """Whether the steps are uncorrelated and their variances add up, as in a random walk.

    It tells 93 % of 300 walks of 150 steps, and takes no sine, decay or growth with noise for one.
    """
    if len(y) < _LONG_ENOUGH_FOR_A_WALK:
        return False
    steps = np.diff(y)
    centred = steps - steps.mean()
    power = float(centred @ centred)
    if power <= 0.0:
        return False
    correlations = [abs(float(centred[k:] @ centred[:-k])) / power for k in (1, 2, 3, 4)]
    growth = [float(np.var(y[k:] - y[:-k])) * len(steps) / (k * power) for k in (2, 4, 8)]
    return max(correlations) < 2.5 / np.sqrt(len(steps)) and all(0.5 < ratio < 1.7 for ratio in growth)


def samples_per_swing(t: np.ndarray, y: np.ndarray) -> float:
    """Samples per period of the frequency below which 95 % of the signal's power above the noise floor lies."""
    n = int(np.clip(len(t), 16, 1 << 16))
    uniform = np.linspace(t[0], t[-1], n)
    values = np.interp(uniform, t, y)
    centred = np.linspace(-1.0, 1.0, n)  # times far from zero would make the fit of the line ill-conditioned
    wiggle = values - np.polyval(np.polyfit(centred, values, 1), centred)
    if np.var(wiggle) < 0.05 * np.var(values):  # a straight line and noise, no oscillation
        return float("inf")
    power = np.abs(np.fft.rfft(wiggle * np.hanning(n))) ** 2
    power = np.maximum(power - 3.0 * np.median(power), 0.0)[1:]
    total = power.sum()
    if total <= 0.0:
        return float("inf")
    frequency = 1 + int(np.searchsorted(np.cumsum(power), 0.95 * total))
    return len(t) / frequency
