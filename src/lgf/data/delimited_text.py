"""Reading of delimited text (CSV, TSV, ...) into names and cells; every error is one sentence."""

import csv
import re
from collections import Counter
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from lgf.errors import LgfError, quoted
from lgf.files import read_bytes

MOST_BYTES = 200_000_000
MOST_COLUMNS = 1_000
MOST_CELLS = 5_000_000  # about 20 s to read
LONGEST_LINE = 100_000
MISSING = frozenset(
    {"", "nan", "na", "n/a", "n.a.", "null", "none", "-", "--", "---", "?", ".", "nd"}
    | {"#n/a", "#na", "#div/0!", "#value!", "#num!", "#ref!", "#null!", "#name?"}  # of spreadsheets
    | {"1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind"}  # of programs in C on Windows
)
_DELIMITERS = ("\t", ";", ",", "|", " ")
_COMMENTS = ("#", "%", "//")
_PERCENT = re.compile(r"(.*\d)\s*%")
_THOUSANDS = (  # 1,234,567 and 1,234.5; 1.234.567 and 1.234,5. Of 1,234 alone the comma is that of a decimal.
    (re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+|,\d{3})"), ",", "."),
    (re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+|\.\d{3})"), ".", ","),
)
_SPACED = re.compile(r"[+-]?\d{1,3}(['\u2019 \u00a0\u2009\u202f]\d{3})+([.,]\d+)?")  # 12'345.6, and 12 345,6
_FORTRAN = re.compile(r"([+-]?\d+\.?\d*)[dD]([+-]?\d+)")  # 1.5D+02
_WITH_UNIT = re.compile(r"([+\u2212-]?[\d.,]+(?:[eE][+-]?\d+)?)(?:\s+|(?=[\u00b0\u00b5\u03bc]))([^\W\d_]\S*|\u00b0\S+)")
_THOUSAND = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_SEPARATOR = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # the first line that tells Excel the delimiter
_MOST_LINES_ABOVE = 100  # of the table, as loggers and oscilloscopes write them
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, eq=False)
class Cells:
    """A table as text: names of the columns, rows of cells, the line number of each row, and notes."""

    names: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    notes: tuple[str, ...]


def read_cells(path: str | PathLike, delimiter: str | None = None) -> Cells:
    """The cells of a delimited file; delimiter and header are guessed, and the guesses noted."""
    path = Path(path).expanduser()
    text, notes = _text(path)
    name = path.name
    lines = [(number, line.strip("\r\n")) for number, line in enumerate(text.split("\n"), start=1)]
    longest = max((len(line) for _, line in lines), default=0)
    if longest > LONGEST_LINE:
        raise LgfError(
            f"{name} has a line of {longest:,} characters; this does not look like a table of samples in rows."
        )
    comments = [line.lstrip("#%/ \t") for _, line in lines if line.lstrip().startswith(_COMMENTS)]
    lines = [(n, line) for n, line in lines if line.strip() and not line.lstrip().startswith(_COMMENTS)]
    if not lines:
        raise LgfError(f"{name} is empty; give a table with a column of times and a column of values.")
    separator = _SEPARATOR.fullmatch(lines[0][1])
    if separator is not None and len(lines) > 1:
        delimiter, lines = delimiter or separator[1], lines[1:]
    if delimiter is None:
        delimiter = _delimiter([line for _, line in lines[:50]])
    elif len(delimiter) != 1:
        raise LgfError(f"the delimiter is {quoted(delimiter)}; give one character.")
    cells = len(lines) * (1 + lines[-1][1].count(delimiter))
    if cells > MOST_CELLS:
        raise LgfError(
            f"{name} has about {cells:,} cells; at most {MOST_CELLS:,} are read: "
            "keep fewer columns, or every tenth row."
        )
    rows = _split([line for _, line in lines], delimiter)
    if all(len(row) > 1 and row[-1] == "" for row in rows):
        rows = [row[:-1] for row in rows]
    numbers = [number for number, _ in lines]
    above = _lines_above(rows)
    if above:
        _check_decimal_commas(rows[above - 1], rows[above:], delimiter, name)
        notes.append(f"Lines above the table were left out, up to line {numbers[above - 1]}.")
        rows, numbers = rows[above:], numbers[above:]
    rows[0] = _full_header(rows)
    names, skipped, header_notes = _header(rows, comments, delimiter)
    notes += header_notes
    header, rows, numbers = rows[:skipped], rows[skipped:], numbers[skipped:]
    again = [number for row, number in zip(rows, numbers, strict=True) if row in header[:1]]
    if again:
        notes.append(f"The header that stands again in line {again[0]} was left out.")
        kept = [(row, number) for row, number in zip(rows, numbers, strict=True) if row not in header]
        rows, numbers = [row for row, _ in kept], [number for _, number in kept]
    if all(len(row) == len(names) - 1 for row in rows):  # a named last column without a cell, as LabVIEW's comments
        rows = [[*row, ""] for row in rows]
    if not rows:
        raise LgfError(f"{name} has a header but no rows of numbers; add the samples below it.")
    for row, number in zip(rows, numbers, strict=True):
        if len(row) != len(names):
            raise LgfError(
                f"line {number} of {name} has {len(row)} cell{'s' * (len(row) != 1)} but the table has "
                f"{len(names)} column{'s' * (len(names) != 1)}; leave a missing cell empty, but keep its delimiter, "
                "or delete the line."
            )
    if len(names) > MOST_COLUMNS:
        raise LgfError(
            f"{name} has {len(names):,} columns; at most {MOST_COLUMNS:,} are read: put samples in rows, not columns."
        )
    return Cells(names, rows, numbers, tuple(notes))


