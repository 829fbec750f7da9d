"""A fit of constants in progress: its settings, what every stage of it works on, and what a stage hands to the next."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.expression.tree import T
from lgf.fit.target import Target
from lgf.settings.ranges import Count, Positive, Tally, Weight
from lgf.solver.program import CompiledSkeleton, compile_skeleton

_NO_POLE = 0.98  # how far a divisor 1 + C*g may go down on the data: to 0.02


class FitMethod(StrEnum):
    """How the constants are found."""

    LEAST_SQUARES = "least_squares"
    NELDER_MEAD = "nelder_mead"


@dataclass(frozen=True)
class FitSettings:
    """Settings of the inner optimisation; steps are those of the integrator, so budgets do not depend on a clock."""

    method: FitMethod = FitMethod.LEAST_SQUARES
    gate: Positive | None = None  # theta_DE: above this residual the trajectory is not solved; None = no gate
    n_starts: Count = 96
    n_screened: Count = 128  # the starts are compared on about so many samples
    n_refined: Count = 3
    residual_iterations: Tally = 12
    windows: tuple[Positive, ...] = (0.1, 0.18, 0.32, 0.56, 1.0)  # grown when the first guess misses the whole window
    grow_above: Weight = 0.5  # by more than this (relative loss)
    give_up: Weight = 1.0  # times the signal in a window: with more than that left it grows no further
    iterations: Count = 20
    tolerance: Weight = 3e-3
    far: Weight = 10.0  # above this many times the loss of the noise alone a fit
    far_tolerance: Weight = 0.05  # is given up at this rate of improvement
    accuracy: Positive = 10.0  # the relative error of a solution, in units of rtol: no loss is believed below it
    rtol: Positive = 1e-4
    steps_per_solve: Count = 1000
    steps_per_fit: Count = 4000  # a quarter of it for equations whose highest derivative must be searched for
    rescue_above: Weight = 4.0  # in units of the loss that the noise alone would leave
    rescue_below: Weight = 10.0  # a second try whose best start has a larger loss goes no further
    coarse_iterations: Count = 50  # Nelder-Mead, first stage, and its tolerances
    coarse_fatol: Weight = 0.1
    coarse_xatol: Weight = 0.5
    refine_below: Weight = 25.0
    fine_iterations: Count = 250  # second stage
    fine_fatol: Weight = 0.001
    fine_xatol: Weight = 0.1


class Fitting(NamedTuple):
    """What is fitted to what, and within which limits."""

    compiled: CompiledSkeleton
    target: Target
    settings: FitSettings
    lower: np.ndarray  # of the constants, then of the unknown initial values
    upper: np.ndarray


class Found(NamedTuple):
    """What a stage of the fit hands to the next."""

    x: np.ndarray  # constants, then unknown initial values
    loss: float
    losses: np.ndarray  # [column]
    normal: np.ndarray  # J'WJ
    status: int
    evaluations: int
    steps: int


def make_fitting(
    skeleton: Skeleton, target: Target, settings: FitSettings, bounds: np.ndarray | None = None
) -> Fitting:
    """The fit of the skeleton to the target, with bounds [n_constants, 2] of its constants respected."""
    compiled = compile_skeleton(skeleton, target.formulas)
    return Fitting(compiled, target, settings, *_limits(compiled, target, bounds))


def _limits(compiled: CompiledSkeleton, target: Target, bounds: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of the unknowns: what the user says, no frequency with less than four samples a period, and no
    divisor 1 + C*g that vanishes on the data."""
    limits = np.empty((compiled.n_constants + target.n_unknown, 2))
    limits[:] = -1e8, 1e8
    for equation in compiled.equations:
        for index, role in zip(equation.nonlinear, equation.roles, strict=True):
            if role.place in ("sin", "cos") and role.cofactor == T:
                limits[index] = np.pi / 2 / target.spacing * np.array([-1.0, 1.0])
        for index, cofactor in equation.divisors:
            g = target.values(cofactor)
            if len(g):
                limits[index] = -_NO_POLE / max(g.max(), 1e-8), _NO_POLE / max(-g.min(), 1e-8)
    if bounds is not None:
        given = np.clip(bounds, -1e8, 1e8)
        both = np.maximum(limits[: len(given), 0], given[:, 0]), np.minimum(limits[: len(given), 1], given[:, 1])
        limits[: len(given)] = np.where((both[0] <= both[1])[:, None], np.column_stack(both), given)
    return np.ascontiguousarray(limits[:, 0]), np.ascontiguousarray(limits[:, 1])
