"""Times of a table as numbers: plain numbers, clocks such as 0:03:00 or 930, 940, 1000, and dates as people write."""

import math
import re

import numpy as np

from lgf.data.column_guesses import NAMES
from lgf.data.column_variables import plain_name
from lgf.data.dates import compact_dates, not_a_time, read_dates
from lgf.data.table import Table
from lgf.equation.units import SCALE, dimension, read_unit
from lgf.errors import LgfError, quoted

_CLOCK = re.compile(r"(\d+):([0-5]\d):([0-5]\d(?:[.,]\d+)?)")
_SHORT_CLOCK = re.compile(r"(\d+):([0-5]\d)")  # h:mm or m:ss; beside a date it is h:mm
_DAY = re.compile(
    r"\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2(\d{4}|\d\d)|\d{1,2}[ -][A-Za-z]{3,9}[ -](\d{4}|\d\d)"
)
_LATE, _EARLY = 18 * 3600.0, 6 * 3600.0  # seconds of a day: from after the one to before the other is past midnight
_UNIX = (1e9, 2.5e9)  # seconds since 1970, of the years 2001 to 2049
_UNITS = {"year": 365.25 * 86_400.0, "day": 86_400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0}
_ABOUT = 0.99  # of a unit: a year of 365 days is one
_DAYS = frozenset({"day", "days", "date", "doy", "yday"})
_HOURS, _GAPS = 3, 0.1  # full hours that are crossed at least; the share of them in which samples may be missing
_MINUTES = 24 * 60  # of a day


def days_and_clock(table: Table, position: int, free: list[int]) -> tuple[int, int] | None:
    """(column of days, column of the time of day) of which the column at `position` is one and a free one the other."""
    days = {k for k in (position, *free) if _begins(table, k, _DAY)}
    clocks = {k for k in (position, *free) if _begins(table, k, _CLOCK, _SHORT_CLOCK)}
    if position in days and clocks:
        return position, min(clocks)
    if position in clocks and days:
        return min(days), position
    return day_beside_clock(table, position, free)


def clock_goes_on(table: Table, position: int, clock: int | None) -> bool:
    """Whether the column holds times of day as numbers that rise, past midnight too, with the days beside them if any.

    `clock` is as in `read_times`.
    """
    seconds, _, _ = _seconds_of_clock(table, position, clock, one_experiment=True)
    return seconds is not None and bool(np.all(np.diff(seconds) > 0))


def _begins(table: Table, position: int, *patterns: re.Pattern[str]) -> bool:
    column = table.columns[position]
    return column.dtype.kind == "O" and any(p.fullmatch(str(column[0]).strip()) for p in patterns)


def read_times(
    table: Table, position: int, clock: int | None, one_experiment: bool, unit: str | None = None
) -> tuple[np.ndarray, str | None, list[str]]:
    """(the times as numbers, the unit of dates and clocks, notes); numbers are as they stand, in no unit of their own.

    `clock` is the column with the time of day, if the column at `position` has days only. Dates count from the first
    one and clocks from midnight, both in `unit`; by default in the largest that is no longer than the usual step.
    """
    seconds, what, origin = _seconds_and_origin(table, position, clock, one_experiment)
    if seconds is None:
        return table.numbers(position), None, []
    chosen = unit or usual_unit(seconds)
    try:
        size = seconds_in(chosen)
    except LgfError as error:
        name = quoted(table.names[position])
        raise LgfError(
            f"the times in {name} of {table.source} are {what}, but the unit of t is {quoted(chosen)}; give a unit of "
            "time, such as h."
        ) from error
    t = seconds / size
    named = f"{chosen}s" if chosen in _UNITS else chosen
    return t, chosen, [f"The times in {quoted(table.names[position])} are {what}; t counts {named}{origin}."]


