"""What there is to show of a run: made once, rendered by the terminal, the page, the report, notebooks and tables."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any

from pydantic import Field, InstanceOf

from lgf.data import Finding
from lgf.report import sentences
from lgf.report.equilibria import equilibrium_rows, equilibrium_sentence, state_rows
from lgf.runs.equations import Equations, EquationView, equations_of
from lgf.runs.request import Run


@dataclass(frozen=True)
class StartView:
    """The initial state of an experiment."""

    experiment: str
    t: float
    values: tuple[tuple[float, bool], ...]  # (value, whether the user gave it), by variable


@dataclass(frozen=True, eq=False)
class RunView:
    """A run as numbers, texts and sentences."""

    run: Annotated[InstanceOf[Run], Field(exclude=True)]
    source: str  # file or record of the data; "" = arrays
    reading: tuple[str, ...]  # how the table was read
    findings: tuple[Finding, ...]
    start: tuple[str, ...]  # equations that were tried first
    equations: Equations
    python: str  # the chosen equation as a function
    starts: tuple[StartView, ...]
    has_units: bool
    hidden: str  # the state that was not measured; "" = none
    trust: str
    reason: str
    verdict: str
    notes: list[str]
    summary: str
    stability: str
    alternatives: str
    knowledge: list[str]
    data: list[str]
    search: str
    samples: int
    time_unit: str
    evaluations: int
    seconds: float
    interrupted: bool
    seed: int
    versions: Mapping[str, str]
    settings: dict[str, Any]  # by dotted name

    @property
    def chosen(self) -> EquationView:
        """The chosen equation."""
        return self.equations.chosen

    @property
    def sentences(self) -> list[str]:
        """The verdict and all notes."""
        return [self.verdict, *self.notes]

    @cached_property
    def equilibria(self) -> list[dict[str, Any]]:
        """The equilibria nearest to the data; their eigenvalues take a while, so only the report has them."""
        return equilibrium_rows(self.run)

    @cached_property
    def equilibrium(self) -> str:
        """How many equilibria there are."""
        return equilibrium_sentence(self.run)

    @cached_property
    def states(self) -> list[dict[str, Any]]:
        """The error of every measured column, by solving all experiments."""
        return state_rows(self.run)

    @property
    def portrait(self) -> str:
        """How to read the phase portrait."""
        return sentences.portrait(self.run)


@lru_cache(maxsize=2)
def run_view(run: Run) -> RunView:
    """The view of the run."""
    request, problem = run.request, run.request.problem
    verdict, *notes = sentences.sentences(run)
    return RunView(
        run=run,
        source=request.source,
        reading=request.notes,
        findings=request.findings,
        start=request.start,
        equations=equations_of(run),
        python=run.system.python(),
        starts=tuple(_starts(run)),
        has_units=bool(problem.units),
        hidden=", ".join(problem.hidden),
        trust=run.verdict.trust.value,
        reason=run.verdict.reason.value,
        verdict=verdict,
        notes=notes,
        summary=sentences.summary(run),
        stability=sentences.stability(run),
        alternatives=sentences.alternatives(run),
        knowledge=sentences.knowledge(run),
        data=sentences.data(run),
        search=sentences.search(run),
        samples=problem.n_samples,
        time_unit=dict(problem.units).get("t", ""),
        evaluations=run.evaluations,
        seconds=run.seconds,
        interrupted=run.interrupted,
        seed=request.seed,
        versions=run.versions,
        settings=dict(_leaves(asdict(request.settings))),
    )


def constant_rows(view: RunView) -> list[dict[str, Any]]:
    """The constants of the chosen equation as table rows, with units if the data have any."""
    return [
        {
            "term": c.term,
            "value": c.value,
            "error": c.error,
            **({"unit": c.units[0] if c.units else ""} if view.has_units else {}),
            "spread": c.spread,
            "experiments": None if c.spread is None else list(c.by_experiment),
        }
        for c in view.chosen.constants
    ]


def prediction_rows(view: RunView) -> list[dict[str, Any]]:
    """The prediction front as table rows, simplest first."""
    return [
        {
            "equation": e.text,
            "constants": len(e.constants),
            "varying": e.varying,
            "error": e.error,
            "prediction": e.prediction,
            "chosen": e.chosen,
        }
        for e in view.equations.at(view.equations.prediction_front)
    ]


def _starts(run: Run) -> Iterable[StartView]:
    problem = run.request.problem
    names = (
        problem.experiment_names if len(problem.observations) > 1 else [problem.observations[0].name or "the record"]
    )
    for name, o, state in zip(names, problem.observations, run.best.fit.initial, strict=True):
        values = [(float(v), variable in o.initial) for v, variable in zip(state, run.frame.variables, strict=True)]
        yield StartView(name, float(o.t[0]), tuple(values))


def _leaves(settings: Mapping[str, Any], place: str = "") -> Iterable[tuple[str, Any]]:
    """(dotted name, value) of every setting."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value
