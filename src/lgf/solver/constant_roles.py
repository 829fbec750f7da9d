"""The roles of open constants in an expression: linear, inside a function or an exponent, in a divisor."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from lgf.expression.tree import ONE, ZERO, Expression, add, mul


@dataclass(frozen=True)
class Role:
    """The role of a nonlinear constant: the function or exponent around it, and its cofactor there."""

    place: str  # "sin", "cos", "exp", "log", "tanh", "exponent", "offset", "sum" or "other"
    cofactor: Expression | None  # C * cofactor is the summand with the constant


def linear_columns(residual: Expression) -> tuple[list[tuple[int, Expression]], Expression]:
    """The residual as sum of constant * column plus a fixed part, for as many constants as enter linearly."""
    occurrences = Counter(node.args[0] for node in residual.nodes() if node.head == "constant")
    pairs = _split(residual, occurrences)
    # A constant that stands in several places is linear if it is linear in all of them.
    split = Counter(index for index, _ in pairs)
    partly = {index for index, n in split.items() if index is not None and n < occurrences[index]}
    if partly:
        pairs = _split(residual, Counter({index: n for index, n in occurrences.items() if index not in partly}))
    columns: dict[int, Expression] = {}
    for index, column in pairs:
        if index is not None:
            columns[index] = columns[index] + column if index in columns else column
    return list(columns.items()), add(ZERO, *(column for index, column in pairs if index is None))


def _split(expression: Expression, linear: Counter[int]) -> list[tuple[int | None, Expression]]:
    """Pairs (constant that may be linear or None, cofactor) whose sum of products is the expression."""
    if expression.head == "constant" and linear[expression.args[0]]:
        return [(expression.args[0], ONE)]
    if expression.head == "+":
        return [pair for term in expression.args for pair in _split(term, linear)]
    if expression.head == "*":
        for i, factor in enumerate(expression.args):
            if factor.head in ("constant", "+"):
                pairs = _split(factor, linear)
                if any(index is not None for index, _ in pairs):
                    rest = expression.args[:i] + expression.args[i + 1 :]
                    return [(index, mul(cofactor, *rest)) for index, cofactor in pairs]
    return [(None, expression)]


def role_of(residual: Expression, index: int) -> Role:
    """The role of the constant at its first occurrence."""
    path = _path_to(residual, index)
    for depth in range(len(path) - 2, -1, -1):
        parent, child = path[depth], path[depth + 1]
        if parent.head == "^":
            if child is parent.args[1]:
                return Role("exponent", None)
            continue
        if parent.head == "*":
            continue
        below = path[depth + 1]
        cofactor = _without_constant(below, index)
        if parent.head == "+":
            enclosing = next((p.head for p in reversed(path[:depth]) if p.head not in "+*"), "sum")
            if enclosing in ("sin", "cos", "exp", "tanh", "log") and not _is_inner_sum(path, depth):
                return Role("offset" if cofactor == ONE else enclosing, cofactor)
            return Role("sum", cofactor)
        return Role(parent.head, cofactor)
    return Role("other", None)


def divisors(expression: Expression) -> Iterator[tuple[int, Expression]]:
    """(i, g) of every divisor 1 + C_i*g whose g holds no constant."""
    for node in expression.nodes():
        if node.head == "^" and node.args[1].head == "number" and node.args[1].args[0] < 0:
            base = node.args[0]
            rest = [term for term in base.args if term != ONE] if base.head == "+" else []
            if len(rest) == 1 and len(base.args) == 2:
                constants = [n.args[0] for n in rest[0].nodes() if n.head == "constant"]
                cofactor = _without_constant(rest[0], constants[0]) if len(constants) == 1 else None
                if cofactor is not None and not any(n.head == "constant" for n in cofactor.nodes()):
                    yield constants[0], cofactor


def _is_inner_sum(path: list[Expression], depth: int) -> bool:
    """Whether the sum at this depth is raised to a power before it enters a function."""
    for parent in reversed(path[:depth]):
        if parent.head == "^":
            return True
        if parent.head not in "+*":
            return False
    return True


def _path_to(expression: Expression, index: int) -> list[Expression]:
    if expression.head == "constant":
        return [expression] if expression.args[0] == index else []
    for child in expression.children:
        below = _path_to(child, index)
        if below:
            return [expression, *below]
    return []


def _without_constant(expression: Expression, index: int) -> Expression | None:
    if expression.head == "constant":
        return ONE
    if expression.head == "*":
        return mul(ONE, *(f for f in expression.args if not (f.head == "constant" and f.args[0] == index)))
    return None
