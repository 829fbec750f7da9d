"""What the page is told about tables and problems, in JSON types; a missing number is null."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from lgf.app.form import ColumnUse, variables
from lgf.app.thinning import thinned_rows
from lgf.data import Problem, Table
from lgf.data.column_units import header_unit
from lgf.errors import LgfError

Facts = dict[str, Any]
FIRST_ROWS = 20
MOST_EXPERIMENTS = 50  # most experiments that the page shows


def table_view(table: Table, uses: tuple[ColumnUse, ...]) -> Facts:
    """Names, roles and first rows of a table."""
    try:
        taken = variables(table, uses)
    except LgfError:  # the problem is refused with the same sentence
        taken = {}
    cells = [[_cell(column[row]) for column in table.columns] for row in range(min(len(table), FIRST_ROWS))]
    columns = [
        {
            "name": name,
            **use.model_dump(),
            "variable": taken.get(k),
            "header_unit": header_unit(name, taken.get(k) or "") or "",
        }
        for k, (name, use) in enumerate(zip(table.names, uses, strict=True))
    ]
    return {"name": table.source, "columns": columns, "rows": cells, "n_rows": len(table)}


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)[:60]


def problem_view(problem: Problem) -> Facts:
    """The experiments for plots, and the names of everything that can be known about."""
    frame = problem.frames[-1]
    observations = problem.observations
    return {
        "experiments": [observation_view(problem, e) for e in range(min(len(observations), MOST_EXPERIMENTS))],
        "n_experiments": len(observations),
        "n_samples": problem.n_samples,
        "states": list(problem.states),
        "inputs": list(problem.inputs),
        "variables": [str(v) for v in frame.variables],
        "highest": [str(v) for v in frame.highest],
        "known": list(problem.knowledge.describe()),
    }


def observation_view(problem: Problem, experiment: int) -> Facts:
    """One experiment, thinned for plots."""
    observation = problem.observations[experiment]
    rows = thinned_rows(observation.values)
    t = observation.t[rows]
    inputs = {name: forcing.values(t) for name, forcing in problem.signals(experiment).items()}
    return {
        "name": problem.experiment_names[experiment],
        "t": t,
        "columns": {str(v): observation.values[rows, j] for j, v in enumerate(observation.columns)},
        "inputs": inputs,
        "n": len(observation.t),
    }


def data_rows(problem: Problem) -> Iterator[list[str]]:
    """The experiments as rows of one table, with a header."""
    variables = list(dict.fromkeys(v for o in problem.observations for v in o.columns))
    yield ["experiment", "t", *map(str, variables), *problem.inputs]
    for e, o in enumerate(problem.observations):
        signals, missing = problem.signals(e), np.full(len(o), np.nan)
        columns = [o.t, *(missing if (c := o.column(v)) is None else c for v in variables)]
        columns += [signals[name].values(o.t) if name in signals else missing for name in problem.inputs]
        for row in zip(*columns, strict=True):
            yield [o.name or str(e + 1), *("" if x != x else repr(float(x)) for x in row)]
