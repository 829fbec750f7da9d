"""The phase portrait: trajectories, the vector field and the equilibria, in planes of two variables."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lgf.report.canvas import RunFigure, axis_label
from lgf.report.equilibria import solutions
from lgf.report.vector_field import Plane, arrows_in_plane, has_field, planes, rates_in_plane
from lgf.runs.request import Run
from lgf.solver.equilibria import Equilibrium

_MEASURED, _MODEL, _FIELD = "#7a8794", "#c23b22", "#b9c4cf"
_GRID, _ARROWS = 25, 15  # points of the vector field in each direction


def phase_portrait(run: Run) -> Figure | None:
    """The portrait in every plane; None for one equation of first order."""
    drawn = planes(run)
    if not drawn:
        return None
    across = 1 if len(drawn) == 1 else 2 if len(drawn) in (2, 4) else 3
    down = -(-len(drawn) // across)
    width = 6.4 if across == 1 else 4.6 * across
    figure = RunFigure(figsize=(width, down * 4.4 + 0.5), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for part, plane in zip(axes, drawn, strict=False):
        _plane(part, run, plane)
    for unused in axes[len(drawn) :]:
        unused.set_axis_off()
    legend = _legend(run, [rest for *_, rest in drawn[0].rests])
    figure.legend(
        handles=legend, loc="outside upper center", ncols=3 if across == 1 else 6, fontsize=8, frameon=False,
        handlelength=1.6,
    )  # fmt: skip
    return figure


def _plane(axes: Axes, run: Run, plane: Plane) -> None:
    (x, y, limits, rests), solved = plane, solutions(run)
    for trajectory in solved:
        axes.plot(trajectory[x], trajectory[y], color=_MODEL, linewidth=1.3, zorder=3)
        axes.plot(trajectory[x][:1], trajectory[y][:1], ">", color=_MODEL, markersize=5, zorder=4)
    for observation in run.request.problem.observations[: len(solved)]:
        across, up = observation.column(x), observation.column(y)
        if across is not None and up is not None:
            axes.plot(across, up, ".", color=_MEASURED, markersize=4, zorder=2)
    if has_field(run):
        _field(axes, run, plane)
    for *at, rest in rests:
        if all(low <= place <= high for place, (low, high) in zip(at, limits, strict=True)):
            axes.plot(*at, "o", zorder=5, **_style(rest))
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    axes.set_xlabel(axis_label(run, x), parse_math=False)
    axes.set_ylabel(axis_label(run, y), parse_math=False)


def _style(rest: Equilibrium) -> dict:
    """The marker of an equilibrium: full if it is stable, empty if not, grey where that is not decided."""
    face = {True: "black", False: "white", None: "#9aa5b1"}[rest.stable]
    return {"markersize": 7, "markerfacecolor": face, "markeredgecolor": "black", "linestyle": "none"}


def _field(axes: Axes, run: Run, plane: Plane) -> None:
    """Draws stream lines of the rates, or arrows where other variables matter too; those are at their mean."""
    if run.frame.dimension == 2:
        across, up, u, v = rates_in_plane(run, plane, _GRID)
        if np.any(np.abs(u) + np.abs(v) > 0):
            axes.streamplot(across, up, u, v, color=_FIELD, linewidth=0.7, arrowsize=0.8, density=1.1, zorder=1)
        return
    arrows = arrows_in_plane(run, plane, _ARROWS)
    axes.quiver(
        *arrows.T, color=_FIELD, pivot="mid", units="width", scale=1.3 * _ARROWS, width=0.003, zorder=1
    )  # fmt: skip


def _legend(run: Run, rests: list[Equilibrium]) -> list[Line2D]:
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
