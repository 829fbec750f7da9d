"""Printing of expressions as MathML: a tree of tags and texts, so that a page can show it without reading markup."""

import html
import math
import re
from collections.abc import Sequence
from itertools import pairwise

from lgf.expression.print import GREEK, exact_number, format_number, inverse, is_divisor
from lgf.expression.tree import MINUS_ONE, SIGNAL, Expression

Node = tuple  # (tag, child, ...): a child is a node or a text

TAGS = frozenset(("math", "mrow", "mi", "mn", "mo", "mtext", "msup", "msub", "mfrac", "msqrt", "mtable", "mtr", "mtd"))
_TIMES, _MINUS = "\u2062", "\u2212"  # invisible times; a minus sign, not a hyphen
_PRIMES = ("", "\u2032", "\u2033", "\u2034", "\u2057")


def mathml(
    expression: Expression,
    values: Sequence[float],
    errors: Sequence[float] | None = None,
    units: Sequence[str] = (),
) -> Node:
    """The expression as a tree of MathML; numbers are rounded, and constants have units, as in the text for people.

    >>> from lgf.expression.parse import read_expression
    >>> markup(mathml(read_expression("u'/2"), ()))
    '<mfrac><mrow><mi>u</mi><mo>′</mo></mrow><mn>2</mn></mfrac>'
    """
    return _Printer(values, errors, units).node(expression)


def markup(node: Node) -> str:
    """The tree as MathML text."""
    tag, *children = node
    inside = "".join(html.escape(c, quote=False) if isinstance(c, str) else markup(c) for c in children)
    return f"<{tag}>{inside}</{tag}>"


class _Printer:
    def __init__(self, values: Sequence[float], errors: Sequence[float] | None, units: Sequence[str]):
        self.values, self.errors, self.units = values, errors, units

    def node(self, e: Expression) -> Node:
        negative, node = self.signed(e)
        return _row(("mo", _MINUS), node) if negative else node

    def signed(self, e: Expression) -> tuple[bool, Node]:
        """Whether a minus sign stands before the node, and the node without it."""
        if e.head in ("number", "constant"):
            return self.number(e)
        if e.head == "*":
            return self.product(e.args)
        if e.head == "+":
            return False, self.sum(e)
        if e.head == "^":
            return False, self.power(e)
        if e.head == "symbol":
            return False, _symbol(*e.args)
        return False, self.function(e.head, e.args[0])

    def number(self, e: Expression) -> tuple[bool, Node]:
        """The number or constant without its minus sign, with its unit."""
        negative, node = _number(self.digits(e))
        unit = self.units[e.args[0]] if self.units and e.head == "constant" else ""
        return negative, _row(node, ("mtext", f" {unit}")) if unit else node

    def digits(self, e: Expression) -> str:
        """The text of a number or of the value of a constant."""
        value = e.args[0]
        if e.head == "constant":
            return format_number(self.values[value], None if self.errors is None else self.errors[value])
        return exact_number(value) if value.is_integer() and abs(value) < 1e15 else format_number(value)

    def sum(self, e: Expression) -> Node:
        parts: list[Node] = []
        for summand in e.args:
            negative, node = self.signed(summand)
            if parts or negative:
                parts.append(("mo", _MINUS if negative else "+"))
            parts.append(node)
        return _row(*parts)

    def product(self, factors: Sequence[Expression]) -> tuple[bool, Node]:
        """One coefficient, then the other factors; divisors stand below a line."""
        numbers = [a for a in factors if a.head in ("number", "constant")]
        above = [a for a in factors if a.head not in ("number", "constant") and not is_divisor(a)]
        below = [inverse(a) for a in factors if is_divisor(a)]
        negative, parts = False, []
        if numbers == [MINUS_ONE] and (above or below):
            negative = True
        elif len(numbers) == 1:
            negative, coefficient = self.number(numbers[0])
            parts.append(coefficient)
        elif numbers:
            value = math.prod(a.args[0] if a.head == "number" else self.values[a.args[0]] for a in numbers)
            negative, coefficient = _number(format_number(value))
            parts.append(coefficient)
        parts += [self.factor(a, alone=not numbers and len(above) == 1) for a in above]
        numerator = _joined(parts) if parts else ("mn", "1")
        if not below:
            return negative, numerator
        return negative, ("mfrac", numerator, _joined([self.factor(a, alone=len(below) == 1) for a in below]))

    def factor(self, e: Expression, alone: bool) -> Node:
        node = self.node(e)
        return _parentheses(node) if e.head == "+" and not alone else node

    def power(self, e: Expression) -> Node:
        if is_divisor(e):
            return ("mfrac", ("mn", "1"), self.node(inverse(e)))
        base, exponent = e.args
        below = self.node(base)
        # a derivative, a function or a minus sign already occupies the place of the exponent
        bare = base.head in ("sqrt", "abs") or (below[0] in ("mi", "mn", "msub") and base.head != "^")
        return ("msup", below if bare else _parentheses(below), self.node(exponent))

    def function(self, name: str, argument: Expression) -> Node:
        inside = self.node(argument)
        if name == "sqrt":
            return ("msqrt", inside)
        if name == "abs":
            return _row(("mo", "|"), inside, ("mo", "|"))
        if name == "exp":
            return ("msup", ("mi", "e"), inside)
        return _row(("mi", name), _parentheses(inside))


def _row(*nodes: Node) -> Node:
    return nodes[0] if len(nodes) == 1 else ("mrow", *nodes)


def _parentheses(node: Node) -> Node:
    return _row(("mo", "("), node, ("mo", ")"))


def _joined(factors: Sequence[Node]) -> Node:
    """The factors side by side; a dot stands between two of which the second would read as part of the first."""
    parts = [factors[0]]
    for before, node in pairwise(factors):
        words = _edge(before, -1) and _edge(node, 1)
        parts += [("mo", "·" if words or _leading(node) == "mn" else _TIMES), node]
    return _row(*parts)


def _edge(node: Node, side: int) -> bool:
    """Whether the node shows a name of several letters at this side."""
    while not isinstance(node[side], str):
        node = node[side] if side == 1 or node[0] == "mrow" else node[1]
    return node[0] == "mi" and len(node[1]) > 1


def _leading(node: Node) -> str:
    """The tag of the first leaf."""
    while not isinstance(node[1], str):
        node = node[1]
    return node[0]


def _number(text: str) -> tuple[bool, Node]:
    digits, _, exponent = text.removeprefix("-").partition("e")
    node: Node = ("mn", digits)
    if exponent:
        negative, power = _number(str(int(exponent)))
        power = _row(("mo", _MINUS), power) if negative else power
        node = _row(node, ("mo", "·"), ("msup", ("mn", "10"), power))
    return text.startswith("-"), node


def _symbol(name: str, derivative: int) -> Node:
    """The name with its index and primes: x0 is x with an index, theta a Greek letter."""
    match = re.fullmatch(r"(.*?)_?([0-9]*)", name)
    assert match is not None
    node: Node = ("mi", GREEK.get(match[1], match[1]))
    if match[2]:
        node = ("msub", node, ("mn", match[2]))
    if derivative in (0, SIGNAL):
        return node
    primes = _PRIMES[derivative] if derivative < len(_PRIMES) else f"({derivative})"
    return ("mrow", node, ("mo", primes))
