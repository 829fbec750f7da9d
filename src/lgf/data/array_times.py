"""Times in arrays as numbers: plain numbers, and dates, periods and durations in the unit that fits their steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from lgf.data.array_values import texts_as_array
from lgf.data.dates import read_dates
from lgf.data.table import read_table
from lgf.data.times import seconds_in, usual_unit
from lgf.errors import LgfError, quoted

_SECOND = np.timedelta64(1, "s")


@dataclass(frozen=True)
class TimeScale:
    """In which unit dates and durations count, and from which date; None if there is none."""

    unit: str
    origin: np.datetime64 | None = None


def time_scale(t: Any, unit: str | None = None) -> TimeScale | None:
    """How dates or durations count, in one array or in one for each experiment; None for plain numbers.

    The unit is the given one, else the largest that is no longer than the usual step of an experiment.

    >>> time_scale(np.array(["2026-03-01", "2026-03-02", "2026-03-03"], "M8[D]"))
    TimeScale(unit='day', origin=np.datetime64('2026-03-01'))
    """
    arrays = [_instants(part) for part in (t if _are_experiments(t) else [t])]
    kinds = {array.dtype.kind if array is not None and array.dtype.kind in "Mm" else "" for array in arrays}
    if kinds <= {""}:
        return None
    if len(kinds) > 1:
        raise LgfError("t holds dates or durations in one experiment and other times in another; give all as one kind.")
    present = [array[~np.isnat(array)] for array in arrays if array is not None]
    longest = max(present, key=len)
    chosen = unit or usual_unit((longest - longest[:1]) / _SECOND)
    try:
        seconds_in(chosen)
    except LgfError as error:
        raise LgfError(
            f"t holds dates or durations, but the unit of t is {quoted(chosen)}; give a unit of time, such as h."
        ) from error
    firsts = [array.min() for array in present if len(array)]
    return TimeScale(chosen, min(firsts) if kinds == {"M"} and firsts else None)


def times_in_scale(t: Any, scale: TimeScale | None) -> Any:
    """The times of one array, or of one for each experiment, as numbers in this scale; see `times_as_numbers`."""
    return [times_as_numbers(part, scale) for part in t] if _are_experiments(t) else times_as_numbers(t, scale)


def times_as_numbers(t: Any, scale: TimeScale | None = None) -> Any:
    """The times of one array as numbers, a column as a row; without a scale, durations are in seconds.

    LgfError for dates if it is not known from which one they count.

    >>> times_as_numbers(np.array([0, 1500], "m8[ms]")).tolist(), times_as_numbers([[0.0], [1.0]]).tolist()
    ([0.0, 1.5], [0.0, 1.0])
    """
    array = _instants(t)
    if array is None:  # experiments of different lengths
        return t
    if array.dtype.kind == "M":
        if scale is None or scale.origin is None:
            raise LgfError(
                "t holds dates, but it is not known from which one the times count; give numbers, the times since the "
                f"first sample in {quoted('second' if scale is None else scale.unit)}."
            )
        array = t = (array - scale.origin) / _SECOND / seconds_in(scale.unit)
    elif array.dtype.kind == "m":
        array = t = array / _SECOND / (1.0 if scale is None else seconds_in(scale.unit))
    elif isinstance(t, Mapping) or hasattr(t, "iloc"):
        t = array
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else t


def _are_experiments(t: Any) -> bool:
    """Whether this is a list with the times of each experiment."""
    return isinstance(t, (list, tuple)) and len(t) > 0 and all(hasattr(x, "__len__") and np.ndim(x) > 0 for x in t)


def _instants(t: Any) -> np.ndarray | None:
    """The times as an array, of datetime64 or timedelta64 if they are dates, periods or durations; None if ragged."""
    if hasattr(t, "columns") and hasattr(t, "iloc") and len(t.columns) == 1:
        t = t.iloc[:, 0]
    elif isinstance(t, Mapping) and len(t) == 1:
        t = next(iter(t.values()))
    try:
        array = np.asarray(texts_as_array(getattr(t, "magnitude", t)))
    except ValueError:
        return None
    if array.ndim != 1 or array.dtype.kind not in "OUT" or not array.size:
        return array
    first = array[0]
    if hasattr(first, "to_timestamp"):  # a period of pandas is its beginning
        array = np.array([period.to_timestamp() for period in array], dtype=object)
        first = array[0]
    if isinstance(first, timedelta):
        return array.astype("m8[us]")
    if isinstance(first, date):
        return np.array([_universal(day) for day in array], dtype="M8[us]")
    return _written(array) if isinstance(first, str) else array


def _universal(day: Any) -> Any:
    """A date, or an instant in universal time if it has a zone."""
    has_zone = isinstance(day, datetime) and day.tzinfo is not None
    return day.astimezone(UTC).replace(tzinfo=None) if has_zone else day


def _written(texts: np.ndarray) -> np.ndarray:
    """The dates in texts, or the texts if they are none."""
    table = read_table({"t": texts})
    dates = None if table.is_numeric(0) else read_dates(table, 0)[0]
    return texts if dates is None else dates
