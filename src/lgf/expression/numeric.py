"""Evaluation of expressions with NumPy: slow and plain, the reference for the compiled programs."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import mul

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.expression.functions import FUNCTIONS
from lgf.expression.print import plain
from lgf.expression.tree import SIGNAL, Expression

Known = dict[tuple[str, int], NDArray[np.float64]]
"""Values by symbol, as `known_values` makes them."""

_DRAWS = 500


def evaluate(
    expression: Expression,
    environment: Mapping[str | tuple[str, int], ArrayLike],
    constants: Sequence[float] | None = None,
) -> NDArray[np.float64]:
    """The values of the expression, NaN or infinite where it is undefined.

    The environment maps symbols to values, by spelling ("t", "u", "u'") or as ("u", 1).
    """
    return evaluate_known(expression, known_values(environment), constants)


def has_values(expression: Expression) -> bool:
    """Whether the expression is finite somewhere, as far as values of both signs and of all sizes tell.

    >>> from lgf.expression.parse import read_expression
    >>> [has_values(read_expression(text)) for text in ("1/(273 - u)", "1/(u - u)", "sqrt(-1 - u^2)")]
    [True, False, False]
    """
    leaves = sorted({n for n in expression.nodes() if n.head in ("symbol", "constant")}, key=str)
    draw = np.random.default_rng(0)
    values = draw.choice([-1.0, 1.0], (len(leaves), _DRAWS)) * 10.0 ** draw.uniform(-9.0, 9.0, (len(leaves), _DRAWS))
    known = {leaf.args: own for leaf, own in zip(leaves, values, strict=True) if leaf.head == "symbol"}
    constants = {leaf.args[0]: own for leaf, own in zip(leaves, values, strict=True) if leaf.head == "constant"}
    rows = [constants.get(i, np.zeros(_DRAWS)) for i in range(max(constants, default=-1) + 1)]
    return bool(np.isfinite(evaluate_known(expression, known, rows)).any())


def known_values(environment: Mapping[str | tuple[str, int], ArrayLike]) -> Known:
    """The values of an environment by symbol, for many calls of `evaluate_known`."""
    known: Known = {}
    for name, values in environment.items():
        key = name if isinstance(name, tuple) else (name.rstrip("'"), len(name) - len(name.rstrip("'")))
        known[key] = np.asarray(values, dtype=float)
        if key[1] == 0:  # a plain name may be a state or a signal
            known.setdefault((key[0], SIGNAL), known[key])
    return known


def evaluate_known(
    expression: Expression, known: Known, constants: Sequence[float] | NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The values of the expression, as `evaluate` gives them.

    Constants may be columns of values, constants[i] of the shape [values, 1]; then there is a row for each.
    """
    with np.errstate(all="ignore"):
        return np.asarray(_value(expression, known, constants), dtype=float)


def _value(e: Expression, known: Known, constants: Sequence[float] | NDArray[np.float64] | None):
    if e.head == "number":
        return np.float64(e.args[0])
    if e.head == "symbol":
        if e.args not in known:
            raise ValueError(f"no values for {plain(e)}; the environment has {', '.join(map(str, known)) or 'nothing'}")
        return known[e.args]
    if e.head == "constant":
        if constants is None or e.args[0] >= len(constants):
            raise ValueError(f"no value for the open constant {plain(e)}; give `constants`")
        value = constants[e.args[0]]
        return value if isinstance(value, np.ndarray) else np.float64(value)
    parts = [_value(a, known, constants) for a in e.args]
    if e.head == "+":
        return sum(parts[1:], parts[0])
    if e.head == "*":
        return reduce(mul, parts)
    if e.head == "^":
        return np.power(parts[0], parts[1])
    return FUNCTIONS[e.head].array(parts[0])
