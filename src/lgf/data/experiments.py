"""Observations from tables and arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lgf.data.column_roles import DEFAULT_INPUT, DEFAULT_STATE, guess_roles, state_variables
from lgf.data.observation import Observation
from lgf.data.table import ColumnName, Table, read_table
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Variable
from lgf.expression.parse import ReadingError
from lgf.solver.forcing import Forcing

MOST_EXPERIMENTS = 1_000

ForcingLike = Forcing | str | Callable[[float], float] | Sequence[float] | np.ndarray | None


@dataclass(frozen=True, eq=False)
class Reading:
    """The experiments in a table, and notes on what was guessed."""

    observations: tuple[Observation, ...]
    notes: tuple[str, ...] = ()


def read_observations(
    source: Any,
    *,
    time: ColumnName | None = None,
    value: ColumnName | Sequence[ColumnName] | None = None,
    derivative: int | Sequence[int] | None = None,
    forcing: ColumnName | Sequence[ColumnName] | None = None,
    experiment: ColumnName | None = None,
    weight: ColumnName | None = None,
    initial: Any = None,
    delimiter: str | None = None,
) -> Reading:
    """The experiments in a table (see `read_table`); roles of columns that are not named are guessed and noted.

    `derivative` is 0, 1 or 2 for a value column that measures u, u' or u''; columns of the same derivative are
    different states, named after the columns. `initial` is one state for all experiments, or one for each.
    """
    table = read_table(source, delimiter)
    roles = guess_roles(table, time, value, derivative, forcing, experiment, weight)
    groups = _experiments(table, roles.experiment)
    initials = _initials(initial, len(groups))
    t, time_notes = _times(table, roles.time)
    values = np.column_stack([table.numbers(k) for k in roles.values])
    inputs = {name: table.numbers(k) for name, k in roles.inputs}
    weights = None if roles.weight is None else table.numbers(roles.weight)
    observations = []
    for (name, rows), start in zip(groups.items(), initials, strict=True):
        rows = rows[~(np.isnan(t[rows]) & np.all(np.isnan(values[rows]), axis=1))]
        try:
            observation = Observation(
                t[rows],
                values[rows],
                roles.variables,
                weights=None if weights is None else np.repeat(weights[rows, None], values.shape[1], axis=1),
                initial=start,
                inputs={name: Forcing.from_samples(t[rows], column[rows]) for name, column in inputs.items()},
                name=name,
            )
        except LgfError as error:
            raise LgfError(f"experiment {quoted(name)}: {error}" if name else str(error)) from error
        observations.append(observation)
    notes = [*table.notes, *roles.notes, *time_notes]
    if len(groups) > 1:
        notes.append(f"The table holds {len(groups)} experiments.")
    return Reading(tuple(observations), tuple(notes))


def observations_from_arrays(
    t: Any,
    values: Any,
    *,
    states: Sequence[str] | None = None,
    derivative: int | Sequence[int] = 0,
    forcing: Any = None,
    weights: Any = None,
    initial: Any = None,
) -> tuple[Observation, ...]:
    """The experiments in arrays: one array of times and one of values, or lists with one array per experiment.

    Experiments may share their times. Values have one column per state, named by `states` (x0, x1, ... if not given),
    or, where `derivative` names one for each column, per derivative of one state. `forcing` is a formula, a function, a
    Forcing, samples at the times, a mapping from the names of inputs to these, or a list with one of these for each
    experiment.
    """
    if not _is_list(values):
        if _is_list(t):
            raise LgfError("times are given for several experiments but values for one; give one array for each.")
        return (_observation(t, values, states, derivative, forcing, weights, initial, ""),)
    n = len(values)
    columns = []
    for what, items in (("times", t), ("forcings", forcing), ("weights", weights)):
        columns.append(items if _is_list(items) else [items] * n)
        if len(columns[-1]) != n:
            raise LgfError(f"there are {len(items)} {what} but {n} experiments; give one for each, or one for all.")
    names = [f"experiment {k + 1}" for k in range(n)]
    return tuple(
        _observation(times, u, states, derivative, force, weight, start, name)
        for u, times, force, weight, start, name in zip(values, *columns, _initials(initial, n), names, strict=True)
    )


def _observation(
    t: Any, values: Any, states: Sequence[str] | None, derivative: Any, forcing: Any, weights: Any, initial: Any,
    name: str,
) -> Observation:  # fmt: skip
    try:
        columns = _array_columns(values, states, derivative)
        observation = Observation(t, values, columns, weights, initial, name=name)
        return replace(observation, inputs=make_inputs(forcing, observation.t))
    except LgfError as error:
        raise LgfError(f"{name}: {error}" if name else str(error)) from error


def _array_columns(values: Any, states: Sequence[str] | None, derivative: Any) -> tuple[Variable, ...]:
    """The variable in each column of an array of values."""
    shape = np.shape(values)
    n = shape[1] if len(shape) == 2 else 1
    if np.ndim(derivative) and len(derivative) != n:
        raise LgfError(
            f"there are {n} measured columns but {len(derivative)} derivatives are named; name one for each column."
        )
    if states is not None and (isinstance(states, str) or len(states) != n):
        raise LgfError(f"the states are {quoted(states)} but the values have {n} columns; name one for each column.")
    names: Sequence[str] = [str(name) for name in states or ()]
    if states is None:
        several = n > 1 and np.ndim(derivative) == 0
        names = [f"x{k}" for k in range(n)] if several else [DEFAULT_STATE] * n
    return state_variables(names, derivative)


def make_inputs(forcing: ForcingLike | Mapping[str, ForcingLike], t: np.ndarray) -> dict[str, Forcing]:
    """The known inputs over these times by name; a single unnamed one is F, None means no input."""
    named = forcing if isinstance(forcing, Mapping) else {} if forcing is None else {DEFAULT_INPUT: forcing}
    return {str(name): make_forcing(signal, t) for name, signal in named.items() if signal is not None}


def make_forcing(forcing: ForcingLike, t: np.ndarray) -> Forcing:
    """The forcing over these times: from a formula, a function, or one sample per time."""
    if isinstance(forcing, Forcing):
        return forcing
    try:
        if isinstance(forcing, str):
            return Forcing.from_formula(forcing)
        if callable(forcing):
            return Forcing.from_function(forcing, float(t[0]), float(t[-1]))
        return Forcing.from_samples(t, np.asarray(forcing, dtype=float))
    except ReadingError as error:
        raise LgfError(f"the forcing {quoted(forcing)} cannot be read: {error.message}.") from error
    except (TypeError, ValueError) as error:
        raise LgfError(str(error)) from error


def _is_list(values: Any) -> bool:
    """Whether this is a list with one entry per experiment."""
    if not isinstance(values, (list, tuple)) or not values:
        return False
    single = (str, Forcing, Mapping, np.ndarray)
    return all(isinstance(v, single) or callable(v) for v in values) or all(
        isinstance(v, (list, tuple)) and (len(v) == 0 or np.ndim(v[0]) == 0) for v in values
    )


def _times(table: Table, position: int) -> tuple[np.ndarray, list[str]]:
    """The times as numbers (dates in seconds from the first one), and notes."""
    column = table.columns[position]
    if table.is_numeric(position):
        return table.numbers(position), []
    try:
        dates = column if column.dtype.kind in "Mm" else np.array([str(c) for c in column], dtype="datetime64[us]")
    except ValueError:
        return table.numbers(position), []
    seconds = (dates - dates[0]) / np.timedelta64(1, "s")
    return seconds, [f"The times in {quoted(table.names[position])} are dates; t counts seconds from the first one."]


def _experiments(table: Table, position: int | None) -> dict[str, np.ndarray]:
    """The rows of each experiment by name, in the order of first appearance."""
    if position is None:
        return {"": np.arange(len(table))}
    labels = table.columns[position]
    if labels.dtype.kind == "f":
        labels = np.array([f"{label:g}" for label in labels], dtype=object)
    _, first, member = np.unique(labels.astype(str), return_index=True, return_inverse=True)
    if len(first) > MOST_EXPERIMENTS:
        raise LgfError(
            f"column {quoted(table.names[position])} names {len(first):,} experiments; "
            f"at most {MOST_EXPERIMENTS:,} are read."
        )
    return {str(labels[first[k]]): np.flatnonzero(member == k) for k in np.argsort(first)}


def _initials(initial: Any, n: int) -> list:
    if initial is None or isinstance(initial, Mapping):
        return [initial] * n
    try:
        nested = len(initial) > 0 and all(isinstance(state, (Sequence, Mapping, np.ndarray)) for state in initial)
    except TypeError:
        nested = False
    if not nested or isinstance(initial, str):
        return [initial] * n
    if len(initial) != n:
        raise LgfError(
            f"there are {len(initial)} initial states but {n} experiments; give one for each, or one for all."
        )
    return list(initial)
