"""Times of a table as numbers: plain numbers, clocks such as 0:03:00, and dates in the ways that people write them."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from lgf.data.table import Table
from lgf.errors import LgfError, quoted

_CLOCK = re.compile(r"(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_SHORT_CLOCK = re.compile(r"(\d+):([0-5]\d)")  # h:mm or m:ss; beside a date it is h:mm
_DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}([./-])\d{1,2}\1\d{4}")
_ZONE = re.compile(r":\d\d(\.\d+)?\s*(Z|[+-]\d\d:?\d\d)\s*$")
_DATE = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4})"
    r"(?:,?[ T]\s*(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<rest>\d\d(?:[.,]\d+)?))?\s*(?P<half>[AaPp][Mm])?)?"
)


def times_as_numbers(t: Any) -> Any:
    """Times of an array as numbers: durations in seconds, a column as a row; LgfError for dates, which have no origin.

    >>> times_as_numbers(np.array([0, 1500], "m8[ms]")).tolist(), times_as_numbers([[0.0], [1.0]]).tolist()
    ([0.0, 1.5], [0.0, 1.0])
    """
    try:
        array = np.asarray(t)
    except ValueError:  # experiments of different lengths
        return t
    first = array.flat[0] if array.dtype.kind == "O" and array.size else None
    if isinstance(first, timedelta):
        array = array.astype("m8[us]")
    if array.dtype.kind == "M" or isinstance(first, date):
        raise LgfError(
            "t holds dates; give numbers, such as the seconds since the first one: (t - t[0]) / np.timedelta64(1, 's')."
        )
    if array.dtype.kind == "m":
        array = t = array / np.timedelta64(1, "s")
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else t


def days_and_clock(table: Table, position: int, free: list[int]) -> tuple[int, int] | None:
    """(column of days, column of the time of day) of which the column at `position` is one and a free one the other."""
    days = {k for k in (position, *free) if _begins(table, k, _DAY)}
    clocks = {k for k in (position, *free) if _begins(table, k, _CLOCK, _SHORT_CLOCK)}
    if position in days and clocks:
        return position, min(clocks)
    if position in clocks and days:
        return min(days), position
    return None


def _begins(table: Table, position: int, *patterns: re.Pattern[str]) -> bool:
    column = table.columns[position]
    return column.dtype.kind == "O" and any(p.fullmatch(str(column[0]).strip()) for p in patterns)


def read_times(table: Table, position: int, clock: int | None, one_experiment: bool) -> tuple[np.ndarray, list[str]]:
    """The times as numbers (of clocks in seconds, of dates in seconds from the first one), and notes.

    `clock` is the column with the time of day, if the column at `position` has days only.
    """
    column, name = table.columns[position], quoted(table.names[position])
    if table.is_numeric(position):
        return table.numbers(position), []
    if _begins(table, position, _SHORT_CLOCK):
        raise LgfError(
            f"the times in {name} of {table.source} may be hours:minutes or minutes:seconds ({column[0]}); write them "
            f"as hours:minutes:seconds, such as {column[0]}:00."
        )
    if _begins(table, position, _CLOCK):
        return _clock_seconds(table, position), [f"The times in {name} are hours:minutes:seconds; t counts seconds."]
    dates, order = _dates(table, position)
    if dates is None:
        return table.numbers(position), []  # it says what is wrong
    seconds = (dates - dates[0]) / np.timedelta64(1, "s")
    beside = ""
    if clock is not None:
        of_day = _clock_seconds(table, clock)
        seconds, beside = seconds + (of_day - of_day[0]), f" with the time of day in {quoted(table.names[clock])}"
    back = np.flatnonzero(np.diff(seconds) < 0)
    if one_experiment and len(back):
        row = back[0] + 1
        raise LgfError(
            f"the dates in {name} go back from {column[row - 1]} to {column[row]} ({table.place(row)}); sort the "
            "rows by date, or name the columns that tell experiments apart."
        )
    return seconds, [f"The times in {name} are dates{order}{beside}; t counts seconds from the first one."]


def _clock_seconds(table: Table, position: int) -> np.ndarray:
    """The seconds of a column of times such as 0:03:00, or 0:03 where all are hours and minutes."""
    pattern = _SHORT_CLOCK if _begins(table, position, _SHORT_CLOCK) else _CLOCK
    seconds = np.empty(len(table))
    for row, cell in enumerate(table.columns[position]):
        found = pattern.fullmatch(str(cell).strip())
        if found is None:
            raise _no_time(table, position, row, f"a time such as {table.columns[position][0]}")
        hours, minutes, *rest = map(float, found.groups())
        seconds[row] = 3600 * hours + 60 * minutes + sum(rest)
    return seconds


def _dates(table: Table, position: int) -> tuple[np.ndarray | None, str]:
    """(the dates of a column, or None if they are none; what stands first in them, where that had to be found out)."""
    column = table.columns[position]
    if _begins(table, position, _DATE):
        dates, first = _written_dates(table, position)
        return dates, f", {first} first"
    if column.dtype.kind in "Mm":
        return column, ""
    try:
        return np.array([_without_zone(str(cell)) for cell in column], dtype="datetime64[us]"), ""
    except ValueError:
        return None, ""


def _without_zone(cell: str) -> str:
    """An instant such as 2026-03-05T08:00:00+01:00 in universal time, without its zone; other cells as they are."""
    if not _ZONE.search(cell):
        return cell
    instant = datetime.fromisoformat(cell.strip())
    return str(instant.astimezone(UTC).replace(tzinfo=None)) if instant.tzinfo is not None else cell


def _written_dates(table: Table, position: int) -> tuple[np.ndarray, str]:
    """The dates of a column such as 03.05.2026 08:00:00 or 5/3/2026 8:00 PM, and whether day or month stands first."""
    column, parts = table.columns[position], []
    for row, cell in enumerate(column):
        found = _DATE.fullmatch(str(cell).strip())
        if found is None:
            raise _no_time(table, position, row, f"a date such as {column[0]}")
        parts.append(found)
    readings = {"day": _instants(parts, "first", "second")}
    if parts[0]["mark"] != ".":  # with dots the day stands first wherever such dates are in use
        readings["month"] = _instants(parts, "second", "first")
    possible = {first: dates for first, dates in readings.items() if dates is not None}
    if not possible:
        row = next(i for i, part in enumerate(parts) if _instants([part], "first", "second") is None)
        raise _no_time(table, position, row, "a date of the calendar")
    dates, *others = possible.values()
    if any(not np.array_equal(dates - dates[0], other - other[0]) for other in others):
        raise LgfError(
            f"the dates in {quoted(table.names[position])} of {table.source} may have the day or the month first "
            f"({column[0]}); write them as year-month-day, such as {str(dates[0])[:10]}."
        )
    return dates, " or ".join(possible)


def _instants(parts: list[re.Match[str]], day: str, month: str) -> np.ndarray | None:
    """The instants, read with the day and the month in these places; None if one of them does not exist."""
    instants = np.empty(len(parts), dtype="datetime64[us]")
    for i, part in enumerate(parts):
        hour, minute = int(part["hour"] or 0), int(part["minute"] or 0)
        if part["half"] is not None:
            hour = hour % 12 + 12 * (part["half"].lower() == "pm")
        seconds = 3600 * hour + 60 * minute + float((part["rest"] or "0").replace(",", "."))
        try:
            date = np.datetime64(f"{part['year']}-{int(part[month]):02d}-{int(part[day]):02d}", "us")
        except ValueError:
            return None
        instants[i] = date + np.timedelta64(round(1e6 * seconds), "us")
    return instants


def _no_time(table: Table, position: int, row: int, expected: str) -> LgfError:
    cell = quoted(str(table.columns[position][row]))
    return LgfError(
        f"column {quoted(table.names[position])} of {table.source} holds {cell} ({table.place(row)}), "
        f"which is not {expected}; correct it, or delete the line."
    )
