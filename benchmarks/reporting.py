"""`report`: writes docs/results.md and the table of the README from the committed results only."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.recording import RESULTS
from benchmarks.reproduction import section
from benchmarks.surroundings import ROOT
from benchmarks.tables import beside_default, tables

TITLES = {
    "b1": "Benchmark 1: thirty first-order equations, u measured",
    "b2": "Benchmark 2: ten linear and nonlinear equations with closed solutions",
    "b3": "Benchmark 3: seven forced oscillators, acceleration measured",
    "b4": "Benchmark 4 (this project's own): ten forced systems of five and six terms",
}
FIGURES = {
    "b1": ("Errors on Benchmark 1", "b1-errors.svg"),
    "b2": ("Trajectories found on Benchmark 2", "b2-trajectories.svg"),
    "b3": ("Trajectories found on Benchmark 3", "b3-trajectories.svg"),
}
MARKS = "<!-- results, written by python -m benchmarks report -->", "<!-- end of results -->"
BEFORE = """# Results

Written by `python -m benchmarks report` from the files in `benchmarks/results`; nothing here was typed. Errors are
relative L2 errors of u, u', u'' against the true trajectory, solved from the true initial state by an independent
solver and capped at 1; data carry 5 % noise. The floor is the error that remains when the true structure is known and
only its constants are fitted. Rows of this project are means over all problems and seeds, the equation of each run
chosen by its description length, never by the truth; published rows are those of the best equation that each method
published.
"""


def errors(values: Sequence[float]) -> list[str]:
    """The cells of u, u', u''."""
    return [f"{v:.4f}" for v in values] + [""] * (3 - len(values))


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def benchmark_section(name: str, summaries: Sequence[dict[str, Any]]) -> str:
    """One benchmark: errors of all methods, and cost and results of this project's runs."""
    head = [
        "",
        "problems",
        "u",
        "u'",
        "u''",
        "nodes",
        "exact (median seed)",
        "truth in set",
        "R2 > .9",
        "seeds",
        "CPU s",
        "lgf",
    ]
    rows = []
    for s in summaries:
        own = s.get("mean_errors")
        cells = [s["method"].removeprefix("this project: "), str(s["problems"] or ""), *errors(own or s["errors"])]
        cells += [f"{s['complexity']:.1f}"]
        cells += [f"{s['exact_at_median_seed']} of {s['problems']}" if "exact_at_median_seed" in s and own else ""]
        cells += ["" if s.get(key) is None else f"{s[key]:.0%}" for key in ("truth_in_set", "generalises")]
        cells += [str(s["seeds"]) if "seeds" in s else "", f"{s['cpu_seconds']:.1f}" if own else ""]
        cells += [s["version"] if own else ""]
        rows.append([f"**{cells[0]}**" if own else cells[0], *cells[1:]])
    text = f"## {TITLES[name]}\n\n{markdown(head, rows)}\n"
    if name in FIGURES:
        text += f"\n![{FIGURES[name][0]}](figures/{FIGURES[name][1]})\n"
    for s in summaries:
        if s.get("misses"):
            causes = "".join(f"{count} {cause}, " for cause, count in s["causes"].items())
            (worst, problem), method = s["worst_u"], s["method"].removeprefix("this project: ")
            text += f"\n{method}: {causes}largest error on u {worst:.4f} ({problem}).\n"
    return text


