"""What there is to show of a run: made once, rendered by the terminal, the page, the report, notebooks and tables."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from lgf.data import Finding
from lgf.report import sentences
from lgf.runs.equations import EquationView, candidates_of, equation_view, front_of, key_of
from lgf.runs.request import Run
from lgf.search.verdict import Trust

NO_LAW = "No law found"


@dataclass(frozen=True, eq=False)
class RunView:
    """A run as numbers, texts and sentences."""

    equations: tuple[EquationView, ...]  # each once; the lists below hold the same ones
    chosen: EquationView
    front: tuple[EquationView, ...]  # the Pareto front and the chosen equation, simplest first
    equal: tuple[EquationView, ...]  # those that fit about as well as the chosen one, which is among them
    prediction_front: tuple[EquationView, ...]  # the simplest equation at each level of prediction error
    equivalents: tuple[EquationView, ...]  # systems that differ in the state that was not measured only
    python: str
    starts: list[tuple[str, float, list[tuple[float, str]]]]  # (experiment, t, (value, "given" or "fitted") each)
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
    units: Mapping[str, str]  # by quantity, as far as they are known
    hidden: str  # the state that was not measured; "" = none
    samples: int
    source: str  # file or record of the data; "" = arrays
    reading: tuple[str, ...]  # how the table was read
    findings: tuple[Finding, ...]
    start: tuple[str, ...]  # equations that were tried first
    settings: dict[str, Any]
    seed: int
    evaluations: int
    seconds: float
    interrupted: bool
    versions: Mapping[str, str]

    @property
    def headline(self) -> str:
        """The equation, or that no law was found: then no equation stands on top."""
        return NO_LAW if self.trust == Trust.NO_LAW else self.chosen.text

    @property
    def sentences(self) -> list[str]:
        """The verdict and all notes."""
        return [self.verdict, *self.notes]

    @property
    def constant_rows(self) -> list[dict[str, Any]]:
        """The constants as table rows, with units if there are any."""
        return [
            {"term": c.term, "value": c.value, "error": c.error, **({"unit": c.plain_unit} if self.units else {}),
             "spread": c.spread, "experiments": c.by_experiment if c.varies else None}
            for c in self.chosen.constants
        ]  # fmt: skip

    @property
    def prediction_rows(self) -> list[dict[str, Any]]:
        """The prediction front as table rows, simplest first."""
        return [
            {"equation": e.text, "constants": len(e.constants), "varying": e.varying, "error": e.error,
             "prediction": e.prediction, "chosen": e.chosen}
            for e in self.prediction_front
        ]  # fmt: skip


@lru_cache(maxsize=2)
def run_view(run: Run) -> RunView:
    """The view of the run."""
    request, problem = run.request, run.request.problem
    views = {key_of(run, c): equation_view(run, c) for c in candidates_of(run)}
    lists = (front_of(run), run.indistinguishable, run.prediction_front)
    front, equal, prediction_front = (tuple(views[key_of(run, c)] for c in part) for part in lists)
    verdict, *notes = sentences.sentences(run)
    return RunView(
        equations=tuple(views.values()), chosen=views[key_of(run, run.best)], front=front, equal=equal,
        prediction_front=prediction_front, equivalents=tuple(equation_view(run, c) for c in run.equivalents),
        python=run.system.python(), starts=list(_starts(run)), trust=run.verdict.trust.value,
        reason=run.verdict.reason.value, verdict=verdict, notes=notes, summary=sentences.summary(run),
        stability=sentences.stability(run), alternatives=sentences.alternatives(run),
        knowledge=sentences.knowledge(run), data=sentences.data(run), search=sentences.search(run),
        units=dict(problem.units), hidden=", ".join(problem.hidden), samples=problem.n_samples, source=request.source,
        reading=request.notes, findings=request.findings, start=request.start, settings=asdict(request.settings),
        seed=request.seed, evaluations=run.evaluations, seconds=run.seconds, interrupted=run.interrupted,
        versions=run.versions,
    )  # fmt: skip


def _starts(run: Run) -> Iterable[tuple[str, float, list[tuple[float, str]]]]:
    problem = run.request.problem
    for name, o, state in zip(problem.experiment_names, problem.observations, run.best.fit.initial, strict=True):
        sources = ("given" if variable in o.initial else "fitted" for variable in run.frame.variables)
        alone = len(problem.observations) == 1 and not o.name
        yield "the record" if alone else name, float(o.t[0]), list(zip(state.tolist(), sources, strict=True))
