"""`cost`: how processor seconds and memory grow with samples, states, experiments and workers; beside PySINDy.

Every run has a process of its own, so that its peak memory is its own. PySINDy (in its own environment, with all 25
thresholds) gets what it can take: states that lgf smoothed, whose time and memory are not counted.
"""

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.memory import peak_memory_mb
from benchmarks.peers.asking import interpreter
from benchmarks.recording import RESULTS
from benchmarks.surroundings import ROOT, load_average, machine, versions
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.grammar import load_grammar
from lgf.runs.presets import proposers_for
from lgf.search.discover import discover
from lgf.search.settings import DiscoverySettings
from lgf.smoothing.complete import complete
from lgf.solver.solve import solve
from lgf.threads import on_threads

FILE = RESULTS / "cost.json"
NOISE, END = 0.02, 20.0
PREDATION = "x0' = 1.1*x0 - 0.4*x0*x1; x1' = -0.4*x1 + 0.1*x0*x1"
SAMPLES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
STATES = (1, 2, 3, 4, 5, 6)
EXPERIMENTS = (1, 3, 10, 30, 100)
WORKERS = ("1", "2", "dask")
USUAL = 200  # samples where their number is not what varies


def problem_of(what: str, n: int) -> tuple[Problem, System]:
    """The records of a case, and the truth."""
    rng = np.random.default_rng(0)
    if what == "samples":
        return _records(PREDATION, [(10.0, 5.0)], n, END, rng)
    if what == "states":
        return _records(cascade(n), [(0.5,) + (0.1,) * (n - 1)], USUAL, END, rng)
    if what == "experiments":
        return _records("x0' = 0.9*x0 - 0.09*x0^2", [(float(s),) for s in rng.uniform(0.2, 4.0, n)], 40, 10.0, rng)
    lorenz = "x0' = 10*x1 - 10*x0; x1' = 28*x0 - x1 - x0*x2; x2' = x0*x1 - 2.6667*x2"
    return _records(lorenz, [(1.0, 2.0, 20.0)], 1_000, 10.0, rng)


def cascade(n: int) -> str:
    """A chain of n states, each feeding the next one."""
    rows = ["x0' = 0.6*x0 - 0.2*x0^2"]
    return "; ".join(rows + [f"x{i}' = 0.8*x{i - 1} - {0.3 + 0.1 * i:g}*x{i}" for i in range(1, n)])


def _records(text: str, starts: list[tuple[float, ...]], n: int, end: float, rng: np.random.Generator) -> Any:
    truth, t = System.read(text), np.linspace(0.0, end, n)
    names = tuple(map(Variable, truth.frame.names))
    observations = []
    for start in starts:
        clean = solve(truth, start, t).values[:, : len(names)]
        values = clean + NOISE * clean.std(axis=0) * rng.standard_normal(clean.shape)
        observations.append(Observation(t, values, names))
    return Problem(tuple(observations)), truth


def measure(what: str, n: int, workers: str = "1") -> dict[str, Any]:
    """The cost of one discovery, in this process."""
    problem, truth = problem_of(what, n)
    grammar = load_grammar("standard")

    def run(given: Problem) -> Any:
        with on_threads(1 if workers == "1" else 2) as spread:
            return discover(given, grammar, DiscoverySettings(), proposers=proposers_for(grammar), spread=spread)

    small, _ = problem_of(what, n if what == "states" else 1 if what == "experiments" else 100)
    if what != "workers":
        run(small)  # loads the kernels
    load, began, clock = load_average(), time.process_time(), time.perf_counter()
    if workers == "dask":
        import joblib
        from dask.distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True) as cluster, Client(cluster):
            run(small)
            clock = time.perf_counter()
            with joblib.parallel_config(backend="dask"):
                found = run(problem)
    else:
        if what == "workers":
            run(problem)
            began, clock = time.process_time(), time.perf_counter()
        found = run(problem)
    return {
        "what": what, "n": n, "workers": workers, "cpu_seconds": time.process_time() - began,
        "seconds": time.perf_counter() - clock, "load": load, "evaluations": found.evaluations,
        "peak_memory_mb": peak_memory_mb(),
        "right": found.system.skeleton.structure == truth.skeleton.structure,
    }  # fmt: skip


