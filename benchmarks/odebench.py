"""`run odebench`: discovers the systems of ODEBench from noisy records, one line of JSON for each; resumable.

ODEBench is by d'Ascoli et al. (ODEFormer, 2024, MIT licence). This command takes its systems of several states; its own
protocol, on all 63, is `python -m benchmarks odebench` (`odebench_protocol.py`). The data are 150 samples of all states
on [0, 10] from the first start, with additive white noise relative to the standard deviation of each state, and nothing
else: the initial state is fitted. Scores are taken against a tight solution of the truth: R2, weighted by the variance
of the states, from the first start (reconstruction, with the fitted initial state) and from the second (generalisation,
with the true one). R2 > 0.9 is a success.
"""

import argparse
import resource
import time
import tomllib
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from benchmarks.from_sympy import from_sympy
from benchmarks.recording import RESULTS, append, digest, rows
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.expression.sympy_conversion import to_sympy
from lgf.expression.tree import Expression
from lgf.fit.segments import Shooting
from lgf.fit.settings import patient
from lgf.grammar import load_grammar
from lgf.search.candidate import Proposal
from lgf.search.discover import Discovery, discover
from lgf.search.evaluate import Evaluator
from lgf.search.settings import DiscoverySettings
from lgf.search.systems.language import GRAMMAR, system_language
from lgf.solver.reference import solve_by_reference
from lgf.solver.trajectory import SolveStatus
from lgf.threads import on_threads

SAMPLES, WINDOW = 150, (0.0, 10.0)
SUCCESS = 0.9

# Structures whose constants are 1 in the truth, and one that can be said in three ways because sin^2 + cos^2 = 1.
_STRUCTURES: dict[str, tuple[str, ...]] = {
    "odebench/42": ("x0' = C + C*x0 + C*x0*x1/(1 + C*x0^2); x1' = C*x0 + C*x0*x1/(1 + C*x0^2)",),
    "odebench/35": tuple(
        f"x0' = C*cos(x0)*cos(x1)/sin(x1); x1' = {pair}"
        for pair in (
            "C*sin(x0)*cos(x1)^2 + C*sin(x0)*sin(x1)^2",
            "C*sin(x0) + C*sin(x0)*cos(x1)^2",
            "C*sin(x0) + C*sin(x0)*sin(x1)^2",
        )
    ),
}


@dataclass(frozen=True)
class Benchmarked:
    """One system of the benchmark."""

    id: str
    name: str
    rhs: tuple[str, ...]
    starts: tuple[tuple[float, ...], ...]

    @property
    def number(self) -> int:
        """The number of the system in the benchmark."""
        return int(self.id.partition("/")[2])

    @cached_property
    def system(self) -> System:
        """The true system, with expanded right-hand sides."""
        return System.read("; ".join(f"x{i}' = {_plain(e)}" for i, e in enumerate(map(_expanded, self.rhs))))

    @cached_property
    def structures(self) -> frozenset[str]:
        """The structures that count as exact."""
        if self.id in _STRUCTURES:
            return frozenset(Skeleton.read(text).structure for text in _STRUCTURES[self.id])
        return frozenset({structure_of(self.system)})

    @cached_property
    def truth(self) -> tuple[np.ndarray, ...]:
        """The true states [N, n] from each start."""
        trajectories = [solved(self.system, np.array(start)) for start in self.starts]
        assert all(states is not None for states in trajectories), f"{self.id} does not solve"
        return tuple(states for states in trajectories if states is not None)

    def observe(self, noise: float, seed: int) -> Problem:
        """The noisy record from the first start."""
        clean = self.truth[0]
        rng = np.random.default_rng([self.number, seed])
        values = clean + noise * clean.std(axis=0) * rng.standard_normal(clean.shape)
        names = tuple(f"x{i}" for i in range(len(self.rhs)))
        return Problem((Observation(np.linspace(*WINDOW, SAMPLES), values, tuple(map(Variable.read, names))),))


def _expanded(text: str) -> Expression:
    import sympy

    return from_sympy(sympy.expand(sympy.sympify(text)))


def structure_of(system: System) -> str:
    """The structure of a system with expanded right-hand sides: 10*(y - x) has the terms x and y."""
    import sympy

    rows = []
    for left, right in system.sides:
        expanded = from_sympy(sympy.expand(to_sympy(right)), system.frame)
        rows.append(f"{_plain(left)} = {_plain(expanded)}")
    return System.read("; ".join(rows), frame=system.frame).skeleton.structure


def _plain(expression: Expression) -> str:
    from lgf.expression.print import plain

    return plain(expression)


def systems() -> tuple[Benchmarked, ...]:
    """The systems of several states."""
    return tuple(system for system in all_systems() if len(system.rhs) > 1)


@cache
def all_systems() -> tuple[Benchmarked, ...]:
    """The 63 systems of the benchmark."""
    with files("benchmarks").joinpath("odebench.toml").open("rb") as file:
        entries = tomllib.load(file)["problem"]
    return tuple(
        Benchmarked(e["id"], e["name"], tuple(e["rhs"]), tuple(tuple(start) for start in e["y0"])) for e in entries
    )


def r2(truth: np.ndarray, found: np.ndarray | None) -> float:
    """R2 weighted by the variance of the states; -1 at least, and for a system that does not solve."""
    if found is None or not np.all(np.isfinite(found)):
        return -1.0
    spread = float(np.sum((truth - truth.mean(axis=0)) ** 2))
    return max(-1.0, 1.0 - float(np.sum((truth - found) ** 2)) / spread)


def solved(system: System, initial: np.ndarray) -> np.ndarray | None:
    """The states [N, n] of a system over the window, by the independent solver; None if it does not reach the end."""
    trajectory = solve_by_reference(system, tuple(float(v) for v in initial), np.linspace(*WINDOW, SAMPLES))
    if trajectory.status is not SolveStatus.OK:
        return None
    return trajectory.values[:, : len(system.frame.names)]


