"""`llmode`: the 91 systems of LLM-ODE by its own protocol, one line of JSON for each; resumable.

100 samples without noise on [0, 5] from the first start; every method knows that the system is x' = f(x). The answer is
solved from the second start on [0, 10], and its score is the mean over the states of the mean square error in units of
the variance of the true state (NMSE).
"""

import argparse
import time
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.recording import RESULTS, append, rows
from benchmarks.surroundings import machine, versions
from lgf import LatentGrammarFlow, System
from lgf.solver.reference import solve_by_reference
from lgf.solver.trajectory import SolveStatus

FILE = RESULTS / "llmode.jsonl"
OBSERVED, JUDGED = np.linspace(0.0, 5.0, 100), np.linspace(0.0, 10.0, 200)
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


class Listed(NamedTuple):
    """A system of the list."""

    number: int
    name: str
    rhs: tuple[str, ...]
    starts: tuple[tuple[float, ...], ...]

    @property
    def truth(self) -> System:
        """The true system."""
        return System.read("; ".join(f"x{i}' = {right}" for i, right in enumerate(self.rhs)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--states", type=int, help="only systems of so many states")
    parser.add_argument("--only", help="numbers such as 3,25")
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE")


def main(args: argparse.Namespace) -> None:
    """Discovers each system that has no line yet, and prints the shares below the levels."""
    done = {row["number"]: row for row in rows(args.out)}
    chosen = [s for s in systems() if args.states in (None, len(s.rhs))]
    if args.only:
        chosen = [s for s in chosen if str(s.number) in args.only.split(",")]
    for system in chosen:
        if system.number not in done:
            done[system.number] = answer(system)
            append(args.out, done[system.number])
        row = done[system.number]
        print(f"{row['number']:3d}  {row['nmse']:8.1e}  {row['seconds']:6.1f} s  {row['equation']}", flush=True)
    scores = np.array([done[s.number]["nmse"] for s in chosen])
    shares = ", ".join(f"{np.mean(scores < level):.0%} below {level:g}" for level in LEVELS)
    print(f"{len(scores)} systems: {shares}; {np.count_nonzero(scores >= LEVELS[-1])} not below {LEVELS[-1]:g}")


@cache
def systems() -> tuple[Listed, ...]:
    """The systems of `llmode.toml`."""
    text = Path(__file__).with_name("llmode.toml").read_text(encoding="utf-8")
    return tuple(
        Listed(p["number"], p["name"], tuple(p["rhs"]), tuple(map(tuple, p["starts"])))
        for p in tomllib.loads(text)["problem"]
    )


def answer(system: Listed) -> dict[str, Any]:
    """The result line of one system."""
    record = states(system.truth, system.starts[0], OBSERVED)
    assert record is not None, f"the truth of {system.name} does not solve"
    began = time.process_time()
    names = [f"x{i}" for i in range(len(system.rhs))]
    model = LatentGrammarFlow(order=1, autonomous=True).fit(OBSERVED, record, states=names)
    seconds = time.process_time() - began
    return {
        "number": system.number, "name": system.name, "states": len(system.rhs),
        "nmse": nmse(system, model.equation_), "equation": str(model.equation_).replace("\n", "; "),
        "evaluations": model.run_.evaluations, "seconds": round(seconds, 2),
        "machine": machine(), "versions": versions(),
    }  # fmt: skip


def nmse(system: Listed, answer: System) -> float:
    """The error of the answer from the second start; 1e9 if it does not reach the end."""
    truth, solved = (states(s, system.starts[1], JUDGED) for s in (system.truth, answer))
    assert truth is not None, f"the truth of {system.name} does not solve from its second start"
    if solved is None:
        return 1e9
    variance = np.maximum(truth.var(axis=0), 1e-300)
    return float(np.mean(np.mean((solved - truth) ** 2, axis=0) / variance))


def states(system: System, start: tuple[float, ...], t: np.ndarray) -> np.ndarray | None:
    """The states [N, n] of the system by the independent solver; None if it does not reach the end."""
    solved = solve_by_reference(system, start, t)
    if solved.status is not SolveStatus.OK:
        return None
    return solved.values[:, : len(system.frame.names)]
