"""The outer loop: propose, fit, add to the population, until the budget is spent or the search converges."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated

from pydantic import Field

from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.proposers.basic import Proposer
from lgf.settings.ranges import Count, Share, Weight
from lgf.stopping import StopToken
from lgf.threads import Spread, alone

_CHUNK = 8  # most fits of a job
_WORTH_SENDING = 0.2  # seconds; to send a batch to other processes and its candidates back takes a good part of them
_USUAL_FIT = 0.005  # seconds
_AS_GOOD = 10.0  # units of description length: more than any set of equations that count as equal is wide


@dataclass(frozen=True)
class SearchSettings:
    """Batches, budgets and the end of the search.

    The search has settled when the best objective has not fallen for `patience` evaluations, nor for `persistence`
    times as many as it took to find it: what was found late may be followed by more. While the best equation leaves
    more than the noise or is refuted by its predictions, both are multiplied by `doubt`. The two tolerances are the
    paper's convergence criteria.
    """

    first: Count = 8  # proposals of the first iteration
    growth: Weight = 0.25  # a later iteration has this share of the evaluations so far, and at least `first`
    population: Count = 100  # most proposals of an iteration
    iterations: Count | None = None
    max_evaluations: Count | None = 1200
    max_seconds: float | None = None
    patience: Count | None = 100  # None = the search never settles
    persistence: Weight = 2.0
    doubt: Annotated[float, Field(ge=1.0)] = 3.0
    top_share: Share = 0.1  # top-k is this share of the population
    unique_tolerance: Weight = 0.1
    top_tolerance: Weight = 0.01
    many_experiments: Count = 20  # of more than these, equations are searched on a few, and the finalists fitted to all
    few_experiments: Count = 8
    long_record: Count = 1000  # samples of a system; a longer one with many turning points is searched on the first
    many_turns: Count = 60
    enough_turns: Count = 40
    most_asks: Count = 4  # calls of a proposer per iteration, while it repeats known structures

    def batch(self, evaluations: int) -> int:
        """The number of proposals of the iteration after this many evaluations."""
        return min(self.population, max(self.first, int(self.growth * evaluations)))

    def settled(self, evaluations: int, improved: int, doubtful: bool) -> float:
        """How far the search has settled, from 0 to 1; `improved` is the evaluation of the last improvement."""
        if self.patience is None:
            return 0.0
        needed = max(self.patience, self.persistence * improved) * (self.doubt if doubtful else 1.0)
        return min((evaluations - improved) / needed, 1.0)


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
    settled: float  # from 0 to 1; the search ends at 1


Progress = Callable[[Iteration, Population], None]
Mapper = Callable[[Evaluator, Sequence[Proposal]], list[Candidate]]


def joblib_map(spread: Spread = alone) -> Mapper:
    """A mapper: threads of this process, or the backend set by joblib.parallel_config for batches worth sending."""
    n_jobs, fit_seconds = spread.n_jobs, _USUAL_FIT

    def run(evaluator: Evaluator, proposals: Sequence[Proposal]) -> list[Candidate]:
        nonlocal fit_seconds
        if n_jobs == 1 or len(proposals) < 2:
            return [evaluator(p) for p in proposals]
        from joblib import Parallel, delayed, effective_n_jobs  # imported late: one worker needs none of it
        from joblib.parallel import get_active_backend

        shared = getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False)
        if shared or len(proposals) * fit_seconds < _WORTH_SENDING:
            began = time.perf_counter()
            candidates = spread(evaluator, proposals)
            fit_seconds = (time.perf_counter() - began) / len(proposals)
            return candidates
        # Processes get several fits at a time, because each time the data are sent along.
        size = max(1, min(_CHUNK, -(-len(proposals) // effective_n_jobs(n_jobs))))
        chunks = [proposals[i : i + size] for i in range(0, len(proposals), size)]
        parts: Iterable[list[Candidate]] = Parallel(n_jobs=n_jobs)(
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
    doubtful: Callable[[Candidate], bool] = lambda candidate: False,
    stop: StopToken | None = None,
) -> tuple[Population, list[Iteration]]:
    """(population of all candidates, history).

    `proposers` are pairs (proposer, iterations), used one after the other. The last one is used until the search ends.
    `doubtful` tells whether predictions refute a candidate; it is asked about the best one when the search would end.
    `stop` ends the search early; time that is up does so after the first candidate.
    """
    population = Population() if population is None else population
    mapper = mapper or joblib_map()
    stop = stop or StopToken()
    started = time.monotonic()
    evaluations, considered, history = 0, 0, []
    schedule = [proposer for proposer, times in proposers for _ in range(times)]
    improved, doubted = 0, _Doubt(doubtful)

    def over() -> bool:
        return stop.asked or (stop.out_of_time and len(population) > 0)

    for number in count() if settings.iterations is None else range(settings.iterations):
        proposer = schedule[number] if number < len(schedule) else proposers[-1][0]
        planned = getattr(proposer, "in_batches", False)
        n = settings.population if planned else settings.batch(considered)
        if settings.max_evaluations is not None:
            n = min(n, settings.max_evaluations - evaluations)
        if n <= 0 or over():
            break
        fitted: list[Candidate] = []
        seen = 0  # proposals, those without hope too
        # A proposer whose proposals depend on the fits of the last ones makes several batches in an iteration.
        while seen < n and (not seen or planned) and not over():
            proposer.tell(population)
            batch = _new_proposals(proposer, population, n - seen, settings.most_asks, evaluator.admit)
            if not batch:
                break
            seen += len(batch)
            candidates = mapper(evaluator, _hopeful(batch, population, evaluator))
            for candidate in candidates:
                population.add(candidate)
            fitted += candidates
        last = history[-1] if history else None
        top = population.best(max(1, int(settings.top_share * settings.population)))
        objectives = [c.objective for c in top]
        best, mean = min(objectives, default=0.0), sum(objectives) / max(len(objectives), 1)
        if last is None or best < last.best:
            improved = considered + _place_of_best(fitted)
        evaluations += len(fitted)
        considered += seen
        settled = 0.0 if planned else settings.settled(considered, improved, doubtful=False)
        if settled == 1.0 and top and doubted(top[0]):
            settled = settings.settled(considered, improved, doubtful=True)
        seconds = time.monotonic() - started
        history.append(
            Iteration(number, type(proposer).__name__, len(fitted), evaluations, seconds, best, mean, settled)
        )
        if progress is not None:
            progress(history[-1], population)
        few_new = seen <= settings.unique_tolerance * n
        stagnant = last is not None and not _improved(last.top, mean, settings.top_tolerance)
        if number + 1 >= len(schedule) and ((few_new and stagnant) or settled == 1.0):
            break
    return population, history


def _hopeful(batch: Sequence[Proposal], population: Population, evaluator: Evaluator) -> list[Proposal]:
    """The proposals that could be as good as the best candidate if they fitted perfectly.

    Without noise the best one does fit perfectly, and only simpler equations are worth a fit.
    """
    least = min((c.objective for c in population), default=math.inf)
    return [p for p in batch if evaluator.least_objective(p) < least + _AS_GOOD]


def _place_of_best(candidates: Sequence[Candidate]) -> int:
    """The number of candidates up to and with the best one."""
    objectives = [c.objective for c in candidates]
    return objectives.index(min(objectives)) + 1 if objectives else 0


class _Doubt:
    """Whether a candidate is doubtful; the last answer is remembered, because it takes several fits."""

    def __init__(self, doubtful: Callable[[Candidate], bool]):
        self._doubtful = doubtful
        self._asked: Candidate | None = None
        self._answer = False

    def __call__(self, candidate: Candidate) -> bool:
        if candidate is not self._asked:
            self._asked, self._answer = candidate, self._doubtful(candidate)
        return self._answer


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
