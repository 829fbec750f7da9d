"""Times of day as whole numbers of hours and minutes: 930, 940, 950, 1000."""

import re

import numpy as np

from lgf.data.column_guesses import NAMES
from lgf.data.column_variables import plain_name
from lgf.data.table import Table

_DAYS = frozenset({"day", "days", "date", "doy", "yday"})
_HOURS, _GAPS = 3, 0.1  # full hours that are crossed at least; the share of them in which samples may be missing
_DAY = 24 * 60  # minutes


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
    steps = np.diff(60 * hours + minutes) % _DAY
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
