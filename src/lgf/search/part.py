"""The search on a part of the data: a few of many experiments, the first of many oscillations of a system.

A fit to 96 wells takes twelve times as long as one to eight, and eight that differ as much as all do tell good
equations from bad ones. So do twenty of sixty oscillations. The finalists are fitted to all.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.data.representatives import part_of, representatives
from lgf.fit.target_assembly import make_target
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.decision import simple_candidates, unique
from lgf.search.evaluate import Evaluator
from lgf.search.loop import Mapper
from lgf.search.settings import DiscoverySettings
from lgf.smoothing.complete import Completion
from lgf.solver.trajectory import Trajectory

_SWING = 0.3  # of the standard deviation of a curve; a smaller one is no oscillation


class Searched(NamedTuple):
    """What is searched: the whole problem, or a part of it."""

    problem: Problem
    completions: Sequence[Completion]
    evaluator: Evaluator
    share: float = 1.0  # of the samples of its experiments


def part_to_search(whole: Searched, settings: DiscoverySettings) -> Searched:
    """The part on which equations are searched; the whole if it is small, or has a hidden state."""
    if whole.problem.hidden:
        return whole
    return _first_oscillations(_few_experiments(whole, settings), settings)


def _few_experiments(whole: Searched, settings: DiscoverySettings) -> Searched:
    """The problem with representatives of many experiments."""
    n = len(whole.problem.observations)
    if n <= settings.search.many_experiments:
        return whole
    some = representatives(whole.problem, settings.search.few_experiments)
    if len(some) == n:
        return whole
    return _part(whole, part_of(whole.problem, some), tuple(whole.completions[e] for e in some), settings)


def _first_oscillations(whole: Searched, settings: DiscoverySettings) -> Searched:
    """A long record of a system, up to the turning points that are enough."""
    problem, completions, limits = whole.problem, whole.completions, settings.search
    total = sum(len(o) for o in problem.observations)
    if len(problem.states) == 1 or total <= limits.long_record:
        return whole
    turns = [_turns(c.trajectory.values[:, : len(problem.states)]) for c in completions]
    lengths = [
        own[min(limits.enough_turns, limits.many_turns)] if len(own) > limits.many_turns else len(o)
        for own, o in zip(turns, problem.observations, strict=True)
    ]
    if sum(lengths) == total:
        return whole
    first = replace(
        problem, observations=tuple(_first(o, n) for o, n in zip(problem.observations, lengths, strict=True))
    )
    own = tuple(_first_of(c, n) for c, n in zip(completions, lengths, strict=True))
    return _part(whole, first, own, settings)._replace(share=sum(lengths) / total)


def _part(
    whole: Searched, problem: Problem, completions: Sequence[Completion], settings: DiscoverySettings
) -> Searched:
    accuracy = settings.fit.accuracy
    targets = {
        frame: make_target(problem, frame, completions, all_modes=settings.all_modes, accuracy=accuracy)
        for frame in whole.evaluator.targets
    }
    return Searched(problem, completions, replace(whole.evaluator, targets=targets, of_part=True))


def _first(observation: Observation, n: int) -> Observation:
    weights = None if observation.weights is None else observation.weights[:n]
    return replace(observation, t=observation.t[:n], values=observation.values[:n], weights=weights)


def _first_of(completion: Completion, n: int) -> Completion:
    whole = completion.trajectory
    inputs = {name: values[:n] for name, values in whole.inputs.items()}
    return replace(completion, trajectory=Trajectory(whole.t[:n], whole.values[:n], whole.variables, inputs))


def _turns(curves: np.ndarray) -> list[int]:
    """The samples at which the curve that turns most often does so, by a part of its spread each time."""
    return max((turning_points(curve, _SWING * float(np.std(curve))) for curve in curves.T), key=len)


def turning_points(curve: np.ndarray, least: float) -> list[int]:
    """The samples at which a curve turns back by more than `least`.

    >>> turning_points(np.array([0.0, 3.0, 2.9, 5.0, 0.0, 1.0]), 0.5)
    [3, 4]
    """
    turns: list[int] = []
    low = high = direction = 0
    for i, value in enumerate(curve):
        low, high = (i if value < curve[low] else low), (i if value > curve[high] else high)
        if direction >= 0 and value < curve[high] - least:
            turns += [high] if direction else []
            direction, low = -1, i
        elif direction <= 0 and value > curve[low] + least:
            turns += [low] if direction else []
            direction, high = 1, i
    return turns


def fitted_to_all(
    population: Population, whole: Searched, share: float, mapper: Mapper, settings: DiscoverySettings
) -> Population:
    """The best and the simple candidates of a search on a part with this share, fitted to all from their constants."""
    best = population.best(settings.selection.n_finalists)
    chosen = unique([*best, *simple_candidates(population, whole.problem.n_samples, settings.prediction)])
    proposals = [_from(c, share) for c in chosen]
    evaluator = whole.evaluator.patient if share < 1.0 else replace(whole.evaluator, refining=True)
    return Population(mapper(evaluator, proposals))


def _from(candidate: Candidate, share: float) -> Proposal:
    """The proposal, started from the constants; a longer record has more segments, as long as those of the part.

    They start from the smoothed states, which are rougher than fitted ones, so half as long ones come first.
    """
    shooting = candidate.proposal.shooting
    if shooting is not None:
        count = math.ceil(candidate.fit.segments / share)
        segments = (2 * count, count) if share < 1.0 else (count,)
        shooting = replace(shooting, segments=segments, initial=None)
    return replace(candidate.proposal, start=candidate.fit.values, shooting=shooting)
