"""Roles of the columns of a table: time, measured values, inputs, experiment, weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgf.data.column_guesses import (
    are_replicates,
    counts_rows,
    guess_experiment,
    guess_values,
    has_one_value,
    increases,
    is_covariate,
    is_input,
    is_weight,
    stepping_columns,
)
from lgf.data.column_variables import DEFAULT_STATE, column_variables, names_leave_doubt, plain_name, variable_names
from lgf.data.rates import contradicts_rates
from lgf.data.table import ColumnName, Table
from lgf.data.time_guess import guess_time, is_called_time
from lgf.data.times import clock_goes_on, days_and_clock
from lgf.errors import LgfError, quoted
from lgf.expression.frame import MOST_STATES, Variable

DEFAULT_INPUT = "F"  # the name of the input if there is only one


@dataclass(frozen=True)
class Roles:
    """The positions of the columns by role, the variable of each value column, and notes on guesses."""

    time: int
    values: tuple[int, ...]
    variables: tuple[Variable, ...]
    inputs: tuple[tuple[str, int], ...]  # (name, position)
    experiment: tuple[int, ...]  # experiments are the combinations of their entries; none if there is one experiment
    weight: int | None
    notes: tuple[str, ...]
    clock: int | None = None  # the time of day, if the column of the times has days only
    wide: bool = False  # every value column is an experiment of the one variable


def guess_roles(
    table: Table, time: Any, value: Any, derivative: Any, forcing: Any, experiment: Any, weight: Any,
    by_name: bool = False, wide: bool = False,
) -> Roles:  # fmt: skip
    """The role of every column: set by the user, else guessed by its name, else by its values.

    Every column of numbers without another role holds measured values. With `by_name` a single state has the name of
    its column. With `wide`, or if the names say so, each measured column is an experiment of the same quantity.
    """
    notes: list[str] = []
    positions = {
        what: None if name is None else table.position(name, what)
        for what, name in (("time", time), ("weight", weight))
    }
    labels = () if experiment is None else tuple(table.position(e, "experiment") for e in _as_sequence(experiment))
    if wide and labels:
        raise LgfError("every column is an experiment of its own, but a column of experiments is named; drop one.")
    names = [plain_name(name) for name in table.names]
    inputs = () if forcing is None else tuple(table.position(f, "forcing") for f in _as_sequence(forcing))
    values = None if value is None else tuple(table.position(v, "value") for v in _as_sequence(value))
    taken = {p for p in positions.values() if p is not None} | set(labels) | set(values or ()) | set(inputs)
    free = [k for k in range(len(names)) if k not in taken]

    time_position = positions["time"]
    if time_position is None:
        time_position = guess_time(table, names, free)
        counted = ", which counts the rows: no other looks like time" * counts_rows(table, names, time_position)
        only_rises = not counted and table.is_numeric(time_position) and not is_called_time(names[time_position])
        why = ": it rises, and none is called like time" * only_rises
        notes.append(f"Time is column {quoted(table.names[time_position])} (guessed{why}){counted}.")
        free.remove(time_position)
    parts = days_and_clock(table, time_position, free)
    clock = None
    if parts is not None:
        free = [k for k in (*free, time_position) if k not in parts]
        time_position, clock = parts
    if not labels and not increases(table, time_position) and not clock_goes_on(table, time_position, clock):
        labels = guess_experiment(table, names, time_position, free)
        free = [k for k in free if k not in labels]
        called = " and ".join(quoted(table.names[k]) for k in labels)
        if labels:
            together = f"Columns {called} together tell" if len(labels) > 1 else f"Column {called} tells"
            notes.append(f"{together} the experiments apart (guessed).")
    numeric = [k for k in free if table.is_numeric(k)]
    weights = [k for k in numeric if is_weight(table, names[k], k)]
    if not inputs:
        moving = [k for k in numeric if not has_one_value(table.columns[k])]
        named = list({names[k]: k for k in reversed(moving) if is_input(names[k])}.values())[::-1]  # one of each name
        if named and (values is not None or len(named) < len(numeric)):
            inputs, free = tuple(named), [k for k in free if k not in named]
            notes += [_input_note(table, k, "name") for k in named]
        stepping = () if values is not None or wide else stepping_columns(table, names, free, labels)
        inputs, free = (*inputs, *stepping), [k for k in free if k not in stepping]
        notes += [_input_note(table, k, "jumps between levels") for k in stepping]
    others = [k for k in free if table.is_numeric(k) and k not in weights and not counts_rows(table, names, k)]
    beside = any(not is_covariate(table, k, labels) for k in others)
    if positions["weight"] is None and weights and (values is not None or beside):
        positions["weight"] = weights[0]
        free.remove(positions["weight"])
        notes.append(f"Column {quoted(table.names[positions['weight']])} is the weight (guessed).")
    guessed = values is None
    if values is None:
        values = guess_values(table, names, free, labels, notes)
    if guessed and time is not None and all(is_called_time(names[k]) and increases(table, k) for k in values):
        raise LgfError(
            f"column {quoted(table.names[time_position])} is said to be the time, so that "
            f"{quoted(table.names[values[0]])} alone is left as measured; leave one out, or name the measured column "
            "too."
        )
    others = [p for role, p in positions.items() if p is not None and role != "time"]
    _check_distinct(table, [time_position, *labels, *values, *inputs, *others])
    if not wide and guessed and not labels and are_replicates([names[k] for k in values]):
        wide = True
        notes.append(
            f"The {len(values)} measured columns are taken for experiments of one quantity, by their names; name them "
            "as values (--value, or their roles on the page) if they are states."
        )
    if wide:
        variables = (_wide_variable(derivative),)
    else:
        variables = measured_variables(table, values, derivative, by_name, time_position, labels)
        _check_number(table, variables, guessed)
    for k, variable in zip(values, variables, strict=True) if derivative is None and not wide else ():
        if variable.derivative > 0:
            notes.append(f"Column {quoted(table.names[k])} was taken for {variable}, by its name.")
        elif names[k] != variable.name == DEFAULT_STATE or _is_renamed(table.names[k], variable.name):
            notes.append(f"Column {quoted(table.names[k])} is called {variable}.")
    input_names = (DEFAULT_INPUT,)
    if len(inputs) != 1:
        input_names = tuple(variable_names([table.names[k] for k in inputs], DEFAULT_INPUT))
    notes += [
        f"Column {quoted(table.names[k])} is called {name}."
        for k, name in zip(inputs, input_names, strict=True)
        if _is_renamed(table.names[k], name) or (name == DEFAULT_INPUT and names[k] != name.lower())
    ]
    duplicate = next((name for name in input_names if input_names.count(name) > 1), None)
    if duplicate is not None:
        raise LgfError(f"two columns would be the input {quoted(duplicate)}; rename one of them.")
    return Roles(
        time_position, values, variables, tuple(zip(input_names, inputs, strict=True)), labels,
        positions["weight"], tuple(notes), clock, wide,
    )  # fmt: skip


def _input_note(table: Table, position: int, what: str) -> str:
    return (
        f"Column {quoted(table.names[position])} is a known input, guessed from its {what}; if it is a state, name "
        "every measured column (--value, or its role on the page)."
    )


def time_and_others(table: Table, time: ColumnName | None = None) -> tuple[int, int | None, list[int]]:
    """(times, time of day if the times are days only, other columns of numbers that do not count the rows).

    The column of the times is guessed unless it is named.
    """
    names, every = [plain_name(name) for name in table.names], list(range(len(table.names)))
    position = guess_time(table, names, every) if time is None else table.position(time, "time")
    days, clock = days_and_clock(table, position, [k for k in every if k != position]) or (position, None)
    used = days, clock
    others = [k for k in every if k not in used and table.is_numeric(k) and not counts_rows(table, names, k)]
    return days, clock, others


def measured_variables(
    table: Table, values: Sequence[int], derivative: Any, by_name: bool, time: int | None, experiment: Sequence[int]
) -> tuple[Variable, ...]:
    """The variable of each of these columns: by `derivative`, else by its name, unless values contradict a guess."""
    names = [table.names[k] for k in values]
    variables = column_variables(names, derivative, by_name)
    if derivative is not None or time is None or not names_leave_doubt(names):
        return variables
    if not all(table.is_numeric(k) for k in (time, *values)):
        return variables
    t, columns = table.columns[time], np.column_stack([table.columns[k] for k in values])
    if contradicts_rates(t, columns, variables, list(table.groups(experiment).values())):
        return column_variables(names, [0] * len(names), by_name)
    return variables


def _is_renamed(column: str, name: str) -> bool:
    """Whether an equation cannot spell the name of a column, or means something else by it: it gets another."""
    plain = plain_name(column)
    other = not plain.isascii() or not any(map(str.isalnum, plain))
    return other or (name.startswith("x_") and not plain.startswith("x"))


def _wide_variable(derivative: Any) -> Variable:
    """What every column of a wide table holds."""
    orders = set(_as_sequence(derivative if derivative is not None else 0))
    if len(orders) > 1 or not all(isinstance(order, int) for order in orders):
        raise LgfError(
            f"every column is an experiment of one quantity, but the derivatives are {quoted(derivative)}; give one."
        )
    return Variable(DEFAULT_STATE, orders.pop())


def _as_sequence(value: Any) -> Sequence:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _check_number(table: Table, variables: tuple[Variable, ...], guessed: bool) -> None:
    """Raises LgfError if there are more states than a system may have."""
    n = len({variable.name for variable in variables})
    if n > MOST_STATES and len(table) < n:
        raise LgfError(
            f"{table.source} has {len(table)} row{'s' * (len(table) != 1)} of samples and {n} columns; put samples in "
            "rows and quantities in columns: transpose it."
        )
    if n > MOST_STATES:
        what = "columns of numbers beside time" if guessed else "measured columns"
        raise LgfError(
            f"{table.source} has {n} {what}, but a system has at most {MOST_STATES} states; name the columns to use "
            "as values, or say that each is an experiment of the same quantity (--wide)."
        )


def _check_distinct(table: Table, used: list[int]) -> None:
    duplicate = next((k for k in used if used.count(k) > 1), None)
    if duplicate is not None:
        raise LgfError(f"column {quoted(table.names[duplicate])} is named twice; each column has one role.")
