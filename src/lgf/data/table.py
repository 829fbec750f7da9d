"""Tables of any kind (files, DataFrames, mappings, arrays) as named columns."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from lgf.data.array_values import columns_of_rows
from lgf.data.delimited_text import read_cells, to_number, with_thousands, without_unit
from lgf.errors import LgfError, quoted

_SWITCH = {"on": 1.0, "off": 0.0, "true": 1.0, "false": 0.0}

_UNIT = re.compile(r"[\[(][^\[\]()]*[\])]\s*$")  # at the end of a name

ColumnName = str | int
"""A name, a position counted from 0, or a position counted from 1 written as text."""


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length, numbers or text; `lines` holds the line number of each row in its file."""

    names: tuple[str, ...]
    columns: tuple[np.ndarray, ...]
    source: str = "the table"
    lines: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.columns[0])

    def position(self, column: ColumnName, what: str) -> int:
        """The position of this column, counted from 0."""
        if isinstance(column, str):
            exact = [k for k, name in enumerate(self.names) if name == column]
            loose = [k for k, name in enumerate(self.names) if name.strip().lower() == column.strip().lower()]
            without_unit = [
                k for k, name in enumerate(self.names)
                if _UNIT.sub("", name).strip().lower() == column.strip().lower()
            ]  # fmt: skip
            for matches in (exact, loose, without_unit):
                if len(matches) == 1:
                    return matches[0]
                if len(matches) > 1:
                    raise LgfError(
                        f"{self.source} has {len(matches)} columns named {quoted(column)}; give a position instead."
                    )
            if column.isascii() and column.isdigit() and 1 <= int(column) <= len(self.names):
                return int(column) - 1
        elif isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < len(self.names):
            return int(column)
        raise LgfError(
            f"{self.source} has no {what} column {quoted(column)}; "
            f"its columns are {', '.join(map(quoted, self.names[:12]))}."
        )

    def groups(self, positions: Sequence[int]) -> dict[str, np.ndarray]:
        """The rows by the entries of these columns, such as "A/1", in the order of first appearance.

        >>> Table(("plate", "well"), (np.array(["A", "A", "B"]), np.array([1.0, 2.0, 1.0]))).groups((0, 1))
        {'A/1': array([0]), 'A/2': array([1]), 'B/1': array([2])}
        """
        if not positions:
            return {"": np.arange(len(self))}
        entries = [[_label(cell) for cell in self.columns[k]] for k in positions]
        labels = np.array(["/".join(row) for row in zip(*entries, strict=True)])
        _, first, member = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(member, kind="stable")
        rows = np.split(order, np.cumsum(np.bincount(member))[:-1])
        return {str(labels[first[k]]): rows[k] for k in np.argsort(first)}

    def place(self, row: int) -> str:
        """Where a user finds this row: its line in the file, if there is one."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def is_numeric(self, position: int) -> bool:
        """Whether the column holds numbers only."""
        return self.columns[position].dtype.kind == "f"

    def numbers(self, position: int) -> np.ndarray:
        """The column as numbers, NaN where missing."""
        column = self.columns[position]
        if self.is_numeric(position):
            return column
        row = next(i for i, cell in enumerate(column) if not isinstance(cell, float) and to_number(str(cell)) is None)
        raise LgfError(
            f"column {quoted(self.names[position])} of {self.source} holds {quoted(str(column[row]))} "
            f"({self.place(row)}), "
            "which is not a number; correct it, or leave the cell empty if the value is missing."
        )


def read_table(source: Any, delimiter: str | None = None) -> Table:
    """The table in a file of any delimiter, a DataFrame, a mapping of columns, records, or a 2-d array."""
    if isinstance(source, Table):
        return source
    source = columns_of_rows(source)
    if isinstance(source, (str, PathLike)):
        cells = read_cells(source, delimiter)
        texts = [without_unit([row[k] for row in cells.rows]) for k in range(len(cells.names))]
        columns = tuple(_column(with_thousands(column)) for column, _ in texts)
        names = tuple(
            name if unit is None or _UNIT.search(name) else f"{name} [{unit}]"
            for name, (_, unit) in zip(cells.names, texts, strict=True)
        )
        return Table(names, columns, _file_name(source), np.array(cells.lines), cells.notes)
    if hasattr(source, "columns") and hasattr(source, "iloc"):
        named = {str(name): source.iloc[:, k] for k, name in enumerate(source.columns)}
        if len(named) < len(source.columns):
            raise LgfError("the DataFrame has two columns of the same name; rename one.")
    elif isinstance(source, Mapping):
        named = {str(name): column for name, column in source.items()}
    else:
        array = np.asarray(source)
        if array.ndim != 2:
            raise LgfError(
                f"a table has rows and columns but got shape {array.shape}; give times and values as columns."
            )
        named = {f"column {k + 1}": array[:, k] for k in range(array.shape[1])}
    columns = tuple(_column(np.atleast_1d(column)) for column in named.values())
    lengths = {len(column) for column in columns}
    if not columns or lengths == {0}:
        raise LgfError("the table is empty; give a column of times and a column of values.")
    if len(lengths) > 1:
        raise LgfError(f"the columns have different lengths {sorted(lengths)}; give one cell per row in each.")
    return Table(tuple(named), columns)


def _column(cells: Any) -> np.ndarray:
    """Floats if every cell is a number, missing, or the position of a switch, else the cells as they are."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
        return cells.astype(float)
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "Mmc":
        return cells
    numbers = [_cell(cell) for cell in cells]
    if any(number is None for number in numbers):
        numbers = [_switch(cell, number) for cell, number in zip(cells, numbers, strict=True)]
    if any(number is None for number in numbers):
        return np.array([str(cell) for cell in cells], dtype=object)
    return np.array(numbers, dtype=float)


def _switch(cell: Any, number: float | None) -> float | None:
    """1 and 0 for the positions of a switch, NaN for a missing cell; None for numbers, which are no positions."""
    if number is None:
        return _SWITCH.get(str(cell).strip().lower())
    return number if np.isnan(number) else None


def _label(cell: Any) -> str:
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def _cell(cell: Any) -> float | None:
    if cell is None:
        return float("nan")
    if isinstance(cell, str):
        return to_number(cell)
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None if str(cell) != "<NA>" else float("nan")


def _file_name(source: Any) -> str:
    return str(source).replace("\\", "/").rsplit("/", 1)[-1]
