"""The conclusion of a search: finalists, the noise that their residuals show, constants that vary, and the decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lgf.data.problem import Problem
from lgf.expression.frame import Frame
from lgf.fit.target import Target, make_target
from lgf.language.language import Language
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Candidate, Population
from lgf.search.decision import Decision, Tools, Trust, decide, simple_candidates, unique, without_empty_confirmation
from lgf.search.evaluate import Evaluator
from lgf.search.hidden.equivalents import preferred
from lgf.search.loop import Mapper
from lgf.search.noise_model import growth_of, reweighted, with_noise_model
from lgf.search.objective import Criterion
from lgf.search.prediction import with_prediction
from lgf.search.select import choose, confirmed, finalists, handicap_of, refined, simplest_equal
from lgf.search.settings import DiscoverySettings
from lgf.search.systems.nested import simplest_nested
from lgf.search.varying import vary_one
from lgf.smoothing.complete import Completion


@dataclass(frozen=True, eq=False)
class Conclusion:
    """The decision, and what it was based on."""

    decision: Decision
    targets: Mapping[Frame, Target]
    growth: float | None  # of the noise with the signal; None = constant noise


def conclude(
    population: Population,
    problem: Problem,
    completions: Sequence[Completion],
    evaluator: Evaluator,
    mapper: Mapper,
    languages: Sequence[Language | SystemLanguage],
    settings: DiscoverySettings,
) -> Conclusion:
    """The conclusion from the candidates of a search. The paper's criterion chooses by its objective alone."""
    selection, growth = settings.selection, None
    best_ones = finalists(population, evaluator, mapper, selection, languages)
    simpler: list[Candidate] = []
    by_length = settings.objective.criterion is Criterion.DESCRIPTION_LENGTH
    if by_length:
        simpler = simple_candidates(population, problem.n_samples, settings.prediction)
        leader = best_ones[0]
        grows = growth_of(leader, evaluator.targets[leader.skeleton.frame])
        if grows is not None:
            growth, variances = grows
            problem = reweighted(problem, leader.skeleton.frame, variances)
            evaluator = replace(evaluator, targets=_targets(problem, completions, settings), growth=growth)
            best_ones = _refitted(best_ones, evaluator, mapper, settings)
            simpler = _refitted(simpler, evaluator, mapper, settings)
        pool = unique([*best_ones, *simpler])
        if problem.knowledge.vary == "auto":
            varied = vary_one(pool, replace(evaluator, fit=selection.refit), mapper, settings.varying)
            best_ones, pool = [*best_ones, *varied], [*pool, *varied]
        correlated = [with_noise_model(c, evaluator.targets[c.skeleton.frame], settings.noise) for c in pool]
        if any(c.noise is not None for c in correlated):
            best_ones = correlated
        best_ones.sort(key=lambda c: c.objective)
    targets = evaluator.targets

    def accept(candidate: Candidate) -> bool:
        return confirmed(candidate, problem, targets[candidate.skeleton.frame], selection)

    def handicap(candidate: Candidate) -> float:
        return handicap_of(
            candidate, problem, targets[candidate.skeleton.frame], settings.objective.criterion, selection
        )

    best = choose(best_ones, accept, handicap, selection)
    if not by_length:
        equals = [c for c in best_ones if c.objective <= best.objective + selection.indistinguishable]
        return Conclusion(Decision(best, Trust.UNTESTED, tuple(equals), ()), targets, growth)
    tools = Tools(
        lambda c: with_prediction(c, problem, completions, evaluator, settings.prediction),
        lambda candidates: refined(candidates, evaluator, mapper, selection),
        accept,
        targets[best.skeleton.frame].window,
        problem.variation,
    )
    prediction = settings.prediction
    if problem.hidden:
        prediction = replace(prediction, refuted_above=settings.hidden.refuted_above)
        best = preferred(best_ones, best, targets, selection.refit, selection.indistinguishable, settings.prediction)
    elif len(problem.states) > 1 or targets[best.skeleton.frame].n_unknown:
        # A term that is worth no more than a bare mention may only mend the error of a fitted initial value.
        best = simplest_nested(best_ones, best, selection.bare_mention, handicap)
    best = simplest_equal(best_ones, best, problem, targets, selection)
    decision = decide(best, best_ones, simpler, tools, prediction, selection.indistinguishable)
    return Conclusion(without_empty_confirmation(decision, problem, prediction), targets, growth)


def _targets(problem: Problem, completions: Sequence[Completion], settings: DiscoverySettings) -> dict[Frame, Target]:
    accuracy = settings.fit.accuracy * settings.fit.rtol
    return {frame: make_target(problem, frame, completions, accuracy=accuracy) for frame in problem.frames}


def _refitted(
    candidates: Sequence[Candidate], evaluator: Evaluator, mapper: Mapper, settings: DiscoverySettings
) -> list[Candidate]:
    """The candidates fitted to other weights, from their own constants."""
    patient = replace(evaluator, fit=settings.selection.refit, refining=True)
    return mapper(patient, [replace(c.proposal, start=c.fit.values) for c in candidates])
