"""How a hidden state enters: the terms that a search with a hidden state combines, and what fixes its scale."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.dimensions import scalable
from lgf.expression.frame import Frame, Variable
from lgf.expression.tree import ONE, ZERO, Expression, T, factors, mul, polynomial
from lgf.language.row_language import RowTerm
from lgf.language.system_language import SystemLanguage


@dataclass(frozen=True)
class Coupling:
    """The equation of a measured state through which the hidden state shows: rest + factor * hidden state."""

    row: int
    terms: tuple[Expression, ...]  # of the rest, each with an open coefficient
    factor: Expression
    coupled: Expression | None = None  # the term with the hidden state; None if the right-hand side is known
    rest: Expression = ZERO  # of a known right-hand side: what stands beside the hidden state


def degree(term: Expression, hidden: Expression) -> int:
    """The power of the hidden state in a product."""
    for f in factors(term):
        if f == hidden:
            return 1
        if f.head == "^" and f.args[0] == hidden:
            return int(f.args[1].args[0])
    return 0


def polynomial_terms(language: SystemLanguage, row: int, most_bits: float, most: int) -> tuple[RowTerm, ...]:
    """The cheapest terms of the row that are products of whole powers of variables and inputs."""
    terms = [t for t in language.terms(row) if t.bits <= most_bits and _is_product(t.expression)]
    required = [t for t in language.terms(row) if t.expression in language.rows[row].required]
    return tuple(dict.fromkeys([*required, *terms[:most]]))


def _is_product(term: Expression) -> bool:
    return all(
        f == ONE
        or (f.head == "symbol" and f != T)
        or (f.head == "^" and f.args[0].head == "symbol" and f.args[0] != T and _whole(f.args[1]))
        for f in factors(term)
    )


def _whole(exponent: Expression) -> bool:
    return exponent.head == "number" and exponent.args[0] >= 1.0 and float(exponent.args[0]).is_integer()


def couplings(
    language: SystemLanguage, known: RowKnowledge, hidden: int, row_terms: Sequence[Sequence[RowTerm]], most: int
) -> Iterator[Coupling]:
    """The ways in which the hidden state may enter one equation linearly, with up to `most` other terms beside it."""
    y = symbol_of(language.frame, hidden)
    rows = [r for r in range(len(language.frame.states)) if r != hidden]
    for row in rows:
        right = known.rights.get(row)
        parts = None if right is None else polynomial(right, y)
        if right is not None and parts is not None and len(parts) == 2:
            yield Coupling(row, (), parts[1], rest=parts[0])
            return
    for row in rows:
        if row in known.rights:
            continue
        required = language.rows[row].required
        free = [t.expression for t in row_terms[row] if degree(t.expression, y) == 0]
        linear = [t.expression for t in row_terms[row] if degree(t.expression, y) == 1]
        must = [t for t in required if degree(t, y) == 0]
        for term in linear:
            if any(degree(t, y) > 0 and t != term for t in required):
                continue
            rest = [t for t in free if t not in must]
            for count in range(max(most - len(must), 0) + 1):
                for chosen in combinations(rest, count):
                    yield Coupling(row, (*must, *chosen), _without(term, y), term)


def symbol_of(frame: Frame, row: int) -> Expression:
    """The symbol of the state of this row."""
    return Variable(frame.names[row]).symbol


def _without(term: Expression, symbol: Expression) -> Expression:
    return mul(*(f for f in factors(term) if f != symbol))


def scale_is_free(known: RowKnowledge, given: Iterable[float]) -> bool:
    """Whether the hidden state may be multiplied by any number without changing what is measured.

    Its initial value (if one is `given`, and is not 0), a conserved sum, a shared constant, bounds and numbers in known
    equations fix its scale.
    """
    hidden = known.hidden
    assert hidden is not None
    y = symbol_of(known.frame, hidden)
    if any(value != 0.0 for value in given) or any(hidden in law for law in known.laws):
        return False
    if any(degree(term, y) != (1 if row == hidden else 0) for row, term in known.bounds if row is not None):
        return False
    for relation in known.relations:
        if any(row == hidden or degree(term, y) for row, term in (relation.left, relation.right)):
            return False
    name, highest = known.frame.names[hidden], known.frame.highest
    return all(scalable(name, {highest[row]: right}) for row, right in known.rights.items())
