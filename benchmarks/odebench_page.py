"""`odebench-page`: writes docs/odebench.md and its figure: shares of successes against noise, ours beside published.

Published percentages (odebench_published.csv) were read off the vector figures 4a, 4b and 5 of arXiv 2310.05573. Ours
are those of the results of the last settings in each file; what was not run is missing.
"""

import argparse
import csv
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from benchmarks.odebench import SUCCESS, all_systems
from benchmarks.odebench_protocol import RHOS, SIGMAS, about, file_of
from benchmarks.recording import RESULTS, rows
from benchmarks.reporting import markdown
from benchmarks.surroundings import ROOT

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the backend is set

HERE = Path(__file__).parent
TASKS = {"reconstruction": "r2", "generalization": "r2_other_start"}
OURS = "lgf"
DRAWN = ("ODEFormer (opt)", "PySR", "SINDy (poly)", "ProGED (poly)", "FFX", "AFP", "EHC")  # beside ours in the figure
Shares = dict[tuple[str, str, float, float], float]
"""(task, method, rho, sigma) -> percent."""


def published() -> Shares:
    """The published percentages on ODEBench."""
    with (HERE / "odebench_published.csv").open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith('"#'))
        return {
            (row["task"], row["method"], float(row["rho"]), float(row["sigma"])): float(row["percent"])
            for row in lines
            if row["benchmark"] == "odebench" and row["percent"]
        }


def results(sigma: float, rho: float, peer: str | None = None) -> list[dict[str, Any]]:
    """The result lines of these conditions and of the last settings."""
    lines = rows(file_of(sigma, rho, peer))
    return [row for row in lines if row["digest"] == lines[-1]["digest"]]


def peers() -> list[str]:
    """The peers that have results."""
    names = (f.name.removeprefix("odebench-protocol-") for f in RESULTS.glob("odebench-protocol-*-sigma*.jsonl"))
    return sorted({name.partition("-sigma")[0] for name in names})


def own_shares() -> Shares:
    """The percentages of this project and of the peers that ran in the same harness, of the systems that were run."""
    shares: Shares = {}
    for method in (None, *peers()):
        for sigma in SIGMAS:
            for rho in RHOS:
                lines = results(sigma, rho, method)
                for task, score in TASKS.items() if lines else ():
                    shares[task, method or OURS, rho, sigma] = 100 * float(np.mean([r[score] > SUCCESS for r in lines]))
    return shares


def draw(shares: Shares, path: Path) -> None:
    """The share of successes against the noise: a row for each rho, a column for each task."""
    figure, grid = plt.subplots(2, 2, figsize=(9, 6.4), sharex=True, sharey=True, layout="constrained")
    for axes_row, rho in zip(grid, RHOS, strict=True):
        for axes, task in zip(axes_row, TASKS, strict=True):
            for method in (OURS, *peers(), *DRAWN):
                points = [(s, shares[task, method, rho, s]) for s in SIGMAS if (task, method, rho, s) in shares]
                style = {"lw": 2.5, "color": "black", "marker": "o"} if method == OURS else {"lw": 1, "marker": "."}
                if points:
                    axes.plot(*zip(*points, strict=True), label=method, **style)
            axes.set_title(f"{task}, rho = {rho:g}", fontsize="medium")
            axes.set_ylim(0, 102)
    for axes in grid[1]:
        axes.set_xlabel("noise sigma")
    for axes in grid[:, 0]:
        axes.set_ylabel("% of systems with R2 > 0.9")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def share_table(shares: Shares, task: str, rho: float) -> str:
    """One line for each method, best first."""
    by_method: dict[str, dict[float, float]] = defaultdict(dict)
    for (what, method, dropped, sigma), percent in shares.items():
        if (what, dropped) == (task, rho):
            by_method[method][sigma] = percent
    ordered = sorted(by_method.items(), key=lambda entry: (entry[0] != OURS, -max(entry[1].values())))
    body = [
        [f"**{method}**" if method == OURS else method]
        + [f"{found[sigma]:.1f}" if sigma in found else "" for sigma in SIGMAS]
        for method, found in ordered
    ]
    return markdown(["sigma", *(f"{sigma:g}" for sigma in SIGMAS)], body)


def system_table(sigma: float, rho: float) -> str:
    """One line for each system: scores, exact or not, seconds, equation."""
    lines = {row["problem"]: row for row in results(sigma, rho) if row["seed"] == 0}
    body = []
    for system in all_systems():
        row = lines.get(about(system, sigma, rho, 0)["problem"])
        if row is not None:
            verdict = "exact" if row["exact"] else row["truth"]["cause"]
            equation = row["equation"].replace("|", "\\|")
            scores = [f"{row['r2']:.3f}", f"{row['r2_other_start']:.3f}"]
            body.append([str(system.number), *scores, verdict, f"{row['cpu_seconds']:.1f}", f"`{equation}`"])
    return markdown(["", "R2", "R2 from the second start", "", "CPU s", "equation"], body)


def _runs() -> str:
    """How many systems and noise draws were run under which conditions."""
    done = []
    for rho, sigma in product(RHOS, SIGMAS):
        lines = results(sigma, rho)
        systems, draws = (len({row[key] for row in lines}) for key in ("problem", "seed"))
        if lines:
            done.append(f"{systems} systems, {draws} draw{'s' if draws > 1 else ''} at sigma {sigma:g}, rho {rho:g}")
    return "; ".join(done) or "none"


def page(shares: Shares) -> str:
    """The page in the docs."""
    parts = [
        "# ODEBench by its own protocol",
        "Written by `python -m benchmarks odebench-page` from the files in `benchmarks/results`. All 63 systems of "
        "ODEBench (d'Ascoli et al. 2024, MIT licence): 512 samples on [0, 10] from the first start, multiplicative "
        "noise x (1 + sigma xi), a share rho of the samples dropped at random. Reconstruction is from the first start, "
        "generalisation from the second, which was not seen; a system counts if R2, weighted by the variance of the "
        "states, exceeds 0.9 against a tight solution of the truth. Percentages of other methods are those that the "
        "authors of ODEBench published, read off their figures; lower-case names are programs that ran here, in the "
        "same harness. Settings of lgf are the defaults; those of the search for systems were tuned on records of the "
        "odd-numbered systems, and the order of the ranked lists on records of all systems, with other noise (see "
        "[systems](systems.md)), so the rows are not free of that. PySINDy has 25 thresholds to choose from by the "
        "solved trajectory, pyoperon 250,000 evaluations and gplearn 1,000 programs for 30 generations for each "
        "right-hand side, all from the true start.",
        f"Runs of lgf, of which a percentage is the mean: {_runs()}.",
        "![Share of systems against noise](figures/odebench.svg)",
    ]
    for rho in RHOS:
        for task in TASKS:
            parts += [f"## {task.capitalize()}, rho = {rho:g}", share_table(shares, task, rho)]
    for sigma in (0.05, 0.0):
        if results(sigma, 0.0):
            parts += [f"## Every system, sigma = {sigma:g}, rho = 0", system_table(sigma, 0.0)]
    return "\n\n".join(parts) + "\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the page (docs)")


def main(args: argparse.Namespace) -> None:
    """Writes the page and the figure."""
    shares = published() | own_shares()
    draw(shares, args.out / "figures" / "odebench.svg")
    (args.out / "odebench.md").write_text(page(shares), encoding="utf-8")
    for rho in RHOS:
        for task in TASKS:
            print(f"{task}, rho {rho:g}\n{share_table(shares, task, rho)}\n")
