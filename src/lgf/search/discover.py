"""`discover`: smooths the record, searches, and selects the equation."""

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from lgf import __version__
from lgf.data.condensation import condensed
from lgf.data.problem import Problem
from lgf.data.row_knowledge import row_knowledge
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.fit.target import Target
from lgf.fit.target_assembly import make_target
from lgf.grammar import Grammar
from lgf.language.language import make_language
from lgf.search.candidate import GIVEN, Candidate, Population, Proposal
from lgf.search.conclusion import conclude
from lgf.search.evaluate import Evaluator
from lgf.search.hidden.coupling import scale_is_free
from lgf.search.hidden.findings import hidden_findings
from lgf.search.hidden.orientation import oriented
from lgf.search.hidden.record import given_starts, widened, with_guessed_path, with_path_of
from lgf.search.loop import Iteration, Mapper, Progress, joblib_map, search
from lgf.search.mixture import MakeProposer, make_schedule
from lgf.search.noise_growth import growth_about, reweighted, smoothed_curves
from lgf.search.notes import Note, notes_on_given
from lgf.search.part import Searched, fitted_to_all, part_to_search
from lgf.search.prediction import with_prediction
from lgf.search.proposers.basic import priced
from lgf.search.select import refined
from lgf.search.settings import DiscoverySettings
from lgf.search.systems.language import system_language
from lgf.search.verdict import Verdict, is_refuted
from lgf.smoothing.complete import Completion, complete
from lgf.stopping import StopToken
from lgf.threads import Spread, alone, one_blas_thread

_UNEXPLAINED = 1.5  # times the loss of the estimated noise: a best equation that leaves more is not the last word


@dataclass(frozen=True, eq=False)
class Discovery:
    """The result of a search, with its history and settings."""

    best: Candidate
    verdict: Verdict  # what predictions say about the best equation
    notes: tuple[Note, ...]
    prediction_front: tuple[Candidate, ...]  # the simplest equation at each level of prediction error
    front: tuple[Candidate, ...]
    indistinguishable: tuple[Candidate, ...]  # equations that fit about as well as the best
    history: tuple[Iteration, ...]
    problem: Problem  # condensed, if it was long
    completions: tuple[Completion, ...]
    targets: dict[Frame, Target]
    growth: float | None  # of the noise with the signal; None = constant noise
    equivalents: tuple[Candidate, ...]  # systems that differ in the state that was not measured, and in nothing else
    settings: DiscoverySettings
    seed: int
    evaluations: int
    seconds: float
    population: Population = field(repr=False)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        """The target that the best equation was fitted to."""
        return self.targets[self.best.skeleton.frame]

    @property
    def system(self) -> System:
        """The chosen system with values and errors."""
        return self.best.fit.system(self.target)


