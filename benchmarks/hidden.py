"""Systems of which one state is measured and the other one hidden, and two real records.

`python -m benchmarks hidden` appends a line for each case of `hidden.toml` and seed to `results/hidden.jsonl`; lines
that are there are not repeated. Simulated records have 150 samples with 5 % noise. Times are processor seconds on one
core. Seeds below 10 were seen while the search was written.
"""

import argparse
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import RESULTS, append, rows
from benchmarks.surroundings import versions
from lgf import LatentGrammarFlow, System
from lgf.data import load_record
from lgf.equation.skeleton import Skeleton
from lgf.equation.terms import rows_of, term_of
from lgf.expression.frame import Frame
from lgf.report.sentences import note_sentence
from lgf.search.candidate import Candidate
from lgf.solver.solve import solve

FILE = RESULTS / "hidden.jsonl"
SAMPLES, NOISE = 150, 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--file", type=Path, default=FILE)


def main(args: argparse.Namespace) -> None:
    """Answers every case and seed that is missing, then prints the table."""
    cases = tomllib.loads(Path(__file__).with_name("hidden.toml").read_text(encoding="utf-8"))["case"]
    done = {(row["case"], row["seed"]) for row in rows(args.file)}
    tasks = [(case["name"], seed, case) for seed in args.seeds for case in cases]
    tasks = [("hares with populations", 0, None), ("cold with a conserved sum", 0, None), *tasks]
    for name, seed, case in tasks:
        if args.only in name and (name, seed) not in done:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                answer = _simulated(case, seed) if case is not None else _hares() if "hares" in name else _cold()
            append(args.file, {"case": name, "seed": seed, **answer, "versions": versions()})
            print(name, seed, answer, flush=True)
    print(table(rows(args.file)))


def table(found: list[dict[str, Any]]) -> str:
    """A line for each case: right answers of all, and the largest processor time."""
    lines = []
    for name in dict.fromkeys(row["case"] for row in found):
        own = [row for row in found if row["case"] == name]
        right, slowest = sum(row["right"] for row in own), max(row["seconds"] for row in own)
        lines.append(f"{right} of {len(own)}  {slowest:5.1f} s  {own[0]['kind']:13s} {name}")
    return "\n".join(lines)


def _simulated(case: dict[str, Any], seed: int) -> dict[str, Any]:
    t = np.linspace(0.0, case["end"], SAMPLES)
    solved = solve(System.read(case["equation"]), case["initial"], t)
    x = solved["x"]
    noisy = x + NOISE * x.std() * np.random.default_rng(seed).standard_normal(len(t))
    model, seconds = _fitted(LatentGrammarFlow(hidden="y"), t, noisy, ["x"])
    result = _facts(model, seconds) | {"kind": case["kind"]}
    if "sentence" in case:
        return result | {"right": any(case["sentence"] in s for s in result["sentences"])}
    frame = Frame((("x", 1), ("y", 1)))
    forms = [_terms(Skeleton.read(_open(form), frame)) for form in case["forms"]]
    best = [_terms(c.skeleton) for c in (model.run_.best, *model.run_.equivalents)]
    near = [_terms(c.skeleton) for c in model.run_.indistinguishable]
    path = model.predict(t)[:, 1]
    return result | {
        "right": any(form in best for form in forms),
        "in the set": any(form in [*best, *near] for form in forms),
        "correlation": float(abs(np.corrcoef(path, solved["y"])[0, 1])),
    }


def _hares() -> dict[str, Any]:
    record = load_record("hares").observations[0]
    model = LatentGrammarFlow(hidden="lynx", populations=("hare", "lynx"))
    model, seconds = _fitted(model, record.t, record.values[:, 0], ["hare"])
    frame = Frame((("hare", 1), ("lynx", 1)))
    truth = Skeleton.read("hare' = C*hare + C*hare*lynx; lynx' = C*lynx + C*hare*lynx", frame)
    correlation = float(np.corrcoef(model.predict(record.t)[:, 1], record.values[:, 1])[0, 1])
    right = _terms(model.run_.best.skeleton) == _terms(truth) and correlation >= 0.95
    return _facts(model, seconds) | {"kind": "real", "right": right, "correlation": correlation}


def _cold() -> dict[str, Any]:
    record = load_record("cold").observations[0]
    model = LatentGrammarFlow(
        hidden="S", conserved=["S + infected + recovered"], known={"recovered": "C*infected"},
        populations=["S", "infected"],
    )  # fmt: skip
    model, seconds = _fitted(model, record.t, record.values, ["infected", "recovered"])
    values, start = model.run_.best.fit.values, float(model.run_.best.fit.initial[0, 2])
    near = [(values[1], 0.0222, 0.1), (-values[0], 0.277, 0.05), (start, 40.0, 0.03)] if len(values) == 2 else []
    right = bool(near) and all(abs(value / expected - 1) <= share for value, expected, share in near)
    return _facts(model, seconds) | {"kind": "real", "right": right, "S(0)": start}


def _fitted(model: LatentGrammarFlow, t: Any, values: Any, states: list[str]) -> tuple[LatentGrammarFlow, float]:
    started = time.process_time()
    model.fit(t, values, states=states)
    return model, time.process_time() - started


def _facts(model: LatentGrammarFlow, seconds: float) -> dict[str, Any]:
    run = model.run_
    return {
        "seconds": round(seconds, 1),
        "equation": str(run.system).replace("\n", "; "),
        "equivalents": [str(s).replace("\n", "; ") for s in model.equivalents_],
        "near": len(run.indistinguishable),
        "evaluations": run.evaluations,
        "sentences": [note_sentence(note) for note in run.notes],
    }


def _terms(system: Skeleton | Candidate) -> frozenset:
    skeleton = system.skeleton if isinstance(system, Candidate) else system
    return frozenset((row, term_of(summand)) for row, summand in rows_of(skeleton))


def _open(form: str) -> str:
    """The form with an open coefficient before every term."""
    equations = [equation.split("=") for equation in form.split(";")]
    return "; ".join(f"{left} = " + " + ".join(f"C*{t.strip()}" for t in right.split("+")) for left, right in equations)
