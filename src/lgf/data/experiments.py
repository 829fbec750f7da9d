"""Observations from tables and arrays."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lgf.data.array_times import time_scale, times_in_scale
from lgf.data.array_values import columns_of_rows, texts_as_array, without_times
from lgf.data.column_roles import DEFAULT_INPUT, Roles, guess_roles
from lgf.data.column_units import column_units
from lgf.data.column_variables import DEFAULT_STATE, column_variables, names_leave_doubt, state_variables
from lgf.data.observation import LEAST_SAMPLES, Observation, check_shape
from lgf.data.quantities import initial_in_numbers
from lgf.data.rates import contradicts_rates
from lgf.data.row_order import in_order, runs_below_each_other
from lgf.data.row_terms import texts
from lgf.data.table import ColumnName, Table, read_table
from lgf.data.times import read_times
from lgf.data.wide_table import long_form
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
    units: Mapping[str, str] = field(default_factory=dict)  # by quantity


def read_observations(
    source: Any,
    *,
    time: ColumnName | None = None,
    value: ColumnName | Sequence[ColumnName] | None = None,
    derivative: int | Sequence[int] | Mapping[str, int] | None = None,
    forcing: ColumnName | Sequence[ColumnName] | None = None,
    experiment: ColumnName | Sequence[ColumnName] | None = None,
    weight: ColumnName | None = None,
    initial: Any = None,
    units: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    by_name: bool = False,
    wide: bool = False,
) -> Reading:
    """The experiments in a table (see `read_table`); roles of columns that are not named are guessed and noted.

    Every column of numbers without another role is a state, or a derivative of one, as its name says (see
    `column_variables`); `derivative` says it otherwise. A column that is empty in an experiment was not measured there.
    Several columns of `experiment` name the experiments together, as a plate and a well do.
    `initial` is one state for all experiments, or one for each. `units` are by column or quantity; headers such as
    `u [m]` give the others. With `by_name` a single state has its column's name. In a `wide`
    table every measured column is an experiment of the same quantity; columns named like wells are taken for that.
    """
    table = read_table(source, delimiter)
    roles = guess_roles(table, time, value, derivative, forcing, experiment, weight, by_name, wide)
    if roles.wide:
        table, roles = long_form(table, roles)
    column_unit, unit_notes = column_units(table, roles, units)
    t, time_unit, time_notes = read_times(
        table, roles.time, roles.clock, one_experiment=not roles.experiment, unit=column_unit.get("t")
    )
    if time_unit is not None:
        column_unit.setdefault("t", time_unit)
    values = np.column_stack([table.numbers(k) for k in roles.values])
    inputs = {name: table.numbers(k) for name, k in roles.inputs}
    weights = None if roles.weight is None else table.numbers(roles.weight)
    used = [*values.T, *inputs.values(), *(() if weights is None else (weights,))]
    groups, order_notes = _experiments(table, roles, t, np.all(np.isnan(values), axis=1))
    groups, short = _long_enough(groups, values)
    initials = [_in_numbers(start, roles.variables, column_unit) for start in _initials(initial, len(groups))]
    observations, put_in_order = [], []
    for (name, rows), start in zip(groups.items(), initials, strict=True):
        measured = _measured(values[rows])
        try:
            samples, notes = in_order(table, roles.time, t, rows, used)
            own = np.column_stack([samples.mean(values[:, k]) for k in measured])
            times = t[samples.rows[samples.starts]]
            observation = Observation(
                times,
                own,
                tuple(roles.variables[k] for k in measured),
                weights=None if weights is None else np.repeat(samples.mean(weights)[:, None], len(measured), axis=1),
                initial=start,
                inputs={name: Forcing.from_samples(times, samples.mean(column)) for name, column in inputs.items()},
                name=name,
            )
        except LgfError as error:
            raise LgfError(f"experiment {quoted(name)}: {error}" if name else str(error)) from error
        observations.append(observation)
        put_in_order += [f"Experiment {quoted(name)}: {note}" if name else note for note in notes]
    if len(put_in_order) > 3:
        put_in_order = [put_in_order[0], f"Similar in {len(put_in_order) - 1} more experiments."]
    notes = [*table.notes, *roles.notes, *time_notes, *order_notes, *put_in_order, *unit_notes, *_notes_on_short(short)]
    if len(groups) > 1:
        notes.append(f"The table holds {len(groups)} experiments.")
    return Reading(tuple(observations), tuple(notes), column_unit)


def _long_enough(groups: dict[str, np.ndarray], values: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """(the experiments without those of too few samples, the sizes of these); all of them if none is long enough."""
    present = ~np.isnan(values)
    sizes = {name: int(np.max(np.sum(present[rows], axis=0))) for name, rows in groups.items()}
    short = {name: size for name, size in sizes.items() if size < LEAST_SAMPLES}
    if len(short) == len(groups):
        return groups, {}
    return {name: rows for name, rows in groups.items() if name not in short}, short


def _notes_on_short(short: dict[str, int]) -> list[str]:
    if len(short) > 3:
        names = ", ".join(map(quoted, list(short)[:3]))
        return [f"Left out: {len(short)} experiments of fewer than {LEAST_SAMPLES} samples ({names}, ...)."]
    return [f"Left out: experiment {quoted(name)}, which has {n} sample{'s' * (n != 1)}." for name, n in short.items()]


def _measured(values: np.ndarray) -> np.ndarray:
    """The positions of the columns that are not empty; all of them if all are."""
    present = np.flatnonzero(~np.all(np.isnan(values), axis=0)) if len(values) else np.arange(0)
    return present if len(present) else np.arange(values.shape[1])


def observations_from_arrays(
    t: Any,
    values: Any,
    *,
    states: Any = None,
    derivative: int | Sequence[int] | Mapping[str, int] | None = None,
    forcing: Any = None,
    weights: Any = None,
    initial: Any = None,
    by_name: bool = False,
) -> tuple[Observation, ...]:
    """The experiments in arrays: one array of times and one of values, or lists with one array per experiment.

    Experiments may share their times. Dates and durations count in the unit that fits their steps (`time_scale`).
    Values have one column per state, named by `states` (for all experiments or for each; x0, x1, ... if not given), or,
    where `derivative` names one for each column, per derivative of one state. A DataFrame, a mapping of columns or a
    list of records has its own names; its column of the times is left out. `forcing` is a formula, a function, a
    Forcing, samples at the times, a mapping from the names of inputs to these, or a list with one of these for each
    experiment. With `by_name` a DataFrame with one column names the state, which is u otherwise.
    """
    t = columns_of_rows(t)
    values = without_times(t, columns_of_rows(values))
    t = times_in_scale(t, time_scale(t))
    t, values, weights = (_plain_arrays(texts_as_array(item)) for item in (t, values, weights))
    forcing = _plain_arrays(forcing)
    if not _is_list(values):
        if _is_list(t):
            raise LgfError("times are given for several experiments but values for one; give one array for each.")
        return (_observation(t, values, states, derivative, forcing, weights, initial, "", by_name),)
    n = len(values)
    if isinstance(states, (list, tuple)) and not all(isinstance(names, (list, tuple)) for names in states):
        states = [states] * n
    columns = []
    for what, items in (("times", t), ("forcings", forcing), ("weights", weights), ("lists of states", states)):
        columns.append(items if _is_list(items) else [items] * n)
        if len(columns[-1]) != n:
            raise LgfError(f"there are {len(items)} {what} but {n} experiments; give one for each, or one for all.")
    names = [f"experiment {k + 1}" for k in range(n)]
    by_name = by_name or len({name for u in values if isinstance(u, Mapping) for name in u}) > 1
    return tuple(
        _observation(times, u, own, derivative, force, weight, start, name, by_name)
        for u, times, force, weight, own, start, name in zip(
            values, *columns, _initials(initial, n), names, strict=True
        )
    )


def _plain_arrays(values: Any) -> Any:
    """The values with pandas objects as arrays, and DataFrames as mappings of columns, alone or in a list."""
    if hasattr(values, "columns") and hasattr(values, "iloc"):
        table = read_table(values)
        return {name: table.numbers(k) for k, name in enumerate(table.names)}
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    return [_plain_arrays(v) for v in values] if isinstance(values, (list, tuple)) else values


def _observation(
    t: Any, values: Any, states: Sequence[str] | None, derivative: Any, forcing: Any, weights: Any, initial: Any,
    name: str, by_name: bool = False,
) -> Observation:  # fmt: skip
    try:
        if isinstance(values, Mapping):
            table = read_table(values)
            columns = column_variables(table.names, derivative, by_name) if states is None else None
            values = np.column_stack([table.numbers(k) for k in range(len(table.names))])
            doubt = columns is not None and derivative is None and names_leave_doubt(table.names)
            if columns is not None and doubt and _contradicts(t, values, columns):
                columns = column_variables(table.names, [0] * len(table.names), by_name)
        else:
            columns = None
        if isinstance(weights, Mapping):
            weights = np.column_stack(list(weights.values())) if weights else None
        if np.ndim(values) == 2 and np.ndim(t) == 1:
            check_shape(np.shape(values), len(t))
        columns = _array_columns(values, states, derivative) if columns is None else columns
        observation = Observation(t, values, columns, weights, initial, name=name)
        return replace(observation, inputs=make_inputs(forcing, observation.t))
    except LgfError as error:
        raise LgfError(f"{name}: {error}" if name else str(error)) from error


def _contradicts(t: Any, values: np.ndarray, columns: Sequence[Variable]) -> bool:
    """Whether the values show that a column is not the derivative that its name says."""
    if np.shape(t) != (len(values),) or not np.issubdtype(np.asarray(t).dtype, np.number):
        return False  # another error, which is told later
    return contradicts_rates(np.asarray(t, float), values, columns, [np.arange(len(values))])


def _array_columns(values: Any, states: Sequence[str] | None, derivative: Any) -> tuple[Variable, ...]:
    """The variable in each column of an array of values."""
    shape = np.shape(values)
    n = shape[1] if len(shape) == 2 else 1
    for_each = np.ndim(derivative) > 0 and not isinstance(derivative, Mapping)
    if for_each and len(derivative) != n:
        raise LgfError(
            f"there are {n} measured columns but {len(derivative)} derivatives are named; name one for each column."
        )
    names: Sequence[str] = () if states is None else texts(states, "names of states")
    if states is not None and len(names) != n:
        raise LgfError(f"the states are {quoted(states)} but the values have {n} columns; name one for each column.")
    if states is None:
        names = [DEFAULT_STATE] * n if n == 1 or for_each else [f"x{k}" for k in range(n)]
    if isinstance(derivative, Mapping):
        unknown = next((name for name in derivative if name not in names), None)
        if unknown is not None:
            raise LgfError(f"the derivative of {quoted(unknown)} is given; the states are {', '.join(names)}.")
        return state_variables(names, [derivative.get(name, 0) for name in names])
    return state_variables(names, list(derivative) if for_each else [derivative or 0] * n)


def make_inputs(
    forcing: ForcingLike | Mapping[str, ForcingLike], t: np.ndarray, held: Collection[str] = ()
) -> dict[str, Forcing]:
    """The known inputs over these times by name; a single unnamed one is F, None means no input.

    Samples of the inputs in `held` are held from each to the next, whatever they look like.
    """
    named = forcing if isinstance(forcing, Mapping) else {} if forcing is None else {DEFAULT_INPUT: forcing}
    return {
        str(name): make_forcing(signal, t, str(name) in held) for name, signal in named.items() if signal is not None
    }


def make_forcing(forcing: ForcingLike, t: np.ndarray, held: bool = False) -> Forcing:
    """The forcing over these times: from a formula, a function, or one sample per time."""
    if isinstance(forcing, Forcing):
        return forcing
    try:
        if isinstance(forcing, str):
            return Forcing.from_formula(forcing)
        if callable(forcing):
            return Forcing.from_function(forcing, float(t[0]), float(t[-1]))
        return Forcing.from_samples(t, np.asarray(forcing, dtype=float), held)
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


def _experiments(
    table: Table, roles: Roles, t: np.ndarray, without_values: np.ndarray
) -> tuple[dict[str, np.ndarray], list[str]]:
    """(the rows of each experiment by name, in the order of first appearance, notes); empty rows are left out."""
    if roles.experiment:
        groups, notes = table.groups(roles.experiment), []
    else:
        groups, notes = runs_below_each_other(table, t)
    if len(groups) > MOST_EXPERIMENTS:
        columns = " and ".join(quoted(table.names[k]) for k in roles.experiment)
        what = f"columns {columns} name" if len(roles.experiment) > 1 else f"column {columns} names"
        what = what if roles.experiment else f"the times of {table.source} start again and again, as of"
        raise LgfError(f"{what} {len(groups):,} experiments; at most {MOST_EXPERIMENTS:,} are read.")
    empty = np.isnan(t) & without_values
    return {name: rows[~empty[rows]] for name, rows in groups.items()}, notes


def _in_numbers(initial: Any, measured: Sequence[Variable], units: Mapping[str, str]) -> Any:
    """An initial state of quantities as numbers in the units of the columns; see `Observation` for its order."""
    states = list(dict.fromkeys(v.name for v in measured))
    if isinstance(initial, Mapping):
        ordered = [Variable.read(str(name)) for name in initial]
    else:
        ordered = [Variable(states[0], k) for k in range(5)] if len(states) == 1 else [Variable(s) for s in states]
    return initial_in_numbers(initial, ordered, units)


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
