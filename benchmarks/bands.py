"""`bands`: how often do 90 % bands hold new measurements? One line of JSON for each problem of B1 to B4; resumable.

A quarter of the samples is held out at random. The equation is discovered from the rest, and its band is compared with
the held-out samples, and with a fresh noise draw at the times of the training samples.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choosing import BENCHMARKS, benchmark_of, chosen
from benchmarks.judging import judged
from benchmarks.problems import NamedProblem
from benchmarks.recording import RESULTS, append, rows
from benchmarks.surroundings import load_average, machine, versions
from lgf.grammar import load_grammar
from lgf.runs.bands import Bands
from lgf.runs.request import Request, execute

FILE = RESULTS / "bands.jsonl"
INTERVAL = 0.9
NOISE = 0.05
HELD_OUT = 0.25


def run_one(problem: NamedProblem, seed: int) -> dict[str, Any]:
    """The coverage of the band on held-out samples and on fresh noise, and its mean width in units of the noise."""
    data = problem.observe(NOISE, seed)
    (whole,) = data.observations
    rng = np.random.default_rng([problem.index, seed, 1])
    held = rng.random(len(whole)) < HELD_OUT
    held[0] = False  # the time of the initial state
    training = replace(whole, t=whole.t[~held], values=whole.values[~held])
    run = execute(Request(replace(data, observations=(training,)), load_grammar("standard"), seed=seed))
    band = Bands(run).of_experiment(0, whole.t, INTERVAL)
    lower, upper = (part.values[:, part.variables.index(whole.columns[0])] for part in band[1:])
    clean = problem.truth().values[:, problem.observed]
    sigma = NOISE * float(np.std(clean))
    fresh = clean + sigma * rng.standard_normal(len(clean))
    values = whole.values[:, 0]
    return {
        "problem": problem.id,
        "seed": seed,
        "held_out": _share(values[held], lower[held], upper[held]),
        "n_held_out": int(held.sum()),
        "fresh": _share(fresh[~held], lower[~held], upper[~held]),
        "width": float(np.nanmean(upper - lower) / (2 * sigma)),
        "set_size": len(run.indistinguishable),
        "exact": judged(problem, run.system)["exact"],
        "equation": str(run.system),
    }


def _share(values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    return float(np.mean((values >= lower) & (values <= upper)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--only", metavar="IDS", help='such as "b1/03,b3"')
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FILE, metavar="FILE")


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, and prints the coverage of each benchmark."""
    done = {(row["problem"], row["seed"]) for row in rows(args.out)}
    for seed in range(args.seeds):
        for problem in chosen(args.only):
            if (problem.id, seed) in done:
                continue
            row = run_one(problem, seed)
            append(args.out, row | {"load": load_average(), "machine": machine(), "versions": versions()})
            print(f"{problem.id:28s} {row['held_out']:.3f} {row['fresh']:.3f} {row['width']:.2f}", flush=True)
    for line in summary(rows(args.out)):
        print(line)


def summary(lines: list[dict[str, Any]]) -> list[str]:
    """The mean coverage of each benchmark and of all problems."""
    found = []
    for name in (*BENCHMARKS, "all"):
        part = [row for row in lines if name in ("all", benchmark_of(row["problem"]))]
        if part:
            held, fresh, width = (np.mean([row[key] for row in part]) for key in ("held_out", "fresh", "width"))
            poor = sum(row["fresh"] < 0.8 for row in part)
            found.append(
                f"{name:4s} {len(part):3d} runs  held out {held:.3f}  fresh noise {fresh:.3f}  half width {width:.2f} "
                f"of the noise  (below .8 on {poor})"
            )
    return found
