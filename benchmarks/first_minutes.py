"""`first-minutes`: six tables as new users bring them, each answered by `lgf discover FILE` in an empty folder.

`python -m benchmarks first-minutes` prints a line for each table, and writes `results/first_minutes.json`. Nothing is
given but the file. Five tables are made here; the real one is the plate of the records that are shipped.
"""

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.recording import RESULTS
from benchmarks.surroundings import machine, versions
from lgf import System
from lgf.cli import main as lgf
from lgf.report.sentences import verdict_sentence
from lgf.runs.folder import read_run
from lgf.runs.request import Run
from lgf.search.verdict import Trust
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve

FILE = RESULTS / "first_minutes.json"


class Table(NamedTuple):
    """A file, and whether its answer is right."""

    name: str
    text: str
    expected: str  # in words
    right: Callable[[Run], bool]


def tables() -> list[Table]:
    """The six tables."""
    return [_clean(), _real(), _three_states(), _hammer(), _units_and_gaps(), _hopeless()]


def _noise(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n)


def _csv(header: str, *columns: np.ndarray) -> str:
    return "\n".join([header, *(",".join(f"{x:.6g}" for x in row) for row in zip(*columns, strict=True))]) + "\n"


def _has_terms(text: str) -> Callable[[Run], bool]:
    truth = System.read(text).skeleton.structure
    return lambda run: run.best.skeleton.structure == truth and run.verdict.trust is Trust.CONFIRMED


def _clean() -> Table:
    t = np.linspace(0.0, 60.0, 61)
    u = 50.0 / (1.0 + 24.0 * np.exp(-0.1 * t))
    rows = [f"{a:.12g},{b:.15g}" for a, b in zip(t, u, strict=True)]
    truth = "u' = 0.1*u - 0.002*u^2"
    return Table("clean", "\n".join(["time,size", *rows]) + "\n", truth, _has_terms(truth))


def _real() -> Table:
    text = files("lgf.data").joinpath("records", "growth.csv").read_text(encoding="utf-8")
    expected = "a law that predicts left-out wells, not refuted"
    return Table("real", text, expected, lambda run: run.verdict.trust is Trust.CONFIRMED and run.best.loss < 0.05**2)


def _three_states() -> Table:
    truth = "S' = -0.004*S*I; I' = 0.004*S*I - 0.4*I; R' = 0.4*I"
    t = np.linspace(0.0, 20.0, 81)
    solved = solve(System.read(truth), {"S": 295.0, "I": 5.0, "R": 0.0}, t)
    columns = [solved[name] + 2.0 * _noise(seed, len(t)) for seed, name in enumerate("SIR")]
    return Table("three states", _csv("day,S,I,R", t, *columns), truth, _has_terms(truth))


def _hammer() -> Table:
    truth = "2*u'' + 2*u' + 5000*u = F"
    t = np.arange(1000) * 2.0 * np.pi / 50.0 / 20.0  # fifty oscillations
    blow = np.where((t > t[3]) & (t < t[11]), 100.0 * np.sin(np.pi * (t - t[3]) / (t[11] - t[3])), 0.0)
    solved = solve(System.read(truth), (0.0, 0.0), t, Forcing.from_samples(t, blow))
    size = solved["u''"].std()
    acceleration = solved["u''"] + size * (0.03 * _noise(3, len(t)) + 0.05)  # the offset of a sensor
    text = _csv("time,force,acceleration", t, blow, acceleration)
    return Table("acceleration and force", text, truth + ", beside an offset of 5 %", _has_terms(truth))


def _units_and_gaps() -> Table:
    t = np.concatenate([np.arange(0.0, 30.0, 0.5), np.arange(45.0, 90.0, 1.5)])
    u = 21.0 + 70.0 * np.exp(-0.05 * t) + 0.3 * _noise(4, len(t))
    cells = ["" if k % 11 == 5 else f"{x:.1f}".replace(".", ",") for k, x in enumerate(u)]
    rows = [f"{a:g};{cell}".replace(".", ",") for a, cell in zip(t, cells, strict=True)]
    text = "\n".join(["time [min];temp [°C]", *rows]) + "\n"
    return Table("units and gaps", text, "u' = -0.05 [1/min] u + 1.05 [°C/min]", _has_terms("u' = -0.05*u + 1.05"))


def _hopeless() -> Table:
    text = _csv("t,u", np.arange(300.0), _noise(5, 300))
    expected = "told that it is noise, and nothing confirmed"
    return Table("hopeless", text, expected, lambda run: run.verdict.trust is Trust.INCONCLUSIVE)


def answer(table: Table) -> dict[str, Any]:
    """What `lgf discover` prints and finds, in an empty folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("data.csv").write_text(table.text, encoding="utf-8")
            printed, started = io.StringIO(), time.process_time()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = lgf(["discover", "data.csv"])
            seconds = time.process_time() - started
            run = read_run(Path("runs/data"))
        finally:
            os.chdir(before)
    warnings = [line for line in printed.getvalue().splitlines() if line.startswith("warning")]
    return {
        "table": table.name,
        "expected": table.expected,
        "right": code == 0 and table.right(run),
        "equation": str(run.display_system(run.best)),
        "error": run.best.loss**0.5,
        "verdict": verdict_sentence(run.verdict),
        "warnings": warnings,
        "seconds": round(seconds, 1),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--json", type=Path, default=FILE, metavar="FILE", help="in place of the stored results")


def main(args: argparse.Namespace) -> None:
    """Answers each table, prints a line for each, and writes all to the file."""
    rows = []
    for table in tables():
        rows.append(answer(table))
        row = rows[-1]
        word = "right" if row["right"] else "WRONG"
        print(f"{row['table']:24s} {word}  {row['seconds']:5.1f} s  {row['error']:6.1%}  {row['equation']}", flush=True)
        for line in (*row["warnings"], row["verdict"]):
            print(f"{'':24s} {line}", flush=True)
    args.json.write_text(
        json.dumps({"rows": rows, "machine": machine(), "versions": versions()}, indent=1, ensure_ascii=False) + "\n"
    )
