"""What the page is told about tables, problems and equations, in JSON types; a missing number is null."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from lgf.app.form import ColumnUse
from lgf.app.thinning import thinned_rows
from lgf.data import Finding, Observation, Problem, Table
from lgf.equation.system import System
from lgf.expression.print import format_number
from lgf.report.page import alternatives, stability, summary
from lgf.report.percentages import percentage
from lgf.runs.request import Run
from lgf.runs.serialisation import for_page
from lgf.search.candidate import Candidate
from lgf.solver.trajectory import SolveStatus, Trajectory

Facts = dict[str, Any]
FIRST_ROWS = 20
MOST_EXPERIMENTS = 50  # most experiments that the page shows
_CURVE_POINTS = 1000
_ENDS_EARLY = {
    SolveStatus.BLEW_UP: "The curve ends early: the solution grows without bound.",
    SolveStatus.OUT_OF_STEPS: "The curve ends early: the solution became too fast to follow.",
    SolveStatus.SINGULAR: "The curve ends early: the equation cannot be solved for its highest derivative there.",
    SolveStatus.OUTSIDE_DOMAIN: "The curve ends early: a function of the equation is not defined there.",
}


def table_view(table: Table, uses: tuple[ColumnUse, ...]) -> Facts:
    """Names, roles and first rows of a table."""
    cells = [[_cell(column[row]) for column in table.columns] for row in range(min(len(table), FIRST_ROWS))]
    columns = [{"name": name, **use.model_dump()} for name, use in zip(table.names, uses, strict=True)]
    return {"name": table.source, "columns": columns, "rows": cells, "n_rows": len(table)}


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)[:60]


def problem_view(problem: Problem) -> Facts:
    """The experiments for plots, and the names of everything that can be known about."""
    frame = problem.frames[-1]
    observations = problem.observations
    return {
        "experiments": [observation_view(problem, e) for e in range(min(len(observations), MOST_EXPERIMENTS))],
        "n_experiments": len(observations),
        "n_samples": problem.n_samples,
        "states": list(problem.states),
        "inputs": list(problem.inputs),
        "variables": [str(v) for v in frame.variables],
        "highest": [str(v) for v in frame.highest],
        "known": list(problem.knowledge.describe()),
    }


def observation_view(problem: Problem, experiment: int) -> Facts:
    """One experiment, thinned for plots."""
    observation = problem.observations[experiment]
    rows = thinned_rows(observation.values)
    t = observation.t[rows]
    inputs = {name: forcing.values(t) for name, forcing in problem.signals(experiment).items()}
    return for_page(
        {
            "name": observation.name or f"Experiment {experiment + 1}",
            "t": t,
            "columns": {str(v): observation.values[rows, j] for j, v in enumerate(observation.columns)},
            "inputs": inputs,
            "n": len(observation.t),
        }
    )


def findings_view(findings: tuple[Finding, ...]) -> list[Facts]:
    """The sentences of the data check."""
    return [{"severity": f.severity, "sentence": f.sentence} for f in findings]


def equations(run: Run) -> list[Candidate]:
    """Every equation of the run that can be looked at: the front with the chosen one, then its equals."""
    front = {c.skeleton.structure: c for c in run.front}
    front[run.best.skeleton.structure] = run.best
    ordered = sorted(front.values(), key=lambda c: (c.complexity, c.loss))
    return [*ordered, *(c for c in run.indistinguishable if c.skeleton.structure not in front)]


def run_view(run: Run) -> Facts:
    """The result of a run: its equations, what was known, and sentences about the chosen one."""
    candidates = equations(run)
    equals = {c.skeleton.structure for c in run.indistinguishable}
    front = {c.skeleton.structure for c in (*run.front, run.best)}
    return for_page(
        {
            "source": run.request.source,
            "problem": problem_view(run.request.problem),
            "findings": findings_view(run.request.findings),
            "start": list(run.request.start),
            "equations": [
                {
                    **equation_view(run.display_system(c), c),
                    "chosen": c.skeleton.structure == run.best.skeleton.structure,
                    "front": c.skeleton.structure in front,
                    "equal": c.skeleton.structure in equals,
                }
                for c in candidates
            ],
            "summary": summary(run),
            "stability": stability(run),
            "alternatives": alternatives(run),
            "evaluations": run.evaluations,
            "seconds": run.seconds,
            "interrupted": run.interrupted,
            "seed": run.request.seed,
            "versions": run.versions,
        }
    )


def equation_view(system: System, candidate: Candidate) -> Facts:
    """One equation with its constants and what it is worth."""
    assessed = candidate.stability
    return {
        "text": str(system),
        "math": system.mathml(),
        "latex": system.latex(),
        "complexity": candidate.complexity,
        "error": candidate.loss**0.5,
        "error_text": percentage(candidate.loss**0.5),
        "held_out_text": None if candidate.held_out is None else percentage(candidate.held_out**0.5),
        "stability": None if assessed is None else assessed.verdict.value,
        "constants": _constants(system),
        "variables": [str(v) for v in system.frame.variables],
        "initial": candidate.fit.initial,
        "inputs": [s.args[0] for s in system.frame.input_symbols if s in system.skeleton.symbols],
    }


def _constants(system: System) -> list[Facts]:
    errors = system.errors or (math.nan,) * len(system.values)
    return [
        {
            "term": term,
            "value": value,
            "error": error,
            "text": format_number(value, error),
            "error_text": f"{error:.2g}" if math.isfinite(error) else "",
            "determined": error < abs(value),
        }
        for term, value, error in zip(system.terms, system.values, errors, strict=True)
    ]


def curve_view(run: Run, candidate: Candidate, experiment: int) -> Facts:
    """The trajectory of an equation of the run for one experiment, and what it leaves unexplained."""
    observation = run.request.problem.observations[experiment]
    rows = thinned_rows(observation.values)
    measured = observation.t[rows]
    t = np.union1d(np.linspace(*observation.window, _CURVE_POINTS), measured)
    solved = replace(run, best=candidate).trajectory(experiment, t)
    at = np.searchsorted(t, measured)
    residuals = {str(v): observation.values[rows, j] - solved[v][at] for j, v in enumerate(observation.columns)}
    return for_page({**trajectory_view(solved), "residuals": {"t": measured, "columns": residuals}})


def trajectory_view(solved: Trajectory) -> Facts:
    """The columns of a trajectory, and a sentence if it ends early."""
    return for_page(
        {
            "t": solved.t,
            "columns": {str(v): solved[v] for v in solved.variables},
            "inputs": solved.inputs,
            "sentence": _ENDS_EARLY.get(solved.status, ""),
        }
    )


def data_rows(problem: Problem) -> list[list[str]]:
    """The experiments as rows of one table, with a header."""
    variables = list(dict.fromkeys(v for o in problem.observations for v in o.columns))
    rows = [["experiment", "t", *map(str, variables), *problem.inputs]]
    for e, observation in enumerate(problem.observations):
        rows += _observation_rows(problem, e, observation, variables)
    return rows


def _observation_rows(problem: Problem, e: int, observation: Observation, variables: list[Any]) -> list[list[str]]:
    signals = problem.signals(e)
    missing = np.full(len(observation.t), np.nan)
    measured = [observation.column(v) for v in variables]
    columns = [observation.t, *(missing if c is None else c for c in measured)]
    columns += [signals[name].values(observation.t) if name in signals else missing for name in problem.inputs]
    name = observation.name or str(e + 1)
    return [[name, *("" if x != x else repr(float(x)) for x in row)] for row in zip(*columns, strict=True)]
