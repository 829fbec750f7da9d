"""The number of evaluations until the chosen equation is right, for each proposer.

For each problem and search seed every method proposes skeletons; the fit, the data (noise seed 0) and the choice (the
smallest description length so far) are the same for all. A run ends at the first evaluation at which the chosen
equation has the true structure or an error on u within twice the floor; a longer one might choose another. Fits are
kept by problem and sentence while the problem is worked on, finished runs are skipped, so the study can be stopped and
taken up again.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.problems import NamedProblem, problems
from benchmarks.recording import append, rows
from benchmarks.surroundings import machine, versions
from lgf.fit.target import Target, make_target
from lgf.flow_proposer import FlowProposer, flow_proposers
from lgf.grammar import load_grammar
from lgf.language.language import Language, make_language
from lgf.latent.bundle import load_bundle
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.loop import SearchSettings, search
from lgf.search.mixture import FLOW, make_schedule
from lgf.search.precompilation import precompile
from lgf.search.proposers.basic import (
    EnumerationProposer,
    EvolutionProposer,
    MonteCarloProposer,
    Proposer,
)
from lgf.search.settings import PAPER, DiscoverySettings
from lgf.settings.flow import FlowSettings, SamplingSettings
from lgf.smoothing.complete import complete

OTHERS = ("b1/10", "b1/13", "b1/27", "b1/28", "b2/ode2", "b2/nlode2", "b2/nlode3", "b2/nlode5")
RESULTS = Path(__file__).parent / "results" / "efficiency.jsonl"
BUDGET = 2000
# As in the paper: samples from pure noise, no screening, no renoising.
UNGUIDED = replace(
    PAPER.flow, guided=False, stability=False, static=False, growth=1.5, sampling=SamplingSettings(steps=10)
)
OBJECTIVE = replace(UNGUIDED, guided=True)
CONDITIONS = replace(OBJECTIVE, stability=True, static=True)

Make = Callable[[Language, Target, str, int], Sequence[tuple[Proposer, int]]]


def _flow(settings: FlowSettings) -> Make:
    return lambda language, target, model, seed: [(FlowProposer(load_bundle(model), [language], seed, settings), 1)]


def _default(language: Language, target: Target, model: str, seed: int) -> Sequence[tuple[Proposer, int]]:
    flow = {FLOW: flow_proposers(lambda: load_bundle(model))}
    return make_schedule([language], {target.frame: target}, DiscoverySettings(), seed, flow)


def _without_model(language: Language, target: Target, model: str, seed: int) -> Sequence[tuple[Proposer, int]]:
    return make_schedule([language], {target.frame: target}, DiscoverySettings(), seed, {})


METHODS: dict[str, Make] = {
    "monte carlo": lambda language, target, model, seed: [(MonteCarloProposer([language], seed), 1)],
    "enumeration": lambda language, target, model, seed: [(EnumerationProposer([language]), 1)],
    "evolution": lambda language, target, model, seed: [
        (EnumerationProposer([language]), 2),
        (EvolutionProposer([language], seed), 1),
    ],
    "flow, unguided": _flow(UNGUIDED),
    "flow, objective": _flow(OBJECTIVE),
    "flow, objective, order, stability": _flow(CONDITIONS),
    "missing terms, no flow": _without_model,
    "default": _default,
}


class Hit(Exception):
    """The chosen equation is right."""


class Course:
    """A mapper that fits each sentence once, counts evaluations, and ends the run at a hit."""

    def __init__(self, problem: NamedProblem, target: Target, fitted: dict[tuple[str, float], tuple[Candidate, float]]):
        self.problem, self.target, self.fitted = problem, target, fitted
        self.truth = problem.true_equation().skeleton.structure
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
        sentence = proposal.skeleton.structure, proposal.bits  # derivations of a structure differ in length
        if sentence not in self.fitted:
            began = time.process_time()
            self.fitted[sentence] = evaluator(proposal), time.process_time() - began
        candidate, seconds = self.fitted[sentence]
        self.count += 1
        self.fitting += seconds
        if self.chosen is None or candidate.objective < self.chosen.objective:
            self.chosen = candidate
            if self._right(candidate):
                raise Hit
        return candidate

    def _right(self, candidate: Candidate) -> bool:
        if candidate.skeleton.structure == self.truth:
            return True
        if not candidate.loss < 10 * self.target.noise_loss:
            return False
        return self.problem.score(candidate.fit.system(self.target)).u <= 2 * self.problem.floor[0]


def study(
    problem_id: str, model: str, budget: int, seeds: int, done: set[tuple], file: Path, methods: Sequence[str]
) -> None:
    """Runs the methods on one problem and writes a line per run."""
    named = problems()[problem_id]
    problem = named.observe(seed=0)
    (frame,) = problem.frames
    completions = [complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)]
    target = make_target(problem, frame, completions)
    language = make_language(load_grammar(model), problem, frame, target.ranges)
    evaluator = Evaluator({frame: target}, problem.knowledge, assess_all=True)
    fitted: dict[tuple[str, float], tuple[Candidate, float]] = {}
    settings = SearchSettings(first=50, growth=0.0, max_evaluations=budget, unique_tolerance=0.0, patience=None)
    for name in methods:
        make = METHODS[name]
        for seed in range(1 if name == "enumeration" else seeds):
            if (problem_id, model, name, seed) in done:
                continue
            course = Course(named, target, fitted)
            began = len(fitted)
            hit, started = False, time.process_time()
            try:
                search(evaluator, make(language, target, model, seed), settings, Population(), course)
            except Hit:
                hit = True
            proposing = time.process_time() - started - course.away
            line = {
                "problem": problem_id, "model": model, "method": name, "seed": seed, "budget": budget, "hit": hit,
                "evaluations": course.count, "new_fits": len(fitted) - began,
                "seconds": proposing + course.fitting, "proposing_seconds": proposing,
                "chosen": str(course.chosen.skeleton) if course.chosen else None,
                "versions": versions(), "machine": machine(),
            }  # fmt: skip
            append(file, line)
            print(problem_id, model, name, seed, course.count if hit else f"none in {course.count}", flush=True)


def finished(file: Path = RESULTS, budget: int = BUDGET) -> list[dict]:
    """The lines of the finished runs of this budget."""
    return [row for row in rows(file) if row["budget"] == budget]


def table(lines: list[dict]) -> dict:
    """Geometric means over seeds per problem and method; a run without a hit counts with its budget.

    The gains are geometric means over the hard problems, those that need more than 1,000 Monte Carlo evaluations; of
    the other problems of B4 there is the geometric mean itself.
    """
    spent: dict[str, Callable[[dict], float]] = {
        "evaluations": lambda line: line["evaluations"] if line["hit"] else line["budget"],
        "seconds": lambda line: max(line["seconds"], 0.01),
    }
    means: dict[str, dict[str, dict[str, float]]] = {}
    for what, how in spent.items():
        cells: dict[str, dict[str, list[float]]] = {}
        for line in lines:
            cell = cells.setdefault(f"{line['problem']} ({line['model']})", {}).setdefault(line["method"], [])
            cell.append(how(line))
        means[what] = {
            problem: {m: math.exp(np.mean(np.log(v))) for m, v in methods.items()} for problem, methods in cells.items()
        }
    hard = [p for p, row in means["evaluations"].items() if row.get("monte carlo", 0) > 1000]
    easier = [row for p, row in means["evaluations"].items() if p.startswith("b4/") and p not in hard]
    hits = {m: sum(line["hit"] for line in lines if line["method"] == m) for m in METHODS}
    return {
        **means,
        "runs": {m: sum(line["method"] == m for line in lines) for m in METHODS},
        "hits": hits,
        "hard": hard,
        "easier of B4, evaluations": {
            m: math.exp(np.mean([math.log(row[m]) for row in easier]))
            for m in METHODS
            if easier and all(m in row for row in easier)
        },
        "gain over Monte Carlo, evaluations": _gains(means["evaluations"], hard, "monte carlo"),
        "gain over evolution, evaluations": _gains(means["evaluations"], hard, "evolution"),
        "gain over evolution, seconds": _gains(means["seconds"], hard, "evolution"),
    }


def _gains(rows: dict[str, dict[str, float]], hard: Sequence[str], base: str) -> dict[str, float]:
    found = {}
    for method in METHODS:
        ratios = [rows[p][base] / rows[p][method] for p in hard if method in rows[p] and base in rows[p]]
        if ratios:
            found[method] = math.exp(np.mean(np.log(ratios)))
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--only", help="problem ids, by commas")
    parser.add_argument("--methods", default=";".join(METHODS), help="by semicolons")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--json", help="write the table here")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="in place of efficiency.jsonl")
    parser.add_argument("--table", action="store_true", help="only make the table")


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, and prints the table."""
    done = {(x["problem"], x["model"], x["method"], x["seed"]) for x in finished(args.out, args.budget)}
    b4 = [i for i in problems() if i.startswith("b4/")]
    b3 = [i for i in problems() if i.startswith("b3/")]
    work = [(i, "standard") for i in (*b4, *OTHERS)] + [(i, "b3") for i in b3]
    if args.only:
        work = [w for w in work if w[0] in args.only.split(",")]
    if not args.table:
        precompile()  # so that the first fit does not include compilation
        for problem_id, model in work:
            study(problem_id, model, args.budget, args.seeds, done, args.out, args.methods.split(";"))
    found = table(finished(args.out, args.budget))
    text = json.dumps(found, indent=1)
    print(text)
    if args.json:
        Path(args.json).write_text(text + "\n")
