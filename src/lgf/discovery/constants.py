"""Skeleton x Target -> ConstantFit: the inner optimisation.

Residual stage (variable projection over the completed record), then the trajectory stage (Levenberg-Marquardt on the
solved equation, with a growing window when only derivatives of u were measured), then a rescue from other starts if
the result is poor. The paper's two-stage Nelder-Mead search is the other method.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from lgf.discovery.starting import halton, starting_points
from lgf.discovery.target import Target
from lgf.ode.expression import T
from lgf.ode.kernels.machine import LANES
from lgf.ode.kernels.residual import fit_residual, residual_loss
from lgf.ode.kernels.trajectory_fit import fit_trajectory
from lgf.ode.program import CompiledSkeleton, compile_skeleton
from lgf.ode.skeleton import Equation, Skeleton
from lgf.ode.solving import STATUSES
from lgf.ode.trajectory import SolveStatus

_NO_POLE = 0.98  # how far a divisor 1 + C*g may go down on the data: to 0.02


class FitMethod(StrEnum):
    """How the constants are found."""

    LEAST_SQUARES = "least_squares"
    NELDER_MEAD = "nelder_mead"


@dataclass(frozen=True)
class FitSettings:
    """Settings of the inner optimisation; steps are those of the integrator, so budgets do not depend on a clock."""

    method: FitMethod = FitMethod.LEAST_SQUARES
    gate: float | None = None  # theta_DE: above this residual the trajectory is not solved; None = no gate
    n_starts: int = 96
    n_screened: int = 128  # the starts are compared on about so many samples
    n_refined: int = 3
    residual_iterations: int = 12
    windows: tuple[float, ...] = (0.1, 0.18, 0.32, 0.56, 1.0)  # grown when the first guess misses the whole window
    grow_above: float = 0.5  # by more than this (relative loss)
    give_up: float = 1.0  # times the signal in a window: with more than that left it grows no further
    iterations: int = 20
    tolerance: float = 3e-3
    far: float = 10.0  # above this many times the loss of the noise alone a fit
    far_tolerance: float = 0.05  # is given up at this rate of improvement
    rtol: float = 1e-4
    steps_per_solve: int = 1000
    steps_per_fit: int = 4000  # a quarter of it for equations whose highest derivative must be searched for
    rescue_above: float = 4.0  # in units of the loss that the noise alone would leave
    rescue_below: float = 10.0  # a second try whose best start has a larger loss goes no further
    coarse_iterations: int = 50  # Nelder-Mead, first stage, and its tolerances
    coarse_fatol: float = 0.1
    coarse_xatol: float = 0.5
    refine_below: float = 25.0
    fine_iterations: int = 250  # second stage
    fine_fatol: float = 0.001
    fine_xatol: float = 0.1


class _Found(NamedTuple):
    """What a stage of the fit hands to the next."""

    x: np.ndarray  # constants, then unknown initial values
    loss: float
    normal: np.ndarray  # J'WJ
    status: int
    evaluations: int
    steps: int


@dataclass(frozen=True)
class ConstantFit:
    """What the fit of a skeleton gave."""

    skeleton: Skeleton
    values: tuple[float, ...]
    residual: float  # mean square residual over the completed record (L_DE)
    loss: float  # relative mean square error of the solved trajectory; infinite if it was not solved
    covariance: np.ndarray  # of the constants; infinite variance where the data do not determine one
    initial: np.ndarray  # [experiment, order] the initial states, given or fitted
    status: SolveStatus
    evaluations: int  # trajectories solved
    steps: int

    @property
    def errors(self) -> tuple[float, ...]:
        """Standard error of each constant."""
        return tuple(float(e) for e in np.sqrt(np.diag(self.covariance)))

    @property
    def undetermined(self) -> tuple[bool, ...]:
        """Whether the data leave a constant open: its standard error exceeds its value."""
        return tuple(not e < abs(v) for e, v in zip(self.errors, self.values, strict=True))

    def equation(self, target: Target) -> Equation:
        """The filled equation."""
        return Equation(self.skeleton, self.values, self.errors, target.formula)


def fit_constants(
    skeleton: Skeleton,
    target: Target,
    settings: FitSettings = FitSettings(),
    *,
    bounds: np.ndarray | None = None,
    start: tuple[float, ...] | None = None,
) -> ConstantFit:
    """The constants of the skeleton that fit the target best.

    bounds [n_constants, 2] are respected. With a start the residual stage is left out and the start refined.
    """
    if skeleton.order != target.order:
        raise ValueError(f"the skeleton is of order {skeleton.order} but the target of order {target.order}.")
    compiled = compile_skeleton(skeleton, target.formula)
    lower, upper = _limits(compiled, target, bounds)
    if start is not None:
        starts, residual = np.array([start], float).reshape(1, -1), _residual(compiled, target, np.array(start, float))
    else:
        starts, residual = _residual_stage(compiled, target, settings, lower, upper)
    if settings.gate is not None and not residual < settings.gate:
        return _unsolved(skeleton, starts[0], residual, target)
    starts = np.hstack([starts, np.tile(target.initial_guess(), (len(starts), 1))])
    if settings.method is FitMethod.NELDER_MEAD:
        found = _nelder_mead(compiled, target, settings, starts[0], lower, upper)
    else:
        found = _trajectory_stage(compiled, target, settings, starts, lower, upper, rescue=start is None)
    p = compiled.n_constants
    values = found.x[:p]
    return ConstantFit(
        skeleton=skeleton,
        values=tuple(float(v) for v in values),
        residual=float(residual if start is None else _residual(compiled, target, values)),
        loss=float(found.loss) if np.isfinite(found.loss) else np.inf,
        covariance=_covariance(found.normal, found.loss, target)[:p, :p],
        initial=_initial_states(target, found.x[p:]),
        status=STATUSES[found.status],
        evaluations=int(found.evaluations),
        steps=int(found.steps),
    )


def _limits(compiled: CompiledSkeleton, target: Target, bounds: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of the unknowns: what the user says, no frequency with less than four samples a period, and no
    divisor 1 + C*g that vanishes on the data."""
    limits = np.empty((compiled.n_constants + target.n_unknown, 2))
    limits[:] = -1e8, 1e8
    for index, role in zip(compiled.nonlinear, compiled.roles, strict=True):
        if role.place in ("sin", "cos") and role.cofactor == T:
            limits[index] = np.pi / 2 / target.spacing * np.array([-1.0, 1.0])
    for index, cofactor in compiled.divisors:
        g = target.values(cofactor)
        if len(g):
            limits[index] = -_NO_POLE / max(g.max(), 1e-8), _NO_POLE / max(-g.min(), 1e-8)
    if bounds is not None:
        given = np.clip(bounds, -1e8, 1e8)
        both = np.maximum(limits[: len(given), 0], given[:, 0]), np.minimum(limits[: len(given), 1], given[:, 1])
        limits[: len(given)] = np.where((both[0] <= both[1])[:, None], np.column_stack(both), given)
    return np.ascontiguousarray(limits[:, 0]), np.ascontiguousarray(limits[:, 1])


