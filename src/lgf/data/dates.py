"""Dates in a column of text, in the ways that people, loggers and spreadsheets write them."""

import re
import warnings
from datetime import UTC, datetime

import numpy as np

from lgf.data.delimited_text import MISSING
from lgf.data.table import Table
from lgf.errors import LgfError, quoted

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = (
    r"(?:(?:,?[ T]\s*|:)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<rest>\d\d(?:[.,]\d+)?))?"
    r"\s*(?P<half>[AaPp])?(?(half)\.?[Mm]\.?))?"
)
_FORMS = (
    re.compile(r"(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)(?P<third>\d{4}|\d\d)" + _TIME),
    re.compile(r"(?P<first>\d{1,2})(?P<mark>[ ./-])(?P<second>[A-Za-z]{3,9})[ .,/-]+(?P<third>\d{4}|\d\d)" + _TIME),
    re.compile(r"(?P<second>[A-Za-z]{3,9})\.?(?P<mark>[ -])(?P<first>\d{1,2})[ ,-]+(?P<third>\d{4})" + _TIME),
)
_YEAR_FIRST = re.compile(r"(\d{4})[/.-](\d{1,2})[/.-](\d{1,2})(.*)")
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:[T_ ]?(\d\d)(\d\d)(\d\d)?)?")  # 20260305, 202603050800, 20260305T080000
_ZONE = re.compile(r":\d\d(\.\d+)?\s*(Z|[+-]\d\d:?\d\d)\s*$")
_LAST_OF_THIS_CENTURY = 69  # 69 is the year 2069 and 70 the year 1970, as everywhere


def read_dates(table: Table, position: int) -> tuple[np.ndarray | None, str]:
    """(the dates of a column, or None if they are none; what stands first in them, where that had to be found out)."""
    column = table.columns[position]
    if column.dtype.kind in "Mm":
        return column, ""
    first = _first_entry(column)
    form = next((form for form in _FORMS if form.fullmatch(first) and _has_month(form, first)), None)
    if form is not None:
        dates, order = _written_dates(table, position, form)
        return dates, order and f", {order} first"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns of zones that it does not know
            return np.array([_in_iso(str(cell)) for cell in column], dtype="datetime64[us]"), ""
    except (ValueError, UserWarning):
        return None, ""


def compact_dates(numbers: np.ndarray) -> np.ndarray | None:
    """The dates in numbers such as 20260305 or 20260305080000; None if one of them is no date.

    >>> compact_dates(np.array([20260228.0, 20260301.0])).astype(str).tolist()
    ['2026-02-28T00:00:00', '2026-03-01T00:00:00']
    """
    present = numbers[~np.isnan(numbers)]
    if (
        not len(present)
        or np.any(present != np.round(present))
        or not 1.8e7 < np.min(present) <= np.max(present) < 3e13
    ):
        return None
    cells = ["NaT" if np.isnan(number) else f"{number:.0f}" for number in numbers]
    if not all(cell == "NaT" or _COMPACT.fullmatch(cell) for cell in cells):
        return None
    try:
        return np.array([_in_iso(cell) for cell in cells], dtype="datetime64[s]")
    except ValueError:
        return None


def not_a_time(table: Table, position: int, row: int, expected: str) -> LgfError:
    """The error for a cell that is not what the first one of its column lets expect."""
    cell = quoted(str(table.columns[position][row]))
    return LgfError(
        f"column {quoted(table.names[position])} of {table.source} holds {cell} ({table.place(row)}), "
        f"which is not {expected}; correct it, or delete the line."
    )


def _first_entry(column: np.ndarray) -> str:
    """The first cell that is not empty."""
    return next((text for text in (str(cell).strip() for cell in column) if text.lower() not in MISSING), "")


def _has_month(form: re.Pattern[str], cell: str) -> bool:
    found = form.fullmatch(cell)
    return found is not None and (found["second"].isdigit() or found["second"][:3].lower() in _MONTHS)


