"""`run`: discovers the problems of a benchmark, one line of JSON for each problem and seed; resumable."""

import argparse
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import dysts_systems, odebench
from benchmarks.choosing import BENCHMARKS, chosen
from benchmarks.judging import judged, truth_beside
from benchmarks.ladder import RUNGS, rung_settings
from benchmarks.peers.asking import CORES, ask
from benchmarks.peers.asking import names as peer_names
from benchmarks.problems import NamedProblem
from benchmarks.recording import RESULTS, append, digest, rows
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.problem import Problem
from lgf.equation.system import System
from lgf.fit.settings import FitMethod
from lgf.grammar import load_grammar
from lgf.runs.presets import proposers_for
from lgf.search.discover import discover
from lgf.search.settings import PRESETS, DiscoverySettings, ProposerShare
from lgf.threads import on_threads

PAPER_BUDGETS = {"b1": (100, 150), "b2": (100, 250), "b3": (250, 250)}
"""Equations of an iteration and fine steps of Nelder-Mead, with the preset "paper"; it has ten iterations."""

SYSTEMS = {"odebench": odebench.main, "dysts": dysts_systems.main}


@dataclass(frozen=True)
class Options:
    """The options of a benchmark run; equal options give equal results."""

    benchmark: str
    model: str = "standard"
    preset: str = "default"
    proposer: str = "default"
    peer: str | None = None
    noise: float = 0.05
    thin: int = 1  # every thin-th sample
    initial: bool = True  # whether the initial state is given
    evaluations: int | None = None
    fit: str = "default"  # or Nelder-Mead's, the paper's
    trained: str | None = None  # folder of a model to search with instead of the shipped one
    rung: str | None = None  # of the ladder from the paper to the default

    @property
    def name(self) -> str:
        """A file name made of the options that differ from the defaults."""
        parts = [self.benchmark] + ([self.peer] if self.peer else [self.model, self.preset])
        parts += [self.proposer] if self.proposer != "default" else []
        parts += [f"noise{self.noise:g}"] if self.noise != 0.05 else []
        parts += [f"thin{self.thin}"] if self.thin != 1 else []
        parts += ["no-initial"] if not self.initial else []
        parts += [f"{self.evaluations}"] if self.evaluations is not None else []
        parts += [self.fit] if self.fit != "default" else []
        parts += [Path(self.trained).name] if self.trained else []
        parts += [f"rung-{self.rung}"] if self.rung else []
        return "-".join(parts)

    @property
    def grammar(self) -> str:
        """The name of the grammar."""
        return "standard" if self.rung is not None and RUNGS[self.rung].own_grammar else self.model

    def settings(self) -> DiscoverySettings:
        """The preset with this budget, fit and proposer."""
        preset = PRESETS[self.preset]
        if self.preset == "paper" and self.benchmark in PAPER_BUDGETS:
            population, fine = PAPER_BUDGETS[self.benchmark]
            preset = replace(
                preset,
                search=replace(preset.search, first=population, population=population),
                fit=replace(preset.fit, fine_iterations=fine),
            )
        if self.rung is not None:
            preset = rung_settings(preset, self.rung)
        if self.fit != "default":
            preset = replace(preset, fit=replace(preset.fit, method=FitMethod(self.fit)))
        if self.proposer != "default":
            preset = replace(preset, proposers=PROPOSERS[self.proposer])
        if self.proposer == "flow-unguided":
            preset = replace(preset, flow=replace(preset.flow, guided=False, stability=False))
        if self.evaluations is None:
            return preset
        budget = replace(preset.search, max_evaluations=self.evaluations, iterations=None, patience=None)
        return replace(preset, search=budget)

    def digest(self) -> str:
        """The key of finished runs; it depends on every setting and on the grammar."""
        options = {name: value for name, value in asdict(self).items() if name != "rung" or value is not None}
        if self.peer is not None:
            return digest([options])
        return digest([options, asdict(self.settings()), load_grammar(self.grammar).fingerprint])


PROPOSERS: dict[str, tuple[ProposerShare, ...]] = {
    "default": DiscoverySettings().proposers,
    "no-model": (ProposerShare("missing terms", 0.6), ProposerShare("evolution", 0.4)),
    "monte-carlo": (ProposerShare("monte carlo", 1.0),),
    "flow": (ProposerShare("flow", 1.0),),
    "flow-unguided": (ProposerShare("flow", 1.0),),
}


