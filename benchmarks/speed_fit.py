"""Speed of the fit: against SciPy, in candidates per second, and on two threads."""

import json
import sys
import time
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.choosing import chosen, true_skeleton
from benchmarks.odebench import systems
from benchmarks.problems import frame_of, problem_named
from benchmarks.scipy_path import FAILED, fit_by_scipy
from benchmarks.timing import best_time
from lgf.data.problem import Problem
from lgf.fit.constants import fit_constants
from lgf.fit.target import Target
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.language.language import make_language
from lgf.search.candidate import Proposal
from lgf.search.discover import discover
from lgf.search.evaluate import Evaluator
from lgf.search.loop import joblib_map
from lgf.search.proposers.basic import MonteCarloProposer
from lgf.search.systems.language import GRAMMAR
from lgf.smoothing.complete import complete
from lgf.threads import on_threads


def target_of(problem: Problem, order: int) -> Target:
    """The target of candidates of this order."""
    frame = frame_of(problem, order)
    completions = [complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)]
    return make_target(problem, frame, completions)


def against_scipy(only: str | None = None) -> list[dict]:
    """Per true system of Benchmark 3: processor milliseconds and loss reached, here and by the SciPy path.

    SciPy gets the operator form, C*u'' + C*u' + ... = F: with C = 1 throughout its start is stable, while the explicit
    form would blow up at once and never be fitted.
    """
    rows = []
    for named in chosen(only, ["b3"]):
        data, skeleton = named.observe(), true_skeleton(named)
        target = target_of(data, named.order)
        fit = fit_constants(skeleton, target)
        ours = best_time(lambda s=skeleton, t=target: fit_constants(s, t))
        began = time.process_time()
        theirs = fit_by_scipy(named.true_equation().skeleton, data)
        seconds = time.process_time() - began
        rows.append(
            {
                "problem": named.id,
                "fit_ms": 1e3 * ours,
                "scipy_ms": 1e3 * seconds,
                "ratio": seconds / ours,
                "loss": fit.loss,
                "scipy_loss": theirs.loss,
                "completed": theirs.loss < FAILED,  # a search that never solves a trajectory is fast but useless
                "scipy_evaluations": theirs.evaluations,
            }
        )
    return rows


def draws(grammar: str, problem: Problem, target: Target, n: int, seed: int = 0) -> list[Proposal]:
    """The first n Monte Carlo samples that give an equation of the problem."""
    proposer = MonteCarloProposer([make_language(load_grammar(grammar), problem, target.frame, target.ranges)], seed)
    found: list[Proposal] = []
    while len(found) < n:
        found += proposer.ask(n)
    return found[:n]


def mix(grammar: str, n: int, problem: str = "b3/duffing") -> dict[str, float]:
    """Candidates per second on one core over a Monte Carlo mix, and the spread of their times in milliseconds."""
    data = problem_named(problem).observe()
    target = target_of(data, problem_named(problem).order)
    proposals = draws(grammar, data, target, n)
    fits = (lambda p=p: fit_constants(p.skeleton, target) for p in proposals)
    times = np.array([best_time(fit, repetitions=2) for fit in fits])
    low, high, highest = np.percentile(1e3 * times, [50, 99, 99.9])
    return {
        "candidates": n,
        "per_second": n / float(times.sum()),
        "p50_ms": float(low),
        "p99_ms": float(high),
        "p99.9_ms": float(highest),
        "max_ms": float(1e3 * times.max()),
    }


def joint(number: int, noise: float = 0.05) -> dict[str, float]:
    """Fits a second, segments included, of all systems that the search for a system of ODEBench tries, on one core."""
    system = next(s for s in systems() if s.number == number)
    found = discover(system.observe(noise, 0), load_grammar(GRAMMAR))
    evaluator = Evaluator(found.targets, found.problem.knowledge)
    proposals = [candidate.proposal for candidate in found.population]
    times = np.array([best_time(lambda p=p: evaluator(p), repetitions=2) for p in proposals])
    return {
        "states": len(system.rhs), "fits": len(proposals), "per_second": len(proposals) / float(times.sum()),
        "p50_ms": 1e3 * float(np.median(times)), "max_ms": 1e3 * float(times.max()),
    }  # fmt: skip


def two_threads(n: int = 400, repetitions: int = 3) -> float:
    """The wall-clock speed-up of two threads over one on the Benchmark 3 mix."""
    data = problem_named("b3/duffing").observe()
    target = target_of(data, 2)
    proposals = draws("b3", data, target, n)
    evaluator = Evaluator({target.frame: target})
    one, two = (_wall_time(evaluator, proposals, jobs, repetitions) for jobs in (1, 2))
    return one / two


def _wall_time(evaluator: Evaluator, proposals: Sequence[Proposal], jobs: int, repetitions: int) -> float:
    times = []
    with threadpool_limits(limits=1), on_threads(jobs) as spread:
        mapper = joblib_map(spread)
        for _ in range(repetitions):
            began = time.perf_counter()
            mapper(evaluator, proposals)
            times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        json.dump(against_scipy(), sys.stdout, indent=1)
