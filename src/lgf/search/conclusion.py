"""The conclusion of a search: finalists, the noise that their residuals show, constants that vary, and the decision."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lgf.data.problem import Problem
from lgf.expression.frame import Frame
from lgf.fit.target import Target
from lgf.fit.target_assembly import make_target
from lgf.language.language import Language
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Candidate, Population
from lgf.search.decision import Decision, Tools, decide, simple_candidates, simplicity, unique
from lgf.search.evaluate import Evaluator, bounds_of
from lgf.search.hidden.equivalents import preferred
from lgf.search.loop import Mapper
from lgf.search.naive import a_naive_forecast_is_as_likely
from lgf.search.noise_growth import growth_about, reweighted
from lgf.search.noise_model import leaves_pattern, with_noise_model
from lgf.search.notes import Note, notes_on
from lgf.search.objective import Criterion
from lgf.search.prediction import continues, with_prediction
from lgf.search.select import choose, confirmed, finalists, penalty_of, refined, simplest_equal
from lgf.search.sensitivity import solved_columns
from lgf.search.settings import DiscoverySettings
from lgf.search.systems.nested import simplest_nested
from lgf.search.varying import vary_one
from lgf.search.verdict import Verdict, verdict_on
from lgf.smoothing.complete import Completion
from lgf.threads import Spread


@dataclass(frozen=True, eq=False)
class Conclusion:
    """The decision, what is to be said about it, and what it was based on."""

    decision: Decision
    verdict: Verdict
    notes: Sequence[Note]
    targets: Mapping[Frame, Target]
    growth: float | None  # of the noise with the signal; None = constant noise


def conclude(
    population: Population,
    problem: Problem,
    measured: Problem,
    completions: Sequence[Completion],
    evaluator: Evaluator,
    mapper: Mapper,
    spread: Spread,
    languages: Sequence[Language | SystemLanguage],
    settings: DiscoverySettings,
) -> Conclusion:
    """The conclusion from the candidates of a search. The paper's criterion chooses by its objective alone.

    `measured` is the problem before it was condensed. `mapper` maps fits, `spread` predictions.
    """
    selection, growth = settings.selection, None
    best_ones = finalists(population, evaluator, mapper, selection, languages)
    simpler: list[Candidate] = []
    by_length = settings.objective.criterion is Criterion.DESCRIPTION_LENGTH
    if by_length:
        simpler = simple_candidates(population, problem.n_samples, settings.prediction)
        pool = unique([*best_ones, *simpler])
        described = _described(pool, evaluator, settings)
        growing = _growing(best_ones[0], pool, problem, completions, evaluator, mapper, settings)
        if growing is not None and _shortest(growing.described) + math.log(problem.n_samples) < _shortest(described):
            problem, evaluator, best_ones, described = growing
            growth, pool, simpler = evaluator.growth, best_ones, []
        if problem.knowledge.vary == "auto":
            varied = vary_one(pool, evaluator.patient, mapper)
            best_ones, described = [*best_ones, *varied], [*described, *_described(varied, evaluator, settings)]
        if any(c.noise is not None for c in described):
            best_ones = described
        best_ones.sort(key=lambda c: c.objective)
    targets = evaluator.targets

    def accept(candidate: Candidate) -> bool:
        return confirmed(candidate, problem, targets[candidate.skeleton.frame], selection)

    def penalty(candidate: Candidate) -> float:
        return penalty_of(
            candidate, problem, targets[candidate.skeleton.frame], settings.objective.criterion, selection
        )

    best = choose(best_ones, accept, penalty, selection)
    if not by_length:
        equals = [c for c in best_ones if c.objective <= best.objective + selection.indistinguishable]
        verdict = verdict_on(best, measured)
        return Conclusion(Decision(best, tuple(equals), ()), verdict, (), targets, growth)

    def patterned(candidate: Candidate) -> bool:
        return leaves_pattern(candidate, targets[candidate.skeleton.frame])

    tools = Tools(
        lambda candidates: spread(
            lambda c: with_prediction(c, problem, completions, evaluator, settings.prediction), candidates
        ),
        lambda candidates: refined(candidates, evaluator, mapper),
        accept,
        targets[best.skeleton.frame].window,
        measured.variation,
        patterned,
        lambda c: continues(c, problem, targets[c.skeleton.frame]),
    )
    prediction = settings.prediction
    if problem.hidden:
        prediction = replace(prediction, refuted_above=settings.hidden.refuted_above)
        best = preferred(
            best_ones, best, targets, evaluator.patient.fit, selection.indistinguishable, settings.prediction
        )
    elif len(problem.states) > 1 or targets[best.skeleton.frame].n_unknown:
        # A term may only mend the error of a fitted initial value. (For systems the larger margin was not tried.)
        alone = len(problem.states) == 1
        margin = selection.indistinguishable if alone else selection.bare_mention
        best = simplest_nested(best_ones, best, margin, penalty)
    if best.noise is not None:
        # A drift has few independent values, and terms that follow it look useful.
        most = best.objective + penalty(best) + selection.correlated
        near = [c for c in best_ones if c.objective <= most and c.objective + penalty(c) <= most]
        near.sort(key=lambda c: simplicity(c, prediction))
        best = next((c for c in near if accept(c)), best)
    best = simplest_equal(best_ones, best, problem, targets, selection)
    decision = decide(best, best_ones, simpler, tools, prediction, selection.indistinguishable)
    exact = decision.best.loss <= selection.fully_explained * targets[decision.best.skeleton.frame].floor
    naive = not exact and a_naive_forecast_is_as_likely(
        [decision.best, *best_ones], problem, completions, evaluator, patterned
    )
    verdict = verdict_on(decision.best, measured, patterned, naive, prediction)
    notes = notes_on(decision.best, decision.prediction_front, verdict, measured, growth, prediction)
    return Conclusion(decision, verdict, notes, targets, growth)


class _Growing(NamedTuple):
    """What follows if the noise grows with the signal."""

    problem: Problem  # with weights
    evaluator: Evaluator
    pool: list[Candidate]  # refitted
    described: list[Candidate]  # under the noise that their residuals show


def _growing(
    leader: Candidate, pool: Sequence[Candidate], problem: Problem, completions: Sequence[Completion],
    evaluator: Evaluator, mapper: Mapper, settings: DiscoverySettings,
) -> _Growing | None:  # fmt: skip
    """The candidates under noise that grows with the signal; None if the leader's residuals do not show it."""
    target, frame = evaluator.targets[leader.skeleton.frame], leader.skeleton.frame
    if leader.fit.segments > 1 or leader.loss <= settings.fit.accuracy**2 + target.rounding_loss:
        return None  # what is left is the error of solutions, or of the starts of segments
    curves = solved_columns(leader, target)
    grows = None if curves is None else growth_about(problem, frame, curves.T, smoothed=False)
    if grows is None:
        return None
    weighted = reweighted(problem, frame, grows[1])
    judge = replace(evaluator, targets=_targets(weighted, completions, settings), growth=grows[0])
    refitted = _refitted(pool, judge, mapper)
    return _Growing(weighted, judge, refitted, _described(refitted, judge, settings))


def _shortest(candidates: Sequence[Candidate]) -> float:
    return min(c.objective for c in candidates)


def _described(candidates: Sequence[Candidate], evaluator: Evaluator, settings: DiscoverySettings) -> list[Candidate]:
    targets, known = evaluator.targets, evaluator.knowledge
    return [
        with_noise_model(c, targets[c.skeleton.frame], settings.noise, bounds_of(c.skeleton, known)) for c in candidates
    ]


def _targets(problem: Problem, completions: Sequence[Completion], settings: DiscoverySettings) -> dict[Frame, Target]:
    accuracy = settings.fit.accuracy
    return {frame: make_target(problem, frame, completions, accuracy=accuracy) for frame in problem.frames}


def _refitted(candidates: Sequence[Candidate], evaluator: Evaluator, mapper: Mapper) -> list[Candidate]:
    """The candidates fitted to other weights, from their own constants."""
    return mapper(evaluator.patient, [replace(c.proposal, start=c.fit.values) for c in candidates])