def _seconds_and_origin(
    table: Table, position: int, clock: int | None, one_experiment: bool
) -> tuple[np.ndarray | None, str, str]:
    """(the times in seconds, or None for plain numbers; how they are written; from what they count)."""
    column, name = table.columns[position], quoted(table.names[position])
    from_first = " from the first one"
    if table.is_numeric(position):
        seconds, what, origin = _seconds_of_clock(table, position, clock, one_experiment)
        if seconds is not None:
            return seconds, what, origin
        seconds, what = _seconds_of_numbers(table.numbers(position))
        return seconds, what, from_first
    if _begins(table, position, _SHORT_CLOCK):
        raise LgfError(
            f"the times in {name} of {table.source} may be hours:minutes or minutes:seconds ({column[0]}); write them "
            f"as hours:minutes:seconds, such as {column[0]}:00."
        )
    if _begins(table, position, _CLOCK):
        seconds, past = _past_midnight(_clock_seconds(table, position), one_experiment)
        return seconds, "hours:minutes:seconds", past
    dates, order = read_dates(table, position)
    if dates is None:
        return None, "", ""  # what is wrong is said where the numbers are asked for
    seconds, beside = _seconds(dates), ""
    if clock is not None:
        seconds = seconds + _clock_seconds(table, clock)
        seconds, beside = seconds - np.nanmin(seconds), f" with the time of day in {quoted(table.names[clock])}"
    return seconds, f"dates{order}{beside}", from_first


def _seconds_of_clock(
    table: Table, position: int, clock: int | None, one_experiment: bool
) -> tuple[np.ndarray | None, str, str]:
    """The same for times of day as numbers such as 930, alone or beside numbers of days; None for other numbers."""
    seconds = clock_column(table, position if clock is None else clock)
    if seconds is None or not table.is_numeric(position):
        return None, "", ""
    example = f"{table.columns[position if clock is None else clock][0]:.0f} is {_as_clock(seconds[0])}"
    if clock is None:
        seconds, past = _past_midnight(seconds, one_experiment)
        return seconds, f"hours and minutes by their jumps at full hours ({example})", past
    seconds = seconds + 86_400.0 * table.numbers(position)
    what = f"days with hours and minutes in {quoted(table.names[clock])} ({example})"
    return seconds - np.nanmin(seconds), what, " from the first one"


def _past_midnight(seconds: np.ndarray, one_experiment: bool) -> tuple[np.ndarray, str]:
    """(times of day that go on past midnight in one experiment, what a note says of that)."""
    midnights = _midnights(seconds)
    if not one_experiment or not np.any(midnights):
        return seconds, ""
    return seconds + 86_400.0 * np.concatenate(([0], np.cumsum(midnights))), " and goes on past midnight"


def _as_clock(seconds: float) -> str:
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours}:{minutes:02d}"


def usual_unit(seconds: np.ndarray) -> str:
    """The largest unit that is no longer than the median step."""
    steps = np.diff(np.unique(seconds[~np.isnan(seconds)]))
    usual = float(np.median(steps)) if len(steps) else 1.0
    return next((unit for unit, size in _UNITS.items() if usual >= _ABOUT * size), "second")


def seconds_in(unit: str) -> float:
    """The seconds in a unit of time; LgfError if it is none."""
    if unit in _UNITS:
        return _UNITS[unit]
    size = dimension(read_unit(unit))
    logarithm = size.pop(SCALE, 0.0)
    if size != {"second": 1.0}:
        raise LgfError(f"{quoted(unit)} is no unit of time.")
    return math.exp(logarithm)


def _clock_seconds(table: Table, position: int) -> np.ndarray:
    """The seconds of a column of times such as 0:03:00, or 0:03 where all are hours and minutes."""
    pattern = _SHORT_CLOCK if _begins(table, position, _SHORT_CLOCK) else _CLOCK
    seconds = np.empty(len(table))
    for row, cell in enumerate(table.columns[position]):
        found = pattern.fullmatch(str(cell).strip())
        if found is None:
            raise not_a_time(table, position, row, f"a time such as {table.columns[position][0]}")
        hours, minutes, *rest = (float(part.replace(",", ".")) for part in found.groups())
        seconds[row] = 3600 * hours + 60 * minutes + sum(rest)
    return seconds


