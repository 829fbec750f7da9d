"""`giving-up`: does a fit give up on true structures? All of B1-B4 and ODEBench, five noise draws; resumable.

A fit in a search uses coarse solutions until it comes near the noise, grows its windows no further once the equation
explains little of one, and tries other starts only while one of them explains something. The fit of a system, in fewer
and fewer segments, ends when it improves slowly. Here each true structure is fitted so, and once without giving up:
solutions as accurate as those of finalists, every window, every start, and steps enough. A structure is lost if its
loss is above twice the loss of the noise with the first settings, and not with the second.

A system starts from the constants of its rows, each fitted to the smoothed record. A chaotic one stays in segments.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.choosing import BENCHMARKS, chosen, stated, true_skeleton
from benchmarks.odebench import all_systems
from benchmarks.odebench_protocol import observe
from benchmarks.problems import frame_of
from benchmarks.recording import RESULTS, append, digest, rows
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.problem import Problem
from lgf.equation.skeleton import Skeleton
from lgf.fit.constants import fit_constants
from lgf.fit.segments import Shooting
from lgf.fit.settings import FitSettings
from lgf.fit.target_assembly import make_target
from lgf.search.proposers import components
from lgf.smoothing.complete import complete

SEARCH = FitSettings()
THOROUGH = FitSettings(patient=True)
SEGMENTS = (components.SEGMENTS[0], *components.DESCENT[1:])
NOISE = 0.05
NEAR = 2.0  # times the loss of the noise
LARGEST = 1e6  # in its place for a fit without a solution
ROWS = RESULTS / "giving_up.jsonl"


def truths(seed: int) -> Iterator[tuple[str, str, Callable[[], Problem], Skeleton]]:
    """(group, problem, data, true structure) of every equation and system."""
    for named in chosen(None, BENCHMARKS):
        yield named.id.partition("/")[0], named.id, lambda n=named: n.observe(NOISE, seed), true_skeleton(named)
    for system in all_systems():
        own = len(system.rhs)
        skeleton = system.system.skeleton if own > 1 else stated(system.system.skeleton)
        group = "odebench, one state" if own == 1 else "odebench, systems"
        yield group, system.id, lambda s=system: observe(s, NOISE, 0.0, seed), skeleton


def losses(problem: Problem, skeleton: Skeleton) -> list[float]:
    """The loss of both fits in units of the loss of the noise."""
    one_state = len(skeleton.frame.states) == 1
    frame = frame_of(problem, skeleton.frame.orders[0]) if one_state else problem.frames[-1]
    completions = [complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)]
    target = make_target(problem, frame, completions)
    shooting = None if one_state else Shooting(SEGMENTS)
    fits = [fit_constants(skeleton, target, s, shooting=shooting) for s in (SEARCH, THOROUGH)]
    return [fit.loss / target.noise_loss for fit in fits]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--seeds", type=int, default=5, help="noise draws (5)")


def main(args: argparse.Namespace) -> None:
    """Fits the structures that are missing in both ways, prints and stores the figures."""
    name = digest([asdict(SEARCH), asdict(THOROUGH), SEGMENTS, NOISE, versions()["lgf"]])
    found = {(row["problem"], row["seed"]): row for row in rows(ROWS) if row["digest"] == name}
    with threadpool_limits(limits=1):
        for seed in range(args.seeds):
            for group, problem, data, skeleton in truths(seed):
                if (problem, seed) not in found:
                    ratios = [min(r, LARGEST) for r in losses(data(), skeleton)]
                    row = {"digest": name, "group": group, "problem": problem, "seed": seed, "losses": ratios}
                    append(ROWS, row)
                    found[problem, seed] = row
    fits = [row for row in found.values() if row["seed"] < args.seeds]
    groups = {}
    for group in dict.fromkeys(row["group"] for row in fits):
        own = [row for row in fits if row["group"] == group]
        near = np.array([row["losses"] for row in own]) <= NEAR
        groups[group] = {
            "fits": len(own), "near": int(near[:, 0].sum()), "near_without_giving_up": int(near[:, 1].sum()),
            "lost": [(row["problem"], row["seed"]) for row, n in zip(own, near, strict=True) if n[1] and not n[0]],
        }  # fmt: skip
        print(group, groups[group])
    worst = sorted(((row["losses"][0], row["problem"], row["seed"]) for row in fits), reverse=True)[:10]
    facts = {
        "noise": NOISE, "seeds": args.seeds, "groups": groups, "worst": worst, "load": load_average(),
        "machine": machine(), "versions": versions(),
    }  # fmt: skip
    (RESULTS / "giving_up.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    ROWS.unlink()
