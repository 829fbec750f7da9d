"""Which column of a table is what: time, measured values, forcing, experiment, weight."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgf.data.table import Table
from lgf.errors import LgfError, quoted

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
    """Positions of the columns in use, what each value column measures, and sentences on what was guessed."""

    time: int
    values: tuple[int, ...]
    derivatives: tuple[int, ...]
    forcing: int | None
    experiment: int | None
    weight: int | None
    notes: tuple[str, ...]


def guess_roles(
    table: Table, time: Any, value: Any, derivative: Any, forcing: Any, experiment: Any, weight: Any
) -> Roles:
    """The role of every column: as the user says, else by its name, else by what it holds."""
    notes: list[str] = []
    given = {
        what: None if name is None else table.position(name, what)
        for what, name in (("time", time), ("forcing", forcing), ("experiment", experiment), ("weight", weight))
    }
    names = [_plain(name) for name in table.names]
    values = None if value is None else tuple(table.position(v, "value") for v in _several(value))
    taken = {p for p in given.values() if p is not None} | set(values or ())
    free = [k for k in range(len(names)) if k not in taken]

    at = given["time"]
    if at is None:
        at = _guess_time(table, names, free)
        notes.append(f"Time is column {quoted(table.names[at])} (guessed).")
        free.remove(at)
    if given["experiment"] is None and not _increases(table, at):
        found = next((k for k in free if names[k] in _NAMES["experiment"]), None)
        if found is not None:
            given["experiment"] = found
            free.remove(found)
            notes.append(f"Column {quoted(table.names[found])} tells the experiments apart (guessed).")
    for what in ("forcing", "weight"):
        found = next((k for k in free if names[k] in _NAMES[what] and table.is_numeric(k)), None)
        if given[what] is None and found is not None and (values is not None or len(free) > 1):
            given[what] = found
            free.remove(found)
            notes.append(f"Column {quoted(table.names[found])} is the {what} (guessed).")
    if values is None:
        values = _guess_values(table, names, free, notes)
    _check_distinct(table, at, values, given)
    derivatives = _derivatives(table, values, names, derivative, notes)
    return Roles(at, values, derivatives, given["forcing"], given["experiment"], given["weight"], tuple(notes))


def _plain(name: str) -> str:
    """The name without unit and case: `Time [s]` -> `time`."""
    return re.sub(r"[\[(].*?[\])]", "", name).replace("’", "'").strip().lower()


def _several(value: Any) -> Sequence:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _guess_time(table: Table, names: list[str], free: list[int]) -> int:
    if len(names) < 2:
        raise LgfError(f"{table.source} has one column; give a column of times and a column of values.")
    named = [k for k in free if names[k] in _NAMES["time"]] or [k for k in free if names[k].split("_")[0] == "time"]
    if named:
        return next((k for k in named if _increases(table, k)), named[0])
    # S may be seconds or a substrate, min minutes or the smallest value: among units, time is what increases.
    units = [k for k in free if names[k] in _NAMES["unit of time"]]
    rising = [k for k in free if table.is_numeric(k) and _increases(table, k)]
    found = [k for k in units if _increases(table, k)] + rising + units
    if found:
        return found[0]
    raise LgfError(
        f"no column of {table.source} looks like time; name it, the columns are "
        f"{', '.join(map(quoted, table.names[:12]))}."
    )


def _increases(table: Table, position: int) -> bool:
    column = table.columns[position]
    if column.dtype.kind != "f":
        return True
    seen = column[~np.isnan(column)]
    return len(seen) > 0 and bool(np.all(np.diff(seen) > 0))


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
    """The derivative that a column of this name holds, or None if the name says nothing."""
    for order, role in enumerate(("u", "u'", "u''")):
        if name in _NAMES[role] or name.split("_")[0] in _NAMES[role]:
            return order
    return None


def _derivatives(
    table: Table, values: tuple[int, ...], names: list[str], derivative: Any, notes: list[str]
) -> tuple[int, ...]:
    if derivative is not None:
        return tuple(_several(derivative))
    found = tuple(_derivative_of(names[k]) or 0 for k in values)
    for k, order in zip(values, found, strict=True):
        if order > 0:
            primes = "'" * order
            notes.append(f"Column {quoted(table.names[k])} was taken for u{primes}, by its name.")
    return found


def _check_distinct(table: Table, time: int, values: tuple[int, ...], given: dict[str, int | None]) -> None:
    others = [p for what, p in given.items() if p is not None and what != "time"]
    used = [time, *values, *others]
    twice = next((k for k in used if used.count(k) > 1), None)
    if twice is not None:
        raise LgfError(f"column {quoted(table.names[twice])} was given two roles; each column has one.")
