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
from lgf.settings.ranges import Count, Positive, Tally, Weight
from lgf.solver.kernels.trajectory_fit import LARGEST, Unknowns
from lgf.solver.program import CompiledSkeleton, compile_skeleton

_STEPS_PER_OSCILLATION = 25  # at a relative tolerance of 1e-4
_NO_POLE = 0.98  # a divisor 1 + C*g may fall to 0.02 on the data


class FitMethod(StrEnum):
    """The method of the fit."""

    LEAST_SQUARES = "least_squares"
    NELDER_MEAD = "nelder_mead"


@dataclass(frozen=True)
class ShootingSettings:
    """Settings of a fit in segments, which starts near its solution."""

    rtol: Positive = 1e-5
    iterations: Count = 15
    tolerance: Weight = 3e-4
    far: Weight = 20.0
    far_tolerance: Weight = 0.03
    steps_per_solve: Count = 1500
    steps_per_fit: Count = 6000


@dataclass(frozen=True)
class FitSettings:
    """Settings of the inner optimisation; steps are those of the integrator, so budgets do not depend on a clock."""

    method: FitMethod = FitMethod.LEAST_SQUARES
    gate: Positive | None = None  # theta_DE: above this residual the trajectory is not solved; None = no gate
    n_starts: Count = 96
    n_screened: Count = 128  # samples on which the starts are compared, about
    n_refined: Count = 3
    residual_iterations: Tally = 12
    windows: tuple[Positive, ...] = (0.1, 0.18, 0.32, 0.56, 1.0)  # used if the fit on the whole record fails
    grow_above: Weight = 0.5  # the relative loss above which it has failed
    give_up: Weight = 0.8  # times the signal in a window: with a larger loss it grows no further
    iterations: Count = 20
    tolerance: Weight = 3e-3
    far: Weight = 10.0  # above this many times the loss of the noise alone
    far_tolerance: Weight = 0.05  # a fit stops at this rate of improvement
    accuracy: Positive = 10.0  # the relative error of a solution, in units of rtol; smaller losses are not trusted
    rtol: Positive = 1e-4
    coarse_rtol: Positive = 1e-3  # until a fit comes near the noise
    steps_per_solve: Count = 1000
    steps_per_fit: Count = 4000  # a quarter of it for implicit equations
    rescue_above: Weight = 4.0  # in units of the loss of the noise alone
    rescue_below: Weight = 1.0  # a second try stops if its best start has a larger loss
    shooting: ShootingSettings = ShootingSettings()
    coarse_iterations: Count = 50  # Nelder-Mead, first stage, and its tolerances
    coarse_fatol: Weight = 0.1
    coarse_xatol: Weight = 0.5
    refine_below: Weight = 25.0
    fine_iterations: Count = 250  # second stage
    fine_fatol: Weight = 0.001
    fine_xatol: Weight = 0.1


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


def steps_needed(oscillations: float, rtol: float) -> int:
    """The steps of the integrator through so many oscillations, with some to spare; its order is 5."""
    return math.ceil(_STEPS_PER_OSCILLATION * (1e-4 / rtol) ** 0.2 * oscillations)


def _with_enough_steps(settings: FitSettings, oscillations: float) -> FitSettings:
    """The settings with budgets of steps that suffice for so many oscillations."""
    shooting = settings.shooting
    whole = steps_needed(oscillations, settings.rtol) / settings.steps_per_solve
    parts = steps_needed(oscillations, shooting.rtol) / shooting.steps_per_solve
    if parts > 1.0:
        shooting = replace(shooting, **_multiplied(shooting.steps_per_solve, shooting.steps_per_fit, parts))
        settings = replace(settings, shooting=shooting)
    if whole > 1.0:
        settings = replace(settings, **_multiplied(settings.steps_per_solve, settings.steps_per_fit, whole))
    return settings


def _multiplied(per_solve: int, per_fit: int, factor: float) -> dict[str, int]:
    return {"steps_per_solve": math.ceil(factor * per_solve), "steps_per_fit": math.ceil(factor * per_fit)}


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
                limits[index] = -_NO_POLE / max(g.max(), 1e-8), _NO_POLE / max(-g.min(), 1e-8)
    if bounds is not None:
        clipped = np.clip(bounds, -largest[:, None], largest[:, None])
        both = np.maximum(limits[:, 0], clipped[:, 0]), np.minimum(limits[:, 1], clipped[:, 1])
        limits = np.where((both[0] <= both[1])[:, None], np.column_stack(both), clipped)
    return np.ascontiguousarray(limits[:, 0]), np.ascontiguousarray(limits[:, 1])
