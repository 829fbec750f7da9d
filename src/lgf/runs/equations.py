"""The equations of a run, each as every door shows it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgf.equation.system import System
from lgf.equation.units import unit_pretty, unit_text
from lgf.runs.request import Run
from lgf.search.candidate import Candidate

FRONT = ("equation", "complexity", "loss", "prediction", "objective", "stable", "chosen")  # columns of a Pareto front


@dataclass(frozen=True)
class ConstantView:
    """A constant of an equation."""

    term: str  # with C in its place
    value: float
    error: float  # standard error; NaN or infinite if the data do not determine it
    unit: str  # "" = unknown
    pretty_unit: str  # with superscripts
    spread: float | None  # standard deviation between experiments; None = the same in all
    experiments: list[float] | None  # its value in each

    @property
    def determined(self) -> bool:
        """Whether its standard error is smaller than the constant."""
        return self.error < abs(self.value)


@dataclass(frozen=True)
class EquationView:
    """An equation with its constants and what it is worth."""

    equation: str
    label: str  # the same with a remark on the constants that vary by experiment
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
    prediction: float | None  # error of predictions
    objective: float
    stable: str | None
    chosen: bool


def equation_view(run: Run, candidate: Candidate) -> EquationView:
    """The candidate as it is shown."""
    system, fit = run.display_system(candidate), candidate.fit
    constants = _constants(system, candidate)
    varying = [c.term for c in constants if c.spread is not None]
    remark = f"  ({', '.join(varying)} by experiment)" if varying else ""
    prediction = None if candidate.prediction is None else candidate.prediction.error
    stable = None if candidate.stability is None else candidate.stability.kind.value
    inputs = [s.args[0] for s in system.frame.input_symbols if s in system.skeleton.symbols]
    return EquationView(
        str(system), str(system) + remark, system.text, system.mathml(), system.latex(),
        [str(v) for v in system.frame.variables], inputs, constants, varying, fit.initial.tolist(),
        candidate.complexity, fit.loss, fit.loss**0.5, prediction, candidate.objective, stable,
        chosen=key_of(run, candidate) == key_of(run, run.best),
    )  # fmt: skip


def _constants(system: System, candidate: Candidate) -> list[ConstantView]:
    spreads = {v.constant: v.deviation for v in candidate.fit.sharing.varying}
    errors = system.errors or (np.nan,) * len(system.values)
    constants = zip(system.terms, system.values, errors, system.constant_units, strict=True)
    return [
        ConstantView(
            term, value, error, "" if unit is None else unit_text(unit), "" if unit is None else unit_pretty(unit),
            spreads.get(k), candidate.fit.by_experiment[:, k].tolist() if k in spreads else None,
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


def table_rows(rows: list[Any] | tuple[Any, ...], *columns: str) -> list[dict[str, Any]]:
    """The rows of a table: these fields of each view."""
    return [{name: getattr(row, name) for name in columns} for row in rows]