def discover(
    problem: Problem,
    grammar: Grammar,
    settings: DiscoverySettings = DiscoverySettings(),
    *,
    proposers: Mapping[str, MakeProposer] = MappingProxyType({}),
    seed: int = 0,
    spread: Spread = alone,
    warm: Sequence[Proposal] = (),
    progress: Progress | None = None,
    mapper: Mapper | None = None,
    stop: StopToken | None = None,
) -> Discovery:
    """The discovery of the problem's equation.

    `proposers` are the proposers from outside `lgf.search`, by name: the user's own, and the flow of a trained model.
    The settings hold their shares. `warm` proposals (the user's equations, or the best of an earlier run) are fitted
    first. `mapper` maps the fits, if they are not to be mapped over the threads of `spread`. `stop` ends the search
    early; the equation is then selected from the candidates so far. Without any, KeyboardInterrupt is raised.
    """
    started, stop = time.monotonic(), stop or StopToken()
    stop.limit(settings.search.max_seconds)
    measured, problem = problem, condensed(problem, settings.samples)
    frames = problem.frames
    completions = _completions(problem, settings, spread)
    growth = None
    if not problem.hidden and not settings.all_modes:
        grows = growth_about(problem, frames[-1], smoothed_curves(completions, frames[-1]), smoothed=True)
        if grows is not None:
            growth, variances = grows
            problem = reweighted(problem, frames[-1], variances)
    if problem.hidden:
        completions = with_guessed_path(problem, frames[-1], completions)
    accuracy = settings.fit.accuracy
    targets = {
        frame: make_target(problem, frame, completions, all_modes=settings.all_modes, accuracy=accuracy)
        for frame in frames
    }
    if problem.hidden:
        targets = {frame: widened(target, problem.hidden[0]) for frame, target in targets.items()}
    one_state = len(problem.states) == 1
    languages = []
    if one_state:
        languages = [make_language(grammar, problem, f, targets[f].ranges, settings.as_written) for f in frames]
    systems = [] if one_state else [system_language(grammar, problem, f, targets[f]) for f in frames]
    evaluator = Evaluator(targets, problem.knowledge, settings.fit, settings.objective)
    whole = Searched(problem, completions, evaluator)
    searched = part_to_search(whole, settings)
    mapper = mapper or joblib_map(spread)
    population = Population()
    by_frame = {language.frame: language for language in (*languages, *systems)}
    first = [priced(p, by_frame.get(p.skeleton.frame)) for p in warm if population.claim(p.skeleton.structure)]
    for candidate in mapper(searched.evaluator, first):
        population.add(candidate)
    known = [(language, row_knowledge(problem.knowledge, language.frame)) for language in systems]
    free_scale = bool(problem.hidden) and scale_is_free(known[0][1], given_starts(problem))
    schedule = make_schedule(languages, searched.evaluator.targets, settings, seed, proposers, known, spread)
    history: list[Iteration] = []

    def record(iteration: Iteration, candidates: Population) -> None:
        history.append(iteration)
        if progress is not None:
            progress(iteration, candidates)

    def doubtful(candidate: Candidate) -> bool:
        """Whether it leaves more than the noise, or predictions refute it, or the record has no noise.

        Without noise many equations explain a record, few simply.
        """
        target = searched.evaluator.targets[candidate.skeleton.frame]
        if candidate.loss <= settings.selection.fully_explained * target.floor:
            return True
        if candidate.loss > _UNEXPLAINED * target.noise_loss:
            return True
        part = searched.problem, searched.completions, searched.evaluator
        predicted = with_prediction(candidate, *part, settings.prediction)
        return is_refuted(predicted, settings.prediction)

    if schedule:
        search(searched.evaluator, schedule, settings.search, population, mapper, record, doubtful, stop)
    if not len(population):
        if stop.asked:
            raise KeyboardInterrupt
        raise LgfError(
            "no equation fulfils what is known about the terms, the rows and their sums; state less, or check that the "
            "statements agree."
        )
    if searched.problem is not problem:
        population = fitted_to_all(population, whole, searched.share, mapper, settings)
    if problem.hidden:
        population = oriented(population, len(problem.states) - 1) if free_scale else population
        completions = with_path_of(population.best()[0], frames[-1], completions, targets, problem.hidden[0])
        targets = {frame: make_target(problem, frame, completions, accuracy=accuracy) for frame in frames}
        evaluator = replace(evaluator, targets=targets)
    conclusion = conclude(
        population, problem, measured, completions, evaluator, mapper, spread, [*languages, *systems], settings
    )
    decision = conclusion.decision
    judge = replace(evaluator, targets=conclusion.targets)
    given = [population.get(p.skeleton.structure) or judge(p) for p in first if p.origin == GIVEN]
    notes = [*conclusion.notes, *notes_on_given(refined(given, judge, mapper), decision.best, measured)]
    equals, equivalents = decision.indistinguishable, ()
    if problem.hidden:
        hidden_notes, equivalents = hidden_findings(
            decision.best, equals, conclusion.targets[frames[-1]], known[0][1], given_starts(problem),
            evaluator.patient.fit,
        )  # fmt: skip
        notes = [*notes, *hidden_notes]
        same = {c.skeleton.structure for c in equivalents}
        equals = tuple(c for c in equals if c.skeleton.structure not in same)
    return Discovery(
        best=decision.best,
        verdict=conclusion.verdict,
        notes=tuple(notes),
        prediction_front=decision.prediction_front,
        front=tuple(population.front()),
        indistinguishable=equals,
        history=tuple(history),
        problem=problem,
        completions=completions,
        targets=dict(conclusion.targets),
        growth=growth if conclusion.growth is None else conclusion.growth,
        equivalents=equivalents,
        settings=settings,
        seed=seed,
        evaluations=history[-1].evaluations if history else len(population),
        seconds=time.monotonic() - started,
        population=population,
        versions={"lgf": __version__, "python": platform.python_version()},
    )


def _completions(problem: Problem, settings: DiscoverySettings, spread: Spread) -> tuple[Completion, ...]:
    """The smoothed variables of each experiment, experiments or else states side by side."""
    frame, method = problem.frames[-1], settings.smoothing
    if len(problem.observations) == 1:
        return (complete(problem.observations[0], frame, method, problem.signals(0), spread),)
    with one_blas_thread():
        observations = list(enumerate(problem.observations))
        return tuple(spread(lambda pair: complete(pair[1], frame, method, problem.signals(pair[0])), observations))
