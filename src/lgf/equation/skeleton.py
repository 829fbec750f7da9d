"""Skeleton: the equations of a system with open constants."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from lgf.equation.complexity import node_count
from lgf.equation.structure import shifted, structure
from lgf.errors import LgfError, quoted
from lgf.expression.frame import HIGHEST_ORDER, Frame, Variable
from lgf.expression.functions import FUNCTIONS
from lgf.expression.parse import infer_frame, read_equations
from lgf.expression.print import plain
from lgf.expression.tree import SIGNAL, Expression, T, constant, is_input, polynomial, substitute

Sides = tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True)
class Skeleton:
    """One equation left = right for each state of the frame, with open constants.

    Constants are numbered 0, 1, ... through all equations, by their first place. One that stands in several places has
    one value: S' = C0*S*I; I' = -C0*S*I + C1*I. The equation of a state reads highest derivative = right-hand side; a
    single equation may also be implicit, such as 5 u'' + C*u'*u'' = F.
    """

    frame: Frame
    sides: Sides

    def __post_init__(self) -> None:
        if len(self.sides) != len(self.frame.states):
            raise ValueError(f"{len(self.sides)} equations for {len(self.frame.states)} states; give one for each.")
        indices = list(dict.fromkeys(self._places))
        if indices != list(range(len(indices))):
            raise ValueError(
                f"open constants must be numbered 0, 1, ... from left to right, got {indices}; "
                "read the equation with bare C's or pass it through `numbered`"
            )
        if len(self.sides) > 1 and self.right_sides is None:
            raise LgfError("each equation of a system gives the highest derivative of its state: write x' = ...")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.frame, self.sides))

    @classmethod
    def read(cls, text: str, frame: Frame | None = None) -> "Skeleton":
        """The skeleton in the text, every C an open constant; one equation per line, or separated by `;`.

        Without a frame the states are those whose derivatives stand on the left, and F is the known input.
        """
        return numbered(*read_sides(text, frame))

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Stored as its frame and its text."""
        parts = {"frame": handler.generate_schema(Frame), "text": core_schema.str_schema()}
        return core_schema.no_info_after_validator_function(
            lambda stored: cls.read(stored["text"], stored["frame"]),
            core_schema.typed_dict_schema({name: core_schema.typed_dict_field(part) for name, part in parts.items()}),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda skeleton: {"frame": asdict(skeleton.frame), "text": str(skeleton)}
            ),
        )

    def __str__(self) -> str:
        names = None if self.tied else ["C"] * self.n_constants
        return "\n".join(f"{plain(left, names)} = {plain(right, names)}" for left, right in self.sides)

    @property
    def _expressions(self) -> tuple[Expression, ...]:
        return tuple(side for pair in self.sides for side in pair)

    @cached_property
    def _places(self) -> tuple[int, ...]:
        """The constant of every place, from left to right."""
        return tuple(i for e in self._expressions for i in _leaves(e)[0])

    @cached_property
    def n_constants(self) -> int:
        """The number of open constants."""
        return len(set(self._places))

    @cached_property
    def tied(self) -> bool:
        """Whether a constant stands in several places."""
        return len(self._places) > self.n_constants

    @cached_property
    def symbols(self) -> frozenset[Expression]:
        """Every symbol that occurs: time, inputs, states and derivatives."""
        return frozenset().union(*(_leaves(e)[1] for e in self._expressions))

    @property
    def left(self) -> Expression:
        """The left side of the first equation."""
        return self.sides[0][0]

    @property
    def right(self) -> Expression:
        """The right side of the first equation."""
        return self.sides[0][1]

    @property
    def highest(self) -> Expression:
        """The symbol of the highest derivative of the first state."""
        return self.frame.highest[0].symbol

    @cached_property
    def residuals(self) -> tuple[Expression, ...]:
        """The difference left - right of every equation."""
        return tuple(left - right for left, right in self.sides)

    @cached_property
    def right_sides(self) -> tuple[Expression, ...] | None:
        """The right-hand side of every state if every left side is a highest derivative, else None."""
        highest = [variable.symbol for variable in self.frame.highest]
        bare = all(left == symbol for (left, _), symbol in zip(self.sides, highest, strict=True))
        if not bare or any(not _leaves(right)[1].isdisjoint(highest) for _, right in self.sides):
            return None
        return tuple(right for _, right in self.sides)

    @property
    def autonomous(self) -> bool:
        """Whether time does not occur (other than in the inputs)."""
        return T not in self.symbols

    @cached_property
    def forced(self) -> bool:
        """Whether a known input occurs."""
        return any(is_input(s) for s in self.symbols)

    @cached_property
    def polynomial(self) -> tuple[Expression, ...] | None:
        """Coefficients of the first residual as a polynomial in its highest derivative; None if it is not one."""
        return polynomial(self.residuals[0], self.highest)

    @property
    def degree(self) -> int | None:
        """Degree of the first residual as a polynomial in its highest derivative; None if it is not one."""
        return None if self.polynomial is None else len(self.polynomial) - 1

    @cached_property
    def structure(self) -> str:
        """The structure as text, equal for all skeletons of the same equations, whichever constants are tied."""
        if len(self.sides) == 1:
            return structure(self.left, self.right)
        return "; ".join(_row_structure(left, right) for left, right in self.sides)

    @cached_property
    def complexity(self) -> int:
        """The number of nodes of the equations, counted as in the paper but without simplification."""
        explicit = self.right_sides is not None
        return sum(node_count(right - left if explicit else left - right) for left, right in self.sides)

    @cached_property
    def functions(self) -> frozenset[str]:
        """Names of the functions that occur."""
        return frozenset(n.head for e in self._expressions for n in e.nodes() if n.head in FUNCTIONS)


