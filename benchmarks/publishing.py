"""Published results: errors by problem (published.csv, re-solved) and as the paper states them (paper.csv)."""

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choosing import benchmark_of
from benchmarks.problems import NamedProblem, problems
from lgf.equation.complexity import complexity
from lgf.expression.parse import read_equations, read_expression
from lgf.expression.tree import signal, substitute

HERE = Path(__file__).parent
COLUMNS = ("rel_l2_u", "rel_l2_du", "rel_l2_d2u")


def published_errors(benchmark: str) -> dict[str, dict[str, list[float]]]:
    """Errors of u, u', u'' of the equations that each method published, by method and problem."""
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for row in _rows("published.csv"):
        if benchmark_of(row["problem"]) == benchmark:
            found[row["method"]][row["problem"]] = _errors(row)
    return dict(found)


def published(benchmark: str) -> list[dict[str, Any]]:
    """One summary for each method: the published equations re-solved, then what the paper states, then the floor."""
    summaries = []
    groups: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in _rows("published.csv"):
        if benchmark_of(row["problem"]) == benchmark:
            groups[row["method"]].append(row)
    for row in _rows("paper.csv"):
        if benchmark_of(row["scope"]) == benchmark:
            groups[f"{row['method']}, as the paper states"].append(row)
    for method, rows in groups.items():
        summaries.append(
            {
                "method": method,
                "problems": None if rows[0].get("scope") == benchmark else len(rows),  # the paper states a mean only
                "errors": mean_errors([_errors(row) for row in rows]),
                "complexity": float(np.mean([float(row["complexity"]) for row in rows])),
            }
        )
    of_it = [p for p in problems().values() if benchmark_of(p.id) == benchmark]
    floor = {
        "method": "floor (true structure, fitted)",
        "problems": len(of_it),
        "errors": mean_errors([list(p.floor) for p in of_it]),
        "complexity": float(np.mean([true_complexity(p) for p in of_it])),
    }
    return [*summaries, floor]


def stated_errors(method: str) -> dict[str, list[float]]:
    """The errors that the paper states for a method, by problem or benchmark."""
    return {row["scope"]: _errors(row) for row in _rows("paper.csv") if row["method"] == method}


def true_complexity(problem: NamedProblem) -> int:
    """The paper's complexity of the true equation as written, forcing included."""
    ((left, right),) = read_equations(problem.equation)
    inputs = {signal(name): read_expression(formula) for name, formula in problem.formulas.items()}
    return complexity(substitute(left, inputs), substitute(right, inputs))


def mean_errors(errors: list[list[float]]) -> list[float]:
    """Means of u, u' and u'' (over the problems that have one), each error capped at 1."""
    means = []
    for k in range(3):
        column = [min(1.0, e[k]) for e in errors if len(e) > k]
        if column:
            means.append(float(np.mean(column)))
    return means


def _rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _errors(row: dict[str, str]) -> list[float]:
    return [float(row[c]) for c in COLUMNS if row[c]]
