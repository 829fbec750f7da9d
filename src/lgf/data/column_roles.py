"""Roles of the columns of a table: time, measured values, inputs, experiment, weight."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgf.data.column_variables import DEFAULT_STATE, column_variables, names_leave_doubt, plain_name, variable_name
from lgf.data.levels import jumps_between_levels
from lgf.data.noise import is_noise_alone
from lgf.data.observation import LEAST_SAMPLES
from lgf.data.rates import contradicts_rates
from lgf.data.table import ColumnName, Table
from lgf.data.times import days_and_clock
from lgf.errors import LgfError, quoted
from lgf.expression.frame import MOST_STATES, Variable

DEFAULT_INPUT = "F"  # the name of the input if there is only one

_KNOWN_NAMES = {
    "time": "t time times zeit temps tiempo timestamp date datetime",
    "unit of time": "ms s sec secs second seconds min mins minute minutes h hr hrs hour hours day days week weeks "
    "month months year years",
    "input": "f force forcing input excitation load drive driving",
    "experiment": "experiment exp run trial replicate rep well subject id series group test record",
    "weight": "weight weights",
    "row": "index row rows sample samples no nr # n obs id rownames",
}
_ROW_NAMES = frozenset({"rownames", "row names", "row_names", "row.names", "unnamed: 0"})  # whatever they hold
_WELL = re.compile(r"[a-p](0?[1-9]|1[0-9]|2[0-4])")  # of plates with up to 384 wells
_NAMES = {role: frozenset(names.split()) for role, names in _KNOWN_NAMES.items()}


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
        time_position = _guess_time(table, names, free)
        counted = ", which counts the rows: no other looks like time" * _counts_rows(table, names, time_position)
        notes.append(f"Time is column {quoted(table.names[time_position])} (guessed){counted}.")
        free.remove(time_position)
    parts = days_and_clock(table, time_position, free)
    clock = None
    if parts is not None:
        free = [k for k in (*free, time_position) if k not in parts]
        time_position, clock = parts
    if not labels and not _increases(table, time_position):
        labels = _guess_experiment(table, names, time_position, free)
        free = [k for k in free if k not in labels]
        called = " and ".join(quoted(table.names[k]) for k in labels)
        if labels:
            together = f"Columns {called} together tell" if len(labels) > 1 else f"Column {called} tells"
            notes.append(f"{together} the experiments apart (guessed).")
    guesses = {
        what: [k for k in free if _is_called(names[k], what) and table.is_numeric(k)] for what in ("input", "weight")
    }
    guesses["input"] = list({names[k]: k for k in reversed(guesses["input"])}.values())[::-1]  # one of each name
    rest = [k for k in free if k not in guesses["input"]]
    if not inputs and guesses["input"] and (values is not None or rest):
        inputs, free = tuple(guesses["input"]), rest
        notes += [
            f"Column {quoted(table.names[k])} is a known input, guessed from its name; if it is a state, name every "
            "measured column (--value, or its role on the page)."
            for k in inputs
        ]
    if not inputs and values is None and not wide:
        inputs = _stepping(table, names, free, labels)
        free = [k for k in free if k not in inputs]
        notes += [
            f"Column {quoted(table.names[k])} is a known input, guessed from its jumps between levels; if it is a "
            "state, name every measured column (--value, or its role on the page)."
            for k in inputs
        ]
    others = [
        k for k in free if table.is_numeric(k) and k not in guesses["weight"] and not _counts_rows(table, names, k)
    ]
    beside = any(not _is_covariate(table, k, labels) for k in others)
    if positions["weight"] is None and guesses["weight"] and (values is not None or beside):
        positions["weight"] = guesses["weight"][0]
        free.remove(positions["weight"])
        notes.append(f"Column {quoted(table.names[positions['weight']])} is the weight (guessed).")
    guessed = values is None
    if values is None:
        values = _guess_values(table, names, free, labels, notes)
    others = [p for role, p in positions.items() if p is not None and role != "time"]
    _check_distinct(table, [time_position, *labels, *values, *inputs, *others])
    if not wide and guessed and not labels and _are_replicates([names[k] for k in values]):
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
    input_names = (DEFAULT_INPUT,) if len(inputs) == 1 else tuple(variable_name(table.names[k]) for k in inputs)
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


def time_and_others(table: Table, time: ColumnName | None = None) -> tuple[int, int | None, list[int]]:
    """(times, time of day if the times are days only, other columns of numbers that do not count the rows).

    The column of the times is guessed unless it is named.
    """
    names, every = [plain_name(name) for name in table.names], list(range(len(table.names)))
    position = _guess_time(table, names, every) if time is None else table.position(time, "time")
    days, clock = days_and_clock(table, position, [k for k in every if k != position]) or (position, None)
    used = days, clock
    others = [k for k in every if k not in used and table.is_numeric(k) and not _counts_rows(table, names, k)]
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
    """Whether the name of a column means something else in an equation, so that its variable has another one."""
    return name.startswith("x_") and not column.strip().startswith("x")


def _are_replicates(names: list[str]) -> bool:
    """Whether columns are called like experiments (rep1, rep2), or like more wells of a plate than there are states."""
    experiments = all(name not in _NAMES["experiment"] and _is_called(name, "experiment") for name in names)
    wells = len(names) > MOST_STATES and all(_WELL.fullmatch(name) for name in names)
    return len(names) > 1 and (experiments or wells)


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


def _is_called(name: str, what: str) -> bool:
    """Whether the name, or the name before a number, is one of this role."""
    return name in _NAMES[what] or re.sub(r"[ _.-]?[0-9]+$", "", name) in _NAMES[what]


def _guess_time(table: Table, names: list[str], free: list[int]) -> int:
    if len(names) < 2:
        raise LgfError(f"{table.source} has one column; give a column of times and a column of values.")
    named = [k for k in free if names[k] in _NAMES["time"]] or [k for k in free if names[k].split("_")[0] == "time"]
    if named:
        return next((k for k in named if _increases(table, k)), named[0])
    # S may be seconds or a substrate, min minutes or a minimum: of columns named like a unit, time increases.
    units = [k for k in free if names[k] in _NAMES["unit of time"]]
    rising = [k for k in free if table.is_numeric(k) and _increases(table, k)]
    rising.sort(key=lambda k: _counts_rows(table, names, k))
    candidates = [k for k in units if _increases(table, k)] + rising + units
    if not candidates or _counts_rows(table, names, candidates[0]):
        # Experiments below each other: time rises in each, while the rows are numbered through.
        repeated = [k for k in free if table.is_numeric(k) and _label_of(table, k, free, in_blocks=True) is not None]
        repeated.sort(key=lambda k: len(np.unique(table.columns[k])))  # experiments often have their times in common
        candidates = repeated[:1] + candidates
    if candidates:
        return candidates[0]
    if sum(name.startswith("column ") for name in names) > len(names) / 2:  # a title was taken for the header
        raise LgfError(
            f"no column of {table.source} looks like time, and its header {quoted(table.names[0])} names "
            f"{sum(not name.startswith('column ') for name in names)} of {len(names)} columns; delete the lines above "
            "the line that names the columns."
        )
    raise LgfError(
        f"no column of {table.source} looks like time; name it, the columns are "
        f"{', '.join(map(quoted, table.names[:12]))}."
    )


def _increases(table: Table, position: int) -> bool:
    column = table.columns[position]
    return column.dtype.kind != "f" or _rises(column)


def _rises(times: np.ndarray) -> bool:
    present = times[~np.isnan(times)]
    return len(present) > 0 and bool(np.all(np.diff(present) > 0))


def _guess_experiment(table: Table, names: list[str], time: int, free: list[int]) -> tuple[int, ...]:
    """The columns that tell experiments apart; none if no column looks like it.

    A column is taken by its name. If time does not increase in its experiments, the others of such names are asked, all
    of them together, and then each other column beside it: the plate beside the well.
    """
    named = tuple(k for k in free if names[k] in _NAMES["experiment"])
    if not named:
        column = _label_of(table, time, free)
        return () if column is None else (column,)
    pairs = [tuple(sorted((named[0], k))) for k in free if k not in named]
    for columns in (*((k,) for k in named), named, *pairs):
        groups = table.groups(columns).values()
        if len(groups) <= len(table) / LEAST_SAMPLES and all(_rises(table.columns[time][rows]) for rows in groups):
            return columns
    return named[:1]


def _label_of(table: Table, time: int, free: list[int], in_blocks: bool = False) -> int | None:
    """The column with the fewest different entries in each of whose groups of rows the time increases, or None.

    With `in_blocks` the rows of each group must stand together.
    """
    t = table.columns[time]
    if t.dtype.kind != "f" or np.any(np.isnan(t)) or _increases(table, time):
        return None
    labels: list[tuple[int, int]] = []
    for k in free:
        if k == time:
            continue
        _, group = np.unique(np.asarray(table.columns[k], str), return_inverse=True)
        sizes = np.bincount(group)
        if not 2 <= len(sizes) <= len(t) / LEAST_SAMPLES:
            continue
        if in_blocks and np.count_nonzero(np.diff(group)) != len(sizes) - 1:
            continue
        order = np.argsort(group, kind="stable")
        steps, same = np.diff(t[order]), np.diff(group[order]) == 0
        if np.all(steps[same] > 0):
            labels.append((len(sizes), k))
    return min(labels)[1] if labels else None


def _counts_rows(table: Table, names: list[str], position: int) -> bool:
    """Whether the column only counts the rows, of the table or of each experiment, as an index or a cycle number."""
    named = not _NAMES["row"].isdisjoint(re.split(r"[ _.]+", names[position]))
    called = named or re.fullmatch(r"(column \d+|unnamed: \d+|)", names[position])
    if not called or not table.is_numeric(position) or len(table) == 0:
        return False
    column = table.columns[position]
    steps = np.diff(column)
    anew = (column[1:] == column[0]) & (steps < 0.0)
    return bool(column[0] in (0.0, 1.0) and np.all((steps == 1.0) | anew))


def _stepping(table: Table, names: list[str], free: list[int], experiment: Sequence[int]) -> tuple[int, ...]:
    """The columns that jump between levels, as of a switch or a pump; none if no other column could be measured.

    No solution of an equation does that.
    """
    numeric = [k for k in free if table.is_numeric(k) and not _counts_rows(table, names, k)]
    numeric = [k for k in numeric if names[k] not in _NAMES["experiment"] and not _is_called(names[k], "weight")]
    moving = [
        k for k in numeric if any(len(np.unique(own[~np.isnan(own)])) > 1 for own in _parts(table, k, experiment))
    ]
    stepping = tuple(k for k in moving if jumps_between_levels(_parts(table, k, experiment)))
    return stepping if len(stepping) < len(moving) else ()


def _guess_values(
    table: Table, names: list[str], free: list[int], experiment: Sequence[int], notes: list[str]
) -> tuple[int, ...]:
    """Every column of numbers that is not empty, a covariate or noise, counts no rows and names no experiments."""
    numeric = [k for k in free if table.is_numeric(k) and not np.all(np.isnan(table.columns[k]))]
    called = _NAMES["experiment"] | _ROW_NAMES
    labels = [k for k in numeric if _counts_rows(table, names, k) or names[k] in called]
    constant = [
        k for k in numeric
        if k not in labels and (_is_covariate(table, k, experiment) or _has_one_value(table.columns[k]))
    ]  # fmt: skip
    values = tuple(k for k in numeric if k not in (*labels, *constant))
    noise = [k for k in values if is_noise_alone(_parts(table, k, experiment))]
    if len(noise) < len(values):
        values = tuple(k for k in values if k not in noise)
    else:
        noise = []
    if not values:
        values, constant = tuple(k for k in numeric if k not in labels) or tuple(numeric[:1]), []
    if not values:
        if free:
            table.numbers(free[0])
        raise LgfError(f"{table.source} has no column of numbers beside time; give one with the measured values.")
    notes.append(f"Measured: column {', '.join(quoted(table.names[k]) for k in values)} (guessed).")
    where = " within an experiment" if experiment else ""
    notes += [f"Not used: column {quoted(table.names[k])}, which does not change{where}." for k in constant]
    notes += [
        f"Not used: column {quoted(table.names[k])}, which looks like noise alone; name it if it is a state (--value) "
        "or an input (--forcing-column)."
        for k in noise
    ]
    unused = [quoted(table.names[k]) for k in free if k not in (*values, *constant, *noise)]
    if unused:
        notes.append(f"Not used: column {', '.join(unused[:8])}{' and more' if len(unused) > 8 else ''}.")
    return values


def _is_covariate(table: Table, position: int, experiment: Sequence[int]) -> bool:
    """Whether the column has one value in every experiment but not the same in all, as the dose of a subject has."""
    if not experiment:
        return False
    values = [np.unique(own[~np.isnan(own)]) for own in _parts(table, position, experiment)]
    return all(len(own) <= 1 for own in values) and len(np.unique(np.concatenate(values))) > 1


def _has_one_value(column: np.ndarray) -> bool:
    return len(np.unique(column[~np.isnan(column)])) == 1


def _parts(table: Table, position: int, experiment: Sequence[int]) -> list[np.ndarray]:
    """The values of a column, experiment by experiment."""
    return [table.columns[position][rows] for rows in table.groups(experiment).values()]


def _check_number(table: Table, variables: tuple[Variable, ...], guessed: bool) -> None:
    """Raises LgfError if there are more states than a system may have."""
    n = len({variable.name for variable in variables})
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
