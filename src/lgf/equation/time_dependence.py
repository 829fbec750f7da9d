"""Whether the part that time plays in an equation can be foreseen beyond a record."""

import math
from collections.abc import Sequence

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.expression.numeric import evaluate
from lgf.expression.tree import Expression, T

_PERIODS = 2.0  # that an oscillation must show
_DECAY = 1.0  # of the exponent, over the window


def foreseeable(skeleton: Skeleton, values: Sequence[float], window: tuple[float, float]) -> bool:
    """Whether time does not occur, or only in exponentials that die out and oscillations that repeat in the window.

    A polynomial in time, or half a period of a sine, can replace any smooth term within the window; beyond it, it goes
    on as it likes.
    """
    return all(_foreseeable(side, values, window) for pair in skeleton.sides for side in pair)


def _foreseeable(e: Expression, values: Sequence[float], window: tuple[float, float]) -> bool:
    symbols = {node for node in e.nodes() if node.head == "symbol"}
    if T not in symbols:
        return True
    if e.head in ("exp", "sin", "cos") and symbols == {T}:
        begin, middle, end = evaluate(e.args[0], {"t": np.linspace(*window, 3)}, values)
        if not math.isclose(middle - begin, end - middle, rel_tol=1e-6, abs_tol=1e-12):
            return False  # not linear in time
        change = end - begin
        return change <= -_DECAY if e.head == "exp" else abs(change) >= 2.0 * math.pi * _PERIODS
    return bool(e.children) and all(_foreseeable(child, values, window) for child in e.children)