def to_number(cell: str) -> float | None:
    """The number in a cell, NaN if it is missing, None if it is text.

    >>> to_number("1,5"), to_number("12 %"), to_number("1,234,567.5"), to_number("1.234,5"), to_number("1'234.5")
    (1.5, 12.0, 1234567.5, 1234.5, 1234.5)
    """
    text = cell.strip()
    if text.lower() in MISSING:
        return float("nan")
    if "_" in text:  # float() takes 1_000, which no instrument writes
        return None
    try:
        return float(text)
    except ValueError:
        return _written_number(text)


def _written_number(text: str) -> float | None:
    """The number with a percent sign, marks of thousands, a decimal comma or another sign of minus; None for text."""
    text = text.replace("\u2212", "-")
    percent = _PERCENT.fullmatch(text)
    if percent is not None:
        text = percent[1]
    if _SPACED.fullmatch(text):
        text = re.sub(r"[^\d.,+-]", "", text)
    text = _FORTRAN.sub(r"\1e\2", text) if _FORTRAN.fullmatch(text) else text
    for pattern, mark, point in _THOUSANDS:
        if pattern.fullmatch(text):
            text = text.replace(mark, "").replace(point, ".")
    if text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def with_thousands(cells: list[str]) -> list[str]:
    """The cells of a column without the commas of thousands, if it has such: 1,002 beside 998 or beside 1,002.5.

    >>> with_thousands(["998", "1,002"]), with_thousands(["0,998", "1,002"])
    (['998', '1002'], ['0,998', '1,002'])
    """
    plain = [cell.strip() for cell in cells if cell.strip().lower() not in MISSING]
    commas = [cell for cell in plain if "," in cell]
    others = [cell for cell in plain if "," not in cell]
    if not commas or not all(_THOUSAND.fullmatch(cell) or _THOUSANDS[0][0].fullmatch(cell) for cell in commas):
        return cells
    small = all(abs(to_number(cell) or 0.0) < 1000.0 for cell in others)
    if (others and small) or not all(_THOUSAND.fullmatch(cell) for cell in commas):
        return [cell.replace(",", "") for cell in cells]
    return cells


def without_unit(cells: list[str]) -> tuple[list[str], str | None]:
    """(the cells of a column without a unit that stands behind every number, that unit); else the cells and None.

    >>> without_unit(["21.5 \u00b0C", "", "21.7\u00b0C"]), without_unit(["1 kg", "2 g"])
    ((['21.5', '', '21.7'], '\u00b0C'), (['1 kg', '2 g'], None))
    """
    found = [_WITH_UNIT.fullmatch(cell.strip()) for cell in cells]
    plain = [cell for cell, match in zip(cells, found, strict=True) if match is None]
    units = {match[2] for match in found if match is not None}
    if len(units) != 1 or any(cell.strip().lower() not in MISSING for cell in plain):
        return cells, None
    return ["" if match is None else match[1] for match in found], units.pop()


