"""What the page is told about equations, their worth and their curves, in JSON types; a missing number is null."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from lgf.app.thinning import thinned_rows
from lgf.app.views import Facts, findings_view, problem_view
from lgf.equation.operator_form import in_operator_form
from lgf.equation.system import System
from lgf.equation.units import unit_pretty
from lgf.expression.print import format_number
from lgf.report.equilibria import equilibria_of, isolated
from lgf.report.figures import INTERVAL
from lgf.report.page import alternatives, stability, summary
from lgf.report.percentages import percentage
from lgf.report.sentences import note_sentence, verdict_sentence
from lgf.report.vector_field import arrows_in_plane, has_field, plane_limits, planes
from lgf.runs.bands import Band, Bands
from lgf.runs.request import Run
from lgf.runs.suggestion import Suggestion
from lgf.search.candidate import Candidate
from lgf.solver.trajectory import SolveStatus, Trajectory

BAND_POINTS = 200  # a band takes a quarter of a second
_CURVE_POINTS = 1000
_PLANES, _ARROWS = 3, 13  # of the phase portrait
_ENDS_EARLY = {
    SolveStatus.BLEW_UP: "The curve ends early: the solution grows without bound.",
    SolveStatus.OUT_OF_STEPS: "The curve ends early: the solution became too fast to follow.",
    SolveStatus.SINGULAR: "The curve ends early: the equation cannot be solved for its highest derivative there.",
    SolveStatus.OUTSIDE_DOMAIN: "The curve ends early: a function of the equation is not defined there.",
}


def _key(candidate: Candidate) -> tuple[str, tuple[int, ...]]:
    """What tells equations apart: their structure, and the constants that vary by experiment."""
    return candidate.skeleton.structure, tuple(v.constant for v in candidate.fit.sharing.varying)


def equations(run: Run) -> list[Candidate]:
    """Every equation of the run that can be looked at: both fronts, the chosen one and its equals."""
    front = {_key(c): c for c in run.front}
    front[_key(run.best)] = run.best
    ordered = {_key(c): c for c in sorted(front.values(), key=lambda c: (c.complexity, c.loss))}
    # Equals and steps of that front were fitted once more and know their predictions.
    ordered |= {_key(c): c for c in (*run.prediction_front, *run.indistinguishable) if _key(c) != _key(run.best)}
    return list(ordered.values())


def system_in(run: Run, candidate: Candidate, experiment: int) -> System:
    """The candidate's system in operator form with the constants of one experiment."""
    fit = candidate.fit
    if not fit.sharing.varying:
        return run.display_system(candidate)
    values = tuple(float(v) for v in fit.by_experiment[experiment])
    problem = run.request.problem
    return in_operator_form(System(fit.skeleton, values, fit.errors, problem.formulas, problem.units), fit.covariance)


def run_view(run: Run) -> Facts:
    """The result of a run: its equations, what was known, and sentences about the chosen one."""
    sets = {
        "chosen": {_key(run.best)},
        "front": {_key(c) for c in (*run.front, run.best)},
        "equal": {_key(c) for c in run.indistinguishable},
        "step": {_key(c) for c in run.prediction_front},
    }
    return {
        "source": run.request.source,
        "problem": problem_view(run.request.problem),
        "findings": findings_view(run.request.findings),
        "start": list(run.request.start),
        "equations": [
            {**equation_view(run, c), **{name: _key(c) in keys for name, keys in sets.items()}} for c in equations(run)
        ],
        "trust": run.verdict.trust.value,
        "verdict": verdict_sentence(run.verdict),
        "notes": [note_sentence(note) for note in run.notes],
        "summary": summary(run),
        "stability": stability(run),
        "alternatives": alternatives(run),
        "evaluations": run.evaluations,
        "seconds": run.seconds,
        "interrupted": run.interrupted,
        "seed": run.request.seed,
        "versions": run.versions,
    }


def equation_view(run: Run, candidate: Candidate) -> Facts:
    """One equation with its constants and what it is worth."""
    system, assessed = run.display_system(candidate), candidate.stability
    predicted = None if candidate.prediction is None else candidate.prediction.error
    return {
        "text": str(system),
        "math": system.mathml(),
        "latex": system.latex(),
        "complexity": candidate.complexity,
        "error": candidate.loss**0.5,
        "error_text": percentage(candidate.loss**0.5),
        "prediction_text": None if predicted is None else percentage(predicted),
        "stability": None if assessed is None else assessed.kind.value,
        "constants": _constants(run, candidate, system),
        "variables": [str(v) for v in system.frame.variables],
        "initial": candidate.fit.initial,
        "inputs": [s.args[0] for s in system.frame.input_symbols if s in system.skeleton.symbols],
    }


def _constants(run: Run, candidate: Candidate, system: System) -> list[Facts]:
    errors = system.errors or (math.nan,) * len(system.values)
    n = len(candidate.fit.by_experiment)
    by_experiment = np.array([system_in(run, candidate, e).values for e in range(n)])
    if by_experiment.shape != (n, len(system.values)):  # the form depends on the values; the means are shown
        by_experiment = np.tile(system.values, (n, 1))
    return [
        {
            "term": term,
            "value": value,
            "error": error,
            "text": format_number(value, error),
            "unit": None if unit is None else unit_pretty(unit),
            "error_text": f"{error:.2g}" if math.isfinite(error) else "",
            "determined": error < abs(value),
            "varies": bool(np.ptp(own) > 0.0),
            "by_experiment": own,
        }
        for term, value, error, unit, own in zip(
            system.terms, system.values, errors, system.constant_units, by_experiment.T, strict=True
        )
    ]


def curve_view(run: Run, number: int, experiment: int) -> Facts:
    """The trajectory of an equation of the run for one experiment, its band, and what it leaves unexplained."""
    candidate = equations(run)[number]
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
    pairs = planes(run)[:_PLANES]
    rests = isolated(equilibria_of(run)) if pairs else ()
    views = []
    for x, y in pairs:
        limits = plane_limits(run, x, y, rests)
        places = [dict(zip(rest.variables, rest.state, strict=True)) for rest in rests]
        arrows = arrows_in_plane(run, x, y, limits, _ARROWS) if has_field(run) else np.empty((0, 4))
        views.append(
            {
                "x": str(x),
                "y": str(y),
                "limits": limits,
                "arrows": arrows,
                "rests": [
                    {"x": at[x], "y": at[y], "stable": rest.stable} for at, rest in zip(places, rests, strict=True)
                ],
            }
        )
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
