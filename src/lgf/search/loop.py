"""The outer loop: propose, fit, add to the population, until the budget is spent or the search converges."""

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
    """Budgets and the paper's convergence criteria of the outer loop."""

    population: Count = 100
    iterations: Count = 12
    max_evaluations: Count | None = None
    max_seconds: float | None = None
    top_share: Share = 0.1  # top-k is this share of the population
    unique_tolerance: Weight = 0.1
    top_tolerance: Weight = 0.01
    patience: Tally | None = 4  # iterations without a better objective before the search ends; None = no limit
    most_asks: Count = 4  # calls of a proposer per iteration, while it repeats known structures


@dataclass(frozen=True)
class Iteration:
    """Statistics of one iteration."""

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
    """A joblib mapper: threads by default, or the backend set by joblib.parallel_config."""

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
    """(population of all candidates, history).

    `proposers` are pairs (proposer, iterations), used one after the other. The last one is used until the search ends.
    """
    population = Population() if population is None else population
    mapper = mapper or joblib_map()
    started, evaluations, history = time.monotonic(), 0, []
    schedule = [proposer for proposer, count in proposers for _ in range(count)]
    stalled = 0
    for number in range(settings.iterations):
        proposer = schedule[number] if number < len(schedule) else proposers[-1][0]
        n = settings.population
        if settings.max_evaluations is not None:
            n = min(n, settings.max_evaluations - evaluations)
        out_of_time = settings.max_seconds is not None and time.monotonic() - started > settings.max_seconds
        if n <= 0 or (out_of_time and len(population)):
            break
        fresh: list[Proposal] = []
        fitted: list[Candidate] = []
        # A proposer whose proposals depend on the fits of the last ones makes several batches in an iteration.
        while len(fresh) < n and (not fresh or getattr(proposer, "in_batches", False)):
            proposer.tell(population)
            batch = _new_proposals(proposer, population, n - len(fresh), settings.most_asks, evaluator.admit)
            if not batch:
                break
            candidates = mapper(evaluator, batch)
            for candidate in candidates:
                population.add(candidate)
            fresh, fitted = fresh + batch, fitted + candidates
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
        few_new = len(fresh) <= settings.unique_tolerance * settings.population
        stagnant = last is not None and not _improved(last.top, history[-1].top, settings.top_tolerance)
        stalled = 0 if last is None or history[-1].best < last.best else stalled + 1
        exhausted = settings.patience is not None and stalled >= settings.patience
        if number + 1 >= len(schedule) and ((few_new and stagnant) or exhausted):
            break
    return population, history


def _improved(before: float, now: float, tolerance: float) -> bool:
    """Whether the objective fell by more than the tolerance. Any finite value improves on an infinite one."""
    return now < before if math.isinf(before) else now < before - tolerance * abs(before)


def _new_proposals(
    proposer: Proposer, population: Population, n: int, most_asks: int, admit: Callable[[Proposal], Proposal | None]
) -> list[Proposal]:
    """Up to `n` proposals, admitted by what is known, with structures not tried before."""
    fresh: list[Proposal] = []
    for _ in range(most_asks):
        proposals = proposer.ask(n - len(fresh))
        if not proposals:
            break
        for proposal in filter(None, map(admit, proposals)):
            if len(fresh) < n and (population.claim(proposal.skeleton.structure) or proposal.again):
                fresh.append(proposal)
        if len(fresh) == n:
            break
    return fresh
