"""One worker beside two: `python -m benchmarks.speed_workers`, by the clock, because that is what workers shorten.

A search of a system with one and with two threads, and discoveries of Benchmark 3 with two threads and with a Dask
cluster of two processes. The ways alternate, and the shortest time of each counts: other programs only make it longer.
Where others keep the machine busy, the serial share tells more: the processor time of the thread that asks the others.
"""

import json
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext

import joblib
from threadpoolctl import threadpool_limits

from benchmarks.choosing import chosen
from benchmarks.odebench import systems
from benchmarks.recording import RESULTS
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.problem import Problem
from lgf.grammar import Grammar, load_grammar
from lgf.runs.presets import proposers_for
from lgf.search.discover import discover
from lgf.search.systems.language import GRAMMAR
from lgf.threads import on_threads

SYSTEM, NOISE = 56, 0.05  # the Lorenz system of ODEBench
FILE = RESULTS / "speed_workers.json"


def measure(repetitions: int = 3) -> dict[str, float]:
    """The seconds of each way, and their ratios."""
    with threadpool_limits(limits=1):
        system = next(s for s in systems() if s.number == SYSTEM)
        data, grammar = system.observe(NOISE, 0), load_grammar(GRAMMAR)
        one, two = _alternating(
            [lambda jobs=jobs: _answer(data, grammar, jobs) for jobs in (1, 2)], repetitions
        )  # fmt: skip
        serial = _serial_share(lambda: _answer(data, grammar, 2))
        threads, processes = _threads_and_processes(repetitions)
    return {
        "system_one_thread_s": one, "system_two_threads_s": two, "system_ratio": one / two,
        "system_serial_share": serial,
        "b3_threads_s": threads, "b3_processes_s": processes, "b3_ratio": processes / threads,
    }  # fmt: skip


def _threads_and_processes(repetitions: int) -> list[float]:
    from distributed import Client, LocalCluster

    grammar = load_grammar("standard")
    problems = [named.observe() for named in chosen("b3")]

    def discoveries(backend) -> None:
        with backend:
            for problem in problems:
                _answer(problem, grammar, 2)

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        ways = [lambda: discoveries(nullcontext()), lambda: discoveries(joblib.parallel_config("dask"))]
        return _alternating(ways, repetitions)


def _serial_share(work: Callable[[], None]) -> float:
    """The share of the processor time that this thread takes."""
    whole, own = time.process_time(), time.thread_time()
    work()
    return (time.thread_time() - own) / (time.process_time() - whole)


def _answer(problem: Problem, grammar: Grammar, jobs: int) -> None:
    with on_threads(jobs) as spread:
        discover(problem, grammar, proposers=proposers_for(grammar), spread=spread)


def _alternating(ways: list[Callable[[], None]], repetitions: int) -> list[float]:
    """The shortest time of each way, after one round that loads the kernels."""
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(1 + repetitions):
        for way, own in zip(ways, times, strict=True):
            began = time.perf_counter()
            way()
            own.append(time.perf_counter() - began)
    return [min(own[1:]) for own in times]


if __name__ == "__main__":
    load, figures = load_average(), measure(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    facts = figures | {"system": SYSTEM, "load": load, "machine": machine(), "versions": versions()}
    FILE.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(facts, indent=1))