def _in_iso(cell: str) -> str:
    """The date as year-month-day with a dot of decimals, an instant with a zone in universal time; else as it is."""
    text = cell.strip()
    if text.lower() in MISSING:
        return "NaT"
    compact = _COMPACT.fullmatch(text)
    if compact is not None:
        year, month, day, hour, minute, second = compact.groups(default="00")
        return f"{year}-{month}-{day}T{hour}:{minute}:{second}"
    parts = _YEAR_FIRST.fullmatch(text)
    if parts is not None:
        text = f"{parts[1]}-{int(parts[2]):02d}-{int(parts[3]):02d}{parts[4].replace(',', '.')}"
    if not _ZONE.search(text):
        return text
    instant = datetime.fromisoformat(text)
    return str(instant.astimezone(UTC).replace(tzinfo=None)) if instant.tzinfo is not None else text


def _written_dates(table: Table, position: int, form: re.Pattern[str]) -> tuple[np.ndarray, str]:
    """The dates of a column such as 03.05.2026 08:00, 5/3/26 8:00 PM or 3-May-2026, and what stands first in them."""
    column, parts = table.columns[position], []
    example = _first_entry(column)
    first = form.fullmatch(example)
    assert first is not None
    for row, cell in enumerate(column):
        text = str(cell).strip()
        found = None if text.lower() in MISSING else form.fullmatch(text)
        alike = found is not None and len(found["third"]) == len(first["third"])
        if not alike and text.lower() not in MISSING:
            raise not_a_time(table, position, row, f"a date such as {example}")
        parts.append(found)
    in_words, short = not first["second"].isdigit(), len(first["third"]) == 2
    orders = {"day": ("first", "second", "third")}
    if first["mark"] != "." and not in_words:  # with dots the day stands first wherever such dates are in use
        orders["month"] = ("second", "first", "third")
    if first["mark"] == "-" and short and not in_words:
        orders["year"] = ("third", "second", "first")
    readings = {name: _instants(parts, *places) for name, places in orders.items()}
    possible = {name: dates for name, dates in readings.items() if dates is not None}
    if not possible:
        row = next(i for i, part in enumerate(parts) if part and _instants([part], *orders["day"]) is None)
        raise not_a_time(table, position, row, "a date of the calendar")
    possible = {name: dates for name, dates in possible.items() if _rises(dates)} or possible
    dates, *others = possible.values()
    if any(not np.array_equal(dates - dates[0], other - other[0], equal_nan=True) for other in others):
        names = list(possible)
        raise LgfError(
            f"the dates in {quoted(table.names[position])} of {table.source} may have the "
            f"{', the '.join(names[:-1])} or the {names[-1]} first ({example}); write them as year-month-day, such as "
            f"{str(dates[~np.isnat(dates)][0])[:10]}."
        )
    return dates, "" if in_words else " or ".join(possible)


def _rises(dates: np.ndarray) -> bool:
    present = dates[~np.isnat(dates)]
    return bool(np.all(np.diff(present) >= np.timedelta64(0)))


def _instants(parts: list[re.Match[str] | None], day: str, month: str, year: str) -> np.ndarray | None:
    """The instants, read with day, month and year in these places; None if one of them does not exist."""
    instants = np.full(len(parts), np.datetime64("NaT"), dtype="datetime64[us]")
    for i, part in enumerate(parts):
        if part is None:
            continue
        hour, minute = int(part["hour"] or 0), int(part["minute"] or 0)
        if part["half"] is not None:
            hour = hour % 12 + 12 * (part["half"].lower() == "p")
        seconds = 3600 * hour + 60 * minute + float((part["rest"] or "0").replace(",", "."))
        try:
            date = np.datetime64(f"{_year(part[year])}-{_month(part[month]):02d}-{int(part[day]):02d}", "us")
        except ValueError:
            return None
        instants[i] = date + np.timedelta64(round(1e6 * seconds), "us")
    return instants


def _year(text: str) -> int:
    year = int(text)
    return year if len(text) > 2 else year + (2000 if year <= _LAST_OF_THIS_CENTURY else 1900)


def _month(text: str) -> int:
    return int(text) if text.isdigit() else _MONTHS.index(text[:3].lower()) + 1