def ask_pysindy(what: str, n: int) -> dict[str, Any]:
    """The cost of PySINDy on one experiment."""
    problem, _ = problem_of(what, n)
    (record,), frame = problem.observations, problem.frames[0]
    smooth = record.values if len(record) > 3_000 else complete(record, frame).trajectory.values[:, : len(frame.names)]
    task = {"variant": "plain", "t": record.t.tolist(), "values": record.values.tolist(), "smoothed": smooth.tolist(),
            "start": record.values[0].tolist()}  # fmt: skip
    command = [interpreter("pysindy"), "-m", "benchmarks.peers.pysindy_systems"]
    run = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, cwd=ROOT, check=True)
    answer = json.loads(run.stdout.splitlines()[-1])
    return {"what": what, "n": n, "cpu_seconds": answer["cpu_seconds"], "peak_memory_mb": answer["peak_memory_mb"]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--one", metavar="JSON", help="measure one case in this process, and print it")
    parser.add_argument("--only", choices=("samples", "states", "experiments", "workers", "pysindy"))


def main(args: argparse.Namespace) -> None:
    """Measures what is missing, stores and draws it."""
    if args.one is not None:
        print(json.dumps(measure(**json.loads(args.one))))
        return
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {"lgf": [], "pysindy": []}
    done = {(row["what"], row["n"], row["workers"]) for row in kept["lgf"]}
    plan = [("samples", n, "1") for n in SAMPLES] + [("states", n, "1") for n in STATES]
    plan += [("experiments", n, "1") for n in EXPERIMENTS] + [("workers", 1_000, w) for w in WORKERS]
    for what, n, workers in plan:
        if (what, n, workers) in done or args.only not in (None, what):
            continue
        case = json.dumps({"what": what, "n": n, "workers": workers})
        command = [sys.executable, "-m", "benchmarks", "cost", "--one", case]
        run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
        kept["lgf"].append(json.loads(run.stdout.splitlines()[-1]))
        _store(kept)
        print(kept["lgf"][-1], flush=True)
    asked = {(row["what"], row["n"]) for row in kept["pysindy"]}
    for what, n in [("samples", n) for n in SAMPLES] + [("states", n) for n in STATES]:
        if (what, n) not in asked and args.only in (None, "pysindy"):
            kept["pysindy"].append(ask_pysindy(what, n))
            _store(kept)
            print("pysindy", kept["pysindy"][-1], flush=True)
    draw(kept)


def _store(kept: dict[str, Any]) -> None:
    FILE.write_text(
        json.dumps(kept | {"machine": machine(), "versions": versions()}, indent=1) + "\n", encoding="utf-8"
    )


def draw(kept: dict[str, Any]) -> None:
    """The figure of the docs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained", sharex="col", sharey="row")
    for number, (column, what) in enumerate(zip(grid.T, ("samples", "states", "experiments"), strict=True)):
        for axes, figure_of, label in zip(
            column, ("cpu_seconds", "peak_memory_mb"), ("processor s", "memory, MB"), strict=True
        ):
            for name, style in (("lgf", "ko-"), ("pysindy", "C0s--")):
                rows = sorted((row["n"], row[figure_of]) for row in kept[name] if row["what"] == what)
                if rows:
                    axes.plot(*zip(*rows, strict=True), style, label="lgf" if name == "lgf" else "PySINDy")
            axes.set_yscale("log" if figure_of == "cpu_seconds" else "linear")
            if what != "states":
                axes.set_xscale("log")
            if number == 0:
                axes.set_ylabel(label)
        column[-1].set_xlabel(what)
    grid[1, 0].set_ylim(bottom=0)
    grid[0, 0].legend()
    figure.savefig(ROOT / "docs" / "figures" / "cost.svg", metadata={"Date": None})
    plt.close(figure)
