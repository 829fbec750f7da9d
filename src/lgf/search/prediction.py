"""Prediction of what a fit did not see: forecasts from rolling origins, and experiments left out.

Rolling origins: the equation is fitted to the first part of each experiment and forecasts the samples up to the next
origin. Left-out experiments: the constants come from the other experiments, the initial state (and a constant that
varies by experiment) from the first samples of the left-out one; the rest is scored.

z^2 of a prediction is the mean of error^2 / (s^2 (1 + b' A^-1 b)), where s^2 is the variance of the residuals of the
fit, A = J'J its information and b the slopes at a predicted sample. It is about 1 for the true equation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import Field

from lgf.data.problem import Problem
from lgf.fit.constants import fit_constants
from lgf.fit.jacobian import Solved, solve_with_jacobian
from lgf.fit.settings import FitSettings, make_fitting
from lgf.fit.starts import starts_of, with_starts
from lgf.fit.target import Target
from lgf.fit.target_assembly import make_target
from lgf.fit.trajectory_stage import on_first_samples
from lgf.search.candidate import Candidate, Prediction
from lgf.search.evaluate import Evaluator, bounds_of, unknowns_at
from lgf.search.systems.amplification import disturbance_growth
from lgf.settings.ranges import Count, Positive, Share, Weight
from lgf.smoothing.complete import Completion
from lgf.solver.solve import solve
from lgf.solver.trajectory import SolveStatus

_RTOL = 1e-6  # of the solutions that are compared with the data
_ACCURATE = FitSettings(rtol=1e-8, iterations=60, tolerance=1e-6, steps_per_solve=8000, steps_per_fit=100_000)
_CONTINUED = 1.0 / 3.0  # of the record, after its end
_LEAST_FREEDOM = 0.1  # share of the residuals that unknowns leave at least


@dataclass(frozen=True)
class PredictionSettings:
    """How predictions are made, and when they refute an equation."""

    origins: tuple[Share, ...] = (
        0.5,
        0.65,
        0.8,
    )  # shares of each experiment that are fitted; the next part is forecast
    early: Share = 0.3  # share of a left-out experiment from which its initial state is fitted
    least_samples: Count = 8  # a shorter single experiment is not forecast
    least_seen: Count = 3  # samples of each experiment that are fitted
    most_groups: Annotated[int, Field(ge=2)] = 10  # experiments are left out in so many groups
    many_experiments: Count = 20  # of more than these, in `few_groups`
    few_groups: Annotated[int, Field(ge=2)] = 4
    worthless_above: Positive = 1.0  # error of predictions in standard deviations of the data; then they test nothing
    unexplained_above: Positive = 0.5  # residuals in standard deviations of the data, above which nothing is confirmed
    patterned_above: Positive = 0.2  # the same if the residuals are more than noise
    refuted_above: Positive = 5.0  # z^2 of a prediction; true equations have 0.6 to 2.3
    outpredicted_above: Annotated[float, Field(ge=1.0)] = 1.5  # times the best error, if there are several experiments
    far_outpredicted_above: Annotated[float, Field(ge=1.0)] = 5.0  # times the error of a simpler one, of any record
    about_as_well: Annotated[float, Field(ge=1.0)] = 1.25  # residuals within this factor count as equal, if patterned
    near_best: Annotated[float, Field(ge=1.0)] = 1.1  # predictions within this factor of the best count as equal
    foreseeable_within: Annotated[float, Field(ge=1.0)] = 2.0  # the same for those whose part of time can be foreseen
    bits_per_constant: Weight = 3.0  # in the order of simplicity
    bits_per_order: Weight = 3.0
    n_first_order: Count = 6  # autonomous equations of first order among those compared
    discounts: tuple[Positive, ...] = (
        3.0,
        6.0,
        12.0,
        24.0,
    )  # samples per independent one
    n_discounted: Count = 4  # simpler equations for each of these
    sensitive_above: Positive = 4.0  # log growth of a disturbed start above which solutions must be accurate
    unpredictable_above: Positive = 12.0  # the same above which no part of the record tells the rest


@dataclass
class _Score:
    """Sums over predicted values, in units of the noise."""

    error: float = 0.0
    signal: float = 0.0
    surprise: float = math.nan

    def fail(self, target: Target, predicted: np.ndarray) -> None:
        """Counts values that an equation with too many unknowns cannot predict: its answer is 0."""
        signal = float(np.sum(target.record.weight[predicted] * target.power * target.record.data[predicted] ** 2))
        self.error += signal
        self.signal += signal

    def count(self, target: Target, solved: Solved, predicted: np.ndarray) -> None:
        """Counts the errors of predicted values."""
        weight = target.record.weight[predicted] * target.power
        self.error += float(_squares(target, solved)[predicted].sum())
        self.signal += float(np.sum(weight * target.record.data[predicted] ** 2))

    def add(
        self, target: Target, solved: Solved, predicted: np.ndarray, information: np.ndarray, variances: np.ndarray
    ) -> None:
        """Counts predicted values and their surprise.

        `information` is J'J of the fit, `variances` [column] are those of its residuals.
        """
        squares = _squares(target, solved)[predicted]
        if not len(squares):
            return
        variance = np.broadcast_to(variances, predicted.shape)[predicted]
        weight = target.record.weight[predicted] * target.power
        leverage = np.zeros(predicted.shape)
        leverage[predicted] = _leverage(information, solved.jacobian[:, predicted] * np.sqrt(weight))
        expected = variance * (1.0 + _held(leverage, solved.reached, target)[predicted])
        # An error larger than the signal says no more than that the prediction failed.
        signal = target.column_powers * target.power / np.maximum(target.column_counts, 1)
        squares = np.minimum(squares, np.broadcast_to(signal, predicted.shape)[predicted])
        self.count(target, solved, predicted)
        self.surprise = float(np.fmax(self.surprise, np.mean(squares / expected)))

    @property
    def relative(self) -> float | None:
        """The root mean square error relative to the signal; None without predictions."""
        return math.sqrt(self.error / self.signal) if self.signal > 0 else None


def with_prediction(
    candidate: Candidate,
    problem: Problem,
    completions: Sequence[Completion],
    evaluator: Evaluator,
    settings: PredictionSettings = PredictionSettings(),
) -> Candidate:
    """The candidate with its predictions. The fits start from the candidate's constants."""
    if candidate.prediction is not None or not math.isfinite(candidate.loss):
        return candidate
    target = evaluator.targets[candidate.skeleton.frame]
    growth = disturbance_growth(candidate, target)
    if settings.unpredictable_above < growth < math.inf:
        return replace(candidate, prediction=Prediction(None, None, math.nan, growth))
    sensitive = settings.sensitive_above < growth < math.inf
    fit = _ACCURATE if sensitive else evaluator.fit
    bounds = bounds_of(candidate.skeleton, evaluator.knowledge)
    # Errors of the solver grow as a disturbance of the start does.
    accuracy = fit.accuracy * (math.exp(growth) if sensitive else 1.0)
    forecast = _forecasts(candidate, target, fit, bounds, accuracy, settings)
    left_out = _left_out(candidate, problem, completions, target, fit, bounds, accuracy, settings)
    surprise = float(np.fmax(forecast.surprise, left_out.surprise))
    # No error is believed below that of the solver and of the rounded data.
    least = math.sqrt(fit.accuracy**2 + target.rounding_loss)
    later, others = (None if e is None else max(e, least) for e in (forecast.relative, left_out.relative))
    return replace(candidate, prediction=Prediction(later, others, surprise, growth))


