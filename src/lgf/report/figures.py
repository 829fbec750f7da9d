"""Figures of a run. They need no display and change no global state of matplotlib."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgf.expression.frame import Variable
from lgf.report.canvas import RunFigure, axis_label
from lgf.report.phase_portrait import phase_portrait
from lgf.report.run_view import run_view
from lgf.runs.bands import Bands
from lgf.runs.request import Run
from lgf.runs.suggestion import Suggestion

MOST_EXPERIMENTS = 6  # most experiments in one figure
MOST_PANELS = 12
INTERVAL = 0.9  # of the band around the solution
_MEASURED, _MODEL, _QUIET = "#7a8794", "#c23b22", "#d9dee3"


def figures(run: Run) -> dict[str, Figure]:
    """All figures of the run by name."""
    portrait = phase_portrait(run)
    return {
        "trajectory": trajectory_figure(run),
        **({} if portrait is None else {"phase": portrait}),
        "front": front_figure(run),
        "history": history_figure(run),
    }


def trajectory_figure(run: Run) -> Figure:
    """Measured samples, the solution with its band, and the residuals for each experiment."""
    observations = run.request.problem.observations
    shown = [_shown(run, e) for e in range(len(observations))]
    drawn = range(min(len(observations), max(1, min(MOST_EXPERIMENTS, MOST_PANELS // len(shown[0])))))
    panels = [(e, variable) for e in drawn for variable in shown[e]]
    figure = _figure(9.0, 1.2 + 2.6 * len(panels))
    heights = [height for _ in panels for height in (3, 1)]
    axes = figure.subplots(2 * len(panels), 1, gridspec_kw={"height_ratios": heights}, squeeze=False)[:, 0]
    bands = Bands(run)
    for panel, (e, variable) in enumerate(panels):
        _panel(axes[2 * panel], axes[2 * panel + 1], run, e, variable)
        _band(axes[2 * panel], bands, e, variable)
    hidden = len(observations) - len(drawn)
    axes[-1].set_xlabel(axis_label(run, "t") + (f"     ({hidden} more experiments are not drawn)" if hidden else ""))
    return figure


def _shown(run: Run, experiment: int) -> list[Variable]:
    """The measured columns of the experiment, then the states that it does not measure."""
    observation = run.request.problem.observations[experiment]
    return [*observation.columns, *(Variable(name) for name in run.frame.names if name not in observation.states)]


def _panel(above: Axes, below: Axes, run: Run, experiment: int, variable: Variable) -> None:
    observation = run.request.problem.observations[experiment]
    t, values = observation.t, observation.column(variable)
    fine = np.union1d(t, np.linspace(t[0], t[-1], 1000))
    solved = run.trajectory(experiment, fine)
    if values is not None:
        above.plot(t, values, ".", color=_MEASURED, markersize=4, label="measured")
    above.plot(fine, solved[variable], color=_MODEL, linewidth=1.5, label="equation")
    above.set_ylabel(axis_label(run, variable), parse_math=False)
    above.set_title(observation.name, fontsize=9, loc="left", parse_math=False)  # a name may contain dollar signs
    if values is None:
        hidden = variable.name in run.request.problem.hidden
        above.set_title("inferred, never measured" if hidden else "not measured here", fontsize=8, loc="right")
        below.set_axis_off()
        return
    above.tick_params(labelbottom=False)
    low, high = np.nanmin(values), np.nanmax(values)
    margin = 0.25 * (high - low) or 1.0
    above.set_ylim(low - margin, high + margin)
    residuals = values - solved[variable][np.searchsorted(fine, t)]
    below.axhline(0.0, color=_QUIET)
    below.plot(t, residuals, ".", color=_MEASURED, markersize=3)
    below.set_ylabel("residual", fontsize=8)
    below.sharex(above)


def _band(axes: Axes, bands: Bands, experiment: int, variable: Variable) -> None:
    """Draws the interval of new measurements, and the legend of the panel."""
    window = bands.run.request.problem.observations[experiment].window
    _, lower, upper = bands.of_experiment(experiment, np.linspace(*window, 300), INTERVAL)
    label = f"{INTERVAL:.0%} of new measurements"
    axes.fill_between(
        lower.t, lower[variable], upper[variable], color=_MODEL, alpha=0.15, linewidth=0, zorder=0, label=label
    )
    axes.legend(loc="upper right", fontsize=8, frameon=False)


def front_figure(run: Run) -> Figure:
    """Error against complexity: the Pareto front, with the chosen equation marked."""
    figure = _figure(6.0, 4.0)
    axes = figure.subplots()
    front, chosen = run_view(run).front, run_view(run).chosen
    axes.plot([e.complexity for e in front], [100 * e.error for e in front], "o-", color=_MEASURED, label="front")
    axes.plot(chosen.complexity, 100 * chosen.error, "o", color=_MODEL, markersize=9, label="chosen")
    if any(e.loss > 0 for e in front):
        axes.set_yscale("log")
    axes.set_xlabel("complexity (nodes)")
    axes.set_ylabel("error in % of the signal")
    axes.legend(fontsize=8, frameon=False)
    return figure


def prediction_front_figure(run: Run) -> Figure:
    """The prediction front: the error of predictions, and in sample, of the simplest equation at each level."""
    rows = run_view(run).prediction_front or [run_view(run).chosen]
    figure = _figure(8.0, 1.2 + 0.6 * len(rows))
    axes = figure.subplots()
    places = range(len(rows))
    for name, key, marker in (("error in sample", "error", "o"), ("error of predictions", "prediction", "D")):
        values = [math.nan if (error := getattr(e, key)) is None else 100 * error for e in rows]
        colours = [_MODEL if e.chosen else _MEASURED for e in rows]
        axes.scatter(values, places, marker=marker, c=colours, s=45, zorder=3)
        axes.plot([], [], marker, color=_MEASURED, label=name)
    axes.set_yticks(places, [e.label for e in rows], fontsize=8, parse_math=False)
    axes.set_xscale("log")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("error in % of the signal")
    axes.grid(axis="y", color=_QUIET)
    axes.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return figure


def history_figure(run: Run) -> Figure:
    """The best objective and the mean of the top tenth against the number of evaluations."""
    figure = _figure(6.0, 4.0)
    axes = figure.subplots()
    for name, values, colour in (
        ("best", [i.best for i in run.history], _MODEL),
        ("mean of the top tenth", [i.top for i in run.history], _MEASURED),
    ):
        points = [(i.evaluations, v) for i, v in zip(run.history, values, strict=True) if math.isfinite(v)]
        axes.plot([p[0] for p in points], [p[1] for p in points], "o-", color=colour, markersize=4, label=name)
    axes.set_xlabel("evaluations")
    axes.set_ylabel("objective (smaller is better)")
    if run.history:
        axes.legend(fontsize=8, frameon=False)
    return figure


def suggestion_figure(suggestion: Suggestion) -> Figure:
    """The measured variables of a suggested experiment as each equation predicts them, with the noise around one."""
    figure = _figure(8.0, 1.0 + 2.8 * len(suggestion.noise))
    grid = figure.subplots(len(suggestion.noise), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (variable, noise) in zip(grid, suggestion.noise.items(), strict=True):
        chosen = suggestion.trajectories[0]
        axes.fill_between(
            chosen.t, chosen[variable] - 2 * noise, chosen[variable] + 2 * noise, color=_MODEL, alpha=0.15, linewidth=0
        )
        for k, (system, trajectory) in enumerate(zip(suggestion.equations, suggestion.trajectories, strict=True)):
            style = {"color": _MODEL, "linewidth": 2.0, "zorder": 3} if k == 0 else {"linewidth": 1.0}
            axes.plot(trajectory.t, trajectory[variable], label="; ".join(str(system).splitlines()), **style)
        low, high = np.nanmin(chosen[variable]), np.nanmax(chosen[variable])
        margin = max(0.6 * (high - low), 6 * noise)
        axes.set_ylim(low - margin, high + margin)
        axes.set_ylabel(str(variable), parse_math=False)
    grid[0].legend(fontsize=7, frameon=False)
    grid[0].set_title("predictions of equally good equations; band: twice the noise", fontsize=9, loc="left")
    grid[-1].set_xlabel("t")
    return figure


def _figure(width: float, height: float) -> Figure:
    return RunFigure(figsize=(width, min(height, 40.0)), layout="constrained")
