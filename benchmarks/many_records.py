"""`batch`: 200 short records in one command, on two processes: processor seconds, wall seconds, right answers.

The records are 25 draws each of eight systems of one state, with constants of their own, 40 samples and 3 % noise.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.choosing import stated
from benchmarks.recording import RESULTS
from benchmarks.surroundings import load_average, machine, versions
from lgf.equation.system import System
from lgf.solver.solve import solve

# (system, start, end of the window); each number is multiplied by a factor between 0.8 and 1.25
KINDS = (
    ("u' = -{a}*u", {"a": 0.5}, (2.0,), 6.0),
    ("u' = {a} - {b}*u", {"a": 1.0, "b": 0.6}, (0.1,), 8.0),
    ("u' = {a}*u - {b}*u^2", {"a": 1.0, "b": 0.8}, (0.05,), 9.0),
    ("u' = {a} - {b}*u^2", {"a": 1.5, "b": 0.4}, (0.2,), 5.0),
    ("u' = -{a}*u + {b}*sin(2*t)", {"a": 0.6, "b": 1.0}, (1.0,), 10.0),
    ("u'' = -{a}*u", {"a": 2.0}, (1.0, 0.0), 10.0),
    ("u'' = -{a}*u - {b}*u'", {"a": 2.0, "b": 0.3}, (1.0, 0.0), 10.0),
    ("u'' = -{a}*u - {b}*u^3", {"a": 1.0, "b": 0.8}, (1.5, 0.0), 10.0),
)
SAMPLES, NOISE = 40, 0.03


def write_records(folder: Path, n: int, seed: int = 0) -> dict[str, System]:
    """The true systems by the name of their record; the records are written into the folder."""
    truths = {}
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        text, constants, start, end = KINDS[number % len(KINDS)]
        drawn = {name: value * 1.25 ** rng.uniform(-1, 1) for name, value in constants.items()}
        truth = System.read(text.format(**{name: f"{value:.6g}" for name, value in drawn.items()}))
        t = np.linspace(0.0, end, SAMPLES)
        u = solve(truth, start, t).u
        table = np.column_stack([t, u + NOISE * u.std() * rng.standard_normal(SAMPLES)])
        np.savetxt(folder / f"r{number}.csv", table, delimiter=",", header="t,u", comments="", fmt="%.8g")
        truths[f"r{number}"] = truth
    return truths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--workers", default="processes", help="processes or threads (processes)")


def main(args: argparse.Namespace) -> None:
    """Answers the records by the command line, prints and stores the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truths = write_records(folder, args.records)
        command = [sys.executable, "-m", "lgf", "discover", str(folder), "--batch", str(folder / "out"), "--jobs", "2"]
        load, began, before = load_average(), time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "--workers", args.workers], check=True, stdout=subprocess.DEVNULL)
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        with (folder / "out" / "summary.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    exact = 0
    for row in rows:
        found = System.read(row["equation"]) if row["equation"] else None
        exact += (
            found is not None and stated(found.skeleton).structure == stated(truths[row["record"]].skeleton).structure
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    facts = {
        "records": args.records, "workers": args.workers, "cpu_seconds": cpu, "wall_seconds": wall,
        "searching_seconds": sum(float(row["seconds"]) for row in rows),
        "status": Counter(row["status"] for row in rows), "verdicts": Counter(row["verdict"] for row in rows),
        "exact": exact, "median_error": float(np.median([float(row["error"]) for row in rows if row["error"]])),
        "largest_process_mb": after.ru_maxrss // 1024,
        "load": load, "machine": machine(), "versions": versions(),
    }  # fmt: skip
    print(json.dumps({k: facts[k] for k in facts if k not in ("machine", "versions")}, indent=1))
    (RESULTS / "many_records.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
