"""Units of the columns of a table, from their headers (`u [m]`, `t (s)`) and from the user."""

import re
from collections.abc import Mapping

from lgf.data.column_roles import Roles
from lgf.data.column_variables import plain_name
from lgf.data.table import Table
from lgf.equation.units import read_unit, unit_text
from lgf.errors import LgfError, quoted

_BRACKETS = re.compile(r"[\[(]([^\[\]()]*(?:\([^()]*\)[^\[\]()]*)?)[\])]\s*$")
_ARBITRARY = frozenset(("a.u.", "a. u.", "au", "arb", "arb.", "arb. units", "arbitrary units", "arb. u."))
# Letters that mean another unit in the header of a table than in a formula, by the beginning of the column's name.
_HEADERS = {
    "C": (("",), "degC"),
    "F": (("temp", "t"), "degF"),
    "g": (("acc", "a", "u''"), "standard_gravity"),
    "G": (("acc", "a", "u''"), "standard_gravity"),
}


def column_units(
    table: Table, roles: Roles, given: Mapping[str, str] | None = None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """(unit by quantity, notes): what the user gives, by column or by quantity, else what the headers say."""
    quantities = {roles.time: "t"}
    quantities |= {k: str(variable) for k, variable in zip(roles.values, roles.variables, strict=True)}
    quantities |= {k: name for name, k in roles.inputs}
    units, notes = {}, []
    for position, quantity in quantities.items():
        header = table.names[position]
        unit = header_unit(header, quantity)
        if unit is not None:
            units[quantity] = unit
    by_column = {
        spelling: quantities[k] for k in quantities for spelling in (table.names[k], plain_name(table.names[k]))
    }
    own = {by_column.get(name, name): unit for name, unit in (given or {}).items()}
    read = [f"{q} in {unit_text(read_unit(unit)) or 'pure numbers'}" for q, unit in units.items() if q not in own]
    if read:
        notes.append(f"Units by the headers: {', '.join(read)}.")
    return {**units, **own}, tuple(notes)


def header_unit(header: str, quantity: str = "") -> str | None:
    """The unit at the end of a column's name, if pint knows it; None if there is none.

    >>> header_unit("height [cm]"), header_unit("OD (600nm)"), header_unit("temp (C)")
    ('cm', None, 'degC')
    """
    match = _BRACKETS.search(header)
    if match is None or match[1].strip().lower() in _ARBITRARY:
        return None
    text, name = match[1].strip(), plain_name(header)
    begins, other = _HEADERS.get(text, ((), text))
    if any(name.startswith(begin) or quantity == begin for begin in begins):
        text = other
    if not text:
        return None
    try:
        read_unit(text, own_words=False)
    except LgfError:
        return None
    return text


def unit_pairs_from_text(texts: list[str] | None) -> dict[str, str] | None:
    """Units by name from texts such as u=m."""
    units: dict[str, str] = {}
    for text in texts or ():
        name, equal, unit = text.partition("=")
        if not equal or not name.strip() or not unit.strip():
            raise LgfError(f"the unit {quoted(text)} cannot be read; write it like u=m, or u=1 for a pure number.")
        units[name.strip()] = unit.strip()
    return units or None
