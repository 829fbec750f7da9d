"""Discovery of textbook systems from clean or rounded data, without any knowledge given.

`python -m benchmarks clean [--digits 3] [--noise 0.001]` prints a line for each system of `clean.toml` and writes
`results/clean.json`. Times are processor seconds on one core.
"""

import argparse
import json
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.recording import RESULTS
from benchmarks.surroundings import machine, versions
from lgf import LatentGrammarFlow, System

FILE = RESULTS / "clean.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--digits", type=int, help="round the values to so many significant digits")
    parser.add_argument("--noise", type=float, default=0.0, help="standard deviations of white noise")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--json", type=Path, default=FILE)


def main(args: argparse.Namespace) -> None:
    """Discovers each system and prints whether its terms are right."""
    key = f"{args.digits} digits" if args.digits else f"noise {args.noise:g}" if args.noise else "clean"
    rows = []
    for problem in problems():
        if args.only in problem["name"]:
            rows.append(answer(problem, args.digits, args.noise))
            mark = "right" if rows[-1]["right"] else "WRONG"
            print(f"{mark}  {problem['name']:22s} {rows[-1]['seconds']:5.1f} s  {rows[-1]['equation']}", flush=True)
    print(f"{key}: {sum(r['right'] for r in rows)} of {len(rows)} right")
    if not args.only:
        known = json.loads(args.json.read_text()) if args.json.exists() else {}
        known |= {key: rows, "versions": versions(), "machine": machine()}
        args.json.write_text(json.dumps(known, indent=1) + "\n")


def problems() -> list[dict[str, Any]]:
    """The systems of `clean.toml`."""
    return tomllib.loads(Path(__file__).with_name("clean.toml").read_text(encoding="utf-8"))["problem"]


def record(problem: dict[str, Any], digits: int | None = None, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """(t, values) of the problem, solved tightly, then noised or rounded; one column per state if there are several."""
    system = System.read(problem["equation"])
    namespace: dict[str, Any] = {}
    exec(system.python(), namespace)  # noqa: S102 (our own text)
    t = np.linspace(*problem["window"], problem["samples"])
    solved = solve_ivp(
        namespace["rhs"], problem["window"], problem["initial"], "DOP853", t_eval=t, rtol=1e-11, atol=1e-12
    )
    values = solved.y[0] if len(system.skeleton.frame.states) == 1 else solved.y.T
    values = values + noise * values.std(axis=0) * np.random.default_rng(0).standard_normal(values.shape)
    return t, values if digits is None else np.vectorize(lambda v: float(f"{v:.{digits}g}"))(values)


def answer(problem: dict[str, Any], digits: int | None, noise: float) -> dict[str, Any]:
    """The equation found with the default settings, and whether it has exactly the true terms."""
    t, values = record(problem, digits, noise)
    truth = System.read(problem["equation"]).skeleton
    states = truth.frame.names if len(truth.frame.states) > 1 else None
    started = time.process_time()
    model = LatentGrammarFlow().fit(t, values, states=states)
    return {
        "name": problem["name"],
        "kind": problem["kind"],
        "equation": str(model.equation_),
        "right": model.run_.best.skeleton.structure == truth.structure,
        "in_set": any(c.skeleton.structure == truth.structure for c in model.run_.indistinguishable),
        "evaluations": model.run_.evaluations,
        "seconds": round(time.process_time() - started, 2),
    }
