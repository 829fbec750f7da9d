"""The equations of a run, each as every door shows it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lgf.equation.system import System
from lgf.equation.units import unit_pretty, unit_text
from lgf.expression.print import format_number
from lgf.runs.percentages import percentage
from lgf.runs.request import Run
from lgf.search.candidate import Candidate


@dataclass(frozen=True)
class ConstantView:
    """A constant of an equation."""

    term: str  # with C in its place
    value: float
    error: float  # standard error; NaN or infinite = unknown
    text: str
    error_text: str  # "" = unknown
    determined: bool  # its standard error is smaller than the constant
    unit: str | None  # with superscripts; None = unknown
    plain_unit: str
    varies: bool  # by experiment
    spread: float | None  # standard deviation between experiments, if it varies
    by_experiment: list[float]


@dataclass(frozen=True)
class EquationView:
    """An equation with its constants and what it is worth."""

    text: str
    label: str  # the text with a remark on the constants that vary by experiment
    exact: str  # at full precision, inputs by name
    math: tuple  # a tree of MathML
    latex: str
    variables: list[str]
    inputs: list[str]
    constants: list[ConstantView]
    varying: list[str]  # the terms of the constants that vary by experiment
    initial: list[list[float]]  # by experiment
    complexity: int
    loss: float
    error: float  # root mean square, relative to the signal
    error_text: str
    prediction: float | None  # error of predictions
    prediction_text: str | None
    objective: float
    stability: str | None
    chosen: bool


def equation_view(run: Run, candidate: Candidate) -> EquationView:
    """The candidate as it is shown."""
    system, fit, error = run.display_system(candidate), candidate.fit, candidate.loss**0.5
    constants = _constants(system, candidate)
    varying = [c.term for c in constants if c.varies]
    remark = f"  ({', '.join(varying)} by experiment)" if varying else ""
    prediction = None if candidate.prediction is None else candidate.prediction.error
    stability = None if candidate.stability is None else candidate.stability.kind.value
    inputs = [s.args[0] for s in system.frame.input_symbols if s in system.skeleton.symbols]
    return EquationView(
        str(system), str(system) + remark, system.text, system.mathml(), system.latex(),
        [str(v) for v in system.frame.variables], inputs, constants, varying, fit.initial.tolist(),
        candidate.complexity, fit.loss, error, percentage(error), prediction,
        None if prediction is None else percentage(prediction), candidate.objective, stability,
        chosen=key_of(run, candidate) == key_of(run, run.best),
    )  # fmt: skip


def _constants(system: System, candidate: Candidate) -> list[ConstantView]:
    spreads = {v.constant: v.deviation for v in candidate.fit.sharing.varying}
    errors = system.errors or (math.nan,) * len(system.values)
    constants = zip(system.terms, system.values, errors, system.constant_units, strict=True)
    by_experiment, n = candidate.fit.by_experiment, len(candidate.fit.initial)
    return [
        ConstantView(
            term, value, error, format_number(value, error), f"{error:.2g}" if math.isfinite(error) else "",
            error < abs(value), None if unit is None else unit_pretty(unit), "" if unit is None else unit_text(unit),
            k in spreads, spreads.get(k), by_experiment[:, k].tolist() if spreads else [value] * n,
        )
        for k, (term, value, error, unit) in enumerate(constants)
    ]  # fmt: skip


def front_of(run: Run) -> list[Candidate]:
    """The Pareto front and the chosen equation, simplest first."""
    others = [c for c in run.front if key_of(run, c) != key_of(run, run.best)]
    return sorted([*others, run.best], key=lambda c: (c.complexity, c.loss))


def candidates_of(run: Run) -> list[Candidate]:
    """Every equation of the run that can be looked at: the front, then those that were fitted once more."""
    candidates: dict[tuple, Candidate] = {}
    for candidate in (*front_of(run), *run.prediction_front, *run.indistinguishable):
        candidates.setdefault(key_of(run, candidate), candidate)
    return list(candidates.values())


def key_of(run: Run, candidate: Candidate) -> tuple:
    """What tells equations of a run apart: structure, constants that vary, and how they were fitted.

    The chosen one is one equation, in whichever list it stands.
    """
    own, best = ((c.skeleton.structure, [v.constant for v in c.fit.sharing.varying]) for c in (candidate, run.best))
    return () if own == best else (own[0], *own[1], candidate.objective)


def front_rows(front: Iterable[EquationView]) -> list[dict[str, Any]]:
    """A Pareto front as table rows."""
    return [
        {"equation": e.text, "complexity": e.complexity, "loss": e.loss, "prediction": e.prediction,
         "objective": e.objective, "stable": e.stability, "chosen": e.chosen}
        for e in front
    ]  # fmt: skip
