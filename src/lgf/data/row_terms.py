"""The notation of terms and equations by row: `x: x*y` is the term x*y in the equation of x, `x*y` that in any."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lgf.errors import LgfError, quoted
from lgf.expression.frame import Variable

_FACTOR = re.compile(r"\s*(?P<sign>-?)\s*(?P<number>[0-9.]+(?:[eE][+-]?[0-9]+)?)?\s*\*?\s*")


@dataclass(frozen=True)
class RowTerm:
    """A term as text and the state in whose equation it stands; None is any equation."""

    row: str | None
    term: str

    def __str__(self) -> str:
        return self.term if self.row is None else f"{self.row}: {self.term}"

    @property
    def place(self) -> str:
        """The term with its place, in words."""
        return self.term if self.row is None else f"{self.term} in the equation of {self.row}"


@dataclass(frozen=True)
class SharedConstant:
    """The coefficient of the left term is `factor` times that of the right one."""

    left: RowTerm
    right: RowTerm
    factor: float

    def __str__(self) -> str:
        return f"{self.left} = {self.factor:g} * {self.right}"


def read_row_term(text: Any) -> RowTerm:
    """The term in text such as `x*y` or `x: x*y`."""
    if not isinstance(text, str) or not text.strip():
        raise LgfError(f'a term is given as text such as "u^3", but got {quoted(text)}.')
    row, colon, term = text.rpartition(":")
    if not colon:
        return RowTerm(None, term.strip())
    if not row.strip() or not term.strip() or ":" in row:
        raise LgfError(
            f"the term {quoted(text)} cannot be read; write the state, a colon and the term, such as x: x*y."
        )
    return RowTerm(Variable.read(row).name, term.strip())


def read_shared(text: Any) -> SharedConstant:
    """The tie in text such as `S: S*I = -I: S*I` or `x: y = 2 y: x`."""
    sides = text.split("=") if isinstance(text, str) else ()
    if len(sides) != 2:
        raise LgfError(f"the shared constant {quoted(text)} cannot be read; write it like S: S*I = -I: S*I.")
    match = _FACTOR.match(sides[1])
    assert match is not None
    left, right = read_row_term(sides[0]), read_row_term(sides[1][match.end() :])
    try:
        factor = float(match["number"] or 1.0) * (-1.0 if match["sign"] else 1.0)
    except ValueError as error:
        raise LgfError(f"the factor in {quoted(text)} is not a number; write it like x: y = 2 y: x.") from error
    if left.row is None or right.row is None or factor == 0.0:
        raise LgfError(f"the shared constant {quoted(text)} cannot be read; name both rows, such as S: S*I = -I: S*I.")
    return SharedConstant(left, right, factor)


def term_texts(terms: Any, what: str) -> tuple[str, ...]:
    """Terms as normal texts, from a text, a list of texts, or a mapping from states to these."""
    if isinstance(terms, Mapping):
        pairs = ((row, texts(inner, what)) for row, inner in terms.items())
        return tuple(str(read_row_term(f"{row}: {term}")) for row, inner in pairs for term in inner)
    return tuple(str(read_row_term(term)) for term in texts(terms, what))


def by_row_and_term(mapping: Any) -> dict[str, Any]:
    """Values by the normal text of their term; an inner mapping holds those of one row."""
    if not isinstance(mapping, Mapping):
        raise LgfError('bounds map a term to (low, high) or to a sign: {"u^3": "positive"}.')
    flat: dict[str, Any] = {}
    for key, value in mapping.items():
        inner = value if isinstance(value, Mapping) else None
        pairs = [(f"{key}: {term}", v) for term, v in inner.items()] if inner is not None else [(key, value)]
        flat |= {str(read_row_term(text)): v for text, v in pairs}
    return flat


def texts(values: Any, what: str) -> tuple[str, ...]:
    """A text or a list of texts as a tuple."""
    sequence = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    if not all(isinstance(text, str) for text in sequence):
        raise LgfError(f"{what} are given as text, but got {quoted(values)}.")
    return sequence


def read_known(known: Any) -> dict[str, str]:
    """Right-hand sides by the variable on their left, from equations as texts or from a mapping."""
    if isinstance(known, Mapping):
        pairs = [(str(row), right) for row, right in known.items()]
    else:
        equations = [text.split("=") for text in texts(known, "known right-hand sides")]
        wrong = next(("=".join(sides) for sides in equations if len(sides) != 2), None)
        if wrong is not None:
            raise LgfError(f"the known equation {quoted(wrong)} cannot be read; write it like x' = v.")
        pairs = [(left, right) for left, right in equations]
    rows: dict[str, str] = {}
    for row, right in pairs:
        if not isinstance(right, str) or not right.strip():
            raise LgfError(
                f'the known right-hand side of {quoted(row.strip())} is {quoted(right)}; write it like {{"x": "v"}} or '
                "x' = v."
            )
        variable = Variable.read(row)
        if variable.name in (Variable.read(r).name for r in rows):
            raise LgfError(f"the right-hand side of {variable.name} is given twice; give it once.")
        rows[str(variable)] = right.strip()
    return rows