def _text(path: Path) -> tuple[str, list[str]]:
    """(the text of a file with plain ends of lines, notes on its encoding)."""
    notes: list[str] = []
    data = read_bytes(path, MOST_BYTES, links=True)
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    if encoding != "utf-16" and b"\0" in data[:100_000]:
        raise LgfError(f"{path.name} is a binary file, not text; export it as CSV.")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        try:  # what spreadsheets on Windows write, with one byte for °, µ and ²
            text = data.decode("cp1252" if encoding == "utf-8" else encoding)
        except UnicodeDecodeError:
            raise LgfError(f"{path.name} is not {encoding} text (byte {error.start + 1}); save it as UTF-8.") from error
        notes.append("The file is not UTF-8 text and was read as Windows-1252.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def _split(lines: list[str], delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        return [[cell.strip('"') for cell in line.split()] for line in lines]
    try:
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
        rows = [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:
        raise LgfError(f"the table cannot be split into cells ({error}); check its quotation marks.") from error
    if len(rows) != len(lines):
        raise LgfError("a quoted cell runs over several lines; close every quotation mark on its own line.")
    return rows


def _delimiter(lines: list[str]) -> str:
    """The delimiter that splits the most lines into the same number of cells; `;` precedes `,` for decimal commas."""
    best, best_key = ",", (0, 0)
    for rank, delimiter in enumerate(_DELIMITERS):
        try:
            counts = Counter(len(row) for row in _split(lines, delimiter))
        except LgfError:
            continue
        width, agreeing = max(counts.items(), key=lambda item: (item[1], item[0]))
        if width > 1 and (agreeing, -rank) > best_key:
            best, best_key = delimiter, (agreeing, -rank)
    return best


def _lines_above(rows: list[list[str]]) -> int:
    """The number of rows above the one that names the columns: titles, serial numbers, settings of an instrument.

    These have other numbers of cells than the table, or text and numbers mixed above a row of names alone.
    """
    width = Counter(len(row) for row in rows).most_common(1)[0][0]
    if width < 2:
        return 0
    first = next(i for i, row in enumerate(rows) if len(row) == width)
    if first and _misses_one(rows[first - 1], rows[first:]):
        first -= 1
    if not 0 <= first <= _MOST_LINES_ABOVE:
        return 0
    start = next((i for i, row in enumerate(rows) if i >= first and all(map(_is_number, row))), first)
    named = [i for i in range(first, start) if all(rows[i]) and not any(map(_is_number, rows[i]))]
    mixed = any(any(map(_is_number, row)) for row in rows[first:start])
    return named[-1] if named and mixed and start == named[-1] + 1 else first


def _check_decimal_commas(header: list[str], rows: list[list[str]], delimiter: str, name: str) -> None:
    """Raises LgfError if the rows have more cells than the header because their decimal commas are taken for marks."""
    if delimiter != "," or any(map(_is_number, header)) or not len(header) < len(rows[0]) <= 2 * len(header):
        return
    if len(header) > 1 and all(cell.lstrip("+-").isdigit() for row in rows for cell in row):
        raise LgfError(
            f"the header of {name} names {len(header)} columns, but its rows have {len(rows[0])} cells without decimal "
            "points; if they are decimal commas, save the table with semicolons between its cells."
        )


def _misses_one(header: list[str], rows: list[list[str]]) -> bool:
    """Whether this is a header without a name for the first column, as R writes it, or for an empty last one."""
    return len(header) == len(rows[0]) - 1 and not any(map(_is_number, header)) and any(map(_is_number, rows[0]))


def _full_header(rows: list[list[str]]) -> list[str]:
    """The first row, with an empty name where it lacks that of the first column or of an empty last one."""
    if len(rows) < 2 or not _misses_one(rows[0], rows[1:]):
        return rows[0]
    return [*rows[0], ""] if all(row[-1] == "" for row in rows[1:]) else ["", *rows[0]]


def _header(rows: list[list[str]], comments: list[str], delimiter: str) -> tuple[tuple[str, ...], int, list[str]]:
    """The names of the columns, the number of header rows, and notes."""
    width = Counter(len(row) for row in rows).most_common(1)[0][0]
    first = rows[0]
    if all(to_number(cell) is not None for cell in first):
        named = _split([comments[-1]], delimiter)[0] if comments else []
        if len(named) == width and all(to_number(cell) is None for cell in named):
            return tuple(named), 0, ["The names of the columns were taken from the last comment line."]
        return tuple(f"column {k + 1}" for k in range(width)), 0, ["The table has no header."]
    names = tuple(cell or f"column {k + 1}" for k, cell in enumerate(first))
    if any(_is_number(cell) for cell in first):
        # text beside numbers is a row of data with a text column, unless the next rows differ
        kinds = [_is_number(cell) for cell in first]
        if all([_is_number(cell) for cell in row] == kinds for row in rows[1:5] if len(row) == len(first)):
            return tuple(f"column {k + 1}" for k in range(width)), 0, ["The table has no header."]
        return names, 1, ["The first row was taken for the header."]
    if len(rows) > 2 and not any(map(_is_number, rows[1])) and any(map(_is_number, rows[2])) and any(rows[1]):
        return tuple(map(_with_unit, names, rows[1])), 2, ["The second row was taken for the units of the columns."]
    return names, 1, []


def _with_unit(name: str, cell: str) -> str:
    """The name of a column with the unit that stands below it, unless that is none or the name has one already."""
    from lgf.equation.units import read_unit  # imports pint at the first unit

    unit = cell.strip().strip("()[]").strip()
    try:
        is_one = bool(read_unit(unit, own_words=False))
    except LgfError:
        is_one = False
    return f"{name} [{unit}]" if is_one and not name.endswith((")", "]")) else name


def _is_number(cell: str) -> bool:
    number = to_number(cell)
    return number is not None and number == number
