"""Frame: the states and known inputs of a problem, their order in arrays and their spelling."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pydantic_core import CoreSchema, core_schema

from lgf.errors import LgfError, quoted
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import Expression, signal, symbol

MOST_STATES = 6
HIGHEST_ORDER = 4

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_RESERVED = frozenset({"t", "C", "pi", "ln", "Abs", "diff", "Derivative", *FUNCTIONS})


class Variable(NamedTuple):
    """A state (derivative 0) or one of its time derivatives: u, u', prey, theta''."""

    name: str
    derivative: int = 0

    def __str__(self) -> str:
        return self.name + "'" * self.derivative

    @classmethod
    def read(cls, text: str) -> "Variable":
        """The variable spelled with primes.

        >>> Variable.read("theta''")
        Variable(name='theta', derivative=2)
        """
        stem = text.strip().rstrip("'")
        if not _NAME.fullmatch(stem):
            raise LgfError(f"{quoted(text)} does not name a state; write a name such as prey, u' or theta''.")
        return cls(stem, len(text.strip()) - len(stem))

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: Any) -> CoreSchema:
        """Stored as its text."""
        text = core_schema.to_string_ser_schema(when_used="always")
        return core_schema.no_info_after_validator_function(cls.read, core_schema.str_schema(), serialization=text)

    @property
    def symbol(self) -> Expression:
        """The variable as an expression."""
        return symbol(*self)


@dataclass(frozen=True)
class Frame:
    """The index of a problem: (name, order) of every state, and the names of the known inputs.

    A scalar equation of second order with an input is `Frame((("u", 2),), ("F",))`, a predator and its prey are
    `Frame((("prey", 1), ("predator", 1)))`. Arrays follow `columns`: first the state vector that a solver integrates
    (u, u'), then the highest derivative of every state (u'').

    >>> frame = Frame((("x", 2), ("y", 1)))
    >>> [str(v) for v in frame.variables], [str(v) for v in frame.highest]
    (['x', "x'", 'y'], ["x''", "y'"])
    """

    states: tuple[tuple[str, int], ...]
    inputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.states) <= MOST_STATES:
            raise LgfError(f"there are {len(self.states)} states; from 1 to {MOST_STATES} are supported.")
        for name in (*self.names, *self.inputs):
            check_name(name)
            if (*self.names, *self.inputs).count(name) > 1:
                raise LgfError(f"the name {quoted(name)} stands for two things; give each state and input its own.")
        for name, order in self.states:
            if not 1 <= order <= HIGHEST_ORDER:
                raise LgfError(f"{name} has order {order}; give a whole number from 1 to {HIGHEST_ORDER}.")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.states, self.inputs))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the states."""
        return tuple(name for name, _ in self.states)

    @cached_property
    def orders(self) -> tuple[int, ...]:
        """The order of each state."""
        return tuple(order for _, order in self.states)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The state vector: each state with its derivatives below its order."""
        return tuple(Variable(name, d) for name, order in self.states for d in range(order))

    @cached_property
    def highest(self) -> tuple[Variable, ...]:
        """The highest derivative of each state, which its equation determines."""
        return tuple(Variable(name, order) for name, order in self.states)

    @cached_property
    def columns(self) -> tuple[Variable, ...]:
        """Every variable in the order of arrays: the state vector, then the highest derivatives."""
        return self.variables + self.highest

    @cached_property
    def positions(self) -> dict[Variable, int]:
        """The position of each variable among the columns."""
        return {variable: i for i, variable in enumerate(self.columns)}

    @property
    def dimension(self) -> int:
        """The length of the state vector."""
        return len(self.variables)

    @cached_property
    def rates(self) -> tuple[int, ...]:
        """The position in the state vector, per state, of its derivative one below the highest."""
        return tuple(self.positions[Variable(name, order - 1)] for name, order in self.states)

    @cached_property
    def input_symbols(self) -> tuple[Expression, ...]:
        """The known inputs as expressions."""
        return tuple(signal(name) for name in self.inputs)

    def variable(self, text: str) -> Variable:
        """The variable of this frame with this spelling; LgfError if there is none."""
        variable = Variable.read(text)
        if variable not in self.positions:
            raise LgfError(f"{quoted(text)} is not known here; the variables are {', '.join(map(str, self.columns))}.")
        return variable

    def with_inputs(self, inputs: Iterable[str]) -> "Frame":
        """The same states with these inputs."""
        return Frame(self.states, tuple(inputs))


def check_name(name: str) -> str:
    """The name, if it is valid for a state or an input; LgfError otherwise."""
    if not _NAME.fullmatch(name):
        raise LgfError(f"{quoted(name)} cannot name a state or an input; use letters, digits and _ only.")
    if name in _RESERVED or re.fullmatch(r"C[0-9]{1,3}", name):
        raise LgfError(f"{quoted(name)} means something else in an equation; give the state or input another name.")
    return name
