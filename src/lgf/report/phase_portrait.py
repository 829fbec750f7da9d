"""The phase portrait: trajectories, the vector field and the equilibria, in planes of two variables."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lgf.expression.frame import Variable
from lgf.report.canvas import RunFigure, axis_label
from lgf.report.equilibria import equilibria_of, isolated, solutions
from lgf.report.vector_field import Limits, arrows_in_plane, has_field, plane_limits, planes, rates_in_plane
from lgf.runs.request import Run
from lgf.solver.equilibria import Equilibrium

_MEASURED, _MODEL, _FIELD = "#7a8794", "#c23b22", "#b9c4cf"
_GRID, _ARROWS = 25, 15  # points of the vector field in each direction


def phase_portrait(run: Run) -> Figure | None:
    """The portrait in every plane; None for one equation of first order."""
    pairs = planes(run)
    if not pairs:
        return None
    across = 1 if len(pairs) == 1 else 2 if len(pairs) in (2, 4) else 3
    down = -(-len(pairs) // across)
    width = 6.4 if across == 1 else 4.6 * across
    figure = RunFigure(figsize=(width, down * 4.4 + 0.5), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    rests = isolated(equilibria_of(run))
    for plane, (x, y) in zip(axes, pairs, strict=False):
        _plane(plane, run, x, y, rests)
    for unused in axes[len(pairs) :]:
        unused.set_axis_off()
    figure.legend(
        handles=_legend(run, rests), loc="outside upper center", ncols=3 if across == 1 else 6, fontsize=8,
        frameon=False, handlelength=1.6,
    )  # fmt: skip
    return figure


def _plane(axes: Axes, run: Run, x: Variable, y: Variable, rests: tuple[Equilibrium, ...]) -> None:
    solved = solutions(run)
    for trajectory in solved:
        axes.plot(trajectory[x], trajectory[y], color=_MODEL, linewidth=1.3, zorder=3)
        axes.plot(trajectory[x][:1], trajectory[y][:1], ">", color=_MODEL, markersize=5, zorder=4)
    for observation in run.request.problem.observations[: len(solved)]:
        across, up = observation.column(x), observation.column(y)
        if across is not None and up is not None:
            axes.plot(across, up, ".", color=_MEASURED, markersize=4, zorder=2)
    limits = plane_limits(run, x, y, rests)
    if has_field(run):
        _field(axes, run, x, y, limits)
    for rest in rests:
        at = dict(zip(rest.variables, rest.state, strict=True))
        if all(low <= at[v] <= high for v, (low, high) in zip((x, y), limits, strict=True)):
            axes.plot(at[x], at[y], "o", zorder=5, **_style(rest))
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    axes.set_xlabel(axis_label(run, x), parse_math=False)
    axes.set_ylabel(axis_label(run, y), parse_math=False)


def _style(rest: Equilibrium) -> dict:
    """The marker of an equilibrium: full if it is stable, empty if not, grey where that is not decided."""
    face = {True: "black", False: "white", None: "#9aa5b1"}[rest.stable]
    return {"markersize": 7, "markerfacecolor": face, "markeredgecolor": "black", "linestyle": "none"}


def _field(axes: Axes, run: Run, x: Variable, y: Variable, limits: Limits) -> None:
    """Draws stream lines of the rates, or arrows where other variables matter too; those are at their mean."""
    if run.frame.dimension == 2:
        across, up, u, v = rates_in_plane(run, x, y, limits, _GRID)
        if np.any(np.abs(u) + np.abs(v) > 0):
            axes.streamplot(across, up, u, v, color=_FIELD, linewidth=0.7, arrowsize=0.8, density=1.1, zorder=1)
        return
    arrows = arrows_in_plane(run, x, y, limits, _ARROWS)
    axes.quiver(
        *arrows.T, color=_FIELD, pivot="mid", units="width", scale=1.3 * _ARROWS, width=0.003, zorder=1
    )  # fmt: skip


def _legend(run: Run, rests: tuple[Equilibrium, ...]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=_MODEL, marker=">", markersize=5, label="equation, from its start"),
        Line2D([], [], color=_MEASURED, marker=".", linestyle="none", label="measured"),
    ]
    if has_field(run):
        handles.append(Line2D([], [], color=_FIELD, label="vector field"))
    names = {True: "stable equilibrium", False: "unstable equilibrium", None: "equilibrium, eigenvalues do not decide"}
    for stable, label in names.items():
        first = next((rest for rest in rests if rest.stable is stable), None)
        if first is not None:
            handles.append(Line2D([], [], marker="o", label=label, **_style(first)))
    return handles
