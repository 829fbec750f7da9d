"""Where the processor time of a discovery goes: `python -m benchmarks.speed_profile`."""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.odebench import systems
from benchmarks.problems import problem_named
from lgf.data.problem import Problem
from lgf.grammar import load_grammar
from lgf.paper.discovery.proposer import FlowProposer
from lgf.runs.presets import proposers_for
from lgf.search import conclusion, discover, evaluate, loop
from lgf.search.proposers import missing_terms
from lgf.search.proposers.basic import MixedProposer
from lgf.search.systems.language import GRAMMAR

PARTS = {
    "smoothing": [(discover, "complete")],
    "grammar and proposers": [(discover, "make_language"), (discover, "system_language"), (discover, "make_schedule")],
    "ranking of missing terms": [(missing_terms, "moves"), (missing_terms, "TermColumns")],
    "networks of the flow": [(FlowProposer, "tell"), (FlowProposer, "ask")],
    "proposing": [(MixedProposer, "tell"), (loop, "_new_proposals")],
    "fits": [(evaluate, "fit_constants")],
    "predictions": [(discover, "with_prediction"), (conclusion, "with_prediction")],
    "noise models": [(conclusion, "with_noise_model"), (conclusion, "growth_about")],
    "choice, without the above": [(discover, "conclude")],
}
REST = "the rest: stability, objective, order of the population"


class _Clock:
    """Processor seconds of each part, without those of the parts that it calls."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._open = [REST]
        self._since = time.process_time()

    def switch(self) -> None:
        now = time.process_time()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            self.switch()
            self._open.append(part)
            try:
                return function(*args, **kwargs)
            finally:
                self.switch()
                self._open.pop()

        return run


def shares(problem: Problem, grammar: str) -> dict[str, float]:
    """Processor seconds of each part of one discovery with the default settings, on one thread."""
    language = load_grammar(grammar)
    own = proposers_for(language)
    discover.discover(problem, language, proposers=own)  # loads the kernels
    clock, originals = _Clock(), []
    for part, places in PARTS.items():
        for owner, name in places:
            originals.append((owner, name, getattr(owner, name)))
            setattr(owner, name, clock.timed(part, getattr(owner, name)))
    try:
        with threadpool_limits(limits=1):
            found = discover.discover(problem, language, proposers=own)
            clock.switch()
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
    total = sum(clock.seconds.values())
    return {"evaluations": found.evaluations, "seconds": total} | dict(clock.seconds)


def measure() -> dict[str, dict[str, float]]:
    """The shares of one equation of order 1, one of order 2, and one system of two states."""
    lotka = next(s for s in systems() if s.number == 26)
    return {
        "b1/03": shares(problem_named("b1/03").observe(), "standard"),
        "b3/duffing": shares(problem_named("b3/duffing").observe(), "standard"),
        lotka.id: shares(lotka.observe(0.05, 0), GRAMMAR),
    }


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=1)
