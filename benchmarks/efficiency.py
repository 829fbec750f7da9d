"""`efficiency`: how many equations each way of proposing needs until the chosen one is right.

    python -m benchmarks efficiency                    # what is missing of results/efficiency.jsonl
    python -m benchmarks efficiency --only b4/inertial-beam --seeds 1

The study covers Benchmarks 3 and 4 and the hard problems of 1 and 2. Each way proposes skeletons; the fit, the data and
the choice (the smallest description length so far) are the same for all. A seed is that of the noise and of the search.
A run ends at the first evaluation at which the chosen equation has the true structure or an error on u
within twice the floor; a longer one might choose another. Fits are kept by problem, draw and sentence while the problem
is worked on, finished runs are skipped, so the study can be stopped and taken up again.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.problems import NamedProblem, problems
from benchmarks.recording import append, rows
from benchmarks.surroundings import machine, versions
from lgf.conditional_flow import conditional_proposers
from lgf.fit.target import Target, make_target
from lgf.flow_proposer import FlowProposer, flow_proposers
from lgf.grammar import load_grammar
from lgf.language.language import Language, make_language
from lgf.latent.bundle import load_bundle
from lgf.latent.rule_flow_file import load_rule_flow
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.loop import SearchSettings, search
from lgf.search.mixture import CONDITIONAL, FLOW, MakeProposer, make_schedule
from lgf.search.precompilation import precompile
from lgf.search.proposers.basic import EnumerationProposer, EvolutionProposer, MonteCarloProposer, Proposer
from lgf.search.settings import PAPER, DiscoverySettings, EnumerationSettings
from lgf.settings.flow import FlowSettings, SamplingSettings
from lgf.smoothing.complete import complete

OTHERS = ("b1/10", "b1/13", "b1/27", "b1/28", "b2/ode2", "b2/nlode2", "b2/nlode3", "b2/nlode5")
MODEL = "standard"
RESULTS = Path(__file__).parent / "results" / "efficiency.jsonl"
BUDGET = 250
WITHIN = (10, 30, 60, 150)
BASE = "missing terms after 8 enumerated"
"""The same search without a network, with which the others are compared."""

# As in the paper: samples from pure noise, no screening, no renoising; the predictors learn after 50 evaluations.
UNGUIDED = replace(
    PAPER.flow, guided=False, stability=False, static=False, growth=1.5, least=50, sampling=SamplingSettings(steps=10)
)
GUIDED = replace(UNGUIDED, guided=True, stability=True, static=True)

Schedule = Sequence[tuple[Proposer, int]]
Make = Callable[[Language, Target, int], Schedule]


def _mixture(settings: DiscoverySettings = DiscoverySettings(), *networks: str) -> Make:
    """The search of the product, with these networks."""
    return lambda language, target, seed: make_schedule(
        [language], {target.frame: target}, settings, seed, {name: _networks()[name] for name in networks}
    )


@cache
def _networks() -> dict[str, MakeProposer]:
    flow = load_rule_flow(MODEL, load_grammar(MODEL))
    assert flow is not None
    return {FLOW: flow_proposers(lambda: load_bundle(MODEL)), CONDITIONAL: conditional_proposers(flow)}


def _latent(language: Language, seed: int, settings: FlowSettings) -> Proposer:
    return FlowProposer(load_bundle(MODEL), [language], seed, settings)


def _listed(language: Language, target: Target, seed: int) -> Proposer:
    proposer = _networks()[CONDITIONAL]([language], {target.frame: target}, DiscoverySettings(), seed)
    assert proposer is not None
    return proposer


METHODS: dict[str, Make] = {
    "monte carlo": lambda language, target, seed: [(MonteCarloProposer([language], seed), 1)],
    "enumeration": lambda language, target, seed: [(EnumerationProposer([language]), 1)],
    "evolution": lambda language, target, seed: [
        (EnumerationProposer([language]), 1),
        (EvolutionProposer([language], seed), 1),
    ],
    # ten iterations, the first ones of eight, each later one a quarter of those before
    "missing terms after 100 enumerated": _mixture(DiscoverySettings(enumeration=EnumerationSettings(iterations=10))),
    BASE: _mixture(),
    "latent flow": lambda language, target, seed: [(_latent(language, seed, UNGUIDED), 1)],
    "conditional flow": lambda language, target, seed: [(_listed(language, target, seed), 1)],
    "conditional flow, then latent flow with the paper's guides": lambda language, target, seed: [
        (_listed(language, target, seed), 1),
        (_latent(language, seed, GUIDED), 1),
    ],
    "default": _mixture(DiscoverySettings(), FLOW, CONDITIONAL),
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


def study(problem_id: str, seed: int, budget: int, methods: Sequence[str], file: Path) -> None:
    """Runs the methods on one draw of a problem and writes a line per run."""
    named = problems()[problem_id]
    problem = named.observe(seed=seed)
    (frame,) = problem.frames
    completions = [complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)]
    target = make_target(problem, frame, completions)
    language = make_language(load_grammar(MODEL), problem, frame, target.ranges)
    evaluator = Evaluator({frame: target}, problem.knowledge, assess_all=True)
    fitted: dict[tuple[str, float], tuple[Candidate, float]] = {}
    settings = SearchSettings(max_evaluations=budget, unique_tolerance=0.0, patience=None)
    for name in methods:
        course = Course(named, target, fitted)
        hit, started = False, time.process_time()
        try:
            search(evaluator, METHODS[name](language, target, seed), settings, Population(), course)
        except Hit:
            hit = True
        proposing = time.process_time() - started - course.away
        line = {
            "problem": problem_id, "method": name, "seed": seed, "budget": budget, "hit": hit,
            "evaluations": course.count, "seconds": proposing + course.fitting, "proposing_seconds": proposing,
            "chosen": str(course.chosen.skeleton) if course.chosen else None,
            "versions": versions(), "machine": machine(),
        }  # fmt: skip
        append(file, line)
        print(problem_id, seed, name, course.count if hit else f"none in {course.count}", flush=True)


def finished(file: Path = RESULTS, budget: int = BUDGET) -> list[dict]:
    """The lines of the finished runs of this budget."""
    return [row for row in rows(file) if row["budget"] == budget]


def table(lines: list[dict]) -> dict[str, dict]:
    """For each method: hits, geometric means of what a run takes, and the gain over `BASE`; and evaluations by problem.

    A run without a hit counts with its budget. "found" are the runs (problem, draw) in which any method has a hit: in
    the others the noise pays for a wrong equation.
    """
    runs: dict[str, dict[tuple[str, int], dict]] = {}
    for line in lines:
        runs.setdefault(line["method"], {})[line["problem"], line["seed"]] = line
    found = {key for of_method in runs.values() for key, line in of_method.items() if line["hit"]}
    base = runs.get(BASE, {})
    methods = {}
    for name in (m for m in METHODS if m in runs):
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
    parser.add_argument("--only", help="problem ids, by commas")
    parser.add_argument("--methods", default=";".join(METHODS), help="by semicolons")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="0 to 4 judge; tune on others")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--json", help="write the table here")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="in place of efficiency.jsonl")
    parser.add_argument("--table", action="store_true", help="only make the table")


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, draw by draw, and prints the table."""
    done = {(x["problem"], x["method"], x["seed"]) for x in finished(args.out, args.budget)}
    work = [*(i for i in problems() if i.startswith(("b4/", "b3/"))), *OTHERS]
    if args.only:
        work = [problem for problem in work if problem in args.only.split(",")]
    if not args.table:
        precompile()  # so that the first fit does not include compilation
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            for problem in work:
                left = [m for m in args.methods.split(";") if (problem, m, seed) not in done]
                if left:
                    study(problem, seed, args.budget, left, args.out)
    text = json.dumps(table(finished(args.out, args.budget)), indent=1)
    print(text)
    if args.json:
        Path(args.json).write_text(text + "\n")
