"""The rows of a table in the order of time: newest first, shuffled, runs below each other, times that stand twice."""

from dataclasses import dataclass

import numpy as np

from lgf.data.observation import LEAST_SAMPLES
from lgf.data.table import Table
from lgf.errors import LgfError, quoted

_SHUFFLED_ABOVE = 1 / 3  # of the steps go back; half of them do in an order by chance
_MOST_REPEATED = 1 / 2  # of the times; if more stand twice, they are rounded, or belong to several quantities


@dataclass(frozen=True, eq=False)
class Samples:
    """The rows of an experiment in the order of time; those from one of `starts` to the next have the same time."""

    rows: np.ndarray
    starts: np.ndarray

    def mean(self, column: np.ndarray) -> np.ndarray:
        """One value a time: the mean of those of its rows that are not missing."""
        own = column[self.rows]
        if len(self.starts) == len(self.rows):
            return own
        present = ~np.isnan(own)
        count = np.add.reduceat(present.astype(float), self.starts)
        total = np.add.reduceat(np.where(present, own, 0.0), self.starts)
        return np.where(count > 0, total / np.maximum(count, 1.0), np.nan)


def runs_below_each_other(table: Table, t: np.ndarray) -> tuple[dict[str, np.ndarray], list[str]]:
    """(the rows of each run, notes), if the times start again where one ends; else all rows as one run without name."""
    rows = np.flatnonzero(~np.isnan(t))
    times = t[rows]
    again = np.flatnonzero(np.diff(times) < 0) + 1
    blocks = np.split(rows, again)
    begins_again = len(times) > 1 and bool(np.all(times[again] <= max(times[0], times[1])))
    if len(blocks) < 2 or not begins_again or min(map(len, blocks)) < LEAST_SAMPLES:
        return {"": np.arange(len(t))}, []
    note = (
        f"Time starts again in {table.place(int(blocks[1][0]))}: the table is taken for {len(blocks)} experiments "
        "below each other (guessed)."
    )
    return {f"run {k + 1}": block for k, block in enumerate(blocks)}, [note]


def in_order(
    table: Table, time: int, t: np.ndarray, rows: np.ndarray, used: list[np.ndarray]
) -> tuple[Samples, list[str]]:
    """(the samples of these rows in the order of time, notes on what was done for that).

    Rows newest first and shuffled ones are sorted. Rows of the same time are averaged where these are few, or if they
    are the same in all columns in use.
    """
    notes: list[str] = []
    steps = np.diff(t[rows])
    if not np.all(np.isfinite(t[rows])):
        row = int(rows[~np.isfinite(t[rows])][0])
        raise LgfError(
            f"column {quoted(table.names[time])} of {table.source} has no finite time in {table.place(row)}; give one, "
            "delete the line, or name another column as the time."
        )
    if np.all(steps > 0):
        return Samples(rows, np.arange(len(rows))), notes
    if np.all(steps <= 0) or np.count_nonzero(steps < 0) > _SHUFFLED_ABOVE * len(steps):
        how = "newest first" if np.all(steps <= 0) else "in no order"
        notes.append(f"The rows of the table were sorted by time; they stood {how}.")
        rows = rows[np.argsort(t[rows], kind="stable")]
        steps = np.diff(t[rows])
    back = np.flatnonzero(steps < 0)
    if len(back):
        before, after = (_shown(table.columns[time][rows[back[0] + k]]) for k in (0, 1))
        raise LgfError(
            f"time goes back from {before} to {after} ({table.place(int(rows[back[0] + 1]))}); sort the rows by time, "
            "or name the columns that tell experiments apart."
        )
    starts = np.flatnonzero(np.concatenate(([True], steps != 0)))
    if len(starts) == len(rows):
        return Samples(rows, np.arange(len(rows))), notes
    notes.append(_note_on_repeats(table, time, rows, starts, used))
    return Samples(rows, starts), notes


def _shown(cell: object) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _note_on_repeats(table: Table, time: int, rows: np.ndarray, starts: np.ndarray, used: list[np.ndarray]) -> str:
    """What is done with times that stand more than once; LgfError if they are too many to be averaged."""
    repeated = np.flatnonzero(np.diff(np.append(starts, len(rows))) > 1)
    first = starts[repeated[0]]
    where = f"{table.place(int(rows[first]))} and {table.place(int(rows[first + 1]))}"
    member = np.repeat(starts, np.diff(np.append(starts, len(rows))))
    if all(np.array_equal(column[rows], column[rows][member], equal_nan=True) for column in used):
        n = len(rows) - len(starts)
        what = "A row that stands twice was" if n == 1 else f"{n} rows that stand twice were"
        return f"{what} left out (the first in {where})."
    if len(repeated) > _MOST_REPEATED * len(starts):
        raise LgfError(
            f"{len(repeated)} of {len(starts)} times in {quoted(table.names[time])} of {table.source} stand more than "
            f"once, the first in {where}; give them with more digits, average the rows of a time, or name the columns "
            "that tell experiments apart."
        )
    n = len(repeated)
    what = "One time stands" if n == 1 else f"{n} times stand"
    return f"{what} more than once (the first in {where}); their samples were averaged."
