"""What a grammar for systems can say in one row of a frame: its terms, headers and divisors, with their bits.

Unlike for one state, bits are those of all derivations together: u*v is said by `variable*variable` in two ways, whose
probabilities add up.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from lgf.errors import LgfError, quoted
from lgf.expression.canonical import canonical, to_terms
from lgf.expression.frame import Frame
from lgf.expression.monomials import UNIT, Monomial, in_order, n_constants, renumber
from lgf.expression.parse import read_expression
from lgf.expression.tree import MINUS_ONE, Expression, power, signal
from lgf.grammar import Grammar, enumerate_derivations, instantiate, spell
from lgf.grammar.blocks import BLOCK, summand_symbols
from lgf.language.headers import cheapest_headers, fraction
from lgf.language.term_dictionary import part, parts_of

MAX_BITS = 24.0
MAX_DERIVATIONS = 10_000  # the cheapest


@dataclass(frozen=True)
class Header:
    """A sum of `own` terms and `count` summands over a divisor, with its probability."""

    divisor: Expression
    own: tuple[Expression, ...]
    count: int
    probability: float


@dataclass(frozen=True, eq=False)
class RowDictionary:
    """The probabilities of the summands (canonical terms without their coefficient), and the headers.

    The terms stand in the order of printed equations.
    """

    terms: dict[Expression, float]
    headers: tuple[Header, ...]


@lru_cache(maxsize=64)
def row_dictionary(grammar: Grammar, frame: Frame, row: int) -> RowDictionary:
    """What the grammar can say in this row; the result is cached."""
    if not grammar.summand:
        raise LgfError(f"grammar {quoted(grammar.name)} names no summand; add a line 'summand: ...' to it.")
    rules = instantiate(grammar, frame, row)
    terms: dict[Expression, float] = defaultdict(float)
    monomials: dict[Monomial, Expression] = {}
    symbols = summand_symbols(rules)
    for bits, derivation in enumerate_derivations(rules, MAX_BITS, MAX_DERIVATIONS, start=rules.summand):
        text = spell(rules, derivation, symbols)
        parts = _parts(text, frame)
        if len(parts) > 1:
            raise LgfError(
                f"the summand {text} of grammar {quoted(grammar.name)} is a sum of {len(parts)} terms; make each of "
                "them a summand."
            )
        for monomial, term in parts:
            terms[term] += 2.0**-bits
            monomials[monomial] = term
    ordered = dict.fromkeys(monomials[m] for m in in_order(dict.fromkeys(monomials, UNIT)))
    return RowDictionary({term: terms[term] for term in ordered}, _headers(rules, frame))


@lru_cache(maxsize=50_000)  # the rows of a frame have most texts in common
def _parts(text: str, frame: Frame) -> tuple[tuple[Monomial, Expression], ...]:
    """The terms of a summand, as monomials and as expressions without their coefficients."""
    expression = read_expression(text, frame)
    pool = [math.nan] * n_constants(expression)
    return tuple((monomial, part(monomial, pool)) for monomial in to_terms(expression, pool))


def _headers(rules: Grammar, frame: Frame) -> tuple[Header, ...]:
    mark = "_"
    while mark in (*frame.names, *frame.inputs):
        mark += "_"
    marked = frame.with_inputs((*frame.inputs, mark))
    probabilities: dict[tuple[Expression, tuple[Expression, ...], int], float] = defaultdict(float)
    for bits, derivation, text in cheapest_headers(rules, None, mark):
        addends, factor = fraction(read_expression(text, marked), signal(mark))
        count = derivation.count(BLOCK)
        if addends.count(signal(mark)) == count:
            own = tuple(sorted(p for addend in addends if addend != signal(mark) for p in parts_of(addend)))
            renumbered, _ = renumber(factor, [math.nan] * n_constants(factor))
            divisor, _ = canonical(power(renumbered, MINUS_ONE))
            probabilities[divisor, own, count] += 2.0**-bits
    return tuple(Header(*key, probability) for key, probability in probabilities.items())