def beside_default_table(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each variant of the search, beside the default on the same runs."""
    body = []
    for row in sorted(rows, key=lambda row: row["name"]):
        it, default = row["it"], row["default"]
        ratio = it["errors"][0] / default["errors"][0]
        body.append([row["name"], str(row["problems"]), str(row["runs"]), *errors(it["errors"])[:2], f"{ratio:.2f}"])
        body[-1] += [*errors(default["errors"])[:2], f"{it['exact']} / {default['exact']}"]
        body[-1] += [f"{it['seconds']:.1f} / {default['seconds']:.1f}", f"{it['version']} / {default['version']}"]
    head = ["", "problems", "runs", "u", "u'", "u, times the default's", "default: u", "u'", "exact", "seconds", "lgf"]
    return markdown(head, body)


def variants_section(rows: Sequence[dict[str, Any]]) -> str:
    """Other noise and fewer samples."""
    return (
        "## Noise and samples\n\n"
        "`noise0.1` is 10 % noise in place of 5 %, `thin4` every fourth sample; the default's figures are those of the "
        "same problems and noise draws, with 5 % noise and all samples. Seconds are of one processor.\n\n"
        f"{beside_default_table(rows)}\n\n![Variants](figures/variants.svg)\n"
    )


def peers_section(rows: Sequence[dict[str, Any]]) -> str:
    """Other programs on the same data."""
    return (
        "## Peers in the same run\n\n"
        "Other programs on the same records with the same derivative estimates, each with settings that stand in the "
        "first lines of its module in `benchmarks/peers`, on two processors, one noise draw; the default's figures are "
        "those of the same problems and draws, on one processor. Seconds are the clock's, beside other work; the load "
        "stands in each line of the results.\n\n"
        f"{beside_default_table(rows)}\n"
    )


def efficiency_section(lines: list[dict[str, Any]], of_systems: list[dict[str, Any]]) -> str:
    """Evaluations until the chosen equation is right, by proposer, of one state and of systems."""
    from benchmarks.efficiency import BASE, table

    found = table(lines)
    runs = found["runs"]
    text = (
        "## What each way of proposing needs\n\n"
        "Evaluated skeletons until the chosen equation, that of the smallest description length so far, first has the "
        "true structure or an error within twice the floor; the same fits and the same choice for all (`python -m "
        f"benchmarks efficiency`). Means are geometric, and a run without a hit counts with its budget of "
        f"{_budget(lines)} "
        f"evaluations. In {runs['all'] - runs['found']} of {runs['all']} runs (a problem and a draw of its noise) no "
        "way has a hit: there the draw pays for a wrong equation. *Fewer* is the gain over the search without networks "
        f"({BASE}), run by run. Processor seconds count proposing and fitting. A run ends at its first hit, which need "
        "not be the last word. Each line of `benchmarks/results/efficiency.jsonl` has its version.\n\n"
    )
    text += _worth(found["methods"], BASE, "the networks are") + _ways(found["methods"])
    text += "\n\n" + _by_problem(found) + "\n\n![Evaluations needed](figures/efficiency.svg)\n"
    return text + ("\n" + system_efficiency_section(of_systems) if of_systems else "")


def system_efficiency_section(lines: list[dict[str, Any]]) -> str:
    """Evaluations until the chosen system is right, by proposer."""
    from benchmarks.efficiency import SYSTEM_BASE, table

    found = table(lines)
    runs = found["runs"]
    text = (
        "### Systems\n\n"
        "The same for the forty systems of ODEBench with 5 % noise (`python -m benchmarks efficiency --only systems`). "
        "Right is the true structure only, and an evaluation is a fit in some number of segments. The budget is "
        f"{_budget(lines)} evaluations. In {runs['all'] - runs['found']} of {runs['all']} runs no way has a hit. "
        "*Enumeration* takes whole systems by their bits, *missing terms* goes on from the first system of the lists "
        "by linear responses, *lists* combines the right-hand sides that are selected for each row and does nothing "
        "else, and *ranked* says that the first lists are ordered by the "
        "[trained ranking](systems.md#how-a-system-is-found)."
    )
    if len({way["runs"] for way in found["methods"].values()}) > 1:
        text += (
            " Ways with fewer runs have fewer noise draws and were run by an earlier version, with slower lists; "
            "*fewer* compares equal runs."
        )
    text += "\n\n"
    text += _worth(found["methods"], SYSTEM_BASE, "the ranking is") + _ways(found["methods"])
    return text + "\n\n" + _by_problem(found) + "\n"


def _budget(lines: list[dict[str, Any]]) -> int:
    return max(line["budget"] for line in lines)


def _worth(methods: dict[str, Any], base_name: str, what: str) -> str:
    from benchmarks.efficiency import WITHIN

    if "default" not in methods or base_name not in methods:
        return ""
    ours, base = methods["default"], methods[base_name]
    counts = ", ".join(f"{ours['within'][n]} and {base['within'][n]} after {n}" for n in WITHIN)
    return (
        f"What {what} worth: the default needs {ours['evaluations']:.1f} evaluations and "
        f"{ours['seconds']:.2f} processor seconds, the same search without {base['evaluations']:.1f} and "
        f"{base['seconds']:.2f}. Right, with and without, are {counts} evaluations.\n\n"
    )


def _ways(methods: dict[str, Any]) -> str:
    from benchmarks.efficiency import WITHIN

    rows = [
        [
            name,
            f"{m['hits']} of {m['runs']}",
            f"{m['evaluations']:.1f}",
            f"{m['of those found']:.1f}",
            f"{m['fewer']:.2f}",
            f"{m['seconds']:.2f}",
            *(str(m["within"][n]) for n in WITHIN),
        ]
        for name, m in methods.items()
    ]
    head = ["", "hits", "evaluations", "of runs with a hit", "fewer, times", "seconds", *(f"in {n}" for n in WITHIN)]
    return markdown(head, rows)


def _by_problem(found: dict[str, Any]) -> str:
    methods = found["methods"]
    body = [[problem, *(f"{row[m]:.0f}" for m in methods)] for problem, row in found["problems"].items()]
    return markdown(["evaluations", *methods], body)


def headline(found: dict[str, list[dict[str, Any]]]) -> str:
    """The table of the README: on each benchmark the best published method, this project and the floor."""
    rows = []
    for name, summaries in found.items():
        ours = next((s for s in summaries if s["method"] == f"this project: {name}-standard-default"), None)
        theirs = [s for s in summaries if "mean_errors" not in s and not s["method"].startswith("floor")]
        complete = [s for s in theirs if s["problems"] in (None, 0) or s["problems"] == (ours or s)["problems"]]
        best = min(complete, key=lambda s: s["errors"][0], default=None)
        floor = next(s for s in summaries if s["method"].startswith("floor"))
        published = "" if best is None else f"{_triple(best['errors'])} ({best['method'].partition(',')[0]})"
        if ours is not None:
            exact = f"{ours['exact_at_median_seed']} of {ours['problems']}"
            cost = f"{ours['cpu_seconds']:.0f} s"
            rows.append([name.upper(), published, _triple(ours["mean_errors"]), _triple(floor["errors"]), exact, cost])
            rows[-1].append(str(ours["seeds"]))
    head = [
        "errors of u, u', u''",
        "best published",
        "this project",
        "floor",
        "exact",
        "CPU time a problem",
        "noise draws",
    ]
    return markdown(head, rows)


def _triple(values: Sequence[float]) -> str:
    return " / ".join(f"{v:.4f}".lstrip("0") if v < 1 else f"{v:.0f}" for v in values)


def with_headline(readme: str, table: str) -> str:
    """The README with the table between its two marks."""
    before, _, rest = readme.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}"


def floor_section(found: dict[str, Any]) -> str:
    """The errors of the fitted true structures against the floor."""
    near, total = found["within"]["b1-b3"]
    above = [f"{p['problem']} ({p['ratio']:.1f} times)" for p in found["problems"] if p["ratio"] > 1.5]
    return (
        "## The fit alone\n\n"
        f"The true structures, fitted from no start to {found['seeds']} noise draws: {near} of {total} published "
        f"problems come within 1.5 times the floor on u. Of all {len(found['problems'])} these do not: "
        f"{', '.join(above) or 'none'}. "
        "Problem by problem: `benchmarks/results/floor.json`.\n"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="(benchmarks/results)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results.md", metavar="FILE")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", metavar="FILE")


def main(args: argparse.Namespace) -> None:
    """Writes the page."""
    found = tables(args.results)
    parts = [BEFORE, *(benchmark_section(b, s) for b, s in found.items())]
    parts.append(section(args.results))
    others, peers = beside_default(args.results), beside_default(args.results, peers=True)
    if others:
        parts.append(variants_section(others))
    if peers:
        parts.append(peers_section(peers))
    study, floor = args.results / "efficiency.jsonl", args.results / "floor.json"
    if study.exists():
        from benchmarks.efficiency import finished

        parts.append(efficiency_section(finished(study), finished(study, of_systems=True)))
    if floor.exists():
        parts.append(floor_section(json.loads(floor.read_text())))
    args.out.write_text("\n".join(filter(None, parts)), encoding="utf-8")
    args.readme.write_text(with_headline(args.readme.read_text(encoding="utf-8"), headline(found)), encoding="utf-8")
    print(args.out, args.readme)
