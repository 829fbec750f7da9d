"""The outer loop: ask, fit, keep, tell, until the budget is spent or nothing new comes."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from joblib import Parallel, delayed

from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.proposers.basic import Proposer
from lgf.settings.ranges import Count, Share, Tally, Weight


@dataclass(frozen=True)
class SearchSettings:
    """Budgets and convergence of the outer loop; the convergence criteria are the paper's."""

    population: Count = 100
    iterations: Count = 12
    max_evaluations: Count | None = None
    max_seconds: float | None = None
    top_share: Share = 0.1  # top-k is this share of the population
    unique_tolerance: Weight = 0.1
    top_tolerance: Weight = 0.01
    patience: Tally | None = 4  # iterations in a row without a better best before the search ends; None = no limit
    most_asks: Count = 4  # how often a proposer is asked again when its proposals were known already


@dataclass(frozen=True)
class Iteration:
    """What one iteration did."""

    number: int
    origin: str
    new: int
    evaluations: int  # in total so far
    seconds: float
    best: float
    top: float  # mean objective of the top k


Progress = Callable[[Iteration, Population], None]
Mapper = Callable[[Evaluator, Sequence[Proposal]], list[Candidate]]


def joblib_map(n_jobs: int = 1) -> Mapper:
    """A mapper over joblib: threads by default, or whatever backend joblib.parallel_config has set."""

    def run(evaluator: Evaluator, proposals: Sequence[Proposal]) -> list[Candidate]:
        if n_jobs == 1:
            return [evaluator(p) for p in proposals]
        chunks = [proposals[i : i + 8] for i in range(0, len(proposals), 8)]
        parts: Iterable[list[Candidate]] = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_evaluate_all)(evaluator, chunk) for chunk in chunks
        )  # type: ignore[assignment]
        return [candidate for part in parts for candidate in part]

    return run


def _evaluate_all(evaluator: Evaluator, proposals: Sequence[Proposal]) -> list[Candidate]:
    return [evaluator(p) for p in proposals]


def search(
    evaluator: Evaluator,
    proposers: Sequence[tuple[Proposer, int]],
    settings: SearchSettings = SearchSettings(),
    population: Population | None = None,
    mapper: Mapper | None = None,
    progress: Progress | None = None,
) -> tuple[Population, list[Iteration]]:
    """(everything evaluated, the history).

    proposers are pairs (proposer, iterations): each is asked for as many iterations as stated before the next one
    takes over; the last one goes on until the search ends.
    """
    population = Population() if population is None else population
    mapper = mapper or joblib_map()
    started, evaluations, history = time.monotonic(), 0, []
    schedule = [proposer for proposer, count in proposers for _ in range(count)]
    unmoved = 0
    for number in range(settings.iterations):
        proposer = schedule[number] if number < len(schedule) else proposers[-1][0]
        wanted = settings.population
        if settings.max_evaluations is not None:
            wanted = min(wanted, settings.max_evaluations - evaluations)
        late = settings.max_seconds is not None and time.monotonic() - started > settings.max_seconds
        if wanted <= 0 or (late and len(population)):
            break
        proposer.tell(population)
        fresh = _fresh(proposer, population, wanted, settings.most_asks)
        fitted = mapper(evaluator, fresh)
        for candidate in fitted:
            population.add(candidate)
        evaluations += len(fitted)
        k = max(1, int(settings.top_share * settings.population))
        top = [c.objective for c in population.best(k)]
        last = history[-1] if history else None
        history.append(
            Iteration(
                number,
                type(proposer).__name__,
                len(fitted),
                evaluations,
                time.monotonic() - started,
                min(top, default=0.0),
                sum(top) / max(len(top), 1),
            )
        )
        if progress is not None:
            progress(history[-1], population)
        few = len(fresh) <= settings.unique_tolerance * settings.population
        stagnant = last is not None and not _improved(last.top, history[-1].top, settings.top_tolerance)
        unmoved = 0 if last is None or history[-1].best < last.best else unmoved + 1
        tired = settings.patience is not None and unmoved >= settings.patience
        if number + 1 >= len(schedule) and ((few and stagnant) or tired):
            break
    return population, history


def _improved(before: float, now: float, tolerance: float) -> bool:
    """Whether the objective fell by more than the tolerance; every finite one is better than an infinite one."""
    return now < before if math.isinf(before) else now < before - tolerance * abs(before)


def _fresh(proposer: Proposer, population: Population, wanted: int, most_asks: int) -> list[Proposal]:
    """Up to `wanted` proposals whose structures were never tried."""
    fresh: list[Proposal] = []
    for _ in range(most_asks):
        asked = proposer.ask(wanted - len(fresh))
        if not asked:
            break
        for proposal in asked:
            if len(fresh) < wanted and population.claim(proposal.skeleton.structure):
                fresh.append(proposal)
        if len(fresh) == wanted:
            break
    return fresh