def continues(candidate: Candidate, problem: Problem, target: Target) -> bool:
    """Whether no solution blows up soon after the last sample; not examined with inputs, which are not known there."""
    if problem.inputs:
        return True
    for e, observation in enumerate(problem.observations):
        first, last = observation.t[0], observation.t[-1]
        t = np.linspace(first, last + _CONTINUED * (last - first), 50)
        branch = float(target.record.root[e]), float(target.record.root_slope[e])
        system, start = candidate.fit.system(target, e), tuple(candidate.fit.initial[e])
        solution = solve(system, start, t, branch=branch, rtol=_RTOL, limit=target.record.limit)
        if solution.status is not SolveStatus.OK:
            return False
    return True


def _forecasts(
    candidate: Candidate,
    target: Target,
    fit: FitSettings,
    bounds: np.ndarray | None,
    accuracy: float,
    settings: PredictionSettings,
) -> _Score:
    score = _Score()
    lengths = np.diff(target.record.first)
    if len(lengths) == 1 and lengths[0] < settings.least_samples:
        return score
    fitting = make_fitting(candidate.skeleton, target, fit, bounds, candidate.fit.sharing)
    start = unknowns_at(candidate.fit, fitting)
    for seen, until in _origins(lengths, settings):
        trained = _selected(target, np.zeros_like(seen), seen)
        following, rest = _selected(target, seen, until), _selected(target, until, lengths)
        if np.count_nonzero(trained) <= len(start):
            score.fail(target, following | rest)
            continue
        result = on_first_samples(fitting, start, seen)
        solved = solve_with_jacobian(fitting, result.x, min(_RTOL, fit.rtol))
        sums = np.sum(_squares(target, solved) * trained, axis=0)
        repetition = _repetition(candidate, target)
        variances = _variances(sums, trained.sum(axis=0), len(result.x), repetition, _least_variance(target, accuracy))
        information = result.normal * target.power / repetition
        score.add(target, solved, following, information, variances)
        score.count(target, solved, rest)
    return score


