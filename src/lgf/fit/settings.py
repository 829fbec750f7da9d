"""The settings of a fit of constants, the input of its stages, and the result of a stage."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.expression.tree import T
from lgf.fit.constant_sizes import constant_sizes, start_sizes
from lgf.fit.sharing import COMMON, Layout, Sharing, Varying, layout_of, unknowns_of
from lgf.fit.target import Target
from lgf.settings.ranges import Count, Positive, Weight
from lgf.solver.kernels.trajectory_fit import LARGEST, Unknowns
from lgf.solver.program import CompiledSkeleton, compile_skeleton

_STEPS_PER_OSCILLATION = 25  # at a relative tolerance of 1e-4
_NO_POLE = 0.98  # a divisor 1 + C*g may fall to 0.02 on the data


class FitMethod(StrEnum):
    """The method of the fit."""

    LEAST_SQUARES = "least_squares"
    NELDER_MEAD = "nelder_mead"


class SegmentBudget(NamedTuple):
    """Tolerances and budgets of a fit in segments, which starts near its solution."""

    rtol: float
    iterations: int
    tolerance: float
    far_tolerance: float
    steps_per_solve: int
    steps_per_fit: int


class Persistence(NamedTuple):
    """When a fit gives up, and how accurate it is on the way."""

    n_starts: int  # of each equation, for its constants inside functions
    n_refined: int  # of these
    give_up: float  # times the signal in a window: with a larger loss it grows no further
    coarse_rtol: float  # until a fit comes near the noise
    rescue_above: float  # in units of the loss of the noise alone: above, other starts are tried
    rescue_below: float  # a second try stops if its best start has a larger loss
    segments: SegmentBudget


_QUICK = Persistence(96, 3, 0.8, 1e-3, 4.0, 1.0, SegmentBudget(1e-5, 15, 3e-4, 0.03, 1500, 6000))
_PATIENT = Persistence(192, 8, 1.0, 1e-4, 1.5, 10.0, SegmentBudget(1e-7, 40, 1e-6, 0.01, 8000, 60_000))


@dataclass(frozen=True)
class FitSettings:
    """Settings of the inner optimisation; steps are those of the integrator, so budgets do not depend on a clock."""

    method: FitMethod = FitMethod.LEAST_SQUARES
    gate: Positive | None = None  # theta_DE: above this residual the trajectory is not solved; None = no gate
    iterations: Count = 20
    tolerance: Weight = 3e-3
    rtol: Positive = 1e-4
    steps_per_solve: Count = 1000
    steps_per_fit: Count = 4000  # a quarter of it for implicit equations
    fine_iterations: Count = 250  # of the second stage of Nelder-Mead
    patient: bool = False  # as finalists are fitted: every window, other starts, accurate solutions

    @property
    def accuracy(self) -> float:
        """The relative error of a solution; smaller losses are not trusted."""
        return error_of_solutions(self.rtol)

    @property
    def persistence(self) -> Persistence:
        """When a fit gives up, and how accurate it is on the way."""
        return _PATIENT if self.patient else _QUICK


def patient(fit: FitSettings) -> FitSettings:
    """The settings for finalists: the same method, with more starts, iterations and steps."""
    return replace(
        fit, iterations=60, tolerance=1e-6, rtol=1e-6, steps_per_solve=4000, steps_per_fit=40_000, patient=True
    )


class Fitting(NamedTuple):
    """The input of a fit: equations, data, settings and limits."""

    skeleton: Skeleton
    compiled: CompiledSkeleton
    target: Target
    settings: FitSettings
    lower: np.ndarray  # [p] of the constants
    upper: np.ndarray
    layout: Layout
    sizes: np.ndarray  # [P] typical absolute values of the unknowns
    unknowns: Unknowns
    unknown_limits: tuple[np.ndarray, np.ndarray]  # (lower, upper) of the unknowns: free constants, then initial values
    varying: tuple[Varying, ...] = ()

    def unknown_starts(self, constants: np.ndarray) -> np.ndarray:
        """Starts [s, P] of the unknowns from starts [s, p] of the constants, with guessed initial values."""
        guess = np.tile(self.target.initial_guess(), (len(constants), 1))
        return np.hstack([constants[:, self.layout.owner], guess])


class StageResult(NamedTuple):
    """The result of a stage of the fit."""

    x: np.ndarray  # free constants, then unknown initial values
    loss: float
    losses: np.ndarray  # [column]
    normal: np.ndarray  # J'WJ
    status: int
    evaluations: int
    steps: int
    shift: np.ndarray | float = 0.0  # of x, by the error of the solutions


def make_fitting(
    skeleton: Skeleton,
    target: Target,
    settings: FitSettings,
    bounds: np.ndarray | None = None,
    sharing: Sharing = COMMON,
) -> Fitting:
    """The fit of the skeleton to the target, within the bounds [n_constants, 2] of its constants."""
    compiled = compile_skeleton(skeleton, target.formulas)
    settings = _with_enough_steps(settings, target.oscillations)
    layout = layout_of(compiled.n_constants, int(target.experiment[-1]) + 1, sharing)
    if len(target.experiment) > len(layout.source):
        layout = replace(layout, source=layout.source[target.experiment])
    of_constants, of_starts = constant_sizes(skeleton, compiled, target), start_sizes(target)
    sizes = np.concatenate([of_constants[layout.owner], of_starts])
    unknowns = unknowns_of(layout, target, sizes, sharing.varying)
    lower, upper = _limits(compiled, target, LARGEST * np.maximum(of_constants, 1.0), bounds)
    wide = LARGEST * np.maximum(of_starts, 1.0)
    limits = np.concatenate([lower[layout.owner], -wide]), np.concatenate([upper[layout.owner], wide])
    return Fitting(
        skeleton, compiled, target, settings, lower, upper, layout, sizes, unknowns, limits, sharing.varying
    )  # fmt: skip


def error_of_solutions(rtol: float) -> float:
    """The relative error of solutions at this tolerance; smaller losses are not trusted."""
    return 10.0 * rtol


def steps_needed(oscillations: float, rtol: float) -> int:
    """The steps of the integrator through so many oscillations, with some to spare; its order is 5."""
    return math.ceil(_STEPS_PER_OSCILLATION * (1e-4 / rtol) ** 0.2 * oscillations)


def _with_enough_steps(settings: FitSettings, oscillations: float) -> FitSettings:
    """The settings with budgets of steps that suffice for so many oscillations."""
    return replace(settings, **_steps(settings, oscillations))


def segment_budget(settings: FitSettings, oscillations: float) -> SegmentBudget:
    """The budget of a fit in segments, with steps that suffice for so many oscillations."""
    segments = settings.persistence.segments
    return segments._replace(**_steps(segments, oscillations))


def _steps(budget: FitSettings | SegmentBudget, oscillations: float) -> dict[str, int]:
    """The budgets of steps; multiplied, if one solution through so many oscillations takes more."""
    factor = max(steps_needed(oscillations, budget.rtol) / budget.steps_per_solve, 1.0)
    return {
        "steps_per_solve": math.ceil(factor * budget.steps_per_solve),
        "steps_per_fit": math.ceil(factor * budget.steps_per_fit),
    }


def _limits(
    compiled: CompiledSkeleton, target: Target, largest: np.ndarray, bounds: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of the constants, whose absolute values are `largest` at most.

    The limits are the bounds of the user, at least four samples per period, and no zero of 1 + C*g on the data.
    """
    limits = np.column_stack([-largest, largest])
    for equation in compiled.equations:
        for index, role in zip(equation.nonlinear, equation.roles, strict=True):
            if role.place in ("sin", "cos") and role.cofactor == T:
                limits[index] = np.pi / 2 / target.spacing * np.array([-1.0, 1.0])
        for index, cofactor in equation.divisors:
            g = target.values(cofactor)
            if len(g):
                least = 1e-8 * (float(np.abs(g).max()) or 1.0)
                limits[index] = -_NO_POLE / max(g.max(), least), _NO_POLE / max(-g.min(), least)
    if bounds is not None:
        clipped = np.clip(bounds, -largest[:, None], largest[:, None])
        both = np.maximum(limits[:, 0], clipped[:, 0]), np.minimum(limits[:, 1], clipped[:, 1])
        limits = np.where((both[0] <= both[1])[:, None], np.column_stack(both), clipped)
    return np.ascontiguousarray(limits[:, 0]), np.ascontiguousarray(limits[:, 1])
