"""Choosing the equation: finalists refitted and pruned, held-out experiments, and what the data cannot tell apart."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lgf.data.observation import Problem
from lgf.data.smoothing import Completion
from lgf.discovery.candidate import Candidate, Population
from lgf.discovery.constants import fit_constants
from lgf.discovery.evaluation import Evaluator, bounds_of
from lgf.discovery.search import Mapper
from lgf.discovery.target import Target, make_target

INDISTINGUISHABLE = 6.0  # units of description length


def finalists(population: Population, evaluator: Evaluator, mapper: Mapper, n: int) -> list[Candidate]:
    """The n best candidates, refitted patiently, best first; a refit that came out worse does not count."""
    chosen = population.best(n)
    patient = evaluator.refined()
    again = mapper(patient, [c.proposal for c in chosen])
    polished = mapper(patient, [replace(c.proposal, start=c.fit.values) for c in chosen])
    best = [min(triple, key=lambda c: c.objective) for triple in zip(chosen, again, polished, strict=True)]
    for candidate in best:
        population.add(candidate)
    return sorted(best, key=lambda c: c.objective)


def held_out_losses(
    candidates: Sequence[Candidate], problem: Problem, completions: Sequence[Completion], evaluator: Evaluator
) -> list[Candidate]:
    """The candidates with the loss on each experiment in turn, fitted to the others (leave one out).

    The initial state of the experiment left out, where it is not given, is the only thing fitted to it.
    """
    n = len(problem.observations)
    judged = []
    for candidate in candidates:
        order = candidate.skeleton.order
        total = power = 0.0
        for e in range(n):
            others = [i for i in range(n) if i != e]
            fit = fit_constants(
                candidate.skeleton, _part(problem, completions, order, others), evaluator.fit,
                bounds=bounds_of(candidate.skeleton, evaluator.knowledge), start=candidate.fit.values,
            )  # fmt: skip
            target = _part(problem, completions, order, [e])
            fixed = np.array([[v, v] for v in fit.values]).reshape(-1, 2)
            held = fit_constants(candidate.skeleton, target, evaluator.fit, bounds=fixed, start=fit.values)
            total += min(held.loss, 100.0) * target.power
            power += target.power
        judged.append(replace(candidate, held_out=total / power))
    return judged


def _part(problem: Problem, completions: Sequence[Completion], order: int, experiments: Sequence[int]) -> Target:
    part = Problem(tuple(problem.observations[i] for i in experiments), problem.knowledge)
    return make_target(part, order, [completions[i] for i in experiments])


def choose(candidates: Sequence[Candidate], n_samples: int) -> Candidate:
    """The candidate of smallest objective; where experiments were held out, their loss takes the place of the fit's."""

    def worth(candidate: Candidate) -> float:
        if candidate.held_out is None or not math.isfinite(candidate.loss):
            return candidate.objective
        return candidate.objective + n_samples * math.log(max(candidate.held_out, 1e-16) / max(candidate.loss, 1e-16))

    return min(candidates, key=worth)


def indistinguishable(candidates: Sequence[Candidate], best: Candidate, units: float = INDISTINGUISHABLE):
    """The candidates whose objective is within a few units of the best: the data cannot tell them apart."""
    return [c for c in candidates if c.objective <= best.objective + units]
