"""Structure of a right-hand side: terms over a divisor, the expression they make, and when two say the same."""

import math
from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from lgf.equation.structure import shifted
from lgf.expression.canonical import canonical
from lgf.expression.monomials import n_constants
from lgf.expression.tree import MINUS_ONE, ONE, Expression, add, constant, factors, mul, power
from lgf.language.term_dictionary import parts_of


class RowStructure(NamedTuple):
    """The right-hand side of a row: the sum of the terms, each with an open coefficient, over the divisor.

    A right-hand side that is known stands in `known`, and there are no terms.
    """

    terms: tuple[Expression, ...]
    divisor: Expression = ONE
    bits: float = math.nan
    known: Expression | None = None


def right_side(structure: RowStructure) -> Expression:
    """The right-hand side of a structure with an open coefficient for each term, constants numbered from the left."""
    if structure.known is not None:
        return structure.known
    summands, start = [], 0
    for term in structure.terms:
        summands.append(mul(constant(start), shifted(term, start + 1)))
        start += 1 + n_constants(term)
    if structure.divisor == ONE:
        return add(*summands)
    return mul(add(*summands), power(shifted(structure.divisor, start), MINUS_ONE))


def identity(structure: RowStructure) -> Hashable:
    """Equal for structures that say the same: x + (y - x) and x + y, (z^2 + x*z)/z and z + x."""
    terms, divisor = structure.terms, structure.divisor
    expanding = [term for term in terms if any(factor.head == "+" for factor in factors(term))]
    if divisor == ONE and not any(part in terms for term in expanding for part in _summands(term)):
        return frozenset(terms)
    right = right_side(structure)
    # The parts of a sum share the constants beside it, and so do the terms over a divisor.
    if n_constants(*expanding) or (len(terms) > 1 and n_constants(divisor)):
        return canonical(right)[0]
    return frozenset(parts_of(right))


@lru_cache(maxsize=1024)
def _summands(term: Expression) -> tuple[Expression, ...]:
    """The terms of a product of sums: x*(y - x) has x*y and x^2."""
    return parts_of(term)
