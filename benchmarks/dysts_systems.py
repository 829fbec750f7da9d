"""`run dysts`: discovers chaotic systems of the PyPI package dysts, one line of JSON for each; resumable.

dysts (Gilpin 2021, MIT licence) is a dependency of this benchmark alone: `pip install --no-deps dysts`. The rule of
choice, fixed before any system was looked at: of all systems in alphabetical order, those that are autonomous, have
three states, and have right-hand sides that are polynomials in the states; of these every k-th, so that thirty remain.
Data are 300 samples over ten periods on the attractor, with additive white noise; the initial state is fitted. The
score is the share of right-hand sides that have the right terms: on a chaotic record no trajectory can be judged.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.from_sympy import from_sympy
from benchmarks.odebench import structure_of
from benchmarks.recording import RESULTS, append, digest, rows
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.expression.frame import Frame, Variable
from lgf.expression.print import plain
from lgf.grammar import load_grammar
from lgf.search.discover import discover
from lgf.search.settings import DiscoverySettings
from lgf.search.systems.language import GRAMMAR
from lgf.solver.reference import solve_by_reference
from lgf.solver.trajectory import SolveStatus
from lgf.threads import on_threads

SAMPLES, PERIODS, CHOSEN = 300, 10.0, 30
STATES = ("x", "y", "z")
FRAME = Frame(tuple((state, 1) for state in STATES))


@dataclass(frozen=True)
class Attractor:
    """One system of dysts with its published start and period."""

    name: str
    system: System
    start: tuple[float, ...]
    period: float

    def observe(self, noise: float, seed: int) -> Problem | None:
        """The noisy record; the published start lies on the attractor. None if the system cannot be solved so far."""
        t = np.linspace(0.0, PERIODS * self.period, SAMPLES)
        solved = solve_by_reference(self.system, self.start, t)
        if solved.status is not SolveStatus.OK:
            return None
        clean = solved.values[:, : len(STATES)]
        rng = np.random.default_rng([len(self.name), seed])
        values = clean + noise * clean.std(axis=0) * rng.standard_normal(clean.shape)
        return Problem((Observation(t, values, tuple(map(Variable.read, STATES))),))


@cache
def attractors() -> tuple[Attractor, ...]:
    """The systems of the rule."""
    spec = find_spec("dysts")
    if spec is None or not spec.submodule_search_locations:
        raise LgfError("dysts is not installed; run pip install --no-deps dysts.")
    folder = Path(spec.submodule_search_locations[0])
    facts = json.loads((folder / "data" / "chaotic_attractors.json").read_text(encoding="utf-8"))
    flows = _flows((folder / "flows.py").read_text(encoding="utf-8"))
    polynomial = [a for name in sorted(facts) if (a := _attractor(name, facts[name], flows)) is not None]
    step = max(1, len(polynomial) // CHOSEN)
    return tuple(polynomial[::step][:CHOSEN])


def _flows(source: str) -> dict[str, Any]:
    """The classes of the package's flows; importing them would need packages that are of no use here."""
    names: dict[str, Any] = {"np": np, "DynSys": object, "DynSysDelay": object, "staticjit": staticmethod}
    exec(source.replace("from .base import DynSys, DynSysDelay, staticjit", ""), names)  # noqa: S102
    return names


def _attractor(name: str, facts: dict[str, Any], flows: dict[str, Any]) -> Attractor | None:
    """The system if the rule admits it."""
    import sympy

    if facts["embedding_dimension"] != len(STATES) or facts["nonautonomous"] or facts["delay"]:
        return None
    symbols = sympy.symbols(STATES)
    right = getattr(flows[name], "_rhs", None)
    if right is None:  # written for numbers, not for symbols
        return None
    parameters = {k: sympy.Float(v) if isinstance(v, float) else v for k, v in facts["parameters"].items()}
    try:
        rates = [sympy.expand(sympy.nsimplify(0) + r) for r in right(*symbols, sympy.Symbol("t"), **parameters)]
    except (TypeError, AttributeError, ValueError):  # a function of NumPy, or a vector among the parameters
        return None
    if not all(r.is_polynomial(*symbols) and r.free_symbols <= set(symbols) for r in rates):
        return None
    text = "; ".join(f"{state}' = {plain(from_sympy(rate, FRAME))}" for state, rate in zip(STATES, rates, strict=True))
    return Attractor(name, System.read(text), tuple(facts["initial_conditions"]), float(facts["period"]))


def run_one(attractor: Attractor, settings: DiscoverySettings, noise: float, seed: int, jobs: int) -> dict[str, Any]:
    """The result line of one system and noise draw."""
    problem = attractor.observe(noise, seed)
    if problem is None:  # counts as a failure, so that the rule stays as it was fixed
        wrong = [False] * len(STATES)
        return {
            "problem": attractor.name,
            "noise": noise,
            "seed": seed,
            "equation": "",
            "exact_rows": wrong,
            "cpu_seconds": 0.0,
            "failure": "the truth was not solved",
        }
    load, began = load_average(), time.process_time()
    with on_threads(jobs) as spread:
        found = discover(problem, load_grammar(GRAMMAR), settings, seed=seed, spread=spread)
    seconds = time.process_time() - began
    truth = structure_of(attractor.system).split("; ")
    return {
        "problem": attractor.name, "noise": noise, "seed": seed,
        "equation": str(found.system).replace("\n", "; "),
        "exact_rows": [a == b for a, b in zip(structure_of(found.system).split("; "), truth, strict=True)],
        "segments": found.best.fit.segments, "cpu_seconds": seconds, "evaluations": found.evaluations,
        "load": load, "machine": machine(), "versions": versions(),
    }  # fmt: skip


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, seed by seed; one seed unless `--seeds` says more."""
    settings = DiscoverySettings()
    name = digest([asdict(settings), load_grammar(GRAMMAR).fingerprint, args.noise])
    file = args.out or RESULTS / f"dysts-noise{args.noise:g}.jsonl"
    done = {(row["problem"], row["seed"]) for row in rows(file) if row["digest"] == name}
    for seed in range(args.first_seed, args.first_seed + (args.seeds or 1)):
        for attractor in attractors():
            if (attractor.name, seed) in done or (args.only and attractor.name not in args.only.split(",")):
                continue
            row = {"digest": name, **run_one(attractor, settings, args.noise, seed, args.jobs)}
            append(file, row)
            print(
                f"{attractor.name:24s} {row['exact_rows']} {row['cpu_seconds']:5.1f} s  {row['equation']}", flush=True
            )
    exact = [right for row in rows(file) if row["digest"] == name for right in row["exact_rows"]]
    print(f"{len(exact)} right-hand sides, {100 * float(np.mean(exact)):.1f} % with the right terms")
