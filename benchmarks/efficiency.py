"""`efficiency`: how many equations each way of proposing needs until the chosen one is right.

    python -m benchmarks efficiency                    # what is missing of results/efficiency.jsonl
    python -m benchmarks efficiency --only b4/inertial-beam,odebench/27 --seeds 1

The study covers Benchmarks 3 and 4, the hard problems of 1 and 2, and the forty systems of ODEBench. Each way
(`benchmarks.ways`) proposes skeletons; the fit, the data and the choice (the smallest description length so far) are
the same for all. A seed is that of the noise and of the search. A run ends at the first evaluation at which the chosen
equation has the true structure or, with one state, an error on u within twice the floor; a longer one might choose
another. Fits are kept by problem, draw and sentence while the problem is worked on, finished runs are skipped, so the
study can be stopped and taken up again.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.odebench import structure_of, systems
from benchmarks.problems import problems
from benchmarks.recording import append, rows
from benchmarks.surroundings import machine, versions
from benchmarks.ways import BASE, MODEL, SYSTEM_BASE, SYSTEM_WAYS, WAYS, Schedule
from lgf.data.problem import Problem
from lgf.fit.target import Target
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.language.language import make_language
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.loop import SearchSettings, search
from lgf.search.precompilation import precompile
from lgf.search.systems.language import GRAMMAR, system_language
from lgf.smoothing.complete import complete

OTHERS = ("b1/10", "b1/13", "b1/27", "b1/28", "b2/ode2", "b2/nlode2", "b2/nlode3", "b2/nlode5")
RESULTS = Path(__file__).parent / "results" / "efficiency.jsonl"
BUDGET, SYSTEM_BUDGET = 250, 600
NOISE = 0.05
WITHIN = (10, 30, 60, 150)


def is_system(problem: str) -> bool:
    """Whether the problem of this id has several states."""
    return problem.startswith("odebench/")


@dataclass(frozen=True, eq=False)
class Case:
    """One draw of a problem: its evaluator, what is right, and the proposers of each way."""

    evaluator: Evaluator
    right: Callable[[Candidate], bool]
    schedules: dict[str, Callable[[], Schedule]]
    budget: int


def _target(problem: Problem) -> Target:
    (frame,) = problem.frames
    completions = [complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)]
    return make_target(problem, frame, completions)


def scalar_case(problem_id: str, seed: int) -> Case:
    """The case of an equation of one state."""
    named = problems()[problem_id]
    problem = named.observe(NOISE, seed)
    target = _target(problem)
    language = make_language(load_grammar(MODEL), problem, target.frame, target.ranges)
    truth = named.true_equation().skeleton.structure

    def right(candidate: Candidate) -> bool:
        if candidate.skeleton.structure == truth:
            return True
        if not candidate.loss < 10 * target.noise_loss:
            return False
        return named.score(candidate.fit.system(target)).u <= 2 * named.floor[0]

    schedules = {name: lambda way=way: way(language, target, seed) for name, way in WAYS.items()}
    return Case(Evaluator({target.frame: target}, problem.knowledge, assess_all=True), right, schedules, BUDGET)


def system_case(problem_id: str, seed: int) -> Case:
    """The case of a system."""
    (named,) = (system for system in systems() if system.id == problem_id)
    problem = named.observe(NOISE, seed)
    target = _target(problem)
    language = system_language(load_grammar(GRAMMAR), problem, target.frame, target)

    def right(candidate: Candidate) -> bool:
        return structure_of(candidate.fit.system(target)) in named.structures

    schedules = {name: lambda way=way: [(way(language, target), 1)] for name, way in SYSTEM_WAYS.items()}
    return Case(Evaluator({target.frame: target}, problem.knowledge), right, schedules, SYSTEM_BUDGET)


class Hit(Exception):
    """The chosen equation is right."""


class Course:
    """A mapper that makes each fit once, counts evaluations, and ends the run at a hit."""

    def __init__(self, right: Callable[[Candidate], bool], fitted: dict[Hashable, tuple[Candidate, float]]):
        self.right, self.fitted = right, fitted
        self.count = 0
        self.fitting = 0.0  # processor seconds of the fits of this run, including cached fits
        self.away = 0.0  # processor seconds spent in the mapper
        self.chosen: Candidate | None = None

    def __call__(self, evaluator: Evaluator, proposals: Sequence[Proposal]) -> list[Candidate]:
        """The candidates of the proposals."""
        began = time.process_time()
        try:
            return [self._candidate(evaluator, proposal) for proposal in proposals]
        finally:
            self.away += time.process_time() - began

    def _candidate(self, evaluator: Evaluator, proposal: Proposal) -> Candidate:
        # derivations of a structure differ in length, fits of a system in their starts
        key = proposal.skeleton.structure, proposal.bits, proposal.start, proposal.shooting
        if key not in self.fitted:
            began = time.process_time()
            self.fitted[key] = evaluator(proposal), time.process_time() - began
        candidate, seconds = self.fitted[key]
        self.count += 1
        self.fitting += seconds
        if self.chosen is None or candidate.objective < self.chosen.objective:
            self.chosen = candidate
            if self.right(candidate):
                raise Hit
        return candidate


def study(problem_id: str, seed: int, ways: Sequence[str], file: Path) -> None:
    """Runs the ways on one draw of a problem and writes a line per run."""
    case = system_case(problem_id, seed) if is_system(problem_id) else scalar_case(problem_id, seed)
    fitted: dict[Hashable, tuple[Candidate, float]] = {}
    settings = SearchSettings(max_evaluations=case.budget, unique_tolerance=0.0, patience=None)
    for name in ways:
        course = Course(case.right, fitted)
        hit, started = False, time.process_time()
        try:
            search(case.evaluator, case.schedules[name](), settings, Population(), course)
        except Hit:
            hit = True
        proposing = time.process_time() - started - course.away
        line = {
            "problem": problem_id, "method": name, "seed": seed, "budget": case.budget, "hit": hit,
            "evaluations": course.count, "seconds": proposing + course.fitting, "proposing_seconds": proposing,
            "chosen": str(course.chosen.skeleton) if course.chosen else None,
            "versions": versions(), "machine": machine(),
        }  # fmt: skip
        append(file, line)
        print(problem_id, seed, name, course.count if hit else f"none in {course.count}", flush=True)


def finished(file: Path = RESULTS, of_systems: bool = False) -> list[dict]:
    """The lines of the finished runs, of one state or of systems."""
    return [row for row in rows(file) if is_system(row["problem"]) == of_systems]


def table(lines: list[dict]) -> dict[str, dict]:
    """For each way: hits, geometric means of what a run takes, and the gain over the base; and evaluations by problem.

    The lines are either of one state or of systems. A run without a hit counts with its budget. "found" are the runs
    (problem, draw) in which any way has a hit: in the others the noise pays for a wrong equation.
    """
    ways, compared = (SYSTEM_WAYS, SYSTEM_BASE) if is_system(lines[0]["problem"]) else (WAYS, BASE)
    runs: dict[str, dict[tuple[str, int], dict]] = {}
    for line in lines:
        runs.setdefault(line["method"], {})[line["problem"], line["seed"]] = line
    found = {key for of_method in runs.values() for key, line in of_method.items() if line["hit"]}
    base = runs.get(compared, {})
    methods = {}
    for name in (m for m in ways if m in runs):
        of_method = runs[name]
        paired = [key for key in of_method if key in base]
        methods[name] = {
            "runs": len(of_method),
            "hits": sum(line["hit"] for line in of_method.values()),
            "evaluations": _mean(map(_evaluations, of_method.values())),
            "of those found": _mean(_evaluations(line) for key, line in of_method.items() if key in found),
            "seconds": _mean(max(line["seconds"], 0.01) for line in of_method.values()),
            "within": {n: sum(_evaluations(x) <= n and x["hit"] for x in of_method.values()) for n in WITHIN},
            "fewer": _mean(_evaluations(base[key]) / _evaluations(of_method[key]) for key in paired),
        }
    ids = dict.fromkeys(line["problem"] for line in lines)
    by_problem = {
        problem: {m: _mean(_evaluations(x) for (p, _), x in runs[m].items() if p == problem) for m in methods}
        for problem in ids
    }
    return {"methods": methods, "problems": by_problem, "runs": {"all": _n_runs(lines), "found": len(found)}}


def _n_runs(lines: list[dict]) -> int:
    return len({(line["problem"], line["seed"]) for line in lines})


def _evaluations(line: dict) -> int:
    return line["evaluations"] if line["hit"] else line["budget"]


def _mean(values: Iterable[float]) -> float:
    """The geometric mean; NaN of nothing."""
    logs = [math.log(v) for v in values]
    return math.exp(float(np.mean(logs))) if logs else math.nan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--only", help="problem ids, by commas; scalar or systems")
    parser.add_argument("--methods", help="by semicolons")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="0 to 4 judge; tune on others")
    parser.add_argument("--json", type=Path, help="write the tables here")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="in place of efficiency.jsonl")
    parser.add_argument("--table", action="store_true", help="only make the tables")


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, draw by draw, and prints the tables."""
    done = {(x["problem"], x["method"], x["seed"]) for x in rows(args.out)}
    scalar = [*(i for i in problems() if i.startswith(("b4/", "b3/"))), *OTHERS]
    work = [*scalar, *(system.id for system in systems())]
    if args.only:
        work = {"scalar": scalar, "systems": [i for i in work if is_system(i)]}.get(args.only, args.only.split(","))
    if not args.table:
        precompile()  # so that the first fit does not include compilation
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            for problem in work:
                ways = SYSTEM_WAYS if is_system(problem) else WAYS
                wanted = args.methods.split(";") if args.methods else ways
                left = [m for m in wanted if m in ways and (problem, m, seed) not in done]
                if left:
                    study(problem, seed, left, args.out)
    parts = {name: finished(args.out, name == "systems") for name in ("one state", "systems")}
    text = json.dumps({name: table(lines) for name, lines in parts.items() if lines}, indent=1)
    print(text)
    if args.json:
        args.json.write_text(text + "\n")