# A search for systems combines the same rows again and again, at various places.
@lru_cache(maxsize=8192)
def _leaves(side: Expression) -> tuple[tuple[int, ...], frozenset[Expression]]:
    """(the constant of every place from left to right, the symbols) of a side."""
    nodes = list(side.nodes())
    constants = tuple(n.args[0] for n in nodes if n.head == "constant")
    return constants, frozenset(n for n in nodes if n.head == "symbol")


@lru_cache(maxsize=8192)
def _row_structure(left: Expression, right: Expression) -> str:
    return _row_structure_from_zero(*_from_zero((left, right)))


@lru_cache(maxsize=4096)
def _row_structure_from_zero(left: Expression, right: Expression) -> str:
    return structure(left, right)


def _from_zero(sides: tuple[Expression, Expression]) -> tuple[Expression, Expression]:
    """The sides with their constants numbered from 0, so that equal rows of different systems are equal."""
    least = min((n.args[0] for side in sides for n in side.nodes() if n.head == "constant"), default=0)
    return sides if least == 0 else (shifted(sides[0], -least), shifted(sides[1], -least))


def read_sides(text: str, frame: Frame | None = None, inputs: tuple[str, ...] = ()) -> tuple[Frame, Sides]:
    """The frame of the equations in the text and their sides, in the order of the frame's states.

    Without a frame F and these names are known inputs.
    """
    named = frame or infer_frame(text, tuple(dict.fromkeys(("F", *inputs))))
    sides = read_equations(text, named)
    if frame is None:
        return _frame_of(text, sides, named), sides
    if len(sides) != len(frame.states):
        raise LgfError(f"{quoted(text)} has {len(sides)} equations for {len(frame.states)} states; write one for each.")
    if len(sides) > 1:
        place = {variable.symbol: i for i, variable in enumerate(frame.highest)}
        if {left for left, _ in sides} != set(place):
            expected = ", ".join(map(str, frame.highest))
            raise LgfError(f"{quoted(text)} does not give {expected}; write one equation for each, such as x' = ...")
        _check_derivatives(text, sides, frame)
        return frame, tuple(sorted(sides, key=lambda pair: place[pair[0]]))
    order = max(order_of(side) for pair in sides for side in pair)
    if order != frame.orders[0]:
        raise LgfError(f"{quoted(text)} is of order {order}, not of order {frame.orders[0]}.")
    return frame, sides


def _check_derivatives(text: str, sides: Sides, frame: Frame) -> None:
    """Raises LgfError if a derivative exceeds the order of its state."""
    for name, derivative in (n.args for pair in sides for e in pair for n in e.nodes() if n.head == "symbol"):
        if derivative > dict(frame.states).get(name, HIGHEST_ORDER):
            highest = Variable(name, dict(frame.states)[name])
            raise LgfError(f"{quoted(text)} has {Variable(name, derivative)} but an equation for {highest}.")


def _frame_of(text: str, sides: Sides, named: Frame | None) -> Frame:
    """The frame of the equations, inferred from their left sides or from the one state that occurs."""
    if named is not None and len(named.states) > 1:
        _check_derivatives(text, sides, named)
        return named
    symbols = {n.args for pair in sides for e in pair for n in e.nodes() if n.head == "symbol"}
    states = sorted({name for name, derivative in symbols if derivative != SIGNAL})
    highest = max((derivative for _, derivative in symbols), default=SIGNAL)
    if len(states) > 1 or len(sides) > 1:
        raise LgfError(f"{quoted(text)} does not say one equation for each state, such as x' = y; y' = -x.")
    if not states or highest < 1:
        raise LgfError(f"{quoted(text)} is no differential equation; write one in u, u', ...")
    if highest > HIGHEST_ORDER:
        raise LgfError(f"{quoted(text)} is of order {highest}; orders from 1 to {HIGHEST_ORDER} are supported.")
    inputs = sorted(name for name, derivative in symbols if derivative == SIGNAL and name != "t")
    return Frame(((states[0], highest),), tuple(inputs))


def numbered(frame: Frame, sides: Sequence[tuple[Expression, Expression]]) -> Skeleton:
    """The skeleton with these sides, its constants numbered by their first place."""
    constants = dict.fromkeys(n for pair in sides for e in pair for n in e.nodes() if n.head == "constant")
    order = {c: constant(i) for i, c in enumerate(constants)}
    if all(c == new for c, new in order.items()):
        return Skeleton(frame, tuple(sides))
    return Skeleton(frame, tuple((substitute(left, order), substitute(right, order)) for left, right in sides))


def order_of(expression: Expression) -> int:
    """The highest derivative that occurs, -1 if no state does."""
    return max((n.args[1] for n in expression.nodes() if n.head == "symbol"), default=SIGNAL)
