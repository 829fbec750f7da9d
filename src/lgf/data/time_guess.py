"""The column of the times of a table, guessed from names and values."""

import re

import numpy as np

from lgf.data.column_guesses import NAMES, counts_rows, increases, label_of
from lgf.data.dates import read_dates
from lgf.data.table import Table
from lgf.errors import LgfError, quoted

_AMBIGUOUS_UNITS = frozenset({"ms", "s", "min", "h"})  # also masses, substrates, minima and heights


def guess_time(table: Table, names: list[str], free: list[int]) -> int:
    """The column of the times; LgfError if no column looks like it."""
    if len(names) < 2:
        raise LgfError(f"{table.source} has one column; give a column of times and a column of values.")
    named = [k for k in free if names[k] in NAMES["time"]] or [k for k in free if names[k].split("_")[0] == "time"]
    rising_named = [k for k in named if increases(table, k)]
    if rising_named:
        return rising_named[0]
    # Waiting times are no times of samples: of columns with such a word in their name, time increases.
    worded = [k for k in free if _has_word_for_time(names[k]) and increases(table, k) and _has_digits(table, k)]
    units = [k for k in free if names[k] in NAMES["unit of time"]]
    worded += [k for k in units if increases(table, k)] if named else []  # beside hours, T is a temperature
    if worded or named:
        return (worded or named)[0]
    dated = [k for k in free if _holds_dates(table, k)]
    if dated:
        return dated[0]
    # S may be seconds or a substrate, min minutes or a minimum: of columns named like a unit, time increases.
    rising = [k for k in free if table.is_numeric(k) and increases(table, k)]
    rising.sort(key=lambda k: counts_rows(table, names, k))
    candidates = [k for k in units if increases(table, k)] + rising + units
    if candidates and counts_rows(table, names, candidates[0]):
        candidates = [k for k in units if table.is_numeric(k) and _goes_on(table.columns[k])] + candidates
    if not candidates or counts_rows(table, names, candidates[0]):
        # Experiments below each other: time rises in each, while the rows are numbered through.
        repeated = [k for k in free if table.is_numeric(k) and label_of(table, k, free, in_blocks=True) is not None]
        # Experiments often have their times in common.
        repeated.sort(key=lambda k: (names[k] not in NAMES["unit of time"], len(np.unique(table.columns[k]))))
        candidates = repeated[:1] + candidates
    if candidates and counts_rows(table, names, candidates[0]):  # rows can be sorted by their year, but by no minimum
        years = [k for k in units if names[k] not in _AMBIGUOUS_UNITS and table.is_numeric(k)]
        candidates = [k for k in years if _mostly_differ(table.columns[k])] + candidates
    if candidates:
        return candidates[0]
    if sum(name.startswith("column ") for name in names) > len(names) / 2:  # a title was taken for the header
        raise LgfError(
            f"no column of {table.source} looks like time, and its header {quoted(table.names[0])} names "
            f"{sum(not name.startswith('column ') for name in names)} of {len(names)} columns; delete the lines above "
            "the line that names the columns."
        )
    raise LgfError(
        f"no column of {table.source} looks like time; name it, the columns are "
        f"{', '.join(map(quoted, table.names[:12]))}."
    )


def is_called_time(name: str) -> bool:
    """Whether the name is one of times, or of a unit of time."""
    known = NAMES["time"] | NAMES["unit of time"]
    return name in known or name.split("_")[0] == "time" or _has_word_for_time(name)


def _has_word_for_time(name: str) -> bool:
    """Whether a word of the name is one for time, or the name is t with a unit of time: elapsed time, t_s, t/s."""
    words = re.findall(r"[^\W\d_]+", name)
    t_in_units = len(words) == 2 and words[0] == "t" and words[1] in NAMES["unit of time"]
    return t_in_units or not NAMES["word for time"].isdisjoint(words)


def _has_digits(table: Table, position: int) -> bool:
    """Whether the first cell has a digit, as dates have and time zones do not."""
    return any(character.isdigit() for character in str(table.columns[position][0]))


def _holds_dates(table: Table, position: int) -> bool:
    """Whether the column holds dates, more than half of them different ones: no labels of experiments."""
    column = table.columns[position]
    if table.is_numeric(position) or not _has_digits(table, position):
        return False
    if len(set(column.tolist())) <= len(column) / 2:
        return False
    try:
        return read_dates(table, position)[0] is not None
    except LgfError:  # dates with the day or the month first, or with one that is none, which is told later
        return True


def _goes_on(times: np.ndarray) -> bool:
    """Whether the numbers never fall, and rise at times."""
    present = times[~np.isnan(times)]
    return len(present) > 1 and present[-1] > present[0] and bool(np.all(np.diff(present) >= 0))


def _mostly_differ(times: np.ndarray) -> bool:
    """Whether more than half of the rows have a time of their own, as months of several years have not."""
    return len(np.unique(times[~np.isnan(times)])) > len(times) / 2
