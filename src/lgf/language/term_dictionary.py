"""The dictionary of summands: the terms of a grammar, each with its cheapest derivation.

The key of a term is its canonical expression without the open coefficient in front. So all spellings of C*u*log(C*u)
share one entry.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from lgf.errors import LgfError
from lgf.expression.canonical import to_terms
from lgf.expression.monomials import UNIT, Monomial, Terms, in_order, n_constants, renumber, to_expression
from lgf.expression.parse import read_expression
from lgf.expression.tree import Expression, add
from lgf.grammar import Derivation, Grammar, enumerate_derivations, spell
from lgf.grammar.blocks import summand_symbols
from lgf.grammar.restriction import as_mask
from lgf.language.stored import stored

MAX_BITS = 24.0
MAX_DERIVATIONS = 5000  # the cheapest; about a second of canonicalising


@dataclass(frozen=True)
class Term:
    """A summand: its canonical terms, its cheapest derivation and the bits of that, and its price.

    parts       the canonical terms, mostly one, without their open coefficients
    derivation  from the grammar's summand nonterminals
    bits        of that derivation
    price       bits of all its derivations together: their probabilities add up
    """

    parts: tuple[Expression, ...]
    derivation: Derivation
    bits: float
    price: float

    @property
    def expression(self) -> Expression:
        """The sum of the parts."""
        return add(*self.parts)


@dataclass(frozen=True)
class TermDictionary:
    """The summands of a grammar up to some bits, cheapest first, each once."""

    terms: tuple[Term, ...]

    @cached_property
    def by_part(self) -> dict[Expression, tuple[Term, ...]]:
        """The summands that contain each canonical term, those of the lowest price first."""
        summands: dict[Expression, list[Term]] = {}
        for term in sorted(self.terms, key=lambda term: term.price):
            for part in term.parts:
                summands.setdefault(part, []).append(term)
        return {part: tuple(terms) for part, terms in summands.items()}


def term_dictionary(grammar: Grammar, allowed: ArrayLike | None = None, max_bits: float = MAX_BITS) -> TermDictionary:
    """The summands of at most `max_bits` bits by the allowed rules; the result is cached."""
    if not grammar.summand:
        raise LgfError(f"grammar {grammar.name!r} names no summand; add a line 'summand: ...' to it.")
    return _dictionary(grammar, as_mask(grammar, allowed).tobytes(), max_bits)


def parts_of(text: str | Expression) -> tuple[Expression, ...]:
    """The canonical terms of an expression, without their coefficients."""
    expression = read_expression(text) if isinstance(text, str) else text
    pool = [math.nan] * n_constants(expression)
    return parts(to_terms(expression, pool), pool)


def parts(terms: Terms, pool: Sequence[float]) -> tuple[Expression, ...]:
    """The terms as expressions without their coefficients, in canonical order."""
    return tuple(part(monomial, pool) for monomial in in_order(terms))


def part(monomial: Monomial, pool: Sequence[float]) -> Expression:
    """The monomial as an expression with constants numbered from 0."""
    return renumber(to_expression({monomial: UNIT}, list(pool)), pool)[0]


@stored
def _dictionary(grammar: Grammar, allowed: bytes, max_bits: float) -> TermDictionary:
    mask = np.frombuffer(allowed, dtype=bool)
    symbols = summand_symbols(grammar)
    cheapest: dict[frozenset[Expression], tuple[tuple[Expression, ...], Derivation, float]] = {}
    probability: dict[frozenset[Expression], float] = defaultdict(float)
    derivations = enumerate_derivations(grammar, max_bits, MAX_DERIVATIONS, mask, grammar.summand)
    for bits, derivation in derivations:
        term_parts = parts_of(spell(grammar, derivation, symbols))
        if term_parts:
            key = frozenset(term_parts)
            cheapest.setdefault(key, (term_parts, derivation, bits))
            probability[key] += 2.0**-bits
    return TermDictionary(tuple(Term(*first, -math.log2(probability[key])) for key, first in cheapest.items()))
