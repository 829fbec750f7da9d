"""Skeleton: an equation with open constants. Equation: the same with values."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lgf.ode.expression import (
    FUNCTIONS,
    MINUS_ONE,
    ONE,
    ZERO,
    Expression,
    F,
    T,
    add,
    constant,
    fill,
    mul,
    number,
    polynomial,
    substitute,
    symbol,
)
from lgf.ode.printing import display, latex, plain
from lgf.ode.reading import read_equation, read_expression

TEMPLATES = ("explicit", "own forcing", "given forcing")


@dataclass(frozen=True)
class Skeleton:
    """left = right with open constants, each of which occurs once, numbered 0, 1, ... from left to right."""

    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        found = [n.args[0] for side in (self.left, self.right) for n in side.nodes() if n.head == "constant"]
        if found != list(range(len(found))):
            raise ValueError(
                f"open constants must be numbered 0, 1, ... from left to right, each once, got {found}; "
                "read the equation with bare C's or pass it through `numbered`"
            )

    @classmethod
    def read(cls, text: str) -> "Skeleton":
        """The skeleton that the text says, every C an open constant."""
        return numbered(*read_equation(text))

    @classmethod
    def from_sentence(cls, template: str, sentence: str | Expression, order: int) -> "Skeleton":
        """The equation that a grammar's sentence stands for.

        template         equation
        "explicit"       u^(order) = sentence
        "own forcing"    sentence = 0
        "given forcing"  sentence = F
        """
        if template not in TEMPLATES:
            raise ValueError(f"unknown template {template!r}; known are {', '.join(TEMPLATES)}")
        inside = read_expression(sentence) if isinstance(sentence, str) else sentence
        if template == "explicit":
            if order_of(inside) >= order:
                raise ValueError(f"the right-hand side has a derivative of order {order_of(inside)}; below {order} it must stay")
            return numbered(symbol("u", order), inside)
        return numbered(inside, ZERO if template == "own forcing" else F)

    def __str__(self) -> str:
        names = ["C"] * self.n_constants
        return f"{plain(self.left, names)} = {plain(self.right, names)}"

    @cached_property
    def n_constants(self) -> int:
        """How many constants are open."""
        return sum(n.head == "constant" for side in (self.left, self.right) for n in side.nodes())

    @cached_property
    def symbols(self) -> frozenset[Expression]:
        """Every symbol that occurs: t, F, states and derivatives."""
        return frozenset(n for side in (self.left, self.right) for n in side.nodes() if n.head == "symbol")

    @cached_property
    def order(self) -> int:
        """The highest derivative that occurs."""
        return max((s.args[1] for s in self.symbols), default=0)

    @property
    def highest(self) -> Expression:
        """The symbol of the highest derivative of u."""
        return symbol("u", self.order)

    @cached_property
    def residual(self) -> Expression:
        """left - right."""
        return self.left - self.right

    @cached_property
    def explicit(self) -> Expression | None:
        """The right side if the left is the bare highest derivative and the right is free of it, else None."""
        bare = self.order > 0 and self.left == self.highest and self.highest not in self.right.nodes()
        return self.right if bare else None

    @property
    def autonomous(self) -> bool:
        """Whether time does not occur (other than in the forcing F)."""
        return T not in self.symbols

    @property
    def forced(self) -> bool:
        """Whether the given forcing F occurs."""
        return F in self.symbols

    @cached_property
    def polynomial(self) -> tuple[Expression, ...] | None:
        """Coefficients of the residual as a polynomial in the highest derivative, or None."""
        return polynomial(self.residual, self.highest)

    @property
    def degree(self) -> int | None:
        """Degree of the residual as a polynomial in the highest derivative; None if it is none."""
        return None if self.polynomial is None else len(self.polynomial) - 1

    @cached_property
    def functions(self) -> frozenset[str]:
        """Names of the functions that occur."""
        return frozenset(n.head for side in (self.left, self.right) for n in side.nodes() if n.head in FUNCTIONS)


def numbered(left: Expression, right: Expression) -> Skeleton:
    """The skeleton with these sides, its constants numbered by position; a constant that occurs twice is an error."""
    found = [n for side in (left, right) for n in side.nodes() if n.head == "constant"]
    if len(set(found)) < len(found):
        raise ValueError("an open constant occurs twice; give every place a constant of its own")
    order = {c: constant(i) for i, c in enumerate(found)}
    if all(c == new for c, new in order.items()):
        return Skeleton(left, right)
    return Skeleton(substitute(left, order), substitute(right, order))


def order_of(expression: Expression) -> int:
    """The highest derivative that occurs, -1 if no state does."""
    return max((n.args[1] for n in expression.nodes() if n.head == "symbol" and n.args[0] not in "tF"), default=-1)


@dataclass(frozen=True)
class Equation:
    """A skeleton with values for its constants, their standard errors if known, and what F is if it is a formula."""

    skeleton: Skeleton
    values: tuple[float, ...]
    errors: tuple[float, ...] | None = None
    forcing: Expression | None = None

    def __post_init__(self) -> None:
        for name, given in (("values", self.values), ("errors", self.errors)):
            if given is not None and len(given) != self.skeleton.n_constants:
                raise ValueError(f"{len(given)} {name} for {self.skeleton.n_constants} open constants; give one each")

    @cached_property
    def left(self) -> Expression:
        """The left side, filled in."""
        return fill(self.skeleton.left, self.values)

    @cached_property
    def right(self) -> Expression:
        """The right side, filled in; F stays a symbol."""
        return fill(self.skeleton.right, self.values)

    @property
    def order(self) -> int:
        """The highest derivative that occurs."""
        return self.skeleton.order

    def _with_forcing(self, side: Expression) -> Expression:
        return side if self.forcing is None else substitute(side, {F: self.forcing})

    def __str__(self) -> str:
        sides = (self._with_forcing(side) for side in (self.skeleton.left, self.skeleton.right))
        return " = ".join(display(side, self.values, self.errors) for side in sides)

    @property
    def text(self) -> str:
        """The equation at full precision; it reads back exactly."""
        return f"{plain(self.left)} = {plain(self.right)}"