def _midnights(seconds: np.ndarray) -> np.ndarray:
    """Whether midnight lies between each time of day and the next."""
    return (seconds[:-1] >= _LATE) & (seconds[:-1] < 86_400.0) & (seconds[1:] <= _EARLY)


def _seconds(dates: np.ndarray) -> np.ndarray:
    """The seconds from the earliest date, NaN where there is none."""
    present = dates[~np.isnat(dates)]
    return (dates - np.min(present)) / np.timedelta64(1, "s") if len(present) else np.full(len(dates), np.nan)


def _seconds_of_numbers(t: np.ndarray) -> tuple[np.ndarray | None, str]:
    """(the seconds of dates such as 20260305 and of Unix times, both from the first one, what they are); else None."""
    dates = compact_dates(t)
    if dates is not None:
        return _seconds(dates), "dates, year first"
    present = t[~np.isnan(t)]
    for scale, unit in ((1.0, "seconds"), (1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")):
        if len(present) and scale * _UNIX[0] < np.min(present) and np.max(present) < scale * _UNIX[1]:
            return (t - np.min(present)) / scale, f"{unit} since 1970"
    return None, ""


def clock_column(table: Table, position: int) -> np.ndarray | None:
    """The seconds of the day of a column such as 930, 940, 1000; None if it has a unit or holds other numbers."""
    has_unit = re.search(r"[\[(]", table.names[position]) is not None
    if not table.is_numeric(position) or has_unit or plain_name(table.names[position]) in NAMES["unit of time"]:
        return None
    return clock_seconds(table.columns[position])


def clock_seconds(numbers: np.ndarray) -> np.ndarray | None:
    """The seconds of the day of numbers such as 930, 940, 1000; None if they may as well be other numbers.

    Minutes are below 60, and at several full hours, nearly at all of them, the numbers jump by 40 more than usual.

    >>> minutes = np.arange(570, 790, 10)
    >>> clock_seconds(100.0 * (minutes // 60) + minutes % 60)[:4].tolist(), clock_seconds(np.arange(0.0, 500.0, 10.0))
    ([34200.0, 34800.0, 35400.0, 36000.0], None)
    """
    if len(numbers) < 2 or not np.all((numbers == np.round(numbers)) & (numbers >= 0) & (numbers < 2400)):
        return None
    hours, minutes = np.divmod(numbers, 100)
    if np.any(minutes >= 60):
        return None
    steps = np.diff(60 * hours + minutes) % _MINUTES
    usual, crossed = np.median(steps), np.diff(hours) != 0
    n_crossed, n_even = np.count_nonzero(crossed), np.count_nonzero(crossed & (steps == usual))
    several = n_even >= _HOURS and n_crossed - n_even <= _GAPS * n_crossed
    # Every hour, on the hour, may be every hundred of anything.
    return 3600 * hours + 60 * minutes if several and 0 < usual < 60 else None


def day_beside_clock(table: Table, position: int, free: list[int]) -> tuple[int, int] | None:
    """(column of whole days by its name, column of such times of day), of which `position` is one; None if not so."""
    days = [k for k in (position, *free) if plain_name(table.names[k]) in _DAYS and _is_whole(table, k)]
    clocks = [position] if position not in days else [k for k in free if clock_column(table, k) is not None]
    if not days or not clocks or clock_column(table, clocks[0]) is None:
        return None
    return (position if position in days else days[0]), clocks[0]


def _is_whole(table: Table, position: int) -> bool:
    column = table.columns[position]
    return table.is_numeric(position) and bool(np.all(column == np.round(column)))
