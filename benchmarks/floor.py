"""`floor`: errors of the true structures, fitted without an initial guess, against the error floor set by the noise."""

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.choosing import PUBLISHED, benchmark_of, chosen, true_skeleton, written_skeleton
from benchmarks.problems import NamedProblem, Score, frame_of
from benchmarks.surroundings import load_average, machine, versions
from lgf.fit.target_assembly import make_target
from lgf.search.candidate import Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.loop import joblib_map
from lgf.search.select import SelectionSettings, finalists
from lgf.smoothing.complete import complete

WITHIN = 1.5
FORMS = {"written": written_skeleton, "search": true_skeleton}


@dataclass(frozen=True)
class Fit:
    """The true structure of a problem fitted to one noise draw; times are processor milliseconds."""

    problem: str
    seed: int
    default: Score
    refitted: Score
    fit_ms: float
    refit_ms: float


def fit_truth(problem: NamedProblem, seed: int, form: str = "written") -> Fit:
    """The default fit without an initial guess, then the finalists' refit, each scored by the independent solver."""
    data = problem.observe(seed=seed)
    frame = frame_of(data, problem.order)
    completions = [complete(o, frame, "auto", data.signals(e)) for e, o in enumerate(data.observations)]
    target = make_target(data, frame, completions)
    evaluator = Evaluator({frame: target}, data.knowledge)
    with threadpool_limits(limits=1):  # processor time of one core
        began = time.process_time()
        candidate = evaluator(Proposal(FORMS[form](problem), bits=0.0))
        fitted = time.process_time()
        (refitted,) = finalists(Population([candidate]), evaluator, joblib_map(), SelectionSettings(n_finalists=1))
        ended = time.process_time()
    return Fit(
        problem=problem.id,
        seed=seed,
        default=problem.score(candidate.fit.system(target)),
        refitted=problem.score(refitted.fit.system(target)),
        fit_ms=1e3 * (fitted - began),
        refit_ms=1e3 * (ended - fitted),
    )


def summarise(problem: NamedProblem, fits: Sequence[Fit]) -> dict:
    """The results of one problem: mean errors over the seeds, and the ratio for u."""
    errors = _mean_errors([f.refitted for f in fits])
    return {
        "problem": problem.id,
        "errors": errors,
        "default_errors": _mean_errors([f.default for f in fits]),
        "floor": problem.floor,
        "ratio": errors[0] / problem.floor[0],
        "worst_u": max(f.refitted.u for f in fits),
        "fit_ms": float(np.mean([f.fit_ms for f in fits])),
        "refit_ms": float(np.mean([f.refit_ms for f in fits])),
    }


def _mean_errors(scores: Sequence[Score]) -> list[float]:
    rows = [(s.u, s.du) if s.d2u is None else (s.u, s.du, s.d2u) for s in scores]
    return [float(e) for e in np.mean(rows, axis=0)]


def counts(summaries: Sequence[dict]) -> dict[str, tuple[int, int]]:
    """(within the ratio, problems) of the published benchmarks and of all."""
    groups = {"b1-b3": [s for s in summaries if benchmark_of(s["problem"]) in PUBLISHED], "all": list(summaries)}
    return {name: (sum(s["ratio"] <= WITHIN for s in group), len(group)) for name, group in groups.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--seeds", type=int, default=5, help="noise draws a problem (5)")
    parser.add_argument("--only", metavar="IDS", help='such as "b1,b3/duffing"')
    parser.add_argument("--form", choices=FORMS, default="written", help="as the benchmark writes it (default), or as "
                        "the search states it, a constant at every term")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")


def main(args: argparse.Namespace) -> None:
    """Prints the floor of each problem."""
    named = chosen(args.only)
    fit_truth(named[0], 0)  # loads the kernels, so that the first problem's time does not include it
    print(f"{'':26s}{'u':>8s} {'du':>8s} {'d2u':>8s}   {'floor u':>8s} {'ratio':>6s} {'fit ms':>8s} {'refit ms':>8s}")
    summaries = []
    for problem in named:
        tasks = (delayed(fit_truth)(problem, seed, args.form) for seed in range(args.seeds))
        summary = summarise(problem, list(Parallel(n_jobs=args.jobs)(tasks)))
        summaries.append(summary)
        u, du, d2u = (*summary["errors"], math.nan)[:3]
        print(
            f"{problem.id:26s}{u:8.4f} {du:8.4f} {d2u:8.4f}   {problem.floor[0]:8.4f} {summary['ratio']:6.2f} "
            f"{summary['fit_ms']:8.1f} {summary['refit_ms']:8.1f}",
            flush=True,
        )
    found = counts(summaries)
    for name, (near, total) in found.items():
        print(f"{name}: {near} of {total} within {WITHIN} of the floor on u")
    print(f"mean fit {np.mean([s['fit_ms'] for s in summaries]):.1f} ms; load average {load_average():.1f}")
    if args.json is not None:
        report = {"problems": summaries, "within": found, "seeds": args.seeds, "form": args.form, "machine": machine()}
        args.json.write_text(json.dumps(report | {"versions": versions(), "load": load_average()}, indent=1) + "\n")
