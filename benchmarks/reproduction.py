"""The paper as it stands: the preset "paper" beside the paper's figures, and the ladder from it to the default."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.ladder import RUNGS
from benchmarks.publishing import mean_errors, stated_errors
from benchmarks.recording import RESULTS
from benchmarks.running import Options
from benchmarks.tables import groups

LADDER_HEAD = ["", "u", "u'", "u''", "exact", "evaluations", "CPU s"]
LADDER = "b3"
"""The benchmark of the ladder."""


def by_problem(benchmark: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    """For each problem with a run of the preset "paper": its mean errors, its nodes, and what the paper states."""
    wanted = Options(benchmark, benchmark, "paper")
    lines = [x for group in groups(folder) if Options(**group[0]["options"]) == wanted for x in group]
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
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
        if options.rung is not None and options.benchmark == LADDER:
            runs.setdefault(options.rung, {}).update({(x["problem"], x["seed"]): x for x in group})
    if not runs:
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

    text = ""
    rows = [
        [
            row["problem"],
            *errors(row["errors"]),
            *errors(row["stated"]),
            f"{row['complexity']:.0f}",
            f"{row['exact']} of {row['seeds']}",
            f"{row['cpu_seconds']:.0f}",
        ]
        for row in by_problem(LADDER, folder)
    ]
    if rows:
        head = ["", "u", "u'", "u''", "paper: u", "u'", "u''", "nodes", "exact", "CPU s"]
        text += (
            "## The paper as it stands\n\n"
            "`--preset paper` with the paper's grammars and budgets (`python -m benchmarks run b3 --model b3 --preset "
            "paper`): samples from noise guided by order, stability and objective, Nelder-Mead, L_IC, modes completed "
            "by a perceptron. The rows `b1-b1-paper`, `b2-b2-paper` and `b3-b3-paper` in the tables above are its "
            "means. Problem by problem on Benchmark 3, beside what the paper states:\n\n"
            f"{markdown(head, rows)}\n"
        )
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
            f"table. Problems of Benchmark 3, the same {rungs[0]['runs']} runs in every rung.\n\n"
            f"{markdown(LADDER_HEAD, body)}\n\n"
            "![From the paper to the default](figures/ladder.svg)\n"
        )
    return text
