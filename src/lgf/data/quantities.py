"""Quantities: arrays with units, as pint makes them, taken apart and put together."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lgf.data.column_roles import DEFAULT_INPUT
from lgf.data.column_units import header_unit
from lgf.data.column_variables import DEFAULT_STATE, column_variables
from lgf.equation.dimensions import quantity_units
from lgf.equation.units import Unit, read_unit, registry, unit_text
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Variable

_QUANTITY = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)")


def is_quantity(value: Any) -> bool:
    """Whether the value has a magnitude and units, as a pint.Quantity has."""
    return hasattr(value, "magnitude") and hasattr(value, "units") and hasattr(value, "to")


def read_quantity(text: str) -> Any:
    """The number, or the quantity, in text such as 0.3 or 30 cm; LgfError if it is neither."""
    with contextlib.suppress(ValueError):
        return float(text)
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        raise LgfError(f"{quoted(text)} is neither a number nor a number with a unit, such as 30 cm.")
    return registry().Quantity(float(found[1]), _for_pint(read_unit(found[2], own_words=False)))


def without_unit(value: Any, unit: str | None, name: str) -> tuple[Any, str | None]:
    """(magnitude, unit) of a quantity in this unit, or in its own if that is None; any other value as it is."""
    if not is_quantity(value):
        if not isinstance(value, (list, tuple)) or not any(map(is_quantity, value)):
            return value, unit
        parts = []
        for part in value:
            magnitude, unit = without_unit(part, unit, name)
            parts.append(magnitude)
        return parts, unit
    if unit is None:
        return value.magnitude, str(value.units)
    try:
        return value.to(_for_pint(read_unit(unit))).magnitude, unit
    except Exception as error:  # pint's errors have no common class among its versions
        raise LgfError(f"{name} is in {quoted(str(value.units))}, which cannot be converted to {unit}.") from error


def take_units(
    t: Any, values: Any, forcing: Any, initial: Any, states: Any, derivative: Any, given: Mapping[str, str] | None
) -> tuple[Any, Any, Any, Any, dict[str, str]]:
    """(times, values, forcing, initial values as numbers, units), from quantities and names of columns."""
    units = dict(given or {})
    t, unit = without_unit(t, units.get("t"), "t")
    _note(units, "t", unit)
    table: Any = values[0] if isinstance(values, (list, tuple)) and len(values) else values
    if hasattr(table, "columns") and hasattr(table, "iloc"):
        names = [str(column) for column in table.columns]
        variables = column_variables(names, derivative) if states is None else ()
        for name, variable in zip(names, variables, strict=False):
            units.setdefault(str(variable), header_unit(name, str(variable)) or "")
    elif isinstance(values, Mapping):
        values, taken = dict(values), column_variables(list(map(str, values)), derivative)
        for name, variable in zip(list(values), taken, strict=True):
            values[name], unit = without_unit(values[name], units.get(str(variable)), str(name))
            _note(units, str(variable), unit)
    elif derivative is None or isinstance(derivative, (int, np.integer)):
        variable = str(Variable(DEFAULT_STATE, int(derivative or 0)))
        values, unit = without_unit(values, units.get(variable), variable)
        _note(units, variable, unit)
    if isinstance(forcing, Mapping):
        forcing = dict(forcing)
        for name in forcing:
            forcing[name], unit = without_unit(forcing[name], units.get(str(name)), str(name))
            _note(units, str(name), unit)
    else:
        forcing, unit = without_unit(forcing, units.get(DEFAULT_INPUT), DEFAULT_INPUT)
        _note(units, DEFAULT_INPUT, unit)
    units = {name: unit for name, unit in units.items() if unit or name in (given or {})}
    if isinstance(initial, Mapping):
        initial = initial_in_numbers(initial, [Variable.read(str(name)) for name in initial], units)
    return t, values, forcing, initial, units


def _note(units: dict[str, str], name: str, unit: str | None) -> None:
    if unit is not None:
        units[name] = unit


def numbers_by_name(values: Mapping[Any, Any], units: Mapping[str, Unit]) -> dict[Any, Any]:
    """The values by name, quantities as numbers in the units of these names."""
    numbers = {}
    for name, value in values.items():
        known = units.get(str(name))
        if is_quantity(value) and known is None:
            raise LgfError(f"{name} is given as a quantity but its unit in the data is not known; give a number.")
        numbers[name] = without_unit(value, None if known is None else unit_text(known), str(name))[0]
    return numbers


def initial_in_numbers(initial: Any, variables: Sequence[Variable], units: Mapping[str, str]) -> Any:
    """An initial state, by name or in the order of the variables, in the units of the data; numbers stay."""
    known = quantity_units(tuple(units.items()), variables)
    if isinstance(initial, Mapping):
        return numbers_by_name(initial, known)
    if is_quantity(initial) or (isinstance(initial, (list, tuple)) and any(map(is_quantity, initial))):
        values = [initial] if is_quantity(initial) and not np.ndim(initial) else initial
        return list(numbers_by_name(dict(zip(map(str, variables), values, strict=False)), known).values())
    return initial


def quantity(values: Any, name: str, units: Mapping[str, Unit]) -> Any:
    """The values with the unit of this name, as a pint.Quantity."""
    if name not in units:
        raise LgfError(f"the unit of {name} is not known; give it: units={{{quoted(name)}: ...}}.")
    return registry().Quantity(values, _for_pint(units[name]))


def _for_pint(unit: Unit) -> str:
    """The unit as pint reads it."""
    return " * ".join(f"{word} ** {exponent:g}" for word, exponent in unit.items()) or "dimensionless"
