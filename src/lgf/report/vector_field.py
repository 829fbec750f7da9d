"""The vector field of the chosen system in planes of two variables, as numbers; drawings are made elsewhere."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.report.equilibria import equilibria_of, isolated, solutions
from lgf.runs.request import Run
from lgf.solver.equilibria import Equilibrium, rates_at

MOST_PLANES = 6
_MARGIN = 0.12  # of the range of the trajectories

Limits = tuple[tuple[float, float], tuple[float, float]]


class Plane(NamedTuple):
    """A plane of two variables: its limits and the isolated equilibria, which may lie outside."""

    x: Variable
    y: Variable
    limits: Limits
    rests: list[tuple[float, float, Equilibrium]]  # (x, y, equilibrium)


def planes(run: Run, most: int = MOST_PLANES) -> list[Plane]:
    """The planes that are drawn: a state and its derivative for one state, pairs of states for several."""
    variables = run.frame.variables
    if len(run.frame.states) > 1:
        variables = tuple(v for v in variables if v.derivative == 0)
    pairs = list(combinations(variables, 2))[:most]
    rests = isolated(equilibria_of(run)) if pairs else ()
    at = {v: [rest.state[rest.variables.index(v)] for rest in rests] for v in variables}
    limits = {v: _limits(run, v, at[v]) for v in variables if pairs}
    return [Plane(x, y, (limits[x], limits[y]), list(zip(at[x], at[y], rests, strict=True))) for x, y in pairs]


def has_field(run: Run) -> bool:
    """Whether the rates depend on the state alone, so that the system has a vector field."""
    return run.best.skeleton.right_sides is not None and run.best.skeleton.autonomous and not run.best.skeleton.forced


def _limits(run: Run, variable: Variable, rests: list[float]) -> tuple[float, float]:
    """The range of the variable in trajectories and measurements, widened to equilibria that lie near it."""
    parts = [trajectory[variable] for trajectory in solutions(run)]
    parts += [c for o in run.request.problem.observations if (c := o.column(variable)) is not None]
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (-1.0, 1.0)
    span = (high - low) or abs(high) or 1.0
    for value in rests:
        if low - 0.3 * span <= value <= high + 0.3 * span:
            low, high = min(low, value), max(high, value)
    margin = _MARGIN * ((high - low) or span)
    return low - margin, high + margin


def rates_in_plane(
    run: Run, plane: Plane, n: int
) -> tuple[np.ndarray, np.ndarray, np.ma.MaskedArray, np.ma.MaskedArray]:
    """(x, y, x', y') on a grid of n times n points; the rates are (n, n), the other variables are at their mean."""
    system = System(run.best.skeleton, run.best.fit.values)
    across, up = (np.linspace(*pair, n) for pair in plane.limits)
    grid_x, grid_y = np.meshgrid(across, up)
    states = np.empty((run.frame.dimension, grid_x.size))
    for i, variable in enumerate(run.frame.variables):
        means = [np.nanmean(trajectory[variable]) for trajectory in solutions(run)]
        states[i] = np.mean(means) if means else 0.0
    position = {variable: i for i, variable in enumerate(run.frame.variables)}
    states[position[plane.x]], states[position[plane.y]] = grid_x.ravel(), grid_y.ravel()
    with np.errstate(all="ignore"):
        rates = rates_at(system, states)
    u, v = (np.ma.masked_invalid(rates[position[w]].reshape(grid_x.shape)) for w in plane[:2])
    return across, up, u, v


def arrows_in_plane(run: Run, plane: Plane, n: int) -> np.ndarray:
    """Arrows of length one, a row (x, y, dx, dy) each, where the rates are finite and not zero.

    They show directions as they appear on paper, so both rates are measured in units of their axis.
    """
    across, up, u, v = rates_in_plane(run, plane, n)
    (left, right), (low, high) = plane.limits
    u, v = u / (right - left), v / (high - low)
    length = np.ma.masked_equal(np.hypot(u, v), 0.0)
    grid_x, grid_y = np.meshgrid(across, up)
    rows = np.ma.column_stack([grid_x.ravel(), grid_y.ravel(), (u / length).ravel(), (v / length).ravel()])
    return np.asarray(rows[~np.ma.getmaskarray(rows).any(axis=1)])
