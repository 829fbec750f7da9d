"""Roles of the columns of a table: time, measured values, forcing, experiment, weight."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgf.data.table import Table
from lgf.errors import LgfError, quoted
from lgf.expression.frame import HIGHEST_ORDER, Variable, check_name

DEFAULT_STATE, DEFAULT_INPUT = "u", "F"  # the names if there is only one

_KNOWN_NAMES = {
    "time": "t time times zeit temps tiempo timestamp date datetime",
    "unit of time": "ms s sec secs second seconds min mins minute minutes h hr hrs hour hours day days week weeks "
    "month months year years",
    "forcing": "f force forcing input excitation load drive driving",
    "experiment": "experiment exp run trial replicate rep well subject id series group test record",
    "weight": "weight weights",
    "u": "u x y q displacement disp position pos value values signal od state response theta angle",
    "u'": "u' x' y' v vel velocity speed du dudt du/dt udot u_t dx dxdt dx/dt xdot dy",
    "u''": "u'' x'' y'' a acc accel acceleration accelerometer ddu d2u d2udt2 uddot u_tt ddx d2x xddot ddy",
}
_NAMES = {role: frozenset(names.split()) for role, names in _KNOWN_NAMES.items()}


@dataclass(frozen=True)
class Roles:
    """The positions of the columns by role, the variable of each value column, and notes on guesses."""

    time: int
    values: tuple[int, ...]
    variables: tuple[Variable, ...]
    inputs: tuple[tuple[str, int], ...]  # (name, position)
    experiment: int | None
    weight: int | None
    notes: tuple[str, ...]


def guess_roles(
    table: Table, time: Any, value: Any, derivative: Any, forcing: Any, experiment: Any, weight: Any
) -> Roles:
    """The role of every column: set by the user, else guessed by its name, else by its values."""
    notes: list[str] = []
    positions = {
        what: None if name is None else table.position(name, what)
        for what, name in (("time", time), ("experiment", experiment), ("weight", weight))
    }
    names = [_plain_name(name) for name in table.names]
    inputs = () if forcing is None else tuple(table.position(f, "forcing") for f in _as_sequence(forcing))
    values = None if value is None else tuple(table.position(v, "value") for v in _as_sequence(value))
    taken = {p for p in positions.values() if p is not None} | set(values or ()) | set(inputs)
    free = [k for k in range(len(names)) if k not in taken]

    time_position = positions["time"]
    if time_position is None:
        time_position = _guess_time(table, names, free)
        notes.append(f"Time is column {quoted(table.names[time_position])} (guessed).")
        free.remove(time_position)
    if positions["experiment"] is None and not _increases(table, time_position):
        column = next((k for k in free if names[k] in _NAMES["experiment"]), None)
        if column is not None:
            positions["experiment"] = column
            free.remove(column)
            notes.append(f"Column {quoted(table.names[column])} tells the experiments apart (guessed).")
    for what in ("forcing", "weight"):
        column = next((k for k in free if names[k] in _NAMES[what] and table.is_numeric(k)), None)
        missing = not inputs if what == "forcing" else positions["weight"] is None
        if missing and column is not None and (values is not None or len(free) > 1):
            if what == "forcing":
                inputs = (column,)
            else:
                positions["weight"] = column
            free.remove(column)
            notes.append(f"Column {quoted(table.names[column])} is the {what} (guessed).")
    if values is None:
        values = _guess_values(table, names, free, notes)
    others = [p for role, p in positions.items() if p is not None and role != "time"]
    _check_distinct(table, [time_position, *values, *inputs, *others])
    variables = _variables(table, values, names, derivative, notes)
    input_names = (DEFAULT_INPUT,) if len(inputs) == 1 else tuple(variable_name(table.names[k]) for k in inputs)
    duplicate = next((name for name in input_names if input_names.count(name) > 1), None)
    if duplicate is not None:
        raise LgfError(f"two columns would be the input {quoted(duplicate)}; rename one of them.")
    return Roles(
        time_position, values, variables, tuple(zip(input_names, inputs, strict=True)), positions["experiment"],
        positions["weight"], tuple(notes),
    )  # fmt: skip


def _plain_name(name: str) -> str:
    """The name in lower case without its unit: `Time [s]` -> `time`."""
    return re.sub(r"[\[(].*?[\])]", "", name).replace("’", "'").strip().lower()


def _as_sequence(value: Any) -> Sequence:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _guess_time(table: Table, names: list[str], free: list[int]) -> int:
    if len(names) < 2:
        raise LgfError(f"{table.source} has one column; give a column of times and a column of values.")
    named = [k for k in free if names[k] in _NAMES["time"]] or [k for k in free if names[k].split("_")[0] == "time"]
    if named:
        return next((k for k in named if _increases(table, k)), named[0])
    # S may be seconds or a substrate, min minutes or a minimum: of columns named like a unit, time increases.
    units = [k for k in free if names[k] in _NAMES["unit of time"]]
    rising = [k for k in free if table.is_numeric(k) and _increases(table, k)]
    candidates = [k for k in units if _increases(table, k)] + rising + units
    if candidates:
        return candidates[0]
    raise LgfError(
        f"no column of {table.source} looks like time; name it, the columns are "
        f"{', '.join(map(quoted, table.names[:12]))}."
    )


def _increases(table: Table, position: int) -> bool:
    column = table.columns[position]
    if column.dtype.kind != "f":
        return True
    present = column[~np.isnan(column)]
    return len(present) > 0 and bool(np.all(np.diff(present) > 0))


def _guess_values(table: Table, names: list[str], free: list[int], notes: list[str]) -> tuple[int, ...]:
    numeric = [k for k in free if table.is_numeric(k) and not np.all(np.isnan(table.columns[k]))]
    if not numeric:
        if free:
            table.numbers(free[0])
        raise LgfError(f"{table.source} has no column of numbers beside time; give one with the measured values.")
    known = [k for k in numeric if _derivative_of(names[k]) is not None]
    by_derivative: dict[int, int] = {}
    for k in known:
        by_derivative.setdefault(_derivative_of(names[k]) or 0, k)
    values = tuple(sorted(by_derivative.values())) or (numeric[0],)
    notes.append(f"Measured: column {', '.join(quoted(table.names[k]) for k in values)} (guessed).")
    unused = [quoted(table.names[k]) for k in free if k not in values]
    if unused:
        notes.append(f"Not used: column {', '.join(unused[:8])}{' and more' if len(unused) > 8 else ''}.")
    return values


def _derivative_of(name: str) -> int | None:
    """The derivative in a column of this name; None if the name is not known."""
    for order, role in enumerate(("u", "u'", "u''")):
        if name in _NAMES[role] or name.split("_")[0] in _NAMES[role]:
            return order
    return None


def _variables(
    table: Table, values: tuple[int, ...], names: list[str], derivative: Any, notes: list[str]
) -> tuple[Variable, ...]:
    """The variable of each value column: derivatives of one state, or named states if two have the same derivative."""
    guessed = tuple(_derivative_of(names[k]) or 0 for k in values)
    derivatives = guessed if derivative is None else tuple(_as_sequence(derivative))
    if len(derivatives) != len(values):
        raise LgfError(
            f"there are {len(values)} measured columns but {len(derivatives)} derivatives are named; "
            "name one for each column."
        )
    if len(set(derivatives)) < len(derivatives):
        states = tuple(variable_name(table.names[k]) for k in values)
        return state_variables(states, derivatives if derivative is not None else 0)
    if derivative is None:
        for k, order in zip(values, guessed, strict=True):
            if order > 0:
                variable = Variable(DEFAULT_STATE, order)
                notes.append(f"Column {quoted(table.names[k])} was taken for {variable}, by its name.")
    return state_variables((DEFAULT_STATE,) * len(values), derivatives)


def state_variables(states: Sequence[str], derivatives: Any) -> tuple[Variable, ...]:
    """The variable of each column, from its state and derivative (one for each column, or one for all)."""
    orders = tuple(_as_sequence(derivatives)) if np.ndim(derivatives) else (derivatives,) * len(states)
    for order in orders:
        if isinstance(order, (bool, str)) or not hasattr(order, "__index__") or not 0 <= order <= HIGHEST_ORDER:
            raise LgfError(
                f"the measured derivative is {quoted(order)}; give 0 for u, 1 for u', 2 for u'' (at most "
                f"{HIGHEST_ORDER})."
            )
    return tuple(Variable(name, int(order)) for name, order in zip(states, orders, strict=True))


def variable_name(column: str) -> str:
    """The name of a state or input from the name of its column: without unit, with _ for other characters."""
    name = re.sub(r"\W+", "_", re.sub(r"[\[(].*?[\])]", "", column).strip(), flags=re.ASCII).strip("_")
    try:
        return check_name(name)
    except LgfError as error:
        raise LgfError(
            f"column {quoted(column)} cannot be the name of a state or an input; rename it, with letters and digits."
        ) from error


def _check_distinct(table: Table, used: list[int]) -> None:
    duplicate = next((k for k in used if used.count(k) > 1), None)
    if duplicate is not None:
        raise LgfError(f"column {quoted(table.names[duplicate])} was given two roles; each column has one.")
