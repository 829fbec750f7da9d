"""Whether an expression is defined everywhere on the ranges of its variables."""

import math
import sys
from collections.abc import Mapping

from lgf.expression.frame import Variable
from lgf.expression.tree import SIGNAL, Expression

Ranges = Mapping[str | Variable, tuple[float, float]]
"""The smallest and the largest value of time ("t") and of the variables."""

Interval = tuple[float, float]


class _UndefinedError(ArithmeticError):
    """A logarithm, root or quotient that is not finite somewhere on the ranges."""


def defined_on(expression: Expression, ranges: Ranges) -> bool:
    """Whether the expression is finite on the whole box of the ranges, by interval arithmetic.

    What depends on an open constant counts as defined, because the constant can be chosen so: 1/(1 + C*x) is defined,
    x^C is only for positive x. Roots, logarithms and powers of a variable that reaches 0 are not defined.
    """
    try:
        _interval(expression, ranges)
    except _UndefinedError:
        return False
    return True


def _interval(e: Expression, ranges: Ranges) -> Interval | None:
    """The range of the values, None if it depends on an open constant or on an unknown range."""
    head = e.head
    if head == "number":
        return e.args[0], e.args[0]
    if head == "constant":
        return None
    if head == "symbol":
        name, derivative = e.args
        return ranges.get(name if derivative == SIGNAL else Variable(name, derivative))
    inside = [_interval(a, ranges) for a in e.args]
    if head == "^":
        return _power(inside[0], e.args[1], inside[1])
    known = [interval for interval in inside if interval is not None]
    if len(known) < len(inside):
        return None
    if head == "+":
        low, high = sum(low for low, _ in known), sum(high for _, high in known)
        # A trajectory does not meet the point at which all of several variables vanish: 1/(x^2 + y^2) is defined.
        return (sys.float_info.min, high) if low == 0.0 and all(low == 0.0 for low, _ in known) else (low, high)
    if head == "*":
        result = (1.0, 1.0)
        for interval in known:
            ends = [a * b for a in result for b in interval]
            result = min(ends), max(ends)
        return result
    return _function(head, known[0])


def _power(base: Interval | None, exponent: Expression, exponents: Interval | None) -> Interval | None:
    if base is None:
        return None
    low, high = base
    if exponent.head != "number":
        if low <= 0.0:
            raise _UndefinedError
        if exponents is None:
            return None
        ends = [_real_power(b, p) for b in base for p in exponents]
        return min(ends), max(ends)
    p = exponent.args[0]
    if not p.is_integer() and low <= 0.0:
        raise _UndefinedError
    if p < 0.0 and low <= 0.0 <= high:
        raise _UndefinedError
    ends = [_real_power(low, p), _real_power(high, p)]
    if p.is_integer() and p % 2 == 0 and low < 0.0 < high:
        ends.append(0.0)
    return min(ends), max(ends)


def _real_power(base: float, exponent: float) -> float:
    try:
        return base**exponent
    except OverflowError:
        return math.inf


def _function(name: str, argument: Interval) -> Interval:
    low, high = argument
    if name in ("log", "sqrt"):
        if low <= 0.0:
            raise _UndefinedError
        return (math.log(low), math.log(high)) if name == "log" else (math.sqrt(low), math.sqrt(high))
    if name == "abs":
        ends = (abs(low), abs(high))
        return (0.0 if low <= 0.0 <= high else min(ends)), max(ends)
    if name == "exp":
        return math.exp(min(low, 700.0)), math.exp(min(high, 700.0))
    if name == "tanh":
        return math.tanh(low), math.tanh(high)
    # a sine is extreme at pi/2 + k*pi, a cosine at k*pi
    offset = math.pi / 2 if name == "sin" else 0.0
    first, last = math.ceil((low - offset) / math.pi), math.floor((high - offset) / math.pi)
    wave = math.sin if name == "sin" else math.cos
    values = [wave(low), wave(high), *(1.0 if k % 2 == 0 else -1.0 for k in range(first, min(last, first + 1) + 1))]
    return min(values), max(values)
