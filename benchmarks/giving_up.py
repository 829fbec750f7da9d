"""`giving-up`: does a fit give up on true structures? All of B1-B4 and ODEBench, five noise draws.

A fit in a search uses coarse solutions until it comes near the noise, grows its windows no further once the equation
explains little of one, and tries other starts only while one of them explains something. Here each true structure is
fitted so, and once without giving up: solutions as accurate as they ever are, every window, every start. A structure is
lost if its loss is above twice the loss of the noise with the first settings, and not with the second.

ODEBench enters with its 23 equations of one state: the joint fit of a system starts from the constants of its rows, and
gives up on nothing.
"""

import argparse
import json
import math
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.choosing import BENCHMARKS, chosen, stated, true_skeleton
from benchmarks.odebench import all_systems
from benchmarks.odebench_protocol import observe
from benchmarks.problems import frame_of
from benchmarks.recording import RESULTS
from benchmarks.surroundings import load_average, machine, versions
from lgf.data.problem import Problem
from lgf.equation.skeleton import Skeleton
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitSettings
from lgf.fit.target import make_target
from lgf.smoothing.complete import complete

SEARCH = FitSettings()
THOROUGH = FitSettings(coarse_rtol=SEARCH.rtol, give_up=1.0, rescue_below=10.0)
NOISE = 0.05
NEAR = 2.0  # times the loss of the noise


def truths(seed: int) -> Iterator[tuple[str, str, Problem, Skeleton]]:
    """(group, problem, data, true structure) of every equation of one state."""
    for named in chosen(None, BENCHMARKS):
        yield named.id.partition("/")[0], named.id, named.observe(NOISE, seed), true_skeleton(named)
    for system in all_systems():
        if len(system.rhs) == 1:
            yield "odebench", system.id, observe(system, NOISE, 0.0, seed), stated(system.system.skeleton)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--seeds", type=int, default=5, help="noise draws (5)")


def main(args: argparse.Namespace) -> None:
    """Fits all structures in both ways, prints and stores the figures."""
    rows = []
    with threadpool_limits(limits=1):
        for seed in range(args.seeds):
            for group, name, problem, skeleton in truths(seed):
                frame = frame_of(problem, skeleton.frame.orders[0])
                completions = [
                    complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)
                ]
                target = make_target(problem, frame, completions)
                losses = [fit_constants(skeleton, target, s).loss / target.noise_loss for s in (SEARCH, THOROUGH)]
                rows.append((group, name, seed, losses))
    groups = {}
    for group in dict.fromkeys(row[0] for row in rows):
        ratios = np.array([row[3] for row in rows if row[0] == group])
        near = ratios <= NEAR
        groups[group] = {
            "fits": len(ratios), "near": int(near[:, 0].sum()), "near_without_giving_up": int(near[:, 1].sum()),
            "lost": [(row[1], row[2]) for row in rows if row[0] == group and row[3][0] > NEAR >= row[3][1]],
        }  # fmt: skip
        print(group, groups[group])
    worst = sorted(((row[3][0], row[1], row[2]) for row in rows if math.isfinite(row[3][0])), reverse=True)[:10]
    facts = {
        "noise": NOISE, "seeds": args.seeds, "groups": groups, "worst": worst, "load": load_average(),
        "machine": machine(), "versions": versions(),
    }  # fmt: skip
    (RESULTS / "giving_up.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
