"""The dictionary of summands: which terms a grammar can say, each in its cheapest way.

A term is known by its canonical expression without the open coefficient in front, so that C*u*log(C*u) and however
else a grammar may write it are found under what they contribute to an equation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from lgf.errors import LgfError
from lgf.expression.canonical import to_terms
from lgf.expression.monomials import UNIT, Monomial, Terms, in_order, n_constants, renumber, to_expression
from lgf.expression.parse import read_expression
from lgf.expression.tree import Expression, add
from lgf.grammar import Derivation, Grammar, enumerate_derivations, spell
from lgf.grammar.restriction import as_mask

MAX_BITS = 24.0
MAX_DERIVATIONS = 5000  # the cheapest; about a second of canonicalising


@dataclass(frozen=True)
class Term:
    """A summand: what it adds to an equation, the cheapest derivation that says it, and what that costs.

    parts       the canonical terms it stands for, mostly one, their open coefficients left out
    derivation  from the grammar's summand nonterminals
    bits        of that derivation
    """

    parts: tuple[Expression, ...]
    derivation: Derivation
    bits: float

    @property
    def expression(self) -> Expression:
        """The sum of the parts."""
        return add(*self.parts)


@dataclass(frozen=True)
class TermDictionary:
    """The summands of a grammar up to some bits, cheapest first, each once."""

    terms: tuple[Term, ...]

    @cached_property
    def by_parts(self) -> dict[frozenset[Expression], Term]:
        """The terms by what they add to an equation."""
        return {frozenset(term.parts): term for term in self.terms}

    @cached_property
    def by_part(self) -> dict[Expression, tuple[Term, ...]]:
        """For every canonical term the summands it is a part of, cheapest first."""
        found: dict[Expression, list[Term]] = {}
        for term in self.terms:
            for part in term.parts:
                found.setdefault(part, []).append(term)
        return {part: tuple(terms) for part, terms in found.items()}

    def lookup(self, text: str | Expression) -> Term | None:
        """The summand that adds this to an equation, coefficients being open; None if there is none."""
        return self.by_parts.get(frozenset(parts_of(text)))


def term_dictionary(grammar: Grammar, allowed: ArrayLike | None = None, max_bits: float = MAX_BITS) -> TermDictionary:
    """The summands that the allowed rules can say in at most `max_bits` bits; kept for the next call."""
    if not grammar.summand:
        raise LgfError(f"grammar {grammar.name!r} names no summand; add a line 'summand: ...' to it.")
    return _dictionary(grammar, as_mask(grammar, allowed).tobytes(), max_bits)


def parts_of(text: str | Expression) -> tuple[Expression, ...]:
    """The canonical terms of an expression, their coefficients left out."""
    expression = read_expression(text) if isinstance(text, str) else text
    pool = [math.nan] * n_constants(expression)
    return parts(to_terms(expression, pool), pool)


def parts(terms: Terms, pool: Sequence[float]) -> tuple[Expression, ...]:
    """The terms as expressions without their coefficients, in canonical order."""
    return tuple(part(monomial, pool) for monomial in in_order(terms))


def part(monomial: Monomial, pool: Sequence[float]) -> Expression:
    """The monomial as an expression, its constants numbered from 0."""
    return renumber(to_expression({monomial: UNIT}, list(pool)), pool)[0]


def summand_symbols(grammar: Grammar) -> tuple[str, ...]:
    """The nonterminals of a summand with the words that stand between them."""
    for rule in grammar.rules:
        span = summand_span(grammar, rule.body)
        if span is not None:
            return rule.body[span[0] : span[1]]
    raise AssertionError(f"no rule of grammar {grammar.name!r} holds its summand {grammar.summand}")


def summand_span(grammar: Grammar, body: Sequence[str], begin: int = 0) -> tuple[int, int] | None:
    """Where in a rule's body the next summand stands, words in between included."""
    nonterminals = frozenset(grammar.nonterminals)
    places = [i for i in range(begin, len(body)) if body[i] in nonterminals]
    width = len(grammar.summand)
    for k in range(len(places) - width + 1):
        if tuple(body[i] for i in places[k : k + width]) == grammar.summand:
            return places[k], places[k + width - 1] + 1
    return None


@lru_cache(maxsize=16)
def _dictionary(grammar: Grammar, allowed: bytes, max_bits: float) -> TermDictionary:
    mask = np.frombuffer(allowed, dtype=bool)
    symbols = summand_symbols(grammar)
    found: dict[frozenset[Expression], Term] = {}
    listed = enumerate_derivations(grammar, max_bits, MAX_DERIVATIONS, mask, grammar.summand)
    for bits, derivation in listed:
        adds = parts_of(spell(grammar, derivation, symbols))
        if adds:
            found.setdefault(frozenset(adds), Term(adds, derivation, bits))
    return TermDictionary(tuple(found.values()))