def _origins(lengths: np.ndarray, settings: PredictionSettings) -> list[tuple[np.ndarray, np.ndarray]]:
    """(samples seen, samples up to the next origin) of each experiment, for every origin after which there are some."""
    shares = (*settings.origins, 1.0)
    ends = [np.maximum(np.ceil(f * lengths).astype(np.int64), settings.least_seen) for f in shares]
    ends = [np.minimum(end, lengths) for end in ends]
    return [(seen, until) for seen, until in pairwise(ends) if np.any(seen < until)]


def _left_out(
    candidate: Candidate,
    problem: Problem,
    completions: Sequence[Completion],
    whole: Target,
    fit: FitSettings,
    bounds: np.ndarray | None,
    accuracy: float,
    settings: PredictionSettings,
) -> _Score:
    score = _Score()
    n = len(problem.observations)
    if n < 2:
        return score
    skeleton, values, frame = candidate.skeleton, candidate.fit.values, whole.frame
    n_groups = settings.most_groups if n <= settings.many_experiments else settings.few_groups
    for first in range(min(n, n_groups)):
        group = list(range(first, n, n_groups))
        others = [i for i in range(n) if i not in group]
        sharing = candidate.fit.sharing if len(others) > 1 else replace(candidate.fit.sharing, varying=())
        training = _part(problem, completions, whole, others)
        trained = fit_constants(skeleton, training, fit, bounds=bounds, start=values, sharing=sharing)
        n_unknowns = training.n_unknown + skeleton.n_constants
        if training.n_samples <= n_unknowns or not math.isfinite(trained.loss):
            continue
        counts = np.count_nonzero(training.record.weight, axis=0)
        variances = _variances(
            trained.losses * training.power,
            counts,
            n_unknowns,
            _repetition(candidate, whole),
            _least_variance(training, accuracy),
        )
        target = _part(problem, completions, whole, group)
        fixed = np.column_stack([trained.values, trained.values])
        varying = [v.constant for v in trained.sharing.varying]
        fixed[varying] = (-np.inf, np.inf) if bounds is None else bounds[varying]
        fitting = make_fitting(skeleton, target, fit, fixed, trained.sharing)
        starts = starts_of(trained.initial, np.fmax(whole.noise[: frame.dimension], 0.0))
        start = fitting.unknown_starts(np.array([trained.values]).reshape(1, -1))[0]
        if starts is not None:
            variance = float(np.mean(variances[counts > 0])) * _repetition(candidate, whole)
            fitting = fitting._replace(unknowns=with_starts(fitting.unknowns, target, starts, variance))
            unmeasured = np.array([d not in target.measured for d in range(frame.dimension)])
            experiment, variable = np.nonzero((target.record.unknown >= 0) & unmeasured)
            at = fitting.layout.n_free + target.record.unknown[experiment, variable]
            start[at] = starts.mean[variable]
        lengths = np.diff(target.record.first)
        seen = np.maximum(np.ceil(settings.early * lengths).astype(np.int64), settings.least_seen)
        seen = np.minimum(seen, lengths)
        result = on_first_samples(fitting, start, seen)
        information = result.normal * target.power / _repetition(candidate, whole)
        common = np.flatnonzero(fitting.layout.experiment < 0)
        owners = fitting.layout.owner[common]
        known = _inverse(trained.covariance[np.ix_(owners, owners)])
        information[np.ix_(common, common)] += float(np.mean(variances[counts > 0])) * known
        solved = solve_with_jacobian(fitting, result.x, min(_RTOL, fit.rtol))
        score.add(target, solved, _selected(target, seen, lengths), information, variances)
    return score


