"""The equations of a run as every door shows them: each once, and the lists that they stand in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgf.equation.system import System
from lgf.equation.units import unit_pretty, unit_text
from lgf.runs.request import Run
from lgf.search.candidate import Candidate


@dataclass(frozen=True)
class ConstantView:
    """A constant of an equation."""

    term: str  # with C in place of the constant
    value: float
    error: float  # standard error; NaN or infinite if the data do not determine the constant
    determined: bool
    units: tuple[str, str] | None  # the unit in plain characters and with superscripts; None = unknown
    spread: float | None  # standard deviation between experiments; None = the same in all of them
    by_experiment: tuple[float, ...]


@dataclass(frozen=True)
class EquationView:
    """An equation with its constants and what it is worth."""

    text: str
    exact: str  # at full precision, inputs by name
    math: Any  # a tree of MathML
    latex: str
    variables: tuple[str, ...]
    inputs: tuple[str, ...]
    constants: tuple[ConstantView, ...]
    initial: tuple[tuple[float, ...], ...]  # by experiment
    complexity: int
    loss: float
    prediction: float | None  # error of predictions
    objective: float
    stability: str | None
    chosen: bool

    @property
    def error(self) -> float:
        """The root mean square error relative to the signal."""
        return self.loss**0.5

    @property
    def varying(self) -> list[str]:
        """The terms whose constant differs between experiments."""
        return [c.term for c in self.constants if c.spread is not None]

    @property
    def label(self) -> str:
        """The text, with a remark on the terms whose constant differs between experiments."""
        return f"{self.text}  ({', '.join(self.varying)} by experiment)" if self.varying else self.text


@dataclass(frozen=True)
class Equations:
    """Every equation of a run once, and the lists as places among them."""

    all: tuple[EquationView, ...]
    front: tuple[int, ...]  # the Pareto front and the chosen equation, simplest first
    equal: tuple[int, ...]  # equations that fit about as well as the chosen one, which is among them
    prediction_front: tuple[int, ...]  # the simplest equation at each level of prediction error
    equivalents: tuple[EquationView, ...]  # systems that differ in the state that was not measured only

    @property
    def chosen(self) -> EquationView:
        """The chosen equation."""
        return next(equation for equation in self.all if equation.chosen)

    def at(self, places: Iterable[int]) -> list[EquationView]:
        """The equations of a list."""
        return [self.all[place] for place in places]


def equations_of(run: Run) -> Equations:
    """The equations of the run."""
    candidates = candidates_of(run)
    places = {_key(c): place for place, c in enumerate(candidates)}
    front = sorted({places[_key(c)] for c in (*run.front, run.best)})
    equal, predicted = (tuple(places[_key(c)] for c in part) for part in (run.indistinguishable, run.prediction_front))
    views = tuple(equation_view(run, c) for c in candidates)
    return Equations(views, tuple(front), equal, predicted, tuple(equation_view(run, c) for c in run.equivalents))


def candidates_of(run: Run) -> list[Candidate]:
    """The candidates behind the equations, in the same order: by complexity, then those that are in no front.

    Equals and the prediction front were fitted once more and know their predictions, so their numbers are shown.
    """
    first = sorted((*run.front, run.best), key=lambda c: (c.complexity, c.loss))
    again = (*run.prediction_front, *run.indistinguishable, run.best)
    return list({_key(c): c for c in (*first, *again)}.values())


def equation_view(run: Run, candidate: Candidate) -> EquationView:
    """The candidate as it is shown."""
    system = run.display_system(candidate)
    return EquationView(
        text=str(system),
        exact=system.text,
        math=system.mathml(),
        latex=system.latex(),
        variables=tuple(map(str, system.frame.variables)),
        inputs=tuple(s.args[0] for s in system.frame.input_symbols if s in system.skeleton.symbols),
        constants=tuple(_constants(system, candidate)),
        initial=tuple(map(tuple, candidate.fit.initial.tolist())),
        complexity=candidate.complexity,
        loss=candidate.loss,
        prediction=None if candidate.prediction is None else candidate.prediction.error,
        objective=candidate.objective,
        stability=None if candidate.stability is None else candidate.stability.kind.value,
        chosen=_key(candidate) == _key(run.best),
    )


def _constants(system: System, candidate: Candidate) -> Iterable[ConstantView]:
    fit, errors = candidate.fit, system.errors or (np.nan,) * len(system.values)
    spreads = {v.constant: v.deviation for v in fit.sharing.varying}
    own = fit.by_experiment.T.tolist() if spreads else [[v] * len(fit.by_experiment) for v in system.values]
    for k, (term, value, error, unit) in enumerate(
        zip(system.terms, system.values, errors, system.constant_units, strict=True)
    ):
        units = None if unit is None else (unit_text(unit), unit_pretty(unit))
        yield ConstantView(term, value, error, error < abs(value), units, spreads.get(k), tuple(own[k]))


def _key(candidate: Candidate) -> tuple[str, tuple[int, ...]]:
    """What tells equations apart: their structure, and the constants that vary by experiment."""
    return candidate.skeleton.structure, tuple(v.constant for v in candidate.fit.sharing.varying)


def front_rows(equations: Equations, places: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """The Pareto front, or another list, as table rows."""
    return [
        {
            "equation": e.text,
            "complexity": e.complexity,
            "loss": e.loss,
            "prediction": e.prediction,
            "objective": e.objective,
            "stable": e.stability,
            "chosen": e.chosen,
        }
        for e in equations.at(equations.front if places is None else places)
    ]
