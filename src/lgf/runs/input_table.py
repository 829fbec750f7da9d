"""Inputs of a simulation from a table: times, and a column for each input."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lgf.data.column_roles import time_and_others
from lgf.data.column_units import header_unit
from lgf.data.column_variables import plain_name, variable_name
from lgf.data.quantities import numbers_by_name, quantity
from lgf.data.table import ColumnName, Table, read_table
from lgf.data.times import read_times
from lgf.equation.units import read_unit
from lgf.errors import LgfError, quoted
from lgf.runs.quantities import units_of
from lgf.runs.request import Run
from lgf.solver.forcing import Forcing


def read_inputs(
    run: Run, source: Any, time: ColumnName | None = None, columns: Sequence[ColumnName] = ()
) -> dict[str, Forcing]:
    """The inputs of the run in a table (see `read_table`) by name, in the units of the data.

    A column belongs to the input of its name. The only column beside the time, or the only one of `columns`, belongs to
    the only input, whatever its name. Samples are joined as those of the data: inputs that were held there are held.
    """
    table = read_table(source)
    place, clock, others = time_and_others(table, time)
    positions = _positions(run, table, others, columns)
    unit = dict(run.request.problem.units).get("t")
    t, of_dates, _ = read_times(table, place, clock, one_experiment=True, unit=unit)
    if of_dates is None:
        t = _in_units(run, table.names[place], "t", t)
    elif unit is None:
        raise LgfError(
            f"the times in {quoted(table.names[place])} of {table.source} are dates or clocks, but those of the data "
            "were numbers in no unit; give numbers that count as those."
        )
    held = run.request.problem.held_inputs
    inputs = {}
    for name, k in positions.items():
        values = _in_units(run, table.names[k], name, table.numbers(k))
        try:
            inputs[name] = Forcing.from_samples(t, values, held=name in held)
        except LgfError as error:
            raise LgfError(f"{table.source}: {error}") from error
    return inputs


def sample_times(inputs: Mapping[str, Forcing]) -> np.ndarray:
    """The times of the samples, as far as all inputs have some before and after."""
    samples = [forcing.samples[:, 0] for forcing in inputs.values() if forcing.samples is not None]
    begin, end = max(float(t[0]) for t in samples), min(float(t[-1]) for t in samples)
    if begin >= end:
        raise LgfError(f"the inputs {', '.join(inputs)} have no times in common; give samples of all over one window.")
    t = np.unique(np.concatenate(samples))
    return t[(begin <= t) & (t <= end)]


def check_window(inputs: Mapping[str, Forcing], begin: float, end: float, source: str) -> None:
    """Raises LgfError unless all inputs have samples from `begin` to `end`."""
    for name, forcing in inputs.items():
        if not forcing.covers(begin, end):
            raise LgfError(
                f"{source} gives {name} by {forcing.describe()}, but the solution is asked for from t = {begin:.6g} to "
                f"{end:.6g}; ask for times within the file (--t0, --t1), or give a longer one."
            )


def _positions(run: Run, table: Table, others: list[int], columns: Sequence[ColumnName]) -> dict[str, int]:
    """The column of each input that the table has."""
    inputs = run.request.problem.inputs
    if not inputs:
        raise LgfError(f"the data of this run have no input; leave {table.source} out.")
    if len(columns) > len(inputs):
        raise LgfError(
            f"{len(columns)} columns of {table.source} are named, but the inputs of the run are {', '.join(inputs)}; "
            "name one for each."
        )
    usable = [table.position(column, "forcing") for column in columns] or others
    names = {k: _input_called(table.names[k], inputs) for k in usable}
    if len(inputs) == len(usable) == 1:
        names[usable[0]] = inputs[0]
    unknown = next((k for k in usable if columns and names[k] is None), None)
    if unknown is not None:
        raise LgfError(
            f"column {quoted(table.names[unknown])} of {table.source} is named as an input, but the inputs of the run "
            f"are {', '.join(inputs)}; rename it in the file."
        )
    found = {name: k for k, name in names.items() if name is not None}
    if len(found) < sum(name is not None for name in names.values()):
        raise LgfError(f"two columns of {table.source} are called like one input of the run; name one of them.")
    if not found:
        listed = ", ".join(quoted(table.names[k]) for k in usable[:12]) or "none of numbers beside the time"
        way = f"name the one that is {inputs[0]} (--forcing-column)" if len(inputs) == 1 else "rename those that are"
        raise LgfError(
            f"no column of {table.source} is called {' or '.join(inputs)} as in the equation; {way}: {listed}."
        )
    return found


def _input_called(column: str, inputs: Sequence[str]) -> str | None:
    """The input that this column is called like; None if there is none."""
    spellings = {variable_name(column), plain_name(column)}
    return next((name for name in inputs if spellings & {name, name.lower()}), None)


def _in_units(run: Run, header: str, name: str, values: np.ndarray) -> np.ndarray:
    """The values of a column in the unit of the data, if the header and the data say units."""
    units, unit = units_of(run), header_unit(header, name)
    if unit is None or name not in units:
        return values
    return numbers_by_name({name: quantity(values, name, {name: read_unit(unit)})}, units)[name]
