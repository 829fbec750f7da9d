"""The bits of a system that a user writes, row by row."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lgf.equation.skeleton import read_sides
from lgf.errors import LgfError, quoted
from lgf.expression.canonical import canonical
from lgf.expression.frame import Frame
from lgf.expression.functions import FUNCTIONS
from lgf.expression.monomials import n_constants
from lgf.expression.print import plain
from lgf.expression.tree import Expression, add, constant, mul, power, rebuild, summands
from lgf.grammar import Grammar
from lgf.language.row_structure import RowStructure, right_side
from lgf.language.system_language import SystemLanguage, unrestricted
from lgf.language.term_dictionary import parts_of

LARGEST_EXPONENT = 5  # larger ones are values of open exponents, as in Hill terms


@dataclass(frozen=True)
class SystemEncoding:
    """The cheapest structure of every row of a system, of infinite bits where the grammar cannot say the row.

    `unsaid` are the terms that the grammar lacks, by row; `right_sides` is each row as text, with open constants.
    """

    frame: Frame
    rows: tuple[RowStructure, ...]
    unsaid: tuple[tuple[str, ...], ...]
    right_sides: tuple[str, ...]

    @cached_property
    def bits(self) -> float:
        """The bits of all rows."""
        return sum(row.bits for row in self.rows)


def system_encoding(grammar: Grammar, text: str, inputs: tuple[str, ...] = ()) -> SystemEncoding:
    """The encoding of the system in the text, one equation per line or separated by `;`.

    Each C is an open constant. Numbers are values of open constants, except for whole exponents up to 5, and for 1 and
    -1 where that is cheaper: sin(x - y) is not sin(C*x + C*y), but 10*(x - y) is C*x + C*y. In a row with C units stay.
    """
    frame, sides = read_sides(text, inputs=inputs)
    highest = [variable.symbol for variable in frame.highest]
    if [left for left, _ in sides] != highest or any(s in right.nodes() for s in highest for _, right in sides):
        raise LgfError(f"{quoted(text)} does not give the highest derivative of each state; write x' = ...; y' = ...")
    language = unrestricted(grammar, frame)
    rows, unsaid, texts = [], [], []
    for i, (left, right) in enumerate(sides):
        readings = [(language.row_structure(i, r), _unsaid(language, i, r), r) for r in _readings(right)]
        row, missing, reading = min(readings, key=lambda reading: (reading[0].bits, len(reading[1])))
        shown = canonical(reading)[0] if math.isinf(row.bits) else right_side(row)
        rows.append(row)
        unsaid.append(missing if math.isinf(row.bits) else ())
        texts.append(f"{plain(left)} = {plain(shown, ['C'] * n_constants(shown))}")
    return SystemEncoding(frame, tuple(rows), tuple(unsaid), tuple(texts))


def _readings(right: Expression) -> Iterator[Expression]:
    """The right-hand side with its numbers as open constants: as written and expanded, with and without the units."""
    for expression in (right, canonical(right)[0]):
        for keep_units in ("everywhere", "in functions", "nowhere")[: 1 if n_constants(right) else None]:
            opening = _Opening(keep_units, n_constants(expression))
            yield add(*(mul(opening.new(), opening.of(summand)) for summand in summands(expression)))


@dataclass
class _Opening:
    """Replaces numbers by open constants."""

    keep_units: Literal["everywhere", "in functions", "nowhere"]
    next_index: int

    def new(self) -> Expression:
        """Another open constant."""
        self.next_index += 1
        return constant(self.next_index - 1)

    def of(self, e: Expression, in_function: bool = False) -> Expression:
        """The expression with its numbers replaced."""
        if e.head == "number":
            units = self.keep_units == "everywhere" or (self.keep_units == "in functions" and in_function)
            if units and abs(e.args[0]) == 1.0:
                return e
            return self.new()
        if e.is_leaf:
            return e
        if e.head == "^" and e.args[1].head == "number":
            exponent = e.args[1].args[0]
            if (exponent.is_integer() and abs(exponent) <= LARGEST_EXPONENT) or abs(exponent) == 0.5:
                return power(self.of(e.args[0], in_function), e.args[1])
        return rebuild(e.head, tuple(self.of(a, in_function or e.head in FUNCTIONS) for a in e.args))


def _unsaid(language: SystemLanguage, row: int, right: Expression) -> tuple[str, ...]:
    known = language.rows[row].cost
    return tuple(plain(p, ["C"] * n_constants(p)) for p in dict.fromkeys(parts_of(right)) if p not in known)
