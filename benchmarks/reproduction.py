"""The paper as it stands: the preset "paper" beside the paper's figures, and the ladder from it to the default."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.choosing import PUBLISHED
from benchmarks.ladder import RUNGS
from benchmarks.publishing import mean_errors, stated_errors
from benchmarks.recording import RESULTS
from benchmarks.running import Options
from benchmarks.tables import best_by_criterion, groups

LADDER_HEAD = ["", "u", "u'", "u''", "exact", "evaluations", "CPU s"]
LADDER = "b3"
"""The benchmark of the ladder."""

ENDS = {"paper": Options(LADDER, LADDER, "paper"), "default": Options(LADDER)}
"""The rungs whose runs are those of the benchmark's table."""


def paper_lines(benchmark: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """The result lines of the preset "paper" with the benchmark's own grammar."""
    wanted = Options(benchmark, benchmark, "paper")
    return [x for group in groups(folder) if Options(**group[0]["options"]) == wanted for x in group]


def by_benchmark(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """For each benchmark with runs of the preset "paper": mean errors, those of the best seeds, and the paper's."""
    stated, rows = stated_errors("LGF"), []
    for benchmark in PUBLISHED:
        lines = paper_lines(benchmark, folder)
        if lines:
            seen = {x["problem"] for x in lines}
            theirs = stated.get(benchmark) or mean_errors([stated[problem] for problem in sorted(seen)])
            rows.append(
                {
                    "benchmark": benchmark,
                    "problems": len(seen),
                    "runs": len(lines),
                    "errors": mean_errors([x["errors"] for x in lines]),
                    "best": mean_errors([x["errors"] for x in best_by_criterion(lines).values()]),
                    "stated": theirs,
                    "exact": sum(x["exact"] for x in lines),
                    "cpu_seconds": sum(x["cpu_seconds"] for x in lines) / len(lines),
                }
            )
    return rows


def by_problem(benchmark: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """For each problem with a run of the preset "paper": its mean errors, its nodes, and what the paper states."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in paper_lines(benchmark, folder):
        found[line["problem"]].append(line)
    stated = stated_errors("LGF")
    return [
        {
            "problem": problem,
            "seeds": len(own),
            "errors": mean_errors([x["errors"] for x in own]),
            "complexity": sum(x["complexity"] for x in own) / len(own),
            "exact": sum(x["exact"] for x in own),
            "stated": stated.get(problem, []),
            "cpu_seconds": sum(x["cpu_seconds"] for x in own) / len(own),
        }
        for problem, own in found.items()
    ]


def ladder(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """A summary for each rung that has runs, on the problems and seeds that all these rungs have in common."""
    runs: dict[str, dict[tuple[str, int], dict[str, Any]]] = {}
    for group in groups(folder):
        options = Options(**group[0]["options"])
        rung = next((end for end, own in ENDS.items() if options == own), options.rung)
        if rung is not None and options.benchmark == LADDER:
            runs.setdefault(rung, {}).update({(x["problem"], x["seed"]): x for x in group})
    if runs.keys() <= ENDS.keys():
        return []
    common = sorted(set.intersection(*(set(own) for own in runs.values())))
    rows = []
    for rung in RUNGS:
        if rung in runs and common:
            own = [runs[rung][key] for key in common]
            rows.append(
                {
                    "rung": rung,
                    "words": RUNGS[rung].words,
                    "problems": sorted({problem for problem, _ in common}),
                    "runs": len(own),
                    "errors": mean_errors([x["errors"] for x in own]),
                    "exact": sum(x["exact"] for x in own),
                    "cpu_seconds": sum(x["cpu_seconds"] for x in own) / len(own),
                    "evaluations": sum(x["evaluations"] for x in own) / len(own),
                }
            )
    return rows


def section(folder: Path = RESULTS) -> str:
    """The section of the page of results; empty without runs."""
    from benchmarks.reporting import errors, markdown

    means = by_benchmark(folder)
    if not means:
        return ""
    body = [
        [
            f"{row['benchmark'].upper()}, {row['problems']} problems, {row['runs']} runs",
            *errors(row["errors"]),
            *errors(row["best"]),
            *errors(row["stated"]),
            f"{row['exact']} of {row['runs']}",
            f"{row['cpu_seconds']:.0f}",
        ]
        for row in means
    ]
    head = ["", "u", "u'", "u''", "best seed: u", "u'", "u''", "paper: u", "u'", "u''", "exact", "CPU s"]
    text = (
        "## The paper as it stands\n\n"
        "`--preset paper` with the paper's grammars and budgets (`python -m benchmarks run b3 --model b3 --preset "
        "paper`): samples from noise guided by order, stability and objective, Nelder-Mead, L_IC, modes completed by a "
        "perceptron. Means over problems and seeds, then of the best seed on each problem by L_IC alone, as published "
        f"rows are, then what the paper states:\n\n{markdown(head, body)}\n"
    )
    rows = [
        [
            row["problem"],
            str(row["seeds"]),
            *errors(row["errors"]),
            *errors(row["stated"]),
            f"{row['complexity']:.0f}",
            f"{row['exact']} of {row['seeds']}",
            f"{row['cpu_seconds']:.0f}",
        ]
        for row in by_problem(LADDER, folder)
    ]
    if rows:
        head = ["", "seeds", "u", "u'", "u''", "paper: u", "u'", "u''", "nodes", "exact", "CPU s"]
        text += f"\nProblem by problem on Benchmark 3:\n\n{markdown(head, rows)}\n"
    rungs = ladder(folder)
    if rungs:
        body = [
            [
                f"{r['rung']}: {r['words']}",
                *errors(r["errors"]),
                f"{r['exact']} of {r['runs']}",
                f"{r['evaluations']:.0f}",
                f"{r['cpu_seconds']:.0f}",
            ]
            for r in rungs
        ]
        text += (
            "\n### From the paper to the default\n\n"
            "One part after the other is replaced by this project's; a rung has the parts of all rungs above it in the "
            f"table. The same {rungs[0]['runs']} runs in every rung: {', '.join(rungs[0]['problems'])}.\n\n"
            f"{markdown(LADDER_HEAD, body)}\n\n"
            "![From the paper to the default](figures/ladder.svg)\n"
        )
    return text
