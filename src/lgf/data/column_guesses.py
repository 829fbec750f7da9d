"""Guesses of the role of a column, from its name and its values: experiment, stepping input, measured value."""

import re
from collections.abc import Sequence

import numpy as np

from lgf.data.noise import is_noise_alone
from lgf.data.observation import LEAST_SAMPLES
from lgf.data.table import Table
from lgf.errors import LgfError, quoted
from lgf.expression.frame import MOST_STATES
from lgf.solver.forcing import Forcing

_KNOWN_NAMES = {
    "time": "t time times zeit temps tiempo timestamp date datetime",
    "word for time": "time times zeit uhrzeit temps tiempo timestamp date datum datetime elapsed logtime epoch",
    "unit of time": "age ms s sec secs second seconds min mins minute minutes h hr hrs hour hours day days week weeks "
    "month months year years",
    "input": "f force forcing input excitation load drive driving",
    "surroundings": "ambient amb tamb exterior insolation irradiance outdoor outdoors outside setpoint solar weather",
    "experiment": "experiment exp run trial replicate rep well subject id series group test record",
    "weight": "weights sample_weight sample_weights",  # weight alone is that of a body
    "row": "index row rows sample samples no nr # n obs id rownames",
}
_ROW_NAMES = frozenset({"rownames", "row names", "row_names", "row.names", "unnamed: 0"})  # whatever they hold
_WELL = re.compile(r"[a-p](0?[1-9]|1[0-9]|2[0-4])")  # of plates with up to 384 wells
NAMES = {role: frozenset(names.split()) for role, names in _KNOWN_NAMES.items()}
_ENOUGH = 20  # samples of a column that steps
_FEW_LEVELS = 3  # of which each is beside any other, up to one: more that change one by one are those of rounding


def is_called(name: str, what: str) -> bool:
    """Whether the name, or the name before a number, is one of this role."""
    return name in NAMES[what] or re.sub(r"[ _.-]?[0-9]+$", "", name) in NAMES[what]


def is_input(name: str) -> bool:
    """Whether the name is one of an input, or a word in it tells of something that the system does not change."""
    return is_called(name, "input") or not NAMES["surroundings"].isdisjoint(re.split(r"[ _.-]+", name))


def is_weight(table: Table, name: str, position: int) -> bool:
    """Whether the column is called like the weights of samples and has neither a unit nor a negative number."""
    has_unit = re.search(r"[\[(]", table.names[position]) is not None
    return is_called(name, "weight") and not has_unit and not np.any(table.numbers(position) < 0.0)


def are_replicates(names: list[str]) -> bool:
    """Whether columns are called like experiments (rep1, rep2), or like more wells of a plate than there are states."""
    experiments = all(name not in NAMES["experiment"] and is_called(name, "experiment") for name in names)
    wells = len(names) > MOST_STATES and all(_WELL.fullmatch(name) for name in names)
    return len(names) > 1 and (experiments or wells)


def increases(table: Table, position: int) -> bool:
    """Whether the numbers of the column rise from row to row; text, as of dates, counts as rising."""
    column = table.columns[position]
    return column.dtype.kind != "f" or _rises(column)


def _rises(times: np.ndarray) -> bool:
    present = times[~np.isnan(times)]
    return len(present) > 0 and bool(np.all(np.diff(present) > 0))


def guess_experiment(table: Table, names: list[str], time: int, free: list[int]) -> tuple[int, ...]:
    """The columns that tell experiments apart; none if no column looks like it.

    A column is taken by its name. If time does not increase in its experiments, the others of such names are asked, all
    of them together, and then each other column beside it: the plate beside the well.
    """
    named = tuple(k for k in free if names_experiments(table, names[k], k))
    if not named:
        column = label_of(table, time, free)
        return () if column is None else (column,)
    pairs = [tuple(sorted((named[0], k))) for k in free if k not in named]
    for columns in (*((k,) for k in named), named, *pairs):
        groups = table.groups(columns).values()
        if len(groups) <= len(table) / LEAST_SAMPLES and all(_rises(table.columns[time][rows]) for rows in groups):
            return columns
    return named[:1]


