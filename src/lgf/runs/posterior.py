"""Posterior: the uncertainty of a fitted equation's constants and initial states, to first order.

The information about the unknowns is J'WJ, with J the derivatives of the solved trajectories by the unknowns at the
measured samples, and W the inverse variance of the residuals. Every experiment has an initial state of its own, which
is eliminated, so that experiments add their information about the common constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from lgf.data.noise import correlation_time
from lgf.data.observation import Observation
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.runs.forecast import Remainder, expected_residuals, relative_noise, remainders, residual_series
from lgf.runs.request import Run
from lgf.search.candidate import Candidate
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve
from lgf.solver.trajectory import Trajectory

_STEP = 1e-4  # relative step of the derivatives by the unknowns
_WIDEST = 100.0  # prior deviation of an unknown, in units of its value: what the data do not determine stays finite
_FEW = 2  # least degrees of freedom for a variance


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the data say about the constants of a candidate and about the initial states.

    `information` [E, p, p] is each experiment's about the common constants, its own unknowns eliminated. `deviation`
    [p] is the spread between experiments of a constant that varies; 0 for a common one.
    """

    run: Run
    candidate: Candidate
    constants: np.ndarray  # [E, p]
    deviation: np.ndarray
    noise: Mapping[Variable, float]  # deviation of the residuals of each measured variable
    freedom: int  # degrees of freedom of the residuals
    correlation: float  # time over which residuals are correlated, in samples; at least 1
    information: np.ndarray
    remainders: Mapping[Variable, Remainder]  # of correlated residuals, after the last sample

    def of_experiment(self, experiment: int, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(mean, variance) of the columns [N, column] at times t of an experiment of the data; NaN where not solved.

        The mean is that of a forecast: after the last sample it has what is left of the residuals there.
        """
        mean, jacobian = self._sensitivity(experiment, t)
        solved = Trajectory(t, mean, self.candidate.skeleton.frame.columns)
        expected = expected_residuals(self.run, self.remainders, experiment, solved)
        return mean + expected, _spread(jacobian, self._own_covariance(experiment))

    def of_simulation(
        self, t: np.ndarray, start: np.ndarray, inputs: Mapping[str, Forcing], experiment: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(mean, variance) of the columns [N, column] from a known initial state at t[0].

        Constants that vary are those of `experiment`. For a new one they have their means, and their spread between
        experiments counts as uncertainty.
        """
        if experiment is None:
            values, covariance = self.candidate.fit.values, self._new_covariance
        else:
            p = len(self.deviation)
            values, covariance = self.constants[experiment], self._own_covariance(experiment)[:p, :p]
        none = np.zeros(0, int)
        mean, jacobian = _derivatives(self.candidate, np.asarray(values), start, none, t[0], t, inputs, None)
        return mean, _spread(jacobian, covariance)

    def of_plan(
        self,
        start: Mapping[Variable, float],
        t: np.ndarray,
        inputs: Mapping[str, Forcing],
        noise: Mapping[Variable, float],
    ) -> tuple[np.ndarray, np.ndarray]:
        """(mean [M], covariance [M, M]) of the variables in `noise` in a planned experiment, in units of that noise.

        All samples of a variable follow each other. Initial values that were fitted in the data are uncertain by the
        range of their variable. Samples that the solution does not reach are NaN.
        """
        values, state = np.asarray(self.candidate.fit.values), self.start_of(start)
        unknown = _unknown(self.candidate.skeleton, self.run.request.problem.observations[0])
        mean, jacobian = _derivatives(self.candidate, values, state, unknown, t[0], t, inputs, None)
        reached = np.isfinite(mean).all(axis=1) & np.isfinite(jacobian).all(axis=(1, 2))
        mean[~reached], jacobian[~reached] = np.nan, np.nan
        ranges = np.ptp(self._states, axis=0)[unknown]
        covariance = np.zeros((jacobian.shape[2], jacobian.shape[2]))
        p = len(values)
        covariance[:p, :p] = self._new_covariance
        covariance[range(p, len(covariance)), range(p, len(covariance))] = ranges**2
        columns = [self.candidate.skeleton.frame.columns.index(v) for v in noise]
        scale = 1.0 / np.array(list(noise.values()))
        slopes = np.concatenate([jacobian[:, c] * s for c, s in zip(columns, scale, strict=True)])
        return (mean[:, columns] * scale).T.ravel(), slopes @ covariance @ slopes.T

    def start_of(self, start: Mapping[Variable, float]) -> np.ndarray:
        """The initial state with these values; others are those of the nearest state on the solutions over the data."""
        variables = self.candidate.skeleton.frame.variables
        known = [k for k, v in enumerate(variables) if v in start]
        given = np.array([start[variables[k]] for k in known])
        size = np.maximum(np.ptp(self._states[:, known], axis=0), 1e-300)
        nearest = np.argmin(np.sum(((self._states[:, known] - given) / size) ** 2, axis=1))
        state = self._states[nearest].copy()
        state[known] = given
        return state

    @cached_property
    def _states(self) -> np.ndarray:
        """The states [N, n] on the solutions over the data."""
        observations = self.run.request.problem.observations
        n = self.candidate.skeleton.frame.dimension
        return np.concatenate([self._sensitivity(e, o.t)[0][:, :n] for e, o in enumerate(observations)])

    @cached_property
    def _new_covariance(self) -> np.ndarray:
        """Covariance of the constants of a new experiment."""
        covariance = self._covariance(self.information.sum(axis=0), self.candidate.fit.values)
        varying = self.deviation > 0
        covariance[varying, :] = covariance[:, varying] = 0.0
        covariance[varying, varying] = self.deviation[varying] ** 2 * (1 + 1 / len(self.constants))
        return covariance

    def _own_covariance(self, experiment: int) -> np.ndarray:
        """Covariance of the constants of this experiment and of its unknown initial values."""
        observation = self.run.request.problem.observations[experiment]
        mean, jacobian = self._sensitivity(experiment, observation.t)
        weights = _weights(self.run, self.candidate.skeleton, observation, mean, self.noise)
        information = _information(jacobian, weights)
        p, varying = len(self.deviation), np.flatnonzero(self.deviation)
        information[:p, :p] += self.information.sum(axis=0) - self.information[experiment]
        information[varying, varying] += self.correlation / self.deviation[varying] ** 2
        start = self.candidate.fit.initial[experiment, _unknown(self.candidate.skeleton, observation)]
        return self._covariance(information, np.concatenate([self.constants[experiment], start]))

    def _covariance(self, information: np.ndarray, values: ArrayLike) -> np.ndarray:
        """The inverse of the information, with a very wide prior of every unknown.

        Samples that are correlated over k samples are worth a k-th of as many that are not.
        """
        size = _WIDEST * np.maximum(np.abs(values), 1e-12)
        return _inverse(information / self.correlation + np.diag(1.0 / size**2))

    def _sensitivity(self, experiment: int, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        observation = self.run.request.problem.observations[experiment]
        return _derivatives(
            self.candidate, self.constants[experiment], self.candidate.fit.initial[experiment],
            _unknown(self.candidate.skeleton, observation), observation.t[0], t,
            self.run.request.problem.signals(experiment), self._branch(experiment),
        )  # fmt: skip

    def _branch(self, experiment: int) -> tuple[float, float] | None:
        """The branch of an implicit equation; it is known for the chosen frame only."""
        return self.run.branches[experiment] if self.candidate.skeleton.frame == self.run.frame else None


def make_posterior(run: Run, candidate: Candidate) -> Posterior | None:
    """The posterior of the candidate; None if it cannot be solved over the data."""
    observations, fit = run.request.problem.observations, candidate.fit
    skeleton, constants = candidate.skeleton, fit.by_experiment
    deviation = np.zeros(skeleton.n_constants)
    for varying in fit.sharing.varying:
        deviation[varying.constant] = varying.deviation if np.isfinite(varying.deviation) else 0.0
    bare = Posterior(run, candidate, constants, deviation, {}, 1, 1.0, np.zeros((len(constants), 0, 0)), {})
    solved = [bare._sensitivity(e, observation.t) for e, observation in enumerate(observations)]
    if not all(np.all(np.isfinite(mean)) and np.all(np.isfinite(jacobian)) for mean, jacobian in solved):
        return None
    means = [mean for mean, _ in solved]
    noise, freedom, correlation = _residuals(run, skeleton, observations, means, deviation)
    p = len(deviation)
    information = np.zeros((len(observations), p, p))
    common, own = np.flatnonzero(deviation == 0), np.flatnonzero(deviation)
    for e, (observation, (mean, jacobian)) in enumerate(zip(observations, solved, strict=True)):
        whole = _information(jacobian, _weights(run, skeleton, observation, mean, noise))
        whole[own, own] += correlation / deviation[own] ** 2
        others = np.setdiff1d(np.arange(len(whole)), common)
        reduced = whole[np.ix_(common, common)]
        if len(others) and len(common):
            reduced = reduced - whole[np.ix_(common, others)] @ (
                _inverse(whole[np.ix_(others, others)]) @ whole[np.ix_(others, common)]
            )
        information[e][np.ix_(common, common)] = reduced
    left = remainders(run, skeleton.frame.columns, means)
    return Posterior(run, candidate, constants, deviation, noise, freedom, correlation, information, left)


def _unknown(skeleton: Skeleton, observation: Observation) -> np.ndarray:
    """Positions in the state vector of the initial values that were fitted."""
    return np.array([d for d, v in enumerate(skeleton.frame.variables) if v not in observation.initial], int)


def _derivatives(
    candidate: Candidate, values: np.ndarray, start: np.ndarray, unknown: np.ndarray, begin: float, t: np.ndarray,
    inputs: Mapping[str, Forcing], branch: tuple[float, float] | None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The solution [N, column] at times t, and its derivatives [N, column, unknown] by constants and initial values.

    A constant that is tied to another moves with it, and not by itself.
    """
    times = np.union1d([begin], t)
    rows = np.searchsorted(times, t)

    def solution(x: np.ndarray) -> np.ndarray:
        moved = start.copy()
        moved[unknown] = x[len(values) :]
        constants = tuple(x[: len(values)].tolist())
        return solve(System(candidate.skeleton, constants), tuple(moved), times, inputs, branch=branch).values[rows]

    x = np.concatenate([values, start[unknown]])
    mean = solution(x)
    smallest = 1e-3 * (float(np.abs(start).max(initial=0.0)) or 1.0)
    size = np.concatenate([np.maximum(np.abs(values), 1e-9), np.maximum(np.abs(start[unknown]), smallest)])
    jacobian = np.empty((*mean.shape, len(x)))
    for k, step in enumerate(_STEP * size):
        above, below = x.copy(), x.copy()
        above[k] += step
        below[k] -= step
        jacobian[:, :, k] = (solution(above) - solution(below)) / (2 * step)
    return mean, jacobian


def _weights(
    run: Run, skeleton: Skeleton, observation: Observation, mean: np.ndarray, noise: Mapping[Variable, float]
) -> np.ndarray:
    """Inverse variances [N, column] of the samples, 0 where nothing was measured."""
    columns = skeleton.frame.columns
    weights = np.zeros((len(observation), len(columns)))
    for j, variable in enumerate(observation.columns):
        given = 1.0 if observation.weights is None else observation.weights[:, j]
        present, c = ~np.isnan(observation.values[:, j]), columns.index(variable)
        deviation = noise[variable] * relative_noise(run, variable, mean[:, c])
        weights[:, c] = np.where(present, given / deviation**2, 0.0)
    return weights


def _information(jacobian: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.einsum("nci,nc,ncj->ij", jacobian, weights, jacobian)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse of a positive matrix, scaled first; directions that rounding made negative count as undetermined."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    return (vectors / np.maximum(values, 1e-13)) @ vectors.T / np.outer(scale, scale)


def _spread(jacobian: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    return np.maximum(np.einsum("nci,ij,ncj->nc", jacobian, covariance, jacobian), 0.0)


def _residuals(
    run: Run,
    skeleton: Skeleton,
    observations: tuple[Observation, ...],
    means: list[np.ndarray],
    deviation: np.ndarray,
) -> tuple[dict[Variable, float], int, float]:
    """(deviation of the residuals of each measured variable, their degrees of freedom, their correlation time)."""
    columns = skeleton.frame.columns
    residuals: dict[Variable, list[np.ndarray]] = {}
    n_unknown = int(np.count_nonzero(deviation == 0)) + len(observations) * int(np.count_nonzero(deviation))
    for observation, mean in zip(observations, means, strict=True):
        n_unknown += len(_unknown(skeleton, observation))
        for variable in observation.columns:
            series = residual_series(run, observation, variable, mean[:, columns.index(variable)])
            residuals.setdefault(variable, []).append(series.residuals)
    n_samples = sum(len(part) for parts in residuals.values() for part in parts)
    freedom = max(n_samples - n_unknown, _FEW)
    noise = {}
    for variable, parts in residuals.items():
        square = float(np.mean(np.concatenate(parts) ** 2)) * n_samples / freedom
        noise[variable] = max(float(np.sqrt(square)), 1e-300)
    return noise, freedom, correlation_time([part / noise[v] for v, parts in residuals.items() for part in parts])
