"""Immutable expression trees over time, states and constants.

A tree has few kinds of node, as in SymPy: sums and products of any length, powers, functions of one argument, and
three kinds of leaf. Subtraction is a product with -1, division a power of -1. The constructors `add`, `mul`, `power`
and `function` flatten and fold numbers, so that a tree built by them (or read from text) is in a light normal form
in which printing and reading are inverse to each other.
"""

import math
from collections.abc import Iterator
from functools import total_ordering

from lgf.expression.functions import FUNCTIONS

SIGNAL = -1  # takes the place of the derivative order in the symbols of time and known inputs


@total_ordering
class Expression:
    """One node: `head` is its kind, `args` holds its children (or, for a leaf, its data).

    head        args
    "number"    (value,)                  a fixed number
    "constant"  (index,)                  an open constant C, numbered from 0 within its expression
    "symbol"    (name, derivative)        a state or a derivative of one: ("u", 2) is u''; see `symbol`
                (name, SIGNAL)            time or a known input, which have no derivatives; see `signal`
    "+" "*"     two or more expressions   in a product the number, if any, comes first; in a sum it comes last
    "^"         (base, exponent)
    "sin" ...   (argument,)               one of FUNCTIONS
    """

    __slots__ = ("_hash", "_key", "args", "head")
    head: str
    args: tuple

    def __init__(self, head: str, args: tuple):
        _set_head(self, head)
        _set_args(self, args)
        _set_hash(self, hash((head, args)))
        _set_key(self, None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an Expression is immutable")

    def __reduce__(self):
        return Expression, (self.head, self.args)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expression):
            return NotImplemented
        return self._hash == other._hash and self.head == other.head and self.args == other.args

    def __lt__(self, other: "Expression") -> bool:
        return self.sort_key() < other.sort_key()

    def sort_key(self) -> tuple:
        """A sort key, the same in every process; it ignores the index of a constant."""
        if self._key is None:
            if self.head in _LEAF_RANK:
                key = (_LEAF_RANK[self.head], self.head, () if self.head == "constant" else self.args)
            else:
                key = (3, self.head, tuple(a.sort_key() for a in self.args))
            _set_key(self, key)
        return self._key  # pyright: ignore[reportReturnType]

    def __repr__(self) -> str:
        return f"Expression({self.head!r}, {self.args!r})"

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no child expressions."""
        return self.head in _LEAF_RANK

    @property
    def children(self) -> tuple["Expression", ...]:
        """The child expressions."""
        return () if self.head in _LEAF_RANK else self.args

    def nodes(self) -> Iterator["Expression"]:
        """Every node, parents before children."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            if node.head not in _LEAF_RANK:
                stack.extend(reversed(node.args))

    def __add__(self, other: "Expression") -> "Expression":
        return add(self, other)

    def __sub__(self, other: "Expression") -> "Expression":
        return add(self, mul(MINUS_ONE, other))

    def __mul__(self, other: "Expression") -> "Expression":
        return mul(self, other)

    def __truediv__(self, other: "Expression") -> "Expression":
        return mul(self, power(other, MINUS_ONE))

    def __pow__(self, other: "Expression") -> "Expression":
        return power(self, other)

    def __neg__(self) -> "Expression":
        return mul(MINUS_ONE, self)


# The setters of the slots bypass the guard of __setattr__ and are twice as fast as object.__setattr__.
_set_head, _set_args, _set_hash, _set_key = (
    Expression.__dict__[name].__set__ for name in ("head", "args", "_hash", "_key")
)
_LEAF_RANK = {"number": 0, "constant": 1, "symbol": 2}


def number(value: float) -> Expression:
    """A fixed number."""
    return Expression("number", (float(value) + 0.0,))  # + 0.0 turns -0.0 into 0.0


_CONSTANTS = tuple(Expression("constant", (i,)) for i in range(64))


def constant(index: int) -> Expression:
    """The open constant with this index."""
    return _CONSTANTS[index] if index < len(_CONSTANTS) else Expression("constant", (index,))


def symbol(name: str, derivative: int = 0) -> Expression:
    """A state or one of its derivatives."""
    return Expression("symbol", (name, derivative))


def signal(name: str) -> Expression:
    """Time or a known input: a function of time that no equation determines."""
    return Expression("symbol", (name, SIGNAL))


ZERO, ONE, MINUS_ONE = number(0), number(1), number(-1)
T = signal("t")


def is_input(expression: Expression) -> bool:
    """Whether the expression is a known input."""
    return expression.head == "symbol" and expression.args[1] == SIGNAL and expression != T


def summands(expression: Expression) -> tuple[Expression, ...]:
    """The terms of a sum; any other expression is its own only term."""
    return expression.args if expression.head == "+" else (expression,)


def factors(expression: Expression) -> tuple[Expression, ...]:
    """The factors of a product; any other expression is its own only factor."""
    return expression.args if expression.head == "*" else (expression,)


