"""`suggest`: is the truth chosen after a second record, taken as suggested, or from a random start? Resumable.

The runs are those of B1 and B2 in `benchmarks/results` whose truth was in the set of equally good equations but was
not chosen. Each is discovered anew. If the truth is still not chosen, a second record is added: from the start that
`lgf.runs.suggestion` suggests, and, for comparison, from random starts of the same range. Everything else is equal:
times, noise, inputs, a known start. Starts are allowed within the range of the data ("inside"), or half as far again
without a change of sign ("wider").
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choosing import true_skeleton
from benchmarks.problems import NamedProblem, problem_named
from benchmarks.recording import RESULTS, append, rows
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.problem import Problem
from lgf.errors import LgfError
from lgf.expression.frame import Variable
from lgf.grammar import load_grammar
from lgf.runs.request import Request, Run, execute
from lgf.runs.suggestion import Allowed, suggest
from lgf.solver.reference import solve_by_reference

FILE = RESULTS / "suggest.jsonl"
NOISE = 0.05
WIDER = 0.5
RANGES = ("inside", "wider")
LEAST_SAMPLES = 10


def cases() -> list[tuple[str, int]]:
    """(problem, seed) of the runs whose truth was in the set and not chosen."""
    found = []
    for benchmark in ("b1", "b2"):
        for row in rows(RESULTS / f"{benchmark}-standard-default.jsonl"):
            if not row["exact"] and row["truth"]["in_set"]:
                found.append((row["problem"], row["seed"]))
    return found


def discovered(problem: Problem, seed: int) -> Run:
    """The run of the problem under default settings."""
    return execute(Request(problem, load_grammar("standard"), seed=seed))


def is_true(problem: NamedProblem, run: Run) -> bool:
    """Whether the chosen equation has the true structure."""
    return run.best.skeleton.structure == true_skeleton(problem).structure


def has_truth(problem: NamedProblem, run: Run) -> bool:
    """Whether the set of equally good equations has the true structure."""
    return true_skeleton(problem).structure in {c.skeleton.structure for c in run.indistinguishable}


def box_of(problem: NamedProblem, kind: str) -> dict[str, tuple[float, float]]:
    """The allowed range of each initial value."""
    truth = problem.truth()
    box = {}
    for k in range(problem.order):
        low, high = float(np.min(truth.values[:, k])), float(np.max(truth.values[:, k]))
        if kind == "wider":
            margin = WIDER * (high - low)
            wide = low - margin, high + margin
            low, high = (max(wide[0], 0.05 * low) if low > 0 else wide[0]), (min(wide[1], 0.0) if high < 0 else wide[1])
        box[str(Variable("u", k))] = (low, high)
    return box


def with_second(problem: NamedProblem, data: Problem, start: list[float], t: np.ndarray, draw: int) -> Problem:
    """The data with a second record of the true system from this start; it ends where the truth blows up."""
    solved = solve_by_reference(problem.true_equation(), tuple(start), t, problem.inputs)
    reached = np.all(np.isfinite(solved.values), axis=1)
    n = int(np.argmin(reached)) if not reached.all() else len(t)
    if n < LEAST_SAMPLES:
        raise LgfError(f"the truth of {problem.id} blows up after {n} samples from {start}.")
    deviation = NOISE * float(np.std(problem.truth().values[:, problem.observed]))
    rng = np.random.default_rng([problem.index, draw, 7])
    values = solved.values[:n, problem.observed] + deviation * rng.standard_normal(n)
    (first,) = data.observations
    initial = dict(zip((Variable("u", k) for k in range(problem.order)), start, strict=True)) if first.initial else {}
    second = replace(first, t=t[:n], values=values, initial=initial, weights=None, name="second")
    return Problem((first, second), data.knowledge)


def run_case(name: str, seed: int, n_random: int) -> list[dict[str, Any]]:
    """The result lines of one case."""
    problem = problem_named(name)
    data = problem.observe(NOISE, seed)
    before = discovered(data, seed)
    about: dict[str, Any] = {"problem": name, "seed": seed, "truth": problem.equation}
    about |= {"before": str(before.system), "set_size": len(before.indistinguishable)}
    if is_true(problem, before) or not has_truth(problem, before):
        return [about | {"status": "chosen now" if is_true(problem, before) else "not in the set now"}]
    lines = []
    for kind in RANGES:
        box = box_of(problem, kind)
        (suggestion,) = suggest(before, 1, Allowed(starts=box))
        starts = {"suggested": list(suggestion.start.values())}
        rng = np.random.default_rng([problem.index, seed, 11])
        for k in range(n_random):
            starts[f"random {k}"] = [float(rng.uniform(*limits)) for limits in box.values()]
        for arm, start in starts.items():
            line = about | {"status": "run", "range": kind, "arm": arm, "start": start}
            if arm == "suggested":
                line |= {"disagreement": suggestion.disagreement, "gains": suggestion.gains, "error": suggestion.error}
            try:
                both = with_second(problem, data, start, suggestion.t, seed)
            except LgfError as error:
                lines.append(line | {"exact": False, "in_set": False, "failure": str(error)})
                continue
            after = discovered(both, seed)
            line |= {"after": str(after.system), "set_after": len(after.indistinguishable)}
            lines.append(line | {"exact": is_true(problem, after), "in_set": has_truth(problem, after)})
    return lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--only", metavar="IDS", help='such as "b1/17"')
    parser.add_argument("--random", type=int, default=2, help="random starts for each case (2)")
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE")


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, and prints how often the truth is chosen."""
    done = {(row["problem"], row["seed"]) for row in rows(args.out)}
    wanted = None if args.only is None else {name.strip() for name in args.only.split(",")}
    for name, seed in cases():
        if (name, seed) in done or (wanted is not None and name not in wanted):
            continue
        for line in run_case(name, seed, args.random):
            append(args.out, line | {"load": load_average(), "machine": machine(), "versions": versions()})
            what = f"{line.get('range', ''):7s} {line.get('arm', line['status']):10s} {line.get('exact', '')!s:6s}"
            print(f"{name:12s} {seed} {what} {line.get('start', '')} {line.get('after', '')}", flush=True)
    for text in summary(rows(args.out)):
        print(text)


def summary(lines: list[dict[str, Any]]) -> list[str]:
    """A line for each range and arm: how often the truth is chosen, and how often it is in the set."""
    found = []
    for kind in RANGES:
        for arm in ("suggested", "random"):
            part = [x for x in lines if x.get("range") == kind and x["arm"].startswith(arm)]
            if part:
                chosen, kept = (np.mean([x[key] for x in part]) for key in ("exact", "in_set"))
                size = np.mean([x["set_after"] for x in part if "set_after" in x])
                found.append(
                    f"{kind:7s} {arm:10s} {len(part):3d} runs: truth chosen {chosen:.0%}, in the set {kept:.0%}, "
                    f"set of {size:.1f}"
                )
    return found