def label_of(table: Table, time: int, free: list[int], in_blocks: bool = False) -> int | None:
    """The column with the fewest different entries in each of whose groups of rows the time increases, or None.

    With `in_blocks` the rows of each group must stand together.
    """
    t = table.columns[time]
    if t.dtype.kind != "f" or np.any(np.isnan(t)) or increases(table, time):
        return None
    labels: list[tuple[int, int]] = []
    for k in free:
        if k == time:
            continue
        _, group = np.unique(np.asarray(table.columns[k], str), return_inverse=True)
        sizes = np.bincount(group)
        if not 2 <= len(sizes) <= len(t) / LEAST_SAMPLES:
            continue
        if in_blocks and np.count_nonzero(np.diff(group)) != len(sizes) - 1:
            continue
        order = np.argsort(group, kind="stable")
        steps, same = np.diff(t[order]), np.diff(group[order]) == 0
        if np.all(steps[same] > 0):
            labels.append((len(sizes), k))
    return min(labels)[1] if labels else None


def names_experiments(table: Table, name: str, position: int) -> bool:
    """Whether the column is called like one that tells experiments apart and holds text, few numbers, or a count.

    A test beside a control, with other numbers in nearly every row, is measured.
    """
    if name not in NAMES["experiment"]:
        return False
    if not table.is_numeric(position):
        return True
    numbers = table.columns[position][~np.isnan(table.columns[position])]
    whole = bool(np.all(numbers == np.round(numbers)))
    fewest = 2 if whole else LEAST_SAMPLES  # samples of a number, on average
    return len(np.unique(numbers)) <= len(numbers) / fewest or (whole and bool(np.all(np.diff(numbers) == 1.0)))


def counts_rows(table: Table, names: list[str], position: int) -> bool:
    """Whether the column only counts the rows, of the table or of each experiment, as an index or a cycle number."""
    named = not NAMES["row"].isdisjoint(re.split(r"[ _.]+", names[position]))
    called = named or re.fullmatch(r"(column \d+|unnamed: \d+|)", names[position])
    if not called or not table.is_numeric(position) or len(table) == 0:
        return False
    column = table.columns[position]
    steps = np.diff(column)
    anew = (column[1:] == column[0]) & (steps < 0.0)
    return bool(column[0] in (0.0, 1.0) and np.all((steps == 1.0) | anew))


def stepping_columns(table: Table, names: list[str], free: list[int], experiment: Sequence[int]) -> tuple[int, ...]:
    """The columns that jump between levels, as of a switch or a pump; none if no other column could be measured.

    No solution of an equation does that.
    """
    numeric = [k for k in free if table.is_numeric(k) and not counts_rows(table, names, k)]
    numeric = [k for k in numeric if not names_experiments(table, names[k], k) and not is_weight(table, names[k], k)]
    moving = [
        k for k in numeric if any(len(np.unique(own[~np.isnan(own)])) > 1 for own in _parts(table, k, experiment))
    ]
    stepping = tuple(k for k in moving if jumps_between_levels(_parts(table, k, experiment)))
    return stepping if len(stepping) < len(moving) else ()


