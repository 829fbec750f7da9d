"""The fit of a skeleton's constants to a target: the inner optimisation.

The residual stage (variable projection over the completed record) gives starts for the trajectory stage
(Levenberg-Marquardt on the solved equation, with growing windows if needed). Other starts are tried if the result is
poor. The alternative is the paper's two-stage Nelder-Mead search.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.fit.initial_guesses import starting_points
from lgf.fit.joint_residual import fitted_jointly
from lgf.fit.nelder_mead import nelder_mead
from lgf.fit.random_effects import distribution, random_length
from lgf.fit.segments import Shooting, joined, reweighed, segmented
from lgf.fit.settings import FitMethod, FitSettings, Fitting, StageResult, make_fitting
from lgf.fit.sharing import COMMON, Sharing, unknowns_of
from lgf.fit.target import LEAST_ERROR, Target
from lgf.fit.trajectory_stage import levenberg_marquardt, shoot
from lgf.settings.ranges import Array, Count, Tally
from lgf.solver.kernels.residual import fit_residual, residual_loss
from lgf.solver.solve import STATUSES
from lgf.solver.trajectory import SolveStatus

_SCREENED = 128  # samples on which the starts are compared, about
_RESIDUAL_ITERATIONS = 12  # of the residual stage


@dataclass(frozen=True)
class ConstantFit:
    """The result of a fit of a skeleton."""

    skeleton: Skeleton
    values: tuple[float, ...]  # of a constant that varies by experiment: the mean
    residual: float  # mean square residual over the completed record (L_DE), of all equations together
    loss: Annotated[
        float, Field(ge=0.0)
    ]  # relative mean square error of the solved trajectory; infinite if it was not solved
    losses: Array  # [column of the frame] its parts, 0 where nothing was measured
    covariance: Array  # of the constants; infinite variance where the data do not determine one
    initial: Array  # [experiment, n] the initial states, given or fitted
    by_experiment: Array  # [experiment, constant] the constants of each experiment
    sharing: Sharing  # the constants that vary by experiment
    random_length: float  # description length of the constants that vary, given their distributions
    status: SolveStatus
    evaluations: Tally  # trajectories solved
    steps: Tally
    segments: Count = 1  # into which each experiment was cut
    segment_states: Array | None = None  # [segment, n] their initial states, if there are several

    def __post_init__(self) -> None:
        p, frame = self.skeleton.n_constants, self.skeleton.frame
        if len(self.values) != p or self.losses.shape != (len(frame.columns),):
            raise ValueError(f"{len(self.values)} values and {self.losses.size} losses for {self.skeleton}")
        if not all(0 <= v.constant < p for v in self.sharing.varying):
            raise ValueError(f"a constant beyond {p} varies")
        experiments = len(self.initial)
        if len(self.by_experiment) != experiments:
            raise ValueError(f"initial states of {experiments} experiments and constants of {len(self.by_experiment)}")
        if self.initial.shape != (experiments, frame.dimension):
            raise ValueError(f"initial states of shape {self.initial.shape} for a state vector of {frame.dimension}")
        shapes = {"covariance": (p, p), "by_experiment": (experiments, p)}
        for name, shape in shapes.items():  # an empty matrix is stored as []
            object.__setattr__(self, name, getattr(self, name).reshape(shape))

    @property
    def errors(self) -> tuple[float, ...]:
        """Standard error of each constant."""
        return tuple(float(e) for e in np.sqrt(np.diag(self.covariance)))

    def varying_length(self, n_experiments: int) -> float:
        """Description length of the constants that vary: the deviation of each, and the values given its distribution.

        The mean counts as a common constant.
        """
        return len(self.sharing.varying) * float(np.log(n_experiments)) + self.random_length

    def system(self, target: Target, experiment: int | None = None) -> System:
        """The fitted system, with the constants of an experiment, or else their means."""
        if experiment is None or not self.sharing.varying:
            return System(self.skeleton, self.values, self.errors, target.formulas)
        values = tuple(float(v) for v in self.by_experiment[experiment])
        return System(self.skeleton, values, self.errors, target.formulas)


def fit_constants(
    skeleton: Skeleton,
    target: Target,
    settings: FitSettings = FitSettings(),
    *,
    bounds: np.ndarray | None = None,
    start: tuple[float, ...] | None = None,
    sharing: Sharing = COMMON,
    shooting: Shooting | None = None,
) -> ConstantFit:
    """The constants of the skeleton that fit the target best.

    bounds [n_constants, 2] are respected. With a start the residual stage is skipped and the start refined, in the
    segments of `shooting` if that is given. `sharing` says which constants vary by experiment.
    """
    if skeleton.frame != target.frame:
        raise ValueError(f"the skeleton has {skeleton.frame} but the target {target.frame}.")
    if shooting is not None and shooting.noise is not None:
        target = reweighed(target, shooting.noise)
    if shooting is not None:
        if start is None:
            start = tuple(_residual_stage(make_fitting(skeleton, target, settings, bounds, sharing))[0][0])
        fitting, result = shoot(skeleton, target, settings, bounds, sharing, start, shooting)
        return _summary(fitting, result, sharing)
    fitting = make_fitting(skeleton, target, settings, bounds, sharing)
    if start is not None:
        starts, residual = np.array([start], float).reshape(1, -1), _residual(fitting, np.array(start, float))
    else:
        starts, residual = _residual_stage(fitting)
    if settings.gate is not None and not residual < settings.gate:
        return _unsolved(skeleton, starts[0], residual, target, sharing)
    starts = fitting.unknown_starts(starts)
    if settings.method is FitMethod.NELDER_MEAD:
        result = nelder_mead(fitting, starts[0], anew=start is None)
    else:
        result = levenberg_marquardt(fitting, starts, rescue=start is None)
    return _summary(fitting, result, sharing, residual if start is None else None)


def _summary(fitting: Fitting, result: StageResult, sharing: Sharing, residual: float | None = None) -> ConstantFit:
    """The result of the last stage, in the terms of the skeleton and of the experiments."""
    target = fitting.target
    n_free, mean = fitting.layout.n_free, fitting.layout.mean
    random = 0.0
    if sharing.varying and np.isfinite(result.loss):
        fitting, result, random = _with_distributions(fitting, sharing, result)
        sharing = replace(sharing, varying=fitting.varying)
        result = result._replace(loss=float(np.sum(result.losses)))  # without the prior, which random_length counts
    values = mean @ result.x[:n_free]
    states = _initial_states(target, result.x[n_free:])
    whole = target.first_segments
    shift = result.shift + np.zeros_like(result.x)
    covariance = (_covariance(result.normal, result.loss, target) + np.outer(shift, shift))[:n_free, :n_free]
    return ConstantFit(
        skeleton=fitting.skeleton,
        values=tuple(float(v) for v in values),
        residual=_residual(fitting, values) if residual is None else float(residual),
        loss=float(result.loss) if np.isfinite(result.loss) else np.inf,
        losses=result.losses,
        covariance=_averaged(covariance, mean) if sharing.varying else covariance,
        initial=states[whole],
        by_experiment=fitting.layout.by_experiment(result.x)[whole],
        sharing=sharing,
        random_length=random,
        status=STATUSES[result.status],
        evaluations=int(result.evaluations),
        steps=int(result.steps),
        segments=target.segments,
        segment_states=states if len(states) > len(whole) else None,
    )


def _with_distributions(fitting: Fitting, sharing: Sharing, result: StageResult) -> tuple[Fitting, StageResult, float]:
    """(fitting, result, description length) with the constants that vary drawn to their estimated distribution.

    A distribution that is given stays as it is.
    """
    target, layout = fitting.target, fitting.layout

    def own(constant: int, result: StageResult) -> tuple[np.ndarray, np.ndarray]:
        """(values, standard errors) of each experiment, for given common constants."""
        at = np.flatnonzero(layout.owner == constant)
        individual = np.concatenate([layout.experiment >= 0, np.ones(target.n_unknown, bool)])
        normal = np.where(individual[:, None] & individual, result.normal, np.diag(np.diag(result.normal)))
        covariance = _covariance(normal, result.loss, target)
        return result.x[at], np.sqrt(np.diag(covariance)[at])

    varying = []
    for v in sharing.varying:
        values, errors = own(v.constant, result)
        if np.isinf(v.deviation):
            mean, deviation = distribution(values, errors)
            least = 1e-3 * float(np.nanmin(errors)) if np.isfinite(errors).any() else 1e-12
            v = replace(v, mean=mean if np.isfinite(mean) else float(values.mean()), deviation=max(deviation, least))
        varying.append(v)
    if tuple(varying) != sharing.varying:
        fitting = fitting._replace(unknowns=unknowns_of(layout, target, fitting.sizes, varying), varying=tuple(varying))
        drawn = levenberg_marquardt(fitting, result.x[None, :], rescue=False)
        result = drawn._replace(evaluations=result.evaluations + drawn.evaluations, steps=result.steps + drawn.steps)
    length = 0.0
    samples = np.bincount(target.experiment, target.experiment_samples)  # of all segments of an experiment
    for v in varying:
        values, errors = own(v.constant, result)
        # The covariance holds the prior; without it an experiment determines its value less well.
        information = np.maximum(1.0 / errors**2 - 1.0 / v.deviation**2, 0.0)
        with np.errstate(divide="ignore"):
            length += random_length(values, 1.0 / np.sqrt(information), v.mean, v.deviation, samples)
    return fitting, result, length


def _residual_stage(fitting: Fitting) -> tuple[np.ndarray, float]:
    """(constants [k, p], best first; the residual of the first), with each equation fitted separately."""
    compiled, target, settings, lower, upper = fitting[1:6]
    weight, stride = target.complete.astype(float), max(len(target.t) // _SCREENED, 1)
    persistence = settings.persistence
    parts, total = [], 0.0
    for equation in compiled.equations:
        constants, losses, _ = fit_residual(
            equation.basis, compiled.n_constants, equation.linear, equation.nonlinear,
            starting_points(equation, target, persistence.n_starts), lower, upper, target.t, target.columns,
            target.inputs, weight, stride, persistence.n_refined, _RESIDUAL_ITERATIONS,
        )  # fmt: skip
        parts.append(constants)
        total += float(losses[0])
    if len(parts) == 1:
        return parts[0], total
    # The best of every equation combined, then the second best, ...
    rows = np.arange(max(map(len, parts)))
    owns = [np.concatenate([equation.linear, equation.nonlinear]) for equation in compiled.equations]
    starts, count = np.zeros((len(rows), compiled.n_constants)), np.zeros(compiled.n_constants)
    for own, constants in zip(owns, parts, strict=True):
        starts[:, own] += constants[np.minimum(rows, len(constants) - 1)][:, own]
        count[own] += 1
    starts /= count
    if np.any(count > 1):  # from the means, and from the best constants of every equation beside these or ones
        tried = [starts[0]]
        for own, constants in zip(owns, parts, strict=True):
            for others in (starts[0], np.ones_like(starts[0])):
                tried.append(others.copy())
                tried[-1][own] = constants[0][own]
        starts = np.concatenate([fitted_jointly(fitting.skeleton, target, np.array(tried), lower, upper), tried])
    return starts, total


def _residual(fitting: Fitting, values: np.ndarray) -> float:
    target = fitting.target
    weight = target.complete.astype(float)
    return sum(
        float(residual_loss(e.basis, e.linear, values, target.t, target.columns, target.inputs, weight))
        for e in fitting.compiled.equations
    )


def _covariance(normal: np.ndarray, loss: float, target: Target) -> np.ndarray:
    """Covariance of the unknowns from J'WJ, with the noise estimated from the loss.

    Noise and rounding differ from sample to sample and average out; the error of solutions does not.
    """
    n = len(normal)
    if not loss < 1.0:
        return np.full((n, n), np.inf)  # a fit that explains nothing determines nothing
    variance = max(loss, target.rounding_loss) / max(target.n_samples - n, 1) + LEAST_ERROR**2
    determined = np.diag(normal) > 0
    if determined.all():
        return _inverse(normal) * variance
    result = np.zeros((n, n))
    result[~determined, ~determined] = np.inf
    index = np.ix_(determined, determined)
    result[index] = _inverse(normal[index]) * variance
    return result


def _inverse(normal: np.ndarray) -> np.ndarray:
    """The inverse of a matrix with a positive diagonal; infinite variance where a direction is not determined."""
    if not len(normal):
        return normal
    scale = np.sqrt(np.diag(normal))
    sizes = scale[:, None] * scale
    values, vectors = np.linalg.eigh(normal / sizes)
    undetermined = values < 1e-10
    if not undetermined.any():
        return (vectors / values) @ vectors.T / sizes
    inverse = (vectors[:, ~undetermined] / values[~undetermined]) @ vectors[:, ~undetermined].T
    inverse[np.diag_indices(len(inverse))] += np.where((vectors[:, undetermined] ** 2).sum(axis=1) > 1e-6, np.inf, 0.0)
    return inverse / sizes


def _averaged(covariance: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The covariance of `mean` times the free constants; infinite where one that is not determined enters."""
    open_ = ~np.isfinite(np.diag(covariance))
    finite = np.where(open_[:, None] | open_[None, :], 0.0, covariance)
    result = mean @ finite @ mean.T
    result[np.diag_indices(len(result))] += np.where((mean[:, open_] != 0.0).any(axis=1), np.inf, 0.0)
    return result


def initial_values(fit: ConstantFit, target: Target, segments: int) -> tuple[float, ...]:
    """The unknown initial values of so many segments, from the fit where its segments start at the same samples."""
    states = fit.initial if fit.segment_states is None else fit.segment_states
    values = joined(states, segmented(target, fit.segments), segmented(target, segments))
    return tuple(float(v) for v in values)


def _initial_states(target: Target, fitted: np.ndarray) -> np.ndarray:
    states = target.record.initial.copy()
    unknown = target.record.unknown
    states[unknown >= 0] = fitted[unknown[unknown >= 0]]
    return states


def _unsolved(skeleton: Skeleton, values: np.ndarray, residual: float, target: Target, sharing: Sharing) -> ConstantFit:
    p = skeleton.n_constants
    return ConstantFit(
        skeleton, tuple(float(v) for v in values[:p]), residual, np.inf,
        np.full(len(skeleton.frame.columns), np.inf), np.full((p, p), np.inf),
        target.record.initial.copy(), np.tile(values[:p], (target.n_experiments, 1)), sharing, 0.0,
        SolveStatus.OUT_OF_STEPS, 0, 0,
    )  # fmt: skip
