"""Quantities of a run: times, initial states and inputs with units become numbers, trajectories get units."""

from collections.abc import Mapping
from typing import Any

from lgf.data import quantities
from lgf.data.quantities import numbers_by_name, quantity
from lgf.equation.dimensions import quantity_units
from lgf.equation.units import Unit
from lgf.runs.bands import Band
from lgf.runs.request import Run
from lgf.solver.trajectory import Trajectory


def units_of(run: Run) -> dict[str, Unit]:
    """The unit of time, of every variable and of the inputs, as far as they are known."""
    return quantity_units(run.request.problem.units, run.frame.columns, run.frame.inputs)


def times_in_numbers(run: Run, t: Any) -> Any:
    """The times in the unit of the data; plain numbers stay as they are."""
    return numbers_by_name({"t": t}, units_of(run))["t"]


def initial_in_numbers(run: Run, initial: Any) -> Any:
    """The initial state, by name or in order, in the units of the data; plain numbers stay as they are."""
    return quantities.initial_in_numbers(initial, run.frame.variables, dict(run.request.problem.units))


def inputs_in_numbers(run: Run, inputs: Any) -> Any:
    """Inputs by name in the units of the data; anything else stays as it is."""
    return numbers_by_name(inputs, units_of(run)) if isinstance(inputs, Mapping) else inputs


def states_in_quantities(run: Run, solved: Trajectory) -> Any:
    """The states of a trajectory with their units: one quantity, or a mapping from the names of several."""
    units, names = units_of(run), run.frame.names
    by_name = {name: quantity(solved[name], name, units) for name in names}
    return by_name[names[0]] if len(names) == 1 else by_name


def columns_in_quantities(run: Run, solved: Trajectory) -> dict[str, Any]:
    """Time and all variables of a trajectory with their units."""
    names, columns = ("t", *map(str, solved.variables)), (solved.t, *solved.values.T)
    return {name: quantity(column, name, units_of(run)) for name, column in zip(names, columns, strict=True)}


def band_in_quantities(run: Run, band: Band) -> dict[str, Any]:
    """The trajectory of a band with its units, and its ends as `lower u`, `upper u`, ..."""
    columns = columns_in_quantities(run, band.trajectory)
    for end, solved in (("lower", band.lower), ("upper", band.upper)):
        own = columns_in_quantities(run, solved)
        columns |= {f"{end} {name}": column for name, column in own.items() if name != "t"}
    return columns