def guess_values(
    table: Table, names: list[str], free: list[int], experiment: Sequence[int], notes: list[str]
) -> tuple[int, ...]:
    """Every column of numbers that is not empty, a covariate or noise, counts no rows and names no experiments."""
    numeric = [k for k in free if table.is_numeric(k) and not np.all(np.isnan(table.columns[k]))]
    counts = [k for k in numeric if counts_rows(table, names, k) or names[k] in _ROW_NAMES]
    labels = [k for k in numeric if k in counts or names_experiments(table, names[k], k)]
    constant = [
        k for k in numeric
        if k not in labels and (is_covariate(table, k, experiment) or has_one_value(table.columns[k]))
    ]  # fmt: skip
    values = tuple(k for k in numeric if k not in (*labels, *constant))
    noise = [k for k in values if is_noise_alone(_parts(table, k, experiment))]
    if len(noise) < len(values):
        values = tuple(k for k in values if k not in noise)
    else:
        noise = []
    if not values:
        values, constant = tuple(k for k in numeric if k not in labels) or tuple(numeric[:1]), []
    if not values:
        if free:
            table.numbers(free[0])
        raise LgfError(f"{table.source} has no column of numbers beside time; give one with the measured values.")
    notes.append(f"Measured: column {', '.join(quoted(table.names[k]) for k in values)} (guessed).")
    where = " within an experiment" if experiment else ""
    notes += [f"Not used: column {quoted(table.names[k])}, which does not change{where}." for k in constant]
    notes += [
        f"Not used: column {quoted(table.names[k])}, which looks like noise alone; name it if it is a state (--value) "
        "or an input (--forcing-column)."
        for k in noise
    ]
    unused = [k for k in free if k not in (*values, *constant, *noise)]
    notes += _notes_on_unused(table, {
        "counts the rows": [k for k in unused if k in counts],
        "is called like the names of experiments": [k for k in unused if k in labels and k not in counts],
        "is empty": [k for k in unused if table.is_numeric(k) and k not in labels],
        "holds text": [k for k in unused if not table.is_numeric(k)],
    })  # fmt: skip
    return values


def _notes_on_unused(table: Table, by_reason: dict[str, list[int]]) -> list[str]:
    """One note for each reason, with the first columns of which it is true."""
    notes = []
    for reason, columns in by_reason.items():
        called = ", ".join(quoted(table.names[k]) for k in columns[:8]) + " and more" * (len(columns) > 8)
        each = "each of which " if len(columns) > 1 else "which "
        notes += [f"Not used: column {called}, {each}{reason}."] if columns else []
    return notes


def is_covariate(table: Table, position: int, experiment: Sequence[int]) -> bool:
    """Whether the column has one value in every experiment but not the same in all, as the dose of a subject has."""
    if not experiment:
        return False
    values = [np.unique(own[~np.isnan(own)]) for own in _parts(table, position, experiment)]
    return all(len(own) <= 1 for own in values) and len(np.unique(np.concatenate(values))) > 1


def has_one_value(column: np.ndarray) -> bool:
    """Whether all numbers of the column are the same."""
    return len(np.unique(column[~np.isnan(column)])) == 1


def _parts(table: Table, position: int, experiment: Sequence[int]) -> list[np.ndarray]:
    """The values of a column, experiment by experiment."""
    return [table.columns[position][rows] for rows in table.groups(experiment).values()]


def jumps_between_levels(parts: Sequence[np.ndarray]) -> bool:
    """Whether a column changes by steps in every experiment in which it changes; False for a rounded curve.

    >>> steps, curve = np.repeat([0.0, 1.0, 0.5], 10), np.linspace(0.0, 1.0, 30)
    >>> jumps_between_levels([steps]), jumps_between_levels([curve]), jumps_between_levels([np.round(curve, 1)])
    (True, False, False)
    """
    parts = [part[~np.isnan(part)] for part in parts]
    parts = [part for part in parts if len(part)]
    if sum(map(len, parts)) < _ENOUGH:
        return False
    levels = np.unique(np.concatenate(parts))
    changes = [np.abs(np.diff(np.searchsorted(levels, part))) for part in parts]
    if len(levels) > _FEW_LEVELS and max(max(change, default=0) for change in changes) <= 1:
        return False
    changing = [part for part in parts if np.ptp(part) > 0.0]
    return all(Forcing(samples=np.column_stack([np.arange(len(part)), part])).has_steps for part in changing)
