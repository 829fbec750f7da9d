"""`figures`: the distribution of errors on Benchmark 1, the trajectories found on Benchmarks 2 and 3, the evaluations
that each way of proposing needs, and what the variants cost."""

import argparse
import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from benchmarks.choosing import benchmark_of, chosen
from benchmarks.efficiency import finished, table
from benchmarks.problems import NamedProblem
from benchmarks.publishing import published_errors
from benchmarks.recording import RESULTS
from benchmarks.reproduction import ladder
from benchmarks.running import Options, observed
from benchmarks.surroundings import ROOT
from benchmarks.tables import beside_default, best_by_criterion, groups
from benchmarks.ways import WAYS
from lgf.equation.system import System
from lgf.solver.solve import solve

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the backend is set

plt.rcParams["svg.hashsalt"] = "lgf"  # else the names inside a file are drawn anew each time

_SMALLEST = 1e-4


def violin(folder: Path, out: Path) -> Path:
    """A violin for each method that tried all problems of Benchmark 1: log10 of the errors of u over them."""
    named = chosen(None, ["b1"])
    errors = {method: [e[0] for e in by.values()] for method, by in published_errors("b1").items()}
    for lines in groups(folder):
        options = Options(**lines[0]["options"])
        if options.benchmark == "b1" and options == Options("b1", options.model, options.preset, peer=options.peer):
            found = [x["errors"][0] for x in best_by_criterion(lines).values()]
            if len(found) == len(named):
                errors[options.peer or f"lgf, {options.name.removeprefix('b1-')}"] = found
    errors["floor"] = [p.floor[0] for p in named]
    figure, axes = plt.subplots(figsize=(1.2 + 1.1 * len(errors), 3.4), layout="constrained")
    axes.violinplot([np.log10(np.clip(e, _SMALLEST, 1.0)) for e in errors.values()], showmedians=True)
    axes.set_xticks(range(1, len(errors) + 1), list(errors), rotation=20, ha="right")
    axes.set_yticks(range(-4, 1), [f"$10^{{{k}}}$" for k in range(-4, 1)])
    axes.set_ylabel("relative L2 error of u")
    return _saved(figure, out / "b1-errors.svg")


def trajectories(benchmark: str, folder: Path, out: Path) -> Path | None:
    """Truth, data and the found equation's solution for each problem of the benchmark, or None without results."""
    chosen_options = Options(benchmark)
    lines = next((x for x in groups(folder) if Options(**x[0]["options"]) == chosen_options), None)
    if lines is None:
        return None
    found = best_by_criterion(lines)
    named = chosen(None, [benchmark])
    columns = 4
    shape = math.ceil(len(named) / columns), columns
    figure, grid = plt.subplots(*shape, figsize=(3.0 * columns, 2.2 * shape[0]), layout="constrained", squeeze=False)
    for axes in grid.flat[len(named) :]:
        axes.set_axis_off()
    for axes, problem in zip(grid.flat, named, strict=False):
        _draw(axes, problem, found.get(problem.id))
    grid.flat[0].legend(fontsize="x-small")
    return _saved(figure, out / f"{benchmark}-trajectories.svg")


def _draw(axes: Any, problem: NamedProblem, line: dict[str, Any] | None) -> None:
    truth, first = problem.truth(), problem.solve_from
    k = problem.observed
    if line is not None:
        data = observed(problem, Options(**line["options"]), line["seed"]).observations[0]
        axes.plot(data.t, data.values[:, 0], ".", ms=2, color="0.7", label="data")
    axes.plot(truth.t, truth.values[:, k], color="black", lw=1, label="truth")
    if line is not None:
        equation = System.read(line["equation"], problem.formulas)
        order = equation.frame.orders[0]
        start = truth.values[first, :order]
        highest = truth.values[first : first + 3, min(order, problem.order)]
        t = truth.t[first:]
        branch = (float(highest[0]), float((highest[1] - highest[0]) / (t[1] - t[0])))
        states = solve(equation, tuple(start), t, problem.inputs, branch=branch).values
        if k < states.shape[1]:
            axes.plot(t, states[:, k], "--", color="tab:red", lw=1, label="found")
    axes.set_title(f"{problem.id.removeprefix(benchmark_of(problem.id) + '/')} (u{chr(39) * k})", fontsize="small")
    axes.tick_params(labelsize="x-small")


def evaluations(folder: Path, out: Path) -> Path | None:
    """Evaluations until the chosen equation is right, for each problem and proposer."""
    study = folder / "efficiency.jsonl"
    if not study.exists():
        return None
    found = table(finished(study))["problems"]
    methods = [m for m in WAYS if any(m in row for row in found.values())]
    ranked = sorted(found, key=lambda problem: found[problem].get(methods[0], 0.0))
    figure, axes = plt.subplots(figsize=(8.0, 1.2 + 0.24 * len(ranked)), layout="constrained")
    for k, method in enumerate(methods):
        points = [(found[p][method], i) for i, p in enumerate(ranked) if method in found[p]]
        axes.plot(*zip(*points, strict=True), "o" if method != "default" else "D", ms=5, color=f"C{k}", label=method)
    axes.set_xscale("log")
    axes.set_yticks(range(len(ranked)), ranked, fontsize="x-small")
    axes.set_xlabel("evaluations until the chosen equation is right (the budget where it never was)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small", ncols=2)
    return _saved(figure, out / "efficiency.svg")


def variants_drawn(folder: Path, out: Path) -> Path | None:
    """A bar for each variant: its mean error of u, in units of the default's on the same runs; None without any."""
    rows = sorted(beside_default(folder), key=lambda row: row["name"], reverse=True)
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(8.0, 1.0 + 0.3 * len(rows)), layout="constrained")
    axes.barh(range(len(rows)), [row["it"]["errors"][0] / row["default"]["errors"][0] for row in rows], color="C0")
    axes.axvline(1.0, color="black", lw=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize="x-small")
    axes.set_xlabel("mean error of u, times that of the default on the same runs")
    return _saved(figure, out / "variants.svg")


def ladder_drawn(folder: Path, out: Path) -> Path | None:
    """Mean errors of u and processor seconds on every rung from the paper to the default; None without rungs."""
    rungs = ladder(folder)
    if not rungs:
        return None
    figure, (above, below) = plt.subplots(2, 1, figsize=(8.0, 4.6), sharex=True, layout="constrained")
    above.plot([r["errors"][0] for r in rungs], "o-", color="C0")
    above.set_ylabel("relative L2 error of u")
    below.plot([r["cpu_seconds"] for r in rungs], "s-", color="C1")
    below.set_ylabel("CPU seconds a problem")
    for axes in (above, below):
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
    below.set_xticks(range(len(rungs)), [f"+ {r['rung']}" if i else r["rung"] for i, r in enumerate(rungs)])
    return _saved(figure, out / "ladder.svg")


def _saved(figure: Any, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})  # so that equal results give equal files
    plt.close(figure)
    return file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="(benchmarks/results)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures", metavar="FOLDER", help="(docs/figures)")


def main(args: argparse.Namespace) -> None:
    """Draws all figures for which there are results."""
    drawn = [violin(args.results, args.out)] + [trajectories(b, args.results, args.out) for b in ("b2", "b3")]
    drawn += [evaluations(args.results, args.out), variants_drawn(args.results, args.out)]
    drawn.append(ladder_drawn(args.results, args.out))
    for file in drawn:
        if file is not None:
            print(file)
