"""What the page is told about equations, their worth and their curves, in JSON types; a missing number is null."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from lgf.app.thinning import thinned_rows
from lgf.app.views import Facts, problem_view
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.report.figures import INTERVAL
from lgf.report.run_view import run_view
from lgf.report.vector_field import arrows_in_plane, has_field, planes
from lgf.runs.bands import Band, Bands
from lgf.runs.equations import candidates_of
from lgf.runs.request import Run
from lgf.runs.suggestion import Suggestion
from lgf.search.candidate import Candidate
from lgf.solver.trajectory import SolveStatus, Trajectory

BAND_POINTS = 200  # a band takes a quarter of a second
_CURVE_POINTS = 1000
_RESULT = (
    "source", "findings", "start", "trust", "verdict", "notes", "summary", "stability", "alternatives", "evaluations",
    "seconds", "interrupted", "seed", "versions",
)  # fmt: skip
_PLANES, _ARROWS = 3, 13  # of the phase portrait
_ENDS_EARLY = {
    SolveStatus.BLEW_UP: "The curve ends early: the solution grows without bound.",
    SolveStatus.OUT_OF_STEPS: "The curve ends early: the solution became too fast to follow.",
    SolveStatus.SINGULAR: "The curve ends early: the equation cannot be solved for its highest derivative there.",
    SolveStatus.OUTSIDE_DOMAIN: "The curve ends early: a function of the equation is not defined there.",
}


def candidate_at(run: Run, number: int, experiment: int) -> Candidate:
    """The candidate of this equation; LgfError if the run has no such equation or experiment."""
    candidates = candidates_of(run)
    if number >= len(candidates) or experiment >= len(run.request.problem.observations):
        raise LgfError("There is no such equation or experiment in this run; open the run again.")
    return candidates[number]


def system_in(run: Run, candidate: Candidate, experiment: int) -> System:
    """The candidate's system with the constants of one experiment."""
    system = run.display_system(candidate)
    if not candidate.fit.sharing.varying:
        return system
    return replace(system, values=tuple(candidate.fit.by_experiment[experiment].tolist()))


def run_facts(run: Run) -> Facts:
    """The result of a run with its problem, and of each equation the lists that it stands in."""
    view = run_view(run)
    lists = {"front": view.front, "equal": view.equal, "step": view.prediction_front}
    return {
        **{name: getattr(view, name) for name in _RESULT},
        "problem": problem_view(run.request.problem),
        "equations": [
            {**vars(e), **{name: any(e is other for other in part) for name, part in lists.items()}}
            for e in view.equations
        ],
    }


def curve_view(run: Run, number: int, experiment: int) -> Facts:
    """The trajectory of an equation of the run for one experiment, its band, and what it leaves unexplained."""
    candidate = candidate_at(run, number, experiment)
    observation = run.request.problem.observations[experiment]
    rows = thinned_rows(observation.values)
    measured = observation.t[rows]
    t = np.union1d(np.linspace(*observation.window, _CURVE_POINTS), measured)
    shown = run if candidate is run.best else replace(run, best=candidate)
    solved = shown.trajectory(experiment, t)
    at = np.searchsorted(t, measured)
    residuals = {str(v): observation.values[rows, j] - solved[v][at] for j, v in enumerate(observation.columns)}
    facts: dict[str, Any] = {
        **trajectory_view(solved),
        "residuals": {"t": measured, "columns": residuals},
        "planes": _planes(shown),
    }
    if candidate is run.best:
        times = np.linspace(*observation.window, BAND_POINTS)
        facts["band"] = band_view(bands_of(run).of_experiment(experiment, times, INTERVAL))
    return facts


def _planes(run: Run) -> list[Facts]:
    """The planes of the phase portrait: their limits, the arrows of the vector field, and the equilibria in them."""
    views = []
    for plane in planes(run, _PLANES):
        arrows = arrows_in_plane(run, plane, _ARROWS) if has_field(run) else np.empty((0, 4))
        rests = [{"x": x, "y": y, "stable": rest.stable} for x, y, rest in plane.rests]
        views.append({"x": str(plane.x), "y": str(plane.y), "limits": plane.limits, "arrows": arrows, "rests": rests})
    return views


@lru_cache(maxsize=8)
def bands_of(run: Run) -> Bands:
    """The bands of the run; what they share is computed once."""
    return Bands(run)


def trajectory_view(solved: Trajectory) -> Facts:
    """The columns of a trajectory, and a sentence if it ends early."""
    return {
        "t": solved.t,
        "columns": {str(v): solved[v] for v in solved.variables},
        "inputs": solved.inputs,
        "sentence": _ENDS_EARLY.get(solved.status, ""),
    }


def suggestion_view(suggestion: Suggestion) -> Facts:
    """The experiment in a sentence, and what each equation predicts for it."""
    predictions = zip(suggestion.equations, suggestion.trajectories, strict=True)
    return {
        "sentence": str(suggestion),
        "measured": [str(v) for v in suggestion.noise],
        "predictions": [{"text": str(system), **trajectory_view(solved)} for system, solved in predictions],
    }


def band_view(band: Band) -> Facts:
    """The lower and upper ends of a band."""
    ends = {"lower": band.lower, "upper": band.upper}
    return {"t": band.lower.t, **{name: {str(v): end[v] for v in end.variables} for name, end in ends.items()}}
