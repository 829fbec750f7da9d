"""`long`: 100,000 samples beside 2,000 of them: processor seconds, memory and error, for one state and a system.

Each discovery runs in a process of its own, so that its peak memory is not that of the ones before it.
"""

import argparse
import json
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.recording import RESULTS
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.grammar import load_grammar
from lgf.runs.presets import proposers_for
from lgf.search.discover import discover
from lgf.search.settings import DiscoverySettings
from lgf.solver.reference import solve_by_reference
from lgf.solver.solve import solve

SAMPLES, SHORT, NOISE = 100_000, 2_000, 0.05


@dataclass(frozen=True)
class Case:
    """A true system, its start and its window."""

    name: str
    text: str
    start: tuple[float, ...]
    end: float


CASES = (
    Case("first order", "u' = 0.8*u - 0.5*u^2 + 0.3*sin(1.5*t)", (0.2,), 20.0),
    Case("second order", "u'' = -0.15*u' - 2*u - 0.5*u^3", (1.5, 0.0), 30.0),
    Case("two states", "x' = 1.1*x - 0.4*x*y; y' = -0.4*y + 0.1*x*y", (10.0, 5.0), 30.0),
)


def run_one(case: Case, every: int, seed: int) -> dict[str, Any]:
    """The result on every so many of the 100,000 samples."""
    truth = System.read(case.text)
    t = np.linspace(0.0, case.end, SAMPLES)
    clean = _states(solve(truth, case.start, t))
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    values = clean + NOISE * clean.std(axis=0) * noise
    names = tuple(map(Variable, truth.frame.names))
    grammar = load_grammar("standard")
    problem = Problem((Observation(t[::every], values[::every], names),))
    load, began = load_average(), time.process_time()
    found = discover(problem, grammar, DiscoverySettings(), proposers=proposers_for(grammar), seed=seed)
    seconds = time.process_time() - began
    coarse = np.linspace(0.0, case.end, SHORT)
    start = tuple(float(v) for v in found.best.fit.initial[0])
    wanted, got = (_states(solve_by_reference(s, y, coarse)) for s, y in ((truth, case.start), (found.system, start)))
    return {
        "case": case.name, "samples": len(t[::every]), "searched": found.problem.n_samples // len(names), "seed": seed,
        "equation": str(found.system).replace("\n", "; "),
        "error": float(np.sqrt(np.mean((got - wanted) ** 2) / np.mean(wanted**2))),
        "cpu_seconds": seconds, "evaluations": found.evaluations, "load": load,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip


def _in_own_process(case: Case, every: int, seed: int) -> dict[str, Any]:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(run_one, CASES[0], SAMPLES // 100, 0).result()  # loads the kernels
        return pool.submit(run_one, case, every, seed).result()


def _states(trajectory: Any) -> np.ndarray:
    names = {v.name for v in trajectory.variables}
    return np.column_stack([trajectory[name] for name in sorted(names)])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--seeds", type=int, default=1, help="noise draws (1)")


def main(args: argparse.Namespace) -> None:
    """Runs all cases, prints and stores the figures."""
    lines = []
    for case in CASES:
        for every in (SAMPLES // SHORT, 1):
            for seed in range(args.seeds):
                lines.append(_in_own_process(case, every, seed))
                row = lines[-1]
                print(
                    f"{row['case']:12s} {row['samples']:7d} samples  {row['cpu_seconds']:5.1f} s  "
                    f"error {row['error']:.5f}  {row['equation']}",
                    flush=True,
                )
    facts = {"noise": NOISE, "lines": lines, "machine": machine(), "versions": versions()}
    (RESULTS / "long_records.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
