"""The prediction of a new experiment from its first samples.

Its initial state, and the constants that vary by experiment, are those that explain the first samples and are usual
among the experiments of the data: squared residuals and squared distances from the mean, each in units of its standard
deviation, have the smallest sum. With fewer than three experiments nothing is known about what is usual. After the
last of its samples, what is left of correlated residuals there is added (`lgf.runs.forecast`).
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from lgf.data.experiments import ForcingLike
from lgf.data.observation import Observation
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.expression.frame import Variable
from lgf.fit.starts import starts_of
from lgf.runs.forecast import Remainder, expected_residuals, residual_series
from lgf.runs.posterior import make_posterior
from lgf.runs.request import Run
from lgf.solver.solve import solve
from lgf.solver.trajectory import Trajectory

_WORST = 1e4  # residual of a sample that a solution does not reach, in standard deviations
_EVALUATIONS = 100


def continued(
    run: Run,
    seen: Observation,
    t: ArrayLike,
    forcing: ForcingLike | Mapping[str, ForcingLike] = None,
) -> Trajectory:
    """The forecast at times t of the new experiment whose first samples are `seen`."""
    times = np.asarray(t, float)
    if len(times) and times.min() < seen.t[0]:
        raise LgfError(f"t begins at {times.min():.6g}, before the first sample at {seen.t[0]:.6g}; leave that out.")
    fit, frame = run.best.fit, run.frame
    every = np.union1d(seen.t, times)
    inputs = run.simulation_inputs(every, forcing)
    n, varying = frame.dimension, [v for v in fit.sharing.varying if np.isfinite(v.deviation)]
    posterior = make_posterior(run, run.best)
    if posterior is None:
        raise LgfError("the equation cannot be solved over the data, so it predicts no other experiment.")
    noise = np.array([posterior.noise[v] for v in seen.columns]) * np.sqrt(posterior.correlation)
    least = np.array([posterior.noise.get(v, 0.0) for v in frame.variables])
    starts = starts_of(fit.initial, least)
    usual = np.array([v.mean for v in varying])
    spread = np.array([v.deviation for v in varying])

    def solved(x: np.ndarray, times: np.ndarray) -> Trajectory:
        values = list(fit.values)
        for v, value in zip(varying, x[n:], strict=True):
            values[v.constant] = float(value)
        return solve(System(fit.skeleton, tuple(values)), x[:n].tolist(), times, inputs)

    def residuals(x: np.ndarray) -> np.ndarray:
        trajectory = solved(x, seen.t)
        errors = np.column_stack([trajectory[v] for v in seen.columns]) - seen.values
        errors = np.clip(np.where(np.isfinite(errors), errors / noise, _WORST), -_WORST, _WORST)
        parts = [errors[~np.isnan(seen.values)], (x[n:] - usual) / spread]
        if starts is not None:
            parts.append((x[:n] - starts.mean) / np.maximum(starts.deviation, 1e-300))
        return np.concatenate(parts)

    with np.errstate(all="ignore"):
        fits = []
        for guess in _guesses(run, seen, fit.initial):
            x = np.concatenate([guess, usual])
            size = np.abs(x)
            if starts is not None:
                size = np.concatenate([starts.deviation, spread])
            size = np.maximum(size, 1e-3 * np.abs(x).max() + 1e-300)
            fits.append(least_squares(residuals, x, x_scale=size, max_nfev=_EVALUATIONS))
        best = min(fits, key=lambda found: found.cost)
        trajectory = solved(best.x, every)
    at = np.searchsorted(every, seen.t)
    left = {}
    for variable, remainder in posterior.remainders.items():
        series = residual_series(run, seen, variable, trajectory[variable][at])
        if len(series.t):
            level = remainder.process.level(*series)
            left[variable] = Remainder(remainder.process, series.t[-1:], np.array([level]))
    values = trajectory.values + expected_residuals(run, left, 0, trajectory)
    rows = np.searchsorted(every, times)
    columns = {name: column[rows] for name, column in trajectory.inputs.items()}
    return Trajectory(times, values[rows], trajectory.variables, columns, trajectory.status, trajectory.end)


def _guesses(run: Run, seen: Observation, initial: np.ndarray) -> list[np.ndarray]:
    """Initial states: the first sample, with the usual derivatives, with those of the first samples, and with 0."""
    few = min(len(seen.t), 4)
    start, usual, slopes = np.zeros(run.frame.dimension), initial.mean(axis=0), np.zeros(run.frame.dimension)
    measured = np.zeros(run.frame.dimension, bool)
    for d, variable in enumerate(run.frame.variables):
        column, below = seen.column(variable), seen.column(Variable(variable.name, max(variable.derivative - 1, 0)))
        if column is not None and np.isfinite(column).any():
            start[d], measured[d] = column[np.isfinite(column)][0], True
        elif below is not None and np.isfinite(below[:few]).sum() > 1:
            present = np.isfinite(below[:few])
            slopes[d] = np.polynomial.polynomial.polyfit(seen.t[:few][present], below[:few][present], 1)[1]
    if measured.all():
        return [start]
    return [np.where(measured, start, other) for other in (usual, slopes, np.zeros_like(slopes))]
