"""`lists`: processor time until the first proposals for the forty systems of ODEBench.

    python -m benchmarks lists --json benchmarks/results/first_lists.json

A list is what a search starts from: the right-hand sides of every row, ranked, and the first eight systems made of
them. It is counted from the smoothed record and the language of the problem, as for one state in `conditional`. Both
are needed by every search, whatever proposes; their seconds stand beside it. Each figure is the best of three in one
process, whose kernels and grammar are loaded.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.odebench import Benchmarked, systems
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.row_knowledge import RowKnowledge
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.search.proposers.components import ComponentProposer
from lgf.search.systems.language import GRAMMAR, system_language
from lgf.smoothing.complete import complete

NOISE, FIRST, REPETITIONS = 0.05, 8, 3


def seconds(system: Benchmarked, seed: int) -> dict[str, float]:
    """Processor seconds of smoothing, of the language and of the list."""
    problem = system.observe(NOISE, seed)
    (frame,) = problem.frames
    grammar = load_grammar(GRAMMAR)
    runs = []
    for _ in range(REPETITIONS):
        began = time.process_time()
        completions = [complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)]
        target = make_target(problem, frame, completions)
        smoothed = time.process_time()
        language = system_language(grammar, problem, frame, target)
        read = time.process_time()
        ComponentProposer(language, target, RowKnowledge(frame)).ask(FIRST)
        runs.append((smoothed - began, read - smoothed, time.process_time() - read))
    best = np.min(runs, axis=0).round(4).tolist()
    return dict(zip(("smoothing", "language", "list"), best, strict=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    parser.add_argument("--json", type=Path, help="write the figures here")


def main(args: argparse.Namespace) -> None:
    """Measures all systems and prints the medians, also by the number of states."""
    every = systems()
    seconds(every[0], args.seed)  # loads the kernels
    rows = {system.id: {"states": len(system.rhs)} | seconds(system, args.seed) for system in every}
    medians = {}
    for states in ("all", *sorted({row["states"] for row in rows.values()})):
        own = [row for row in rows.values() if states in ("all", row["states"])]
        medians[str(states)] = {key: float(np.median([row[key] for row in own])) for key in own[0] if key != "states"}
    print(json.dumps(medians, indent=1))
    if args.json:
        facts = {
            "noise": NOISE,
            "seed": args.seed,
            "load": load_average(),
            "machine": machine(),
            "versions": versions(),
        }
        args.json.write_text(json.dumps({**facts, "medians": medians, "systems": rows}, indent=1) + "\n")
