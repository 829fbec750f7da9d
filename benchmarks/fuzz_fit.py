"""Fits random skeletons of every grammar, and a hostile set, to find crashes, NaN and slow fits.

python -m benchmarks.fuzz_fit 100000 [--jobs 2] [--json FILE]
"""

import argparse
import json
import time
from collections import Counter

import numpy as np
from joblib import Parallel, delayed

from benchmarks.problems import problems
from lgf.equation.skeleton import Skeleton
from lgf.fit.constants import fit_constants
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.language.language import make_language
from lgf.search.proposers.basic import MonteCarloProposer
from lgf.smoothing.complete import complete

STAGES = [
    ("standard", "b1/14"), ("standard", "b1/28"), ("standard", "b3/duffing"), ("standard", "b4/quintic-spring"),
    ("b1", "b1/06"), ("b2", "b2/ode2"), ("b2", "b2/nlode4"), ("b3", "b3/van-der-pol"), ("b3", "b3/damped-oscillator"),
]  # fmt: skip
HOSTILE = [
    "u' = C*exp(exp(C*u))", "u' = log(C - u)", "u' = C/(C - C*u)", "u' = C*u^C*exp(C*u)", "u' = C*exp(C*exp(C*t))",
    "1/u' = C*u", "u'^2 = -1 - C^2", "sin(u') = 5", "u' = sqrt(-u)", "u' = 1e300*C*u", "u'^5 + C*u' = exp(C*u^5)",
    "u' = C*tanh(C*exp(C*u^5))", "u' = abs(C*u)^C^C", "log(u') = C*u", "u' = C*sin(1e8*t)", "u' = C/(t - t)",
]  # fmt: skip


def run_batch(grammar_name: str, problem_id: str, n: int, seed: int) -> tuple[list[float], Counter, list[str]]:
    """(CPU seconds of each fit, statuses, faults) of n random skeletons on one problem."""
    problem = problems()[problem_id].observe(seed=0)
    frame = problem.frames[0]
    completions = [complete(o, frame, "whittaker", problem.signals(e)) for e, o in enumerate(problem.observations)]
    target = make_target(problem, frame, completions)
    language = make_language(load_grammar(grammar_name), problem, frame, target.ranges)
    skeletons = [p.skeleton for p in MonteCarloProposer([language], seed).ask(n)]
    if frame.orders == (1,):
        skeletons += [Skeleton.read(text, frame) for text in HOSTILE]
    fit_constants(skeletons[0], target)
    times, statuses, complaints = [], Counter(), []
    for skeleton in skeletons:
        began = time.process_time()
        fit = fit_constants(skeleton, target)
        times.append(time.process_time() - began)
        statuses[fit.status.value] += 1
        if np.isnan(fit.loss) or not np.all(np.isfinite(fit.values)) or np.isnan(fit.covariance).any():
            complaints.append(f"{problem_id}: {skeleton}: loss {fit.loss}, values {fit.values}")
    return times, statuses, complaints


def fuzz(n: int, jobs: int = 1) -> dict:
    """Statistics of about n skeletons."""
    batch = 500
    rounds = max(1, n // (batch * len(STAGES)))
    work = [(g, p, batch, seed) for seed in range(rounds) for g, p in STAGES]
    results = Parallel(n_jobs=jobs)(delayed(run_batch)(*w) for w in work)
    times = np.array([t for r in results for t in r[0]]) * 1e3
    return {
        "skeletons": len(times),
        "mean_ms": float(times.mean()),
        "p50_ms": float(np.quantile(times, 0.5)),
        "p99_ms": float(np.quantile(times, 0.99)),
        "p99.9_ms": float(np.quantile(times, 0.999)),
        "max_ms": float(times.max()),
        "statuses": dict(sum((r[1] for r in results), Counter())),
        "complaints": [c for r in results for c in r[2]],
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=100_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json")
    args = parser.parse_args()
    found = fuzz(args.n, args.jobs)
    text = json.dumps(found, indent=1)
    print(text)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
