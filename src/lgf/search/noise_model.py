"""The noise that a candidate's residuals show: white, or correlated in time.

The equation of a real record is an approximation, and its residuals are correlated in time. Under white noise such
residuals pay for spurious terms. Under the sum of white noise and an Ornstein-Uhlenbeck process they do not; the
description length decides between the two, the process costing two constants.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lgf.data.noise import correlation_time, is_patterned
from lgf.fit.constants import ConstantFit
from lgf.fit.jacobian import solve_with_jacobian
from lgf.fit.settings import FitSettings, Fitting, make_fitting
from lgf.fit.target import Target
from lgf.search.candidate import Candidate, Noise
from lgf.search.evaluate import unknowns_at
from lgf.settings.ranges import Count, Positive
from lgf.solver.kernels.correlated_noise import whiten


@dataclass(frozen=True)
class NoiseSettings:
    """When residuals are examined for correlation and growth."""

    correlated_above: Positive = 2.0  # correlation time in samples; white noise has 1
    least_samples: Count = 40  # of a series; in fewer, correlation cannot be told from a wrong equation
    iterations: Count = 4  # of the generalised fit


class Residuals(NamedTuple):
    """Residuals of a fit by series: one for each measured column of each experiment."""

    t: np.ndarray  # [M]
    first: np.ndarray  # [series + 1]
    rows: np.ndarray  # [P + 1, M] slopes with respect to the unknowns, then the residuals, in units of the noise

    @property
    def values(self) -> np.ndarray:
        """The residuals, in units of the noise."""
        return self.rows[-1]

    @property
    def series(self) -> list[np.ndarray]:
        """The residuals by series."""
        return np.split(self.values, self.first[1:-1])


def residuals_of(fitting: Fitting, x: np.ndarray) -> Residuals | None:
    """The residuals (measured - solved) at the unknowns x; None if the solution ends early."""
    target, record = fitting.target, fitting.target.record
    solved = solve_with_jacobian(fitting, x)
    if not (solved.reached.all() and np.isfinite(solved.jacobian).all()):
        return None
    times, rows, lengths = [], [], []
    for e in range(target.n_experiments):
        for d in target.measured:
            part = slice(int(record.first[e]), int(record.first[e + 1]))
            present = np.flatnonzero(record.weight[part, d] > 0) + part.start
            if not len(present):
                continue
            root = np.sqrt(record.weight[present, d] * target.power)
            errors = record.data[present, d] - solved.values[present, d]
            both = np.vstack([solved.jacobian[:, present, d], errors])
            times.append(record.t[present])
            rows.append(both * root)
            lengths.append(len(present))
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Residuals(np.concatenate(times), first, np.ascontiguousarray(np.concatenate(rows, axis=1)))


def with_noise_model(
    candidate: Candidate, target: Target, settings: NoiseSettings = NoiseSettings(), bounds: np.ndarray | None = None
) -> Candidate:
    """The candidate under correlated noise, refitted, if that gives a shorter description; else the same candidate.

    Several measured columns are not examined.
    """
    enough = target.n_samples >= settings.least_samples * target.n_experiments
    if not _examined(candidate, target) or not enough:
        return candidate
    fitting = make_fitting(candidate.skeleton, target, FitSettings(), bounds, candidate.fit.sharing)
    x = unknowns_at(candidate.fit, fitting)
    residuals = residuals_of(fitting, x)
    if residuals is None or correlation_time(residuals.series) < settings.correlated_above:
        return candidate
    share, length = likeliest_process(residuals)
    for _ in range(settings.iterations):
        stepped = np.clip(x + _generalised_step(residuals, share, length), *fitting.unknown_limits)
        moved = residuals_of(fitting, stepped)
        if moved is None or process_length(moved, share, length) >= process_length(residuals, share, length):
            break
        x, residuals = stepped, moved
        share, length = likeliest_process(residuals, (share, length))
    n = target.n_samples
    white = n * math.log(candidate.loss * target.power)
    rows, log_determinant = whiten(residuals.t, residuals.first, residuals.rows, share, length)
    # The white part cannot be below the errors of the solver and of rounding, however smooth the residuals are. The
    # residuals count as they are: a step that the slopes promise may not exist.
    squares = max(float(rows[-1] @ rows[-1]), _least(target) * target.power)
    gain = white - n * math.log(squares) - log_determinant - 2 * math.log(n)
    spread = float(residuals.values @ residuals.values) / target.power
    if not gain > 0 or spread > max(candidate.loss, 1.0):  # a drift larger than the signal describes nothing
        return candidate
    variance = float(rows[-1] @ rows[-1]) / max(n - len(x), 1)
    slopes, _, sizes = _scaled(rows)
    inverse = np.linalg.pinv(slopes @ slopes.T, hermitian=True)
    covariance = variance * inverse / sizes / sizes[:, None]  # a product of sizes may overflow
    fit = _moved(candidate.fit, fitting, x, covariance)
    noise = Noise(length, share / (1.0 + share))
    return replace(candidate, fit=replace(fit, loss=spread), objective=candidate.objective - gain, noise=noise)


def leaves_pattern(candidate: Candidate, target: Target) -> bool:
    """Whether the residuals are more than noise: neighbours are alike."""
    fitting = make_fitting(candidate.skeleton, target, FitSettings(), None, candidate.fit.sharing)
    residuals = residuals_of(fitting, unknowns_at(candidate.fit, fitting))
    return residuals is not None and is_patterned(residuals.series)


def _examined(candidate: Candidate, target: Target) -> bool:
    """Whether the residuals are those of one measured column, and larger than errors of the solver and of rounding.

    Those errors are smooth: a process would compress them without limit.
    """
    return len(target.measured) == 1 and _least(target) < candidate.loss < math.inf


def _least(target: Target) -> float:
    """The loss that rounding and usual solutions leave."""
    return FitSettings().accuracy ** 2 + target.rounding_loss


def process_length(residuals: Residuals, share: float, length: float) -> float:
    """N ln(generalised sum of squares at the best nearby unknowns) + the logarithm of the determinant."""
    rows, log_determinant = whiten(residuals.t, residuals.first, residuals.rows, share, length)
    slopes, r, _ = _scaled(rows)
    moments = slopes @ r
    total = float(r @ r) - float(moments @ _regression(slopes, moments))
    return len(r) * math.log(max(total, 1e-300)) + log_determinant


def _generalised_step(residuals: Residuals, share: float, length: float) -> np.ndarray:
    rows, _ = whiten(residuals.t, residuals.first, residuals.rows, share, length)
    slopes, r, sizes = _scaled(rows)
    return _regression(slopes, slopes @ r) / sizes


def _scaled(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(slopes in units of their largest, residuals, the largest slope of each unknown): an unstable one is 1e200."""
    sizes = np.maximum(np.abs(rows[:-1]).max(axis=1), 1e-150)
    return rows[:-1] / sizes[:, None], rows[-1], sizes


