"""Skeleton: an equation with open constants. Equation: the same with values."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lgf.equation.complexity import complexity, node_count
from lgf.equation.structure import leading_fixed, open_constants, operator_form, structure
from lgf.errors import LgfError
from lgf.expression.canonical import canonical
from lgf.expression.parse import ReadingError, read_equation, read_expression
from lgf.expression.print import display, latex, plain, python_function
from lgf.expression.sympy_conversion import to_sympy
from lgf.expression.tree import FUNCTIONS, ZERO, Expression, F, T, constant, fill, polynomial, substitute, symbol

TEMPLATES = ("explicit", "own forcing", "given forcing")


class NoEquation(ValueError):
    """A sentence that is no differential equation; `reason` is "unreadable", "vanishes", "no derivative" or "order"."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


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
    def from_sentence(cls, template: str, sentence: str | Expression, order: int | None = None) -> "Skeleton":
        """The canonical skeleton that a grammar's sentence stands for; NoEquation if it stands for none.

        template         equation
        "explicit"       u^(order) = sentence
        "own forcing"    sentence = 0, one coefficient of the highest derivative fixed at 1
        "given forcing"  sentence = F

        A given order must be met. The coefficients of a sentence alone would allow the equation 0 = 0, hence the 1.
        """
        if template not in TEMPLATES:
            raise ValueError(f"unknown template {template!r}; known are {', '.join(TEMPLATES)}")
        try:
            inside = read_expression(sentence) if isinstance(sentence, str) else sentence
        except ReadingError as error:  # a sentence may be longer or deeper than what is computed with
            raise NoEquation("unreadable", error.message) from error
        if template == "explicit":
            if order is None or order < 1:
                raise ValueError(f"the template 'explicit' needs an order of 1 or more, got {order}")
            right, _ = canonical(inside)
            if order_of(right) >= order:
                raise NoEquation(
                    "order", f"the right-hand side has a derivative of order {order_of(right)}, not below {order}"
                )
            return cls(symbol("u", order), right)
        if template == "given forcing":
            left, _ = canonical(inside)
        else:
            left, _ = leading_fixed(inside)
        if left == ZERO:
            raise NoEquation("vanishes", "the operator is zero for every function")
        found = order_of(left)
        if found < 1:
            raise NoEquation("no derivative", "the operator has no derivative of u")
        if order is not None and found != order:
            raise NoEquation("order", f"the operator has order {found}, not {order}")
        return cls(left, ZERO if template == "own forcing" else F)

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
        """The difference left - right."""
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
    def structure(self) -> str:
        """A text that all skeletons of the same equation share."""
        return structure(self.left, self.right)

    @cached_property
    def complexity(self) -> int:
        """Number of nodes of the equation as it stands, counted as the paper does but without simplification."""
        return node_count(self.left - self.right if self.explicit is None else self.right - self.left)

    @cached_property
    def functions(self) -> frozenset[str]:
        """Names of the functions that occur."""
        return frozenset(n.head for side in (self.left, self.right) for n in side.nodes() if n.head in FUNCTIONS)


def numbered(left: Expression, right: Expression) -> Skeleton:
    """The skeleton with these sides, its constants numbered by position; a constant that occurs twice is an error."""
    found = [n for side in (left, right) for n in side.nodes() if n.head == "constant"]
    if len(set(found)) < len(found):
        raise LgfError("an open constant occurs twice; give every place a constant of its own")
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

    @classmethod
    def read(cls, text: str, forcing: str | None = None) -> "Equation":
        """The equation that the text says: its numbers become the values of a canonical skeleton's constants."""
        left, right, values = open_constants(*read_equation(text))
        return cls(Skeleton(left, right), values, forcing=None if forcing is None else read_expression(forcing))

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

    @property
    def constants(self) -> dict[str, float]:
        """Values of the constants by name, C0, C1, ..."""
        return {f"C{i}": value for i, value in enumerate(self.values)}

    def _forced(self, side: Expression) -> Expression:
        return side if self.forcing is None else substitute(side, {F: self.forcing})

    def __str__(self) -> str:
        sides = (self._forced(self.skeleton.left), self._forced(self.skeleton.right))
        return " = ".join(display(side, self.values, self.errors) for side in sides)

    @property
    def text(self) -> str:
        """The equation at full precision, F as F; it reads back exactly."""
        return f"{plain(self.left)} = {plain(self.right)}"

    def latex(self) -> str:
        """The equation in LaTeX, numbers rounded."""
        sides = (self._forced(self.skeleton.left), self._forced(self.skeleton.right))
        return " = ".join(latex(side, self.values, self.errors) for side in sides)

    def sympy(self) -> Any:
        """The equation as sympy.Eq, with u(t) and Derivative."""
        import sympy

        return sympy.Eq(to_sympy(self._forced(self.left)), to_sympy(self._forced(self.right)), evaluate=False)

    def python(self) -> str:
        """Source of a stand-alone Python function: rhs(t, y), or residual(t, y) if u^(n) cannot be solved for."""
        residual = self._forced(self.left - self.right)
        coefficients = polynomial(residual, self.skeleton.highest)
        solved = None
        if self.skeleton.explicit is not None:
            solved = self._forced(self.right)
        elif coefficients is not None and len(coefficients) == 2:
            solved = -coefficients[0] / coefficients[1]
        return python_function(solved, residual, self.order, self.text)

    @cached_property
    def complexity(self) -> int:
        """The paper's complexity of the equation, forcing included; SymPy simplifies it first, so it takes a while."""
        return complexity(self._forced(self.left), self._forced(self.right))

    def operator_form(self) -> "Equation":
        """The same equation with F alone on the right: 5.0 u'' + 1.0 u' + 7.0 u = F; errors are not carried over."""
        if self.skeleton.right == F and F not in self.skeleton.left.nodes():
            return self
        left, right, values = operator_form(self.skeleton.left, self.skeleton.right, self.values)
        return Equation(Skeleton(left, right), values, forcing=self.forcing)

    def to_dict(self) -> dict[str, Any]:
        """The equation as plain data for JSON."""
        return {
            "skeleton": str(self.skeleton),
            "values": list(self.values),
            "errors": None if self.errors is None else list(self.errors),
            "forcing": None if self.forcing is None else plain(self.forcing),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Equation":
        """The equation that `to_dict` described."""
        errors, forcing = data.get("errors"), data.get("forcing")
        return cls(
            Skeleton.read(data["skeleton"]),
            tuple(float(v) for v in data["values"]),
            None if errors is None else tuple(float(e) for e in errors),
            None if forcing is None else read_expression(forcing),
        )
