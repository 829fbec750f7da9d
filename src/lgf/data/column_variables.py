"""The variable that each measured column holds, from its name: a state, or a derivative of one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from lgf.data.latin_names import has_other_letters, in_latin, with_dots_spelled
from lgf.errors import LgfError, quoted
from lgf.expression.frame import HIGHEST_ORDER, Variable, check_name

DEFAULT_STATE = "u"  # the name of the state if there is only one

_DISPLACEMENTS = (
    "u", "x", "y", "q", "displacement", "disp", "position", "pos", "value", "values", "signal", "od", "state",
    "response", "theta", "angle",
)  # fmt: skip
_RATES: dict[str, int] = {
    "velocity": 1, "vel": 1, "speed": 1, "acceleration": 2, "accel": 2, "acc": 2, "accelerometer": 2,
}  # fmt: skip
_LETTERS = {"v": 1, "a": 2}  # derivatives only beside a displacement: alone they may be a voltage or an amount
_BRACKETS = re.compile(r"[\[(].*?[\])]")  # with the unit
_SPELLINGS = (
    re.compile(r"(?P<stem>.+?)(?P<primes>'+)"),
    re.compile(r"d(?P<order>[2-9])_?(?P<stem>.+?)(/?dt\^?[2-9]?)?"),
    re.compile(r"(?P<twice>d?)d_?(?P<stem>.+?)(/?dt)?"),
    re.compile(r"(?P<stem>.+?)_?(?P<dots>d?dot)"),
    re.compile(r"(?P<stem>.+?)_(?P<times>t+)"),
)


def plain_name(name: str) -> str:
    """The name in lower case without its unit: `Time [s]` -> `time`."""
    return _BRACKETS.sub("", name).replace("\u2019", "'").strip().lower()


def variable_name(column: str) -> str | None:
    """The name of a state or input from the name of its column: without unit, with _ for other characters.

    Accents are left out and Greek letters spelled. A name that means something else in an equation gets x_ before it:
    C, for a constant, sin, 2nd. None for letters of other scripts, for which `variable_names` has names.

    >>> variable_name("hare [1000]"), variable_name("water level"), variable_name("C"), variable_name("ω₁")
    ('hare', 'water_level', 'x_C', 'omega1')
    """
    latin = in_latin(_BRACKETS.sub("", column).strip())
    name = re.sub(r"\W+", "_", latin, flags=re.ASCII).strip("_")
    if not name or has_other_letters(latin):
        return None
    try:
        return check_name(name)
    except LgfError:
        return f"x_{name}"


def variable_names(columns: Iterable[str], letter: str) -> list[str]:
    """The names of different states or inputs from those of their columns; x1, x2, ... for other scripts.

    >>> variable_names(["温度", "θ", "压力"], "x")
    ['x1', 'theta', 'x2']
    """
    names = [variable_name(column) for column in columns]
    numbered = (name for name in (f"{letter}{k}" for k in count(1)) if name not in names)
    return [next(numbered) if name is None else name for name in names]


def column_variables(columns: Sequence[str], derivative: Any = None, by_name: bool = False) -> tuple[Variable, ...]:
    """The variable of each column. Columns of one state are derivatives of u, other states have their columns' names.

    With `by_name` a single state has the name of its column too.

    `derivative` is the measured derivative: one for all columns, one for each, or a mapping from names of columns. If
    it is None, the names decide: x', dx and xdot are derivatives of a column x, velocity and acceleration of the only
    other column.

    >>> [str(v) for v in column_variables(["hare [1000]", "lynx"])], [str(v) for v in column_variables(["x", "v"])]
    (['hare', 'lynx'], ['u', "u'"])
    """
    if derivative is None:
        states, orders = _spelled(columns)
    elif isinstance(derivative, Mapping):
        states, orders = _spelled(columns)
        named = _by_column(columns, derivative)
        states = [column if column in named else state for column, state in zip(columns, states, strict=True)]
        orders = [named.get(column, order) for column, order in zip(columns, orders, strict=True)]
    else:
        orders = list(derivative) if np.ndim(derivative) else [derivative] * len(columns)
        if len(orders) != len(columns):
            raise LgfError(
                f"there are {len(columns)} measured columns but {len(orders)} derivatives are named; "
                "name one for each column."
            )
        of_one = np.ndim(derivative) > 0 and len(set(map(str, orders))) == len(orders)
        states = [columns[0]] * len(columns) if of_one else list(columns)
    if len(set(states)) == 1 and not by_name:
        return state_variables([DEFAULT_STATE] * len(columns), orders)
    if all(re.fullmatch(r"column \d+", column) for column in columns):  # a table without a header
        states = [f"x{k}" for k in range(len(columns))]
    different = list(dict.fromkeys(states))
    names = dict(zip(different, variable_names(different, "x"), strict=True))
    return state_variables([names[state] for state in states], orders)


def _by_column(columns: Sequence[str], derivative: Mapping) -> dict[str, int]:
    """The derivatives by column, however its name is written."""
    orders: dict[str, int] = {}
    for name, order in derivative.items():
        called = zip(columns, variable_names(columns, "x"), strict=True)
        column = next((c for c, variable in called if str(name) in (c, plain_name(c), variable)), None)
        if column is None:
            raise LgfError(
                f"the derivative of {quoted(name)} is given; the measured columns are "
                f"{', '.join(map(quoted, columns[:12]))}."
            )
        orders[column] = order
    return orders


def _spelled(columns: Sequence[str]) -> tuple[list[str], list[int]]:
    """(the column of the state, the derivative) of every column, by the spelling of its name."""
    names = [_in_letters(column) for column in columns]
    found: dict[int, tuple[str, int]] = {}
    for k, name in enumerate(names):
        for stem, order in _readings(name):
            if stem in names and names.index(stem) != k:
                found[k] = columns[names.index(stem)], order
                break
            if name.endswith("'") or (stem in _DISPLACEMENTS and len(columns) == 1):
                found[k] = in_latin(columns[k]).rstrip("'"), order
                break
    others = [k for k in range(len(columns)) if k not in found]
    words = {k: _rate(names[k]) for k in others if _rate(names[k])}
    letters = {k: _LETTERS[names[k]] for k in others if names[k] in _LETTERS}
    bases = [k for k in others if k not in words and k not in letters]
    beside_displacement = len(bases) == 1 and names[bases[0]] in _DISPLACEMENTS and not found
    if len(bases) <= 1 and not found and (words or beside_displacement):
        derivatives = words | letters
        if len(set(derivatives.values())) == len(derivatives):
            state = columns[bases[0]] if bases else DEFAULT_STATE
            found |= {k: (state, order) for k, order in derivatives.items()}
    pairs = [found.get(k, (columns[k], 0)) for k in range(len(columns))]
    return [state for state, _ in pairs], [order for _, order in pairs]


def _rate(name: str) -> int:
    """The derivative that this word names; 0 if it names none."""
    return _RATES.get(name) or _RATES.get(name.split("_")[0], 0)


def _in_letters(column: str) -> str:
    """The plain name of a column in Latin letters, in which derivatives are spelled."""
    return in_latin(with_dots_spelled(plain_name(column)))


def names_leave_doubt(columns: Sequence[str]) -> bool:
    """Whether a word such as speed stands beside a column that is no position by its name, such as a current.

    >>> names_leave_doubt(["current", "speed"]), names_leave_doubt(["angle [deg]", "speed"])
    (True, False)
    """
    names = [_in_letters(column) for column in columns]
    others = [name for name in names if not _rate(name) and name not in _LETTERS]
    return any(map(_rate, names)) and not any(name.split("_")[0] in _DISPLACEMENTS for name in others)


def _readings(name: str) -> list[tuple[str, int]]:
    """The (state, derivative) that this name may spell."""
    readings = []
    for pattern in _SPELLINGS:
        match = pattern.fullmatch(name)
        if match:
            parts = match.groupdict()
            order = int(parts.get("order") or 0) or len(
                parts.get("primes") or parts.get("times") or ("xx" if parts.get("dots") == "ddot" else "x")
            ) + bool(parts.get("twice"))
            readings.append((parts["stem"], order))
    return readings


def state_variables(states: Sequence[str], derivatives: Sequence[Any]) -> tuple[Variable, ...]:
    """The variable of each column, from its state and derivative."""
    for order in derivatives:
        if isinstance(order, (bool, str)) or not hasattr(order, "__index__") or not 0 <= order <= HIGHEST_ORDER:
            raise LgfError(
                f"the measured derivative is {quoted(order)}; give 0 for u, 1 for u', 2 for u'' (at most "
                f"{HIGHEST_ORDER})."
            )
    return tuple(Variable(name, int(order)) for name, order in zip(states, derivatives, strict=True))