def _regression(slopes: np.ndarray, moments: np.ndarray) -> np.ndarray:
    gram = slopes @ slopes.T
    return np.linalg.lstsq(gram + np.diag(1e-9 * np.maximum(np.diag(gram), 1e-300)), moments, rcond=None)[0]


def likeliest_process(residuals: Residuals, start: tuple[float, float] | None = None) -> tuple[float, float]:
    """(share, correlation time) of the likeliest Ornstein-Uhlenbeck process beside white noise of variance 1."""
    from scipy.optimize import minimize  # imported late: a search starts sooner

    spacing = float(np.median(np.diff(residuals.t)[np.diff(residuals.t) > 0]))
    window = float(np.ptp(residuals.t))

    def value(z: np.ndarray) -> float:
        return process_length(residuals, math.exp(z[0]), math.exp(z[1]))

    limits = [(-4.0, 9.0), (math.log(0.3 * spacing), math.log(2.0 * window))]
    if start is None:
        lengths = np.linspace(math.log(spacing), math.log(0.5 * window), 6)
        grid = [np.array([s, z]) for s in (-1.0, 1.0, 3.0, 5.0) for z in lengths]
        first = min(grid, key=value)
    else:
        first = np.log(start)
    found = minimize(value, first, method="Nelder-Mead", bounds=limits, options={"maxfev": 60, "xatol": 0.05})
    return math.exp(found.x[0]), math.exp(found.x[1])


def _moved(fit: ConstantFit, fitting: Fitting, x: np.ndarray, covariance: np.ndarray) -> ConstantFit:
    """The fit with other unknowns and their covariance."""
    layout = fitting.layout
    by_experiment = layout.by_experiment(x)
    initial = fit.initial.copy()
    unknown = fitting.target.record.unknown
    initial[unknown >= 0] = x[layout.n_free :][unknown[unknown >= 0]]
    values = layout.mean @ x[: layout.n_free]
    own = covariance[: layout.n_free, : layout.n_free]
    return replace(
        fit, values=tuple(float(v) for v in values), by_experiment=by_experiment, initial=initial,
        covariance=layout.mean @ own @ layout.mean.T,
    )  # fmt: skip