def run_one(system: Benchmarked, settings: DiscoverySettings, noise: float, seed: int, jobs: int) -> dict[str, Any]:
    """The result line of one system and noise draw."""
    problem = system.observe(noise, seed)
    load, began = load_average(), time.process_time()
    with on_threads(jobs) as spread:
        found = discover(problem, load_grammar(GRAMMAR), settings, seed=seed, spread=spread)
    seconds = time.process_time() - began
    best = found.best
    structure = structure_of(found.system)
    reported = [structure, *(structure_of(c.fit.system(found.target)) for c in found.indistinguishable)]
    return {
        "problem": system.id, "dim": len(system.rhs), "noise": noise, "seed": seed,
        "equation": str(found.system).replace("\n", "; "),
        "exact": structure in system.structures,
        "exact_rows": _exact_rows(structure, system),
        "in_set": any(structure in system.structures for structure in reported),
        "set_size": len(found.indistinguishable),
        "r2": r2(system.truth[0], solved(found.system, best.fit.initial[0])),
        "r2_other_start": r2(system.truth[1], solved(found.system, np.array(system.starts[1]))),
        "segments": best.fit.segments,
        "objective": best.objective,
        "truth": _truth_beside(system, found, problem),
        "cpu_seconds": seconds, "seconds": found.seconds, "evaluations": found.evaluations,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "cores_used": jobs, "load": load, "machine": machine(), "versions": versions(),
    }  # fmt: skip


def _exact_rows(structure: str, system: Benchmarked) -> list[bool]:
    """Which right-hand sides have the true terms."""
    rows_found = structure.split("; ")
    wanted = [set(rows) for rows in zip(*(s.split("; ") for s in sorted(system.structures)), strict=True)]
    return [row in want for row, want in zip(rows_found, wanted, strict=True)]


def _truth_beside(system: Benchmarked, found: Discovery, problem: Problem) -> dict[str, Any]:
    """Whether the truth was tried, its objective when fitted from the true constants, and why it was missed."""
    target = found.target
    skeleton, start = system.system.skeleton, system.system.values
    if system.id in _STRUCTURES:
        return {"tried": any(c.skeleton.structure in system.structures for c in found.population), "cause": ""}
    language = system_language(load_grammar(GRAMMAR), problem, target.frame, target)
    bits = sum(language.row_bits(skeleton))
    tried = skeleton.structure in found.population
    if not np.isfinite(bits):
        return {"tried": tried, "bits": None, "objective": None, "cause": "not in the language"}
    evaluator = Evaluator(found.targets, problem.knowledge, patient(found.settings.fit), found.settings.objective)
    fitted = evaluator(Proposal(skeleton, bits, start=start, shooting=Shooting((8, 4, 2, 1))))
    known = found.population.get(skeleton.structure)
    if structure_of(found.system) in system.structures:
        cause = "exact"
    elif fitted.objective > found.best.objective:
        cause = "wrongly chosen"
    elif known is None:
        cause = "not proposed"
    else:
        cause = "badly fitted" if known.objective > fitted.objective + 1.0 else "not selected"
    return {"tried": tried, "bits": bits, "objective": fitted.objective, "cause": cause}


def summary(lines: list[dict[str, Any]]) -> str:
    """The shares of successes and the times, as text."""
    if not lines:
        return "no runs"
    share = {
        "exact": np.mean([row["exact"] for row in lines]),
        "in set": np.mean([row["in_set"] for row in lines]),
        "reconstructs": np.mean([row["r2"] > SUCCESS for row in lines]),
        "generalises": np.mean([row["r2_other_start"] > SUCCESS for row in lines]),
    }
    times = []
    for few, name in ((True, "two states"), (False, "three and four")):
        own = [row["cpu_seconds"] for row in lines if (row["dim"] == 2) is few]
        if own:
            times.append(f"{name}: median {np.median(own):.1f} s, largest {max(own):.1f} s")
    memory = max(row["peak_memory_mb"] for row in lines)
    shares = "  ".join(f"{name} {100 * value:.1f} %" for name, value in share.items())
    return f"{len(lines)} runs  {shares}\nCPU {'; '.join(times)}; peak memory {memory} MB"


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, seed by seed; `--only` takes numbers such as 25,27, or `odd`."""
    settings = DiscoverySettings()
    name = digest([asdict(settings), load_grammar(GRAMMAR).fingerprint, args.noise])
    file = args.out or RESULTS / f"odebench-noise{args.noise:g}.jsonl"
    chosen = [s for s in systems() if _is_chosen(s, args.only)]
    done = {(row["problem"], row["seed"]) for row in rows(file) if row["digest"] == name}
    seeds = range(args.first_seed, args.first_seed + (3 if args.seeds is None else args.seeds))
    for seed in seeds:
        for system in chosen:
            if (system.id, seed) in done:
                continue
            row = {"digest": name, **run_one(system, settings, args.noise, seed, args.jobs)}
            append(file, row)
            verdict = "exact" if row["exact"] else row["truth"]["cause"]
            print(
                f"{system.id} {seed}  {row['r2']:6.3f} {row['r2_other_start']:6.3f}  {row['cpu_seconds']:5.1f} s  "
                f"{verdict:20s} {row['equation']}",
                flush=True,
            )
    ids = {system.id for system in chosen}
    print(summary([r for r in rows(file) if r["digest"] == name and r["problem"] in ids and r["seed"] in seeds]))


def _is_chosen(system: Benchmarked, only: str | None) -> bool:
    if only is None:
        return True
    return system.number % 2 == 1 if only == "odd" else str(system.number) in only.split(",")
