"""Equations whose constants inside functions and powers are replaced by the round numbers that they are close to, and
whose phases near quarter turns are left out.
"""

import math
from dataclasses import dataclass

from lgf.equation.skeleton import Skeleton, numbered
from lgf.expression.canonical import canonical
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import Expression, add, constant, function, mul, number, substitute
from lgf.search.candidate import Candidate
from lgf.settings.ranges import Weight

_QUARTER = math.pi / 2
_NEAR_QUARTER = 0.2  # radians; a fit decides


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


def without_phases(candidate: Candidate) -> Skeleton | None:
    """The skeleton with -cos(C*t) for sin(C*t + 4.7): no phases near quarter turns; None if there are none."""
    skeleton = candidate.skeleton
    if skeleton.right_sides is None or len(skeleton.frame.states) > 1:
        return None
    turned = {}
    for node in skeleton.right.nodes():
        if node.head not in ("sin", "cos") or node.args[0].head != "+":
            continue
        phases = [summand for summand in node.args[0].args if summand.head == "constant"]
        value = candidate.fit.values[phases[0].args[0]] if phases else math.inf
        quarters = round(value / _QUARTER) if math.isfinite(value) else 0
        if abs(value - quarters * _QUARTER) <= _NEAR_QUARTER:
            rest = add(*(summand for summand in node.args[0].args if summand is not phases[0]))
            turned[node] = _turned(node.head, rest, quarters)
    if not turned:
        return None
    right, _ = canonical(substitute(skeleton.right, turned))
    return numbered(skeleton.frame, ((skeleton.left, right),))


def _turned(head: str, angle: Expression, quarters: int) -> Expression:
    """Sin or cos of the angle and so many quarter turns."""
    turns = (quarters + (head == "cos")) % 4  # of the sine
    turned = function("cos" if turns % 2 else "sin", angle)
    return mul(number(-1.0), turned) if turns >= 2 else turned


def _inside(side: Expression) -> set[int]:
    """The constants inside functions and powers."""
    outer = (node for node in side.nodes() if node.head in FUNCTIONS or node.head == "^")
    return {n.args[0] for node in outer for n in node.nodes() if n.head == "constant"}