def _repetition(candidate: Candidate, target: Target) -> float:
    """The number of samples that hold the information of one; 1 for white noise."""
    noise = candidate.noise
    return 1.0 if noise is None else 1.0 + 2.0 * noise.share * noise.correlation_time / target.spacing


def _selected(target: Target, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """[N, column] whether a value was measured at sample begin[e] .. end[e] - 1 of its experiment."""
    inside = np.zeros(len(target.t), bool)
    for first, low, high in zip(target.record.first[:-1], begin, end, strict=True):
        inside[first + low : first + high] = True
    return inside[:, None] & (target.record.weight > 0)


def _squares(target: Target, solved: Solved) -> np.ndarray:
    """The squared errors [N, column] in units of the noise; large where the solution was not reached."""
    squares = np.fmin((solved.values - target.record.data) ** 2, target.record.ceiling)  # fmin ignores NaN
    return squares * target.record.weight * target.power


def _variances(sums: np.ndarray, counts: np.ndarray, n_unknowns: int, repetition: float, least: float) -> np.ndarray:
    """The variance of the residuals of each column; the smoother may have misjudged the noise of one.

    Every unknown takes the residuals of one independent sample away.
    """
    freedom = max(1.0 - n_unknowns * repetition / counts.sum(), _LEAST_FREEDOM)
    return np.maximum(sums / (np.maximum(counts, 1) * freedom), least)


def _leverage(information: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """B' A^-1 b of each column b of the slopes; very large where the fit has not determined what matters."""
    if not len(information):
        return np.zeros(slopes.shape[1])
    sizes = np.sqrt(np.diag(information))
    sizes[sizes == 0.0] = 1.0
    scaled = information / np.outer(sizes, sizes) + 1e-10 * np.eye(len(sizes))
    b = slopes / sizes[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # an unstable solution: nothing is determined
        leverage = np.sum(b * np.linalg.solve(scaled, b), axis=0)
    return np.maximum(np.nan_to_num(leverage, nan=np.inf, posinf=np.inf), 0.0)


def _held(leverage: np.ndarray, reached: np.ndarray, target: Target) -> np.ndarray:
    """The leverages [N, column], after a blow-up those of the last sample that the solution reaches.

    There is no slope after a blow-up, but whether it happens is as uncertain as the solution before it.
    """
    held = leverage.copy()
    for begin, end in pairwise(target.record.first):
        last = begin + np.count_nonzero(reached[begin:end]) - 1
        if begin <= last < end - 1:
            held[last + 1 : end] = held[last]
    return held


def _least_variance(target: Target, accuracy: float) -> float:
    """The variance of residuals, in units of the noise, that rounding and solutions of this relative error leave."""
    return (accuracy**2 + target.rounding_loss) * target.power / target.n_samples


def _inverse(covariance: np.ndarray) -> np.ndarray:
    """The information of a covariance; 0 for what is not determined."""
    result = np.zeros_like(covariance)
    known = np.flatnonzero(np.isfinite(np.diag(covariance)) & (np.diag(covariance) > 0))
    result[np.ix_(known, known)] = np.linalg.pinv(covariance[np.ix_(known, known)], hermitian=True)
    return result


def _part(problem: Problem, completions: Sequence[Completion], whole: Target, experiments: Sequence[int]) -> Target:
    """The target of some experiments; all candidates share it."""
    key = "part", tuple(experiments)
    if key not in whole.cache:
        part = make_target(
            problem.part(experiments), whole.frame, [completions[i] for i in experiments], noise=whole.noise
        )
        # The smoothed curve of one experiment may be flat, and then any slope would count as a blow-up.
        limit = np.maximum(part.record.limit, whole.record.limit)
        whole.cache[key] = replace(part, record=part.record._replace(limit=limit))
    return whole.cache[key]