def observed(problem: NamedProblem, options: Options, seed: int) -> Problem:
    """The data and knowledge of the method under these options."""
    data = problem.observe(options.noise, seed)
    (observation,) = data.observations
    thinned = replace(
        observation,
        t=observation.t[:: options.thin],
        values=observation.values[:: options.thin],
        initial=observation.initial if options.initial else {},
    )
    return replace(data, observations=(thinned,))


def run_one(problem: NamedProblem, options: Options, seed: int, jobs: int) -> dict[str, Any]:
    """The result line of one problem and seed."""
    data = observed(problem, options, seed)
    load = load_average()
    if options.peer is not None:
        answer = ask(options.peer, data, problem.order, seed)
        equation = System.read(answer.pop("equation"), problem.formulas)
        facts = answer | {"evaluations": None, "truth": None}
        cores = CORES
    else:
        grammar = load_grammar(options.grammar)
        began = time.process_time()
        with on_threads(jobs) as spread:
            found = discover(
                data, grammar, options.settings(), proposers=proposers_for(grammar, options.trained), seed=seed,
                spread=spread,
            )  # fmt: skip
        equation, cores = found.system, jobs
        facts = {
            "objective": found.best.objective,
            "seconds": found.seconds,
            "cpu_seconds": time.process_time() - began,
            "evaluations": found.evaluations,
            "set_size": len(found.indistinguishable),
            "truth": truth_beside(problem, grammar, found),
        }
    about = {"problem": problem.id, "seed": seed, "digest": options.digest(), "options": asdict(options)}
    where = {"cores_used": cores, "load": load, "machine": machine(), "versions": versions()}
    return about | judged(problem, equation) | facts | where


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("benchmark", choices=(*BENCHMARKS, *SYSTEMS))
    parser.add_argument("--model", default="standard", help="grammar, and the model trained on it (standard)")
    parser.add_argument("--preset", default="default", choices=tuple(PRESETS))
    parser.add_argument("--proposer", default="default", choices=tuple(PROPOSERS), help="for ablations")
    parser.add_argument("--peer", choices=peer_names(), help="run this program instead")
    parser.add_argument("--seeds", type=int, help="seeds 0, 1, ... (5; 3 for systems)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed, for systems (0)")
    parser.add_argument("--jobs", type=int, default=2, help="threads (2)")
    parser.add_argument("--noise", type=float, default=0.05, help="in standard deviations of the signal (0.05)")
    parser.add_argument("--thin", type=int, default=1, metavar="K", help="use every K-th sample")
    parser.add_argument("--no-initial", action="store_true", help="do not tell the initial state")
    parser.add_argument("--evaluations", type=int, metavar="N", help="skeletons to try")
    parser.add_argument("--fit", default="default", choices=("default", FitMethod.NELDER_MEAD), help="of the constants")
    parser.add_argument("--trained", metavar="FOLDER", help="search with the model in this folder")
    parser.add_argument("--rung", choices=tuple(RUNGS), help="of the ladder; with --preset paper")
    parser.add_argument("--only", metavar="IDS", help='such as "b1/03,b1/25"')
    parser.add_argument("--out", type=Path, metavar="FILE", help="in place of benchmarks/results/NAME.jsonl")


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, seed by seed."""
    if args.benchmark in SYSTEMS:
        SYSTEMS[args.benchmark](args)
        return
    args.seeds = 5 if args.seeds is None else args.seeds
    options = Options(
        args.benchmark, args.model, args.preset, args.proposer, args.peer, args.noise, args.thin, not args.no_initial,
        args.evaluations, args.fit, args.trained, args.rung,
    )  # fmt: skip
    file = args.out or RESULTS / f"{options.name}.jsonl"
    named, name = chosen(args.only, [args.benchmark]), options.digest()
    done = {(row["problem"], row["seed"]) for row in rows(file) if row["digest"] == name}
    for seed in range(args.seeds):
        for problem in named:
            if (problem.id, seed) in done:
                continue
            row = run_one(problem, options, seed, args.jobs)
            append(file, row)
            errors = " ".join(f"{e:.4f}" for e in row["errors"])
            cause = row["truth"]["cause"] if row["truth"] else "exact" if row["exact"] else row.get("failure", "")
            what = f"{problem.id:26s} {seed}  {errors}  {row['seconds']:6.1f} s  {cause:15s}"
            print(what, row["equation"], flush=True)
    print(f"all {len(named) * args.seeds} runs are in {file}")
