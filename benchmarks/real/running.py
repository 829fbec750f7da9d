"""`real`: predictions on real records (Benchmark 5), one line of JSON for each test and method; resumable.

`python -m benchmarks real` runs the half for development, `--held-back` the other one. Results are in
`benchmarks/results/real-LABEL.jsonl`, with those that do not depend on the version of lgf's search (naive predictions,
Gaussian process, PySINDy, linear equations) in `real-references.jsonl`; for records that are held back, in
`real-held-back-...`.
"""

import argparse
import math
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real.baselines import chosen_in_advance, gaussian_process, naive
from benchmarks.real.models import Prediction, discovered, linear, pysindy
from benchmarks.real.protocol import WORST, Trial, trials_of
from benchmarks.real.records import RealRecord, held_back, install, records
from benchmarks.real.summary import print_summary
from benchmarks.recording import RESULTS, append, rows
from benchmarks.surroundings import load_average, machine, versions
from lgf.errors import LgfError

LGF, GP = "lgf", "Gaussian process"
REFERENCES: dict[str, Callable[[Trial], Prediction]] = {
    GP: lambda test: _timed(lambda: gaussian_process(test)),
    "linear, order 1": lambda test: linear(test, 1),
    "linear, order 2": lambda test: linear(test, 2),
    "PySINDy": pysindy,
}


def _timed(predict: Callable[[], list[np.ndarray]]) -> Prediction:
    started = time.process_time()
    return Prediction(predict(), "", 0, None, time.process_time() - started)


def file_of(label: str, held: bool) -> Path:
    """The file of the results under this label."""
    return RESULTS / f"real-{'held-back-' if held else ''}{label}.jsonl"


def run_one(test: Trial, method: str, settings: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    """The result line of one test and method; a failure has the worst ratio and the reason."""
    baselines = {name: test.error(values) for name, values in naive(test).items()}
    best = min(baselines.values())
    about: dict[str, Any] = {"record": test.record, "test": test.kind, "method": method, "baselines": baselines}
    about["in_advance"] = chosen_in_advance(test)
    try:
        found = discovered(test, {"seed": seed, **settings}) if method == LGF else REFERENCES[method](test)
    except (LgfError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "stderr", None) or str(error)
        return about | {"error": None, "ratio": WORST, "failure": str(reason).strip()[-300:]}
    error = test.error(found.values)
    return about | {
        "error": error if math.isfinite(error) else None,
        "ratio": min(error / best, WORST) if math.isfinite(error) else WORST,
        "in_sample": found.in_sample,
        "equation": found.equation,
        "constants": found.constants,
        "seconds": round(found.seconds, 2),
        "predicted": [[[_short(v) for v in row] for row in piece] for piece in found.values] if method == LGF else None,
    }


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--install", action="store_true", help="make the environment of the records, and extract them")
    parser.add_argument("--held-back", action="store_true", help="the half that is run at a release only")
    parser.add_argument("--only", metavar="IDS", help='such as "orange,growth"')
    parser.add_argument("--label", default="current", help="name of the results of lgf (current)")
    parser.add_argument("--evaluations", type=int, metavar="N", help="budget of each search (default: lgf's own)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--references", action="store_true", help="run the other methods, not lgf's search")
    parser.add_argument("--summary", action="store_true", help="only print the results that there are")
    parser.add_argument("--page", action="store_true", help="write docs/real.md from the results that there are")


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, and prints the table."""
    if args.install:
        install()
        return
    if args.page:
        from benchmarks.real.page import write_page

        print(write_page())
        return
    chosen = _chosen(args.only, args.held_back)
    budget = {} if args.evaluations is None else {"max_evaluations": args.evaluations}
    own = file_of(args.label, args.held_back)
    plan = [(LGF, own, budget)]
    if args.references:
        plan = [(name, file_of("references", args.held_back), {}) for name in REFERENCES]
    for method, file, settings in plan if not args.summary else []:
        done = {(row["record"], row["test"], row["method"]) for row in rows(file)}
        for record in chosen:
            for test in trials_of(record):
                if (test.record, test.kind, method) in done:
                    continue
                load = load_average()
                row = run_one(test, method, settings, args.seed)
                where = {"seed": args.seed, "load": load, "machine": machine(), "versions": versions()}
                append(file, row | {"settings": settings} | where)
                print(f"{test.record:14s} {test.kind:9s} {method:16s} {row['ratio']:7.3f}  {_what(row)}", flush=True)
    lines = [*rows(own), *rows(file_of("references", args.held_back))]
    print_summary([row for row in lines if row["record"] in {r.id for r in chosen}])


def _what(row: dict[str, Any]) -> str:
    return row.get("failure") or row["equation"]


def _chosen(only: str | None, held: bool) -> list[RealRecord]:
    among = [r for r in records().values() if (r.id in held_back()) == held]
    if only is None:
        return among
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    for name in wanted:
        if name not in {r.id for r in among}:
            half = "held back" if held else "for development"
            raise LgfError(f"{name!r} is not a record {half}; choose from {', '.join(r.id for r in among)}.")
    return [r for r in among if r.id in wanted]
