"""Measured values as users hold them in memory: records row by row, and tables with the times beside the values."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def columns_of_rows(values: Any) -> Any:
    """Record arrays and lists of records as mappings of columns; anything else as it is.

    >>> columns_of_rows([{"x": 1, "y": 2}, {"x": 3}])
    {'x': [1, 3], 'y': [2, None]}
    """
    if isinstance(values, np.ndarray) and values.dtype.names:
        return {name: values[name] for name in values.dtype.names}
    if isinstance(values, (list, tuple)) and len(values) and all(map(_is_record, values)):
        names = dict.fromkeys(name for row in values for name in row)
        return {name: [row.get(name) for row in values] for name in names}
    return values


def _is_record(row: Any) -> bool:
    """Whether this is one row by the names of its columns, and not a table of an experiment."""
    return isinstance(row, Mapping) and all(np.ndim(cell) == 0 for cell in row.values())


def without_times(t: Any, values: Any) -> Any:
    """The values without a column that holds the times t; experiments are lists. The only column stays."""
    if isinstance(values, (list, tuple)):
        apart = isinstance(t, (list, tuple)) and len(t) == len(values)
        return [without_times(times, own) for times, own in zip(t if apart else [t] * len(values), values, strict=True)]
    is_frame = hasattr(values, "columns") and hasattr(values, "iloc")
    if not is_frame and not isinstance(values, Mapping):
        return values
    if len({str(name) for name in values}) < len(list(values)):  # which is told where the columns are read
        return values
    others = [name for name in values if not _same(values[name], t)]
    if not others or len(others) == len(list(values)):
        return values
    return values[others] if is_frame else {name: values[name] for name in others}


def _same(column: Any, t: Any) -> bool:
    """Whether a column holds exactly these times."""
    if isinstance(t, Mapping) and len(t) == 1:
        t = next(iter(t.values()))
    try:
        own, times = (np.asarray(getattr(item, "magnitude", item)) for item in (column, t))
    except ValueError:  # times of several experiments
        return False
    return own.ndim == 1 and own.size > 1 and own.size == times.size and bool(np.all(own == times.ravel()))


def texts_as_array(values: Any) -> Any:
    """A list of texts, such as numbers that were not read as such, as one array; anything else as it is."""
    texts = isinstance(values, (list, tuple)) and len(values) > 0 and all(isinstance(v, str) for v in values)
    return np.array(values) if texts else values
