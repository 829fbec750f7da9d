"""`table`: the results of this project, beside the published methods and the floor, its variants and its peers."""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choosing import BENCHMARKS
from benchmarks.publishing import mean_errors, published
from benchmarks.recording import RESULTS, rows
from benchmarks.running import Options

GENERALISES = 0.9  # R2 above it


def groups(folder: Path = RESULTS) -> list[list[dict[str, Any]]]:
    """The result lines of Benchmarks 1 to 4, grouped by equal settings, in the order of the files."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in sorted(folder.glob("*.jsonl")):
        for row in rows(file):
            if "options" in row:
                found[row["digest"]].append(row)
    return list(found.values())


def best_by_criterion(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The line of the smallest training objective for each problem: the best seed by the method's own criterion."""
    best: dict[str, dict[str, Any]] = {}
    for line in lines:
        known = best.get(line["problem"])
        if known is None or line["objective"] < known["objective"]:
            best[line["problem"]] = line
    return best


def versions_of(lines: Sequence[dict[str, Any]]) -> str:
    """The versions of lgf that made the lines, without the commits."""
    return ", ".join(sorted({line["versions"]["lgf"].split()[0] for line in lines}))


def is_main(options: Options) -> bool:
    """Whether these options belong in the benchmark tables: neither a peer nor a variant."""
    return options == Options(options.benchmark, options.model, options.preset, initial=options.initial)


def beside_default(folder: Path = RESULTS, peers: bool = False) -> list[dict[str, Any]]:
    """Every variant, or every peer, beside the default on the same problems and noise draws, benchmarks together."""
    defaults: dict[tuple[str, int], dict[str, Any]] = {}
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for lines in groups(folder):
        options = Options(**lines[0]["options"])
        if options == Options(options.benchmark):
            defaults |= {(line["problem"], line["seed"]): line for line in lines}
        elif not is_main(options) and options.rung is None and peers == (options.peer is not None):
            found[options.name.partition("-")[2]] += lines
    rows = []
    for name, lines in found.items():
        pairs = [(x, defaults[x["problem"], x["seed"]]) for x in lines if (x["problem"], x["seed"]) in defaults]
        rows.append({"name": name, "runs": len(pairs), "problems": len({x["problem"] for x, _ in pairs})})
        for side, key in enumerate(("it", "default")):
            mine = [pair[side] for pair in pairs]
            rows[-1][key] = {
                "errors": [float(np.mean([min(1.0, x["errors"][k]) for x in mine])) for k in (0, 1)],
                "exact": sum(x["exact"] for x in mine),
                # peers state the clock's only, on two processors; ours are measured beside other work
                "seconds": float(np.mean([x["seconds" if peers else "cpu_seconds"] for x in mine])),
                "version": versions_of(mine),
            }
    return rows


def summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The summary of one group of lines."""
    options = Options(**lines[0]["options"])
    best = best_by_criterion(lines)
    by_problem: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        by_problem[line["problem"]].append(line)
    truths = [line["truth"] for line in lines if line["truth"]]
    starts = [line["other_start"] for line in lines if line["other_start"]]
    starts = [s for s in starts if not s.get("own")] or starts  # the published ones where there are any
    evaluations = [line["evaluations"] for line in lines if line["evaluations"] is not None]
    return {
        "method": f"this project: {options.name}",
        "benchmark": options.benchmark,
        "problems": len(best),
        "seeds": len({line["seed"] for line in lines}),
        "errors": mean_errors([line["errors"] for line in best.values()]),
        "mean_errors": mean_errors([line["errors"] for line in lines]),
        "published_start_errors": mean_errors(
            [line.get("errors_published_start", line["errors"]) for line in best.values()]
        ),
        "worst_u": max((line["errors"][0], problem) for problem, line in best.items()),
        "complexity": float(np.mean([line["complexity"] for line in best.values()])),
        "exact": sum(line["exact"] for line in best.values()),
        "exact_at_median_seed": sum(2 * sum(x["exact"] for x in each) > len(each) for each in by_problem.values()),
        "truth_in_set": sum(t["in_set"] for t in truths) / len(truths) if truths else None,
        "generalises": sum(s["r2"] > GENERALISES for s in starts) / len(starts) if starts else None,
        "cpu_seconds": float(np.mean([line["cpu_seconds"] for line in lines])),
        "version": versions_of(lines),
        "evaluations": float(np.mean(evaluations)) if evaluations else None,
        "causes": dict(Counter(t["cause"] for t in truths)),
        "misses": {
            problem: sorted({x["truth"]["cause"] for x in each if x["truth"]} - {"exact"})
            for problem, each in by_problem.items()
            if not all(x["exact"] for x in each)
        },
    }


def tables(folder: Path = RESULTS) -> dict[str, list[dict[str, Any]]]:
    """Summaries by benchmark: this project first, then the published methods, then the floor."""
    found = [summary(lines) for lines in groups(folder) if is_main(Options(**lines[0]["options"]))]
    return {b: [s for s in found if s["benchmark"] == b] + published(b) for b in BENCHMARKS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there too")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="(benchmarks/results)")


def main(args: argparse.Namespace) -> None:
    """Print a table for each benchmark: relative L2 errors of u, u', u'', the number of problems in brackets."""
    found = tables(args.results)
    heads = ["C", "exact", "median", "in set", "general", "CPU s", "tried"]
    for benchmark, summaries in found.items():
        print(f"\n{benchmark.upper()}")
        errors = "best of the seeds".rjust(21) + "mean of the seeds".rjust(21)
        print(f"{'':44s}{errors}" + "".join(f"{head:>8s}" for head in heads))
        for s in summaries:
            print(_line(s))
            if benchmark == "b2" and "published_start_errors" in s:
                print(f"{'  from the initial states as published':44s}{_errors(s['published_start_errors'])}")
        for s in summaries:
            if s.get("misses"):
                print(f"  {s['method']}: " + ", ".join(f"{count} {cause}" for cause, count in s["causes"].items()))
                print("   ", "; ".join(f"{problem} {' or '.join(c)}".strip() for problem, c in s["misses"].items()))
    others = {"peers": beside_default(args.results, peers=True), "variants": beside_default(args.results)}
    for kind, beside in others.items():
        print(f"\n{kind.upper()}, beside the default on the same problems and noise draws: u, u', seconds")
        for row in beside:
            sides = (row[side] for side in ("it", "default"))
            figures = " beside ".join(f"{_errors(side['errors'])[:14]}{side['seconds']:7.1f}" for side in sides)
            print(f"{row['name']:44s}{figures}  ({row['runs']} runs)")
    if args.json is not None:
        args.json.write_text(json.dumps(found | others, indent=1) + "\n")


def _line(s: dict[str, Any]) -> str:
    shown = [
        f"{s['complexity']:.1f}",
        _optional(s, "exact", "{}/" + str(s["problems"])),
        _optional(s, "exact_at_median_seed", "{}/" + str(s["problems"])),
        _optional(s, "truth_in_set", "{:.0%}"),
        _optional(s, "generalises", "{:.0%}"),
        _optional(s, "cpu_seconds", "{:.1f}"),
        _optional(s, "evaluations", "{:.0f}"),
    ]
    errors = _errors(s["errors"]) + _errors(s.get("mean_errors", []))
    method = f"{s['method']} ({s['problems']})" if s["problems"] else s["method"]
    return f"{method[:43]:44s}{errors}" + "".join(f"{text:>8s}" for text in shown)


def _errors(errors: Sequence[float]) -> str:
    return "".join(f"{e:7.4f}" for e in errors) + " " * 7 * (3 - len(errors))


def _optional(s: dict[str, Any], key: str, form: str) -> str:
    return "" if s.get(key) is None else form.format(s[key])