def _residual_stage(
    compiled: CompiledSkeleton, target: Target, settings: FitSettings, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, float]:
    """(constants [k, p], best first; the residual of the first)."""
    basis = compiled.basis
    found, losses, _ = fit_residual(
        basis.code, basis.outputs, basis.literals, basis.n_registers, compiled.order, compiled.n_constants,
        compiled.linear, compiled.nonlinear, starting_points(compiled, target, settings.n_starts), lower, upper,
        target.t, target.states, target.forcing, np.ones(len(target.t)), max(len(target.t) // settings.n_screened, 1),
        settings.n_refined, settings.residual_iterations,
    )  # fmt: skip
    return found, float(losses[0])


def _residual(compiled: CompiledSkeleton, target: Target, values: np.ndarray) -> float:
    basis = compiled.basis
    return residual_loss(
        basis.code, basis.outputs, basis.literals, basis.n_registers, compiled.order, compiled.n_constants,
        compiled.linear, values, target.t, target.states, target.forcing, np.ones(len(target.t)),
    )  # fmt: skip


def _trajectory_stage(
    compiled: CompiledSkeleton,
    target: Target,
    settings: FitSettings,
    starts: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    rescue: bool,
) -> _Found:
    """The best trajectory found."""
    leave_above = settings.grow_above if rescue else np.inf
    found = [_levenberg(compiled, target, settings, starts, lower, upper, (1.0,), leave_above)]
    grown = found[0].loss > leave_above
    if grown:
        found.append(_levenberg(compiled, target, settings, starts, lower, upper, settings.windows))
    best = min(found, key=lambda f: f.loss)
    if rescue and not best.loss <= settings.rescue_above * target.noise_loss and compiled.n_constants:
        others = _other_starts(compiled, target, starts, best.x)
        windows = (1.0,) if grown else settings.windows
        found.append(_levenberg(compiled, target, settings, others, lower, upper, windows, settings.rescue_below))
        best = min(found, key=lambda f: f.loss)
    return best._replace(evaluations=sum(f.evaluations for f in found), steps=sum(f.steps for f in found))


def _levenberg(
    compiled: CompiledSkeleton,
    target: Target,
    settings: FitSettings,
    starts: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    fractions: tuple[float, ...],
    leave_above: float = np.inf,
) -> _Found:
    """Levenberg-Marquardt on windows that grow to the whole record, each from what the one before has found."""
    budget = settings.steps_per_fit if compiled.degree == 1 else settings.steps_per_fit // 4
    found: list[_Found] = []
    for fraction in fractions:
        found.append(_on_window(compiled, target, settings, starts, lower, upper, fraction, leave_above, budget))
        starts = found[-1].x[None, :]
        hopeless = found[-1].loss > settings.give_up * target.signal(fraction)
        if fraction < 1.0 and (hopeless or sum(f.steps for f in found) > budget):
            found.append(_on_window(compiled, target, settings, starts, lower, upper, 1.0, -1.0, budget))
            break
    evaluations, steps = sum(f.evaluations for f in found), sum(f.steps for f in found)
    return found[-1]._replace(evaluations=evaluations, steps=steps)


def _on_window(
    compiled: CompiledSkeleton,
    target: Target,
    settings: FitSettings,
    starts: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    fraction: float,
    leave_above: float,
    budget: int,
) -> _Found:
    """Levenberg-Marquardt on the first `fraction` of the record; the best start as it is if above leave_above."""
    flow, whole = compiled.flow, fraction == 1.0
    return _Found(*fit_trajectory(
        flow.code, flow.outputs, compiled.degree, flow.literals, flow.n_registers, compiled.order,
        compiled.n_constants, target.record, target.windows(fraction), starts, lower, upper, settings.rtol,
        settings.steps_per_solve, target.with_top, leave_above, settings.iterations if whole else 3,
        settings.tolerance if whole else settings.far_tolerance, settings.far * target.noise_loss,
        settings.far_tolerance, settings.give_up * target.signal(fraction), budget,
    ))  # fmt: skip


def _other_starts(compiled: CompiledSkeleton, target: Target, starts: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Eight starts for a second try: what was found so far, ones, absolute values, other signs and scales."""
    p = compiled.n_constants
    rows = [starts[0, :p], x[:p], np.ones(p), np.abs(starts[0, :p]), 0.3 * starts[0, :p]]
    rows += [starts[k, :p] for k in range(1, min(len(starts), 3))]
    missing = LANES - len(rows)
    draws = halton(2 * p, missing)
    signs, scales = np.where(draws[:, :p] < 0.5, -1.0, 1.0), 10.0 ** (2.0 * draws[:, p:] - 1.0)
    return np.hstack([np.vstack([*rows, starts[0, :p] * signs * scales]), np.tile(target.initial_guess(), (LANES, 1))])


def _nelder_mead(
    compiled: CompiledSkeleton,
    target: Target,
    settings: FitSettings,
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> _Found:
    """The paper's two stages, by SciPy, on the solution loss; from 1 for every constant."""
    evaluations = 0

    def objective(x: np.ndarray) -> float:
        nonlocal evaluations
        evaluations += 1
        return _on_window(compiled, target, settings, x[None, :], lower, upper, 1.0, -1.0, 0).loss

    x = np.concatenate([np.ones(compiled.n_constants), start[compiled.n_constants :]])
    if len(x):
        stages = (
            (settings.coarse_iterations, settings.coarse_fatol, settings.coarse_xatol),
            (settings.fine_iterations, settings.fine_fatol, settings.fine_xatol),
        )
        for iterations, fatol, xatol in stages:
            found = minimize(
                objective, x, method="Nelder-Mead", options={"maxiter": iterations, "fatol": fatol, "xatol": xatol}
            )
            x = np.clip(found.x, lower, upper)
            if not found.fun < settings.refine_below:
                break
    return _on_window(compiled, target, settings, x[None, :], lower, upper, 1.0, -1.0, 0)._replace(
        evaluations=evaluations + 1
    )


def _covariance(normal: np.ndarray, loss: float, target: Target) -> np.ndarray:
    """Covariance of the unknowns from J'WJ, the noise being what is left of the data."""
    n = len(normal)
    result = np.zeros((n, n))
    if n == 0:
        return result
    freedom = max(target.n_samples - n, 1)
    scale = np.sqrt(np.diag(normal))
    seen = scale > 0
    result[~seen, ~seen] = np.inf
    if not loss < 1.0:
        result[:] = np.inf  # a fit that explains nothing determines nothing
    elif seen.any():
        index = np.ix_(seen, seen)
        correlation = normal[index] / np.outer(scale[seen], scale[seen])
        values, vectors = np.linalg.eigh(correlation)
        blurred = values < 1e-10  # directions that the data do not see
        inverse = (vectors[:, ~blurred] / values[~blurred]) @ vectors[:, ~blurred].T
        inverse[np.diag_indices(len(inverse))] += np.where((vectors[:, blurred] ** 2).sum(axis=1) > 1e-6, np.inf, 0.0)
        result[index] = inverse / np.outer(scale[seen], scale[seen]) * loss / freedom
    return result


def _initial_states(target: Target, fitted: np.ndarray) -> np.ndarray:
    states = target.record.initial.copy()
    unknown = target.record.unknown
    states[unknown >= 0] = fitted[unknown[unknown >= 0]]
    return states


def _unsolved(skeleton: Skeleton, values: np.ndarray, residual: float, target: Target) -> ConstantFit:
    p = skeleton.n_constants
    return ConstantFit(
        skeleton, tuple(float(v) for v in values[:p]), residual, np.inf, np.full((p, p), np.inf),
        target.record.initial.copy(), SolveStatus.OUT_OF_STEPS, 0, 0,
    )  # fmt: skip
