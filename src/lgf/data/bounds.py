"""Bounds of constants, as limits or as a sign in words."""

import math
from typing import Any

from lgf.errors import LgfError, quoted

SIGNS = {"positive": (0.0, math.inf), "negative": (-math.inf, 0.0)}

Bounds = tuple[float, float]


def read_bounds(term: object, bounds: Any) -> Bounds:
    """(low, high) of what is stated about the coefficient of the term."""
    if isinstance(bounds, str):
        if bounds not in SIGNS:
            raise LgfError(
                f"the bounds of {quoted(term)} are {quoted(bounds)}; say {', '.join(SIGNS)}, or give (low, high)."
            )
        return SIGNS[bounds]
    try:
        low, high = (float(x) for x in bounds)
    except (TypeError, ValueError, OverflowError) as error:
        raise LgfError(
            f"the bounds of {quoted(term)} are {quoted(bounds)}; give (low, high) or a sign in words."
        ) from error
    if not low <= high or (math.isinf(low) and low == high):
        raise LgfError(
            f"the bounds of {quoted(term)} are ({low:g}, {high:g}); give a low one and a high one with numbers between."
        )
    return low, high


def bounds_in_words(low: float, high: float) -> str:
    """The bounds as the end of a sentence."""
    if (low, high) == SIGNS["positive"]:
        return "is positive"
    if (low, high) == SIGNS["negative"]:
        return "is negative"
    return f"lies between {low:g} and {high:g}"
