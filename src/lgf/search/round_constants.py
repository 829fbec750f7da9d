"""Equations whose constants inside functions and powers are replaced by the round numbers that they are close to."""

import math
from dataclasses import dataclass

from lgf.equation.skeleton import Skeleton, numbered
from lgf.expression.canonical import canonical
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import Expression, constant, number, substitute
from lgf.search.candidate import Candidate
from lgf.settings.ranges import Weight


@dataclass(frozen=True)
class RoundSettings:
    """When a constant is close to a round number: by its standard error, or by a relative difference."""

    errors: Weight = 3.0
    relative: Weight = 1e-3


def with_round_constants(candidate: Candidate, settings: RoundSettings = RoundSettings()) -> Skeleton | None:
    """The skeleton with sin(u) for sin(1.0002*u), sqrt(u) for u^0.4999; None if no constant is close to such a number.

    Round numbers are the multiples of one half but 0. Coefficients of summands stay open.
    """
    skeleton = candidate.skeleton
    if skeleton.right_sides is None or len(skeleton.frame.states) > 1:
        return None
    rounded = {}
    for index in _inside(skeleton.right):
        value, error = candidate.fit.values[index], candidate.fit.errors[index]
        nearest = round(2 * value) / 2
        reach = max(settings.errors * error if math.isfinite(error) else 0.0, settings.relative * abs(nearest))
        if nearest != 0.0 and abs(value - nearest) <= min(reach, 0.25):
            rounded[constant(index)] = number(nearest)
    if not rounded:
        return None
    right, _ = canonical(substitute(skeleton.right, rounded))
    return numbered(skeleton.frame, ((skeleton.left, right),))


def _inside(side: Expression) -> set[int]:
    """The constants inside functions and powers."""
    outer = (node for node in side.nodes() if node.head in FUNCTIONS or node.head == "^")
    return {n.args[0] for node in outer for n in node.nodes() if n.head == "constant"}