def add(*terms: Expression) -> Expression:
    """The sum: nested sums flattened, numbers folded into one at the end."""
    flat: list[Expression] = []
    total = 0.0
    for term in terms:
        for part in summands(term):
            if part.head == "number":
                total += part.args[0]
            else:
                flat.append(part)
    if total != 0.0 or not flat:
        flat.append(number(total))
    return flat[0] if len(flat) == 1 else Expression("+", tuple(flat))


def mul(*operands: Expression) -> Expression:
    """The product: nested products flattened, numbers folded into one in front."""
    flat: list[Expression] = []
    total = 1.0
    for operand in operands:
        for part in factors(operand):
            if part.head == "number":
                total *= part.args[0]
            else:
                flat.append(part)
    if total == 0.0:
        return ZERO
    if total != 1.0 or not flat:
        flat.insert(0, number(total))
    return flat[0] if len(flat) == 1 else Expression("*", tuple(flat))


def power(base: Expression, exponent: Expression) -> Expression:
    """The power base ^ exponent, with numbers folded and the exponents 0 and 1 resolved."""
    if exponent.head == "number":
        e = exponent.args[0]
        if e == 1.0:
            return base
        if e == 0.0:
            return ONE
        if base.head == "number":
            try:
                value = base.args[0] ** e
            except (ZeroDivisionError, OverflowError):
                value = math.nan
            if isinstance(value, float) and math.isfinite(value):
                return number(value)
        if base.head == "^" and base.args[1].head == "number" and e.is_integer():
            inner = base.args[1].args[0]
            if inner.is_integer():
                return power(base.args[0], number(inner * e))
    return Expression("^", (base, exponent))


def function(name: str, argument: Expression) -> Expression:
    """name(argument), one of FUNCTIONS."""
    if name not in FUNCTIONS:
        raise ValueError(f"unknown function {name!r}; known are {', '.join(FUNCTIONS)}")
    return Expression(name, (argument,))


def substitute(expression: Expression, replacements: dict[Expression, Expression]) -> Expression:
    """The expression with every occurrence of a key replaced by its value, rebuilt by the constructors."""
    if not replacements:
        return expression
    replacement = replacements.get(expression)
    if replacement is not None:
        return replacement
    if expression.is_leaf:
        return expression
    return rebuild(expression.head, tuple(substitute(a, replacements) for a in expression.args))


def rebuild(head: str, args: tuple[Expression, ...]) -> Expression:
    """A node of this kind with these children, in light normal form."""
    if head == "+":
        return add(*args)
    if head == "*":
        return mul(*args)
    if head == "^":
        return power(*args)
    return function(head, args[0])


def fill(expression: Expression, values: "tuple[float, ...] | list[float]") -> Expression:
    """The expression with its open constants replaced by these values."""
    return _filled(expression, [number(v) for v in values]) if values else expression


def _filled(e: Expression, numbers: list[Expression]) -> Expression:
    if e.head == "constant":
        return numbers[e.args[0]] if e.args[0] < len(numbers) else e
    if e.head in _LEAF_RANK:
        return e
    return rebuild(e.head, tuple([_filled(a, numbers) for a in e.args]))


def nesting(expression: Expression) -> int:
    """The depth to which powers, functions and products with a sum are nested; u^2 does not count."""
    if expression.is_leaf:
        return 0
    head, args = expression.head, expression.args
    inside = max(nesting(a) for a in args)
    if head == "+" or (head == "*" and all(a.head != "+" for a in args)):
        return inside
    return inside if head == "^" and all(a.is_leaf for a in args) else inside + 1


def polynomial(expression: Expression, variable: Expression) -> tuple[Expression, ...] | None:
    """Coefficients c0, c1, ... with expression = c0 + c1*variable + ..., or None if it is not a polynomial in it."""
    head = expression.head
    if expression == variable:
        return ZERO, ONE
    if variable not in expression.nodes():
        return (expression,)
    if head not in ("+", "*", "^"):
        return None
    if head == "^":
        base, exponent = expression.args
        if exponent.head != "number" or not exponent.args[0].is_integer() or not 0 < exponent.args[0] <= 16:
            return None
        parts = [polynomial(base, variable)] * int(exponent.args[0])
    else:
        parts = [polynomial(a, variable) for a in expression.args]
    result: tuple[Expression, ...] = (ZERO,) if head == "+" else (ONE,)
    for part in parts:
        if part is None:
            return None
        if head == "+":
            longest = max(len(result), len(part))
            pairs = zip(result + (ZERO,) * (longest - len(result)), part + (ZERO,) * (longest - len(part)), strict=True)
            result = tuple(add(a, b) for a, b in pairs)
        else:
            product = [ZERO] * (len(result) + len(part) - 1)
            for i, a in enumerate(result):
                for j, b in enumerate(part):
                    product[i + j] = add(product[i + j], mul(a, b))
            result = tuple(product)
    while len(result) > 1 and result[-1] == ZERO:
        result = result[:-1]
    return result
