"""The search on a few of many experiments: a fit to a plate of 96 wells takes twelve times as long as one to eight.

Eight experiments that differ as much as all do tell good equations from bad ones. The finalists are fitted to all.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lgf.data.problem import Problem
from lgf.data.representatives import part_of, representatives
from lgf.fit.target import make_target
from lgf.search.candidate import Population, Proposal
from lgf.search.decision import simple_candidates, unique
from lgf.search.evaluate import Evaluator
from lgf.search.loop import Mapper
from lgf.search.settings import DiscoverySettings
from lgf.smoothing.complete import Completion


class Searched(NamedTuple):
    """What is searched: the whole problem, or some of its experiments."""

    problem: Problem
    completions: Sequence[Completion]
    evaluator: Evaluator


def few_experiments(whole: Searched, settings: DiscoverySettings) -> Searched:
    """The problem with representatives of many experiments; the whole if there are few, or a hidden state."""
    problem, completions, evaluator = whole
    n = len(problem.observations)
    if n <= settings.search.many_experiments or problem.hidden:
        return whole
    some = representatives(problem, settings.search.few_experiments)
    if len(some) == n:
        return whole
    part, own = part_of(problem, some), tuple(completions[e] for e in some)
    accuracy = settings.fit.accuracy * settings.fit.rtol
    targets = {
        frame: make_target(part, frame, own, all_modes=settings.all_modes, accuracy=accuracy)
        for frame in evaluator.targets
    }
    return Searched(part, own, replace(evaluator, targets=targets, of_part=True))


def fitted_to_all(
    population: Population, evaluator: Evaluator, mapper: Mapper, n_samples: int, settings: DiscoverySettings
) -> Population:
    """The best and the simple candidates of a search on a few experiments, fitted to all from their constants."""
    best = population.best(settings.selection.n_finalists)
    chosen = unique([*best, *simple_candidates(population, n_samples, settings.prediction)])
    proposals = [_from(c.proposal, c.fit.values) for c in chosen]
    return Population(mapper(replace(evaluator, refining=True), proposals))


def _from(proposal: Proposal, values: tuple[float, ...]) -> Proposal:
    """The proposal, started from these constants; initial values of segments belong to the few experiments."""
    shooting = None if proposal.shooting is None else replace(proposal.shooting, initial=None)
    return replace(proposal, start=values, shooting=shooting)
