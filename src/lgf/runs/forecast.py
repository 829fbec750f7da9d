"""Forecasts: the solution after the last sample, with what is left of the residuals there.

The equation of a real record is an approximation, and its residuals are correlated in time: if the last samples lie
above the solution, so will the next ones. The residuals of each measured variable are taken as white noise and, where
that is a shorter description, an Ornstein-Uhlenbeck process. Its expected value after the last sample is added to the
solution; it dies out over the correlation time. White residuals add nothing.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lgf.data.observation import Observation
from lgf.expression.frame import Variable
from lgf.runs.request import Run
from lgf.search.noise_model import Residuals, likeliest_process, process_length
from lgf.solver.trajectory import Trajectory


class Process(NamedTuple):
    """An Ornstein-Uhlenbeck process beside white noise of variance 1."""

    variance: float
    correlation_time: float

    def level(self, t: np.ndarray, residuals: np.ndarray) -> float:
        """The expected value at the last of the times t, given the residuals until then (a Kalman filter)."""
        mean, variance, before = 0.0, self.variance, t[0]
        for time, residual in zip(t, residuals, strict=True):
            decay = math.exp(-(time - before) / self.correlation_time)
            mean *= decay
            variance = decay**2 * variance + self.variance * (1.0 - decay**2)
            gain = variance / (variance + 1.0)
            mean += gain * (residual - mean)
            variance *= 1.0 - gain
            before = time
        return mean


class Series(NamedTuple):
    """The residuals of a variable in one experiment, in units of its noise at a signal of 0."""

    t: np.ndarray
    residuals: np.ndarray


class Remainder(NamedTuple):
    """The expected residuals of a variable after the last sample of each experiment, in units of its noise at 0."""

    process: Process
    last: np.ndarray  # [E] time of the last sample
    level: np.ndarray  # [E] expected residual then

    def after(self, experiment: int, t: np.ndarray) -> np.ndarray:
        """The expected residuals at times t, 0 up to the last sample."""
        ahead = t - self.last[experiment]
        left = np.exp(-np.maximum(ahead, 0.0) / self.process.correlation_time)
        return np.where(ahead > 0.0, self.level[experiment] * left, 0.0)


def forecast(run: Run, experiment: int = 0, t: ArrayLike | None = None) -> Trajectory:
    """The solution for this experiment at the times t, with what is left of the residuals after its last sample."""
    solved = run.trajectory(experiment, t)
    observations = run.request.problem.observations
    if not len(solved.t) or solved.t.max() <= observations[experiment].t[-1]:
        return solved
    means = [run.trajectory(e).values for e in range(len(observations))]
    values = solved.values + expected_residuals(run, remainders(run, run.frame.columns, means), experiment, solved)
    return Trajectory(solved.t, values, solved.variables, solved.inputs, solved.status, solved.end)


def expected_residuals(run: Run, left: Mapping[Variable, Remainder], experiment: int, solved: Trajectory) -> np.ndarray:
    """The residuals [N, column] that are expected at the times of the solution after the last sample."""
    expected = np.zeros_like(solved.values)
    for variable, remainder in left.items():
        size = relative_noise(run, variable, solved[variable])
        expected[:, solved.variables.index(variable)] = size * remainder.after(experiment, solved.t)
    return expected


def remainders(run: Run, columns: Sequence[Variable], means: Sequence[np.ndarray]) -> dict[Variable, Remainder]:
    """What is left of the residuals of each measured variable whose residuals are correlated.

    `means` [N, column] are the solutions at the samples of each experiment.
    """
    left = {}
    for variable in dict.fromkeys(v for o in run.request.problem.observations for v in o.columns):
        series = [
            residual_series(run, o, variable, mean[:, columns.index(variable)])
            for o, mean in zip(run.request.problem.observations, means, strict=True)
        ]
        process = process_of(series)
        if process is None:
            continue
        ends = [(s.t[-1], process.level(*s)) if len(s.t) else (math.inf, 0.0) for s in series]
        left[variable] = Remainder(process, *np.array(ends).T)
    return left


def residual_series(run: Run, observation: Observation, variable: Variable, solved: np.ndarray) -> Series:
    """The residuals (measured - solved) of a variable; empty if it was not measured in this experiment."""
    if variable not in observation.columns:
        return Series(np.zeros(0), np.zeros(0))
    j = observation.columns.index(variable)
    weight = np.ones(len(observation)) if observation.weights is None else observation.weights[:, j]
    residuals = (observation.values[:, j] - solved) * np.sqrt(weight) / relative_noise(run, variable, solved)
    present = np.isfinite(residuals) & (weight > 0)
    return Series(observation.t[present], residuals[present])


def process_of(series: Sequence[Series]) -> Process | None:
    """The likeliest process of the residuals; None if white noise is the shorter description."""
    n = sum(len(s.t) for s in series)
    squares = sum(float(s.residuals @ s.residuals) for s in series)
    if not squares > 0.0 or all(len(s.t) < 2 for s in series):
        return None
    first = np.concatenate([[0], np.cumsum([len(s.t) for s in series])]).astype(np.int64)
    row = np.concatenate([s.residuals for s in series])[None, :] * math.sqrt(n / squares)
    residuals = Residuals(np.concatenate([s.t for s in series]), first, row)
    process = Process(*likeliest_process(residuals))
    shorter = n * math.log(n) - process_length(residuals, *process) - 2.0 * math.log(n)
    return process if shorter > 0.0 else None


def relative_noise(run: Run, variable: Variable, values: np.ndarray) -> np.ndarray:
    """The deviation of the noise at these values of a measured variable, relative to that at 0; 1 if it is constant."""
    if run.growth is None:
        return np.ones(len(values))
    measured = [column for o in run.request.problem.observations if (column := o.column(variable)) is not None]
    size = float(np.sqrt(np.nanmean(np.concatenate(measured) ** 2))) if measured else 1.0
    return np.sqrt(1.0 + (run.growth * values / max(size, 1e-300)) ** 2)
