"""A grammar for systems, restricted to a frame, to the data and to prior knowledge: terms, bits, skeletons.

    language = make_system_language(grammar, problem, frame, target.ranges)
    language.terms(row)                    the terms that may stand in a row, cheapest first: (expression, bits)
    language.divisors(row)                 its common denominators: (expression, additional bits)
    language.bits(row, terms, divisor)     the bits of these terms as the right-hand side of the row, or infinity
    language.structures(row)               the cheapest right-hand sides of the row: RowStructure(terms, divisor, bits)
    language.skeleton(structures)          the skeleton with one structure for each row
    language.row_bits(skeleton)            the bits of each row of any skeleton, infinity where it cannot be said

A term is a canonical expression in the symbols of the frame, without its coefficient, its inner constants open and
numbered from 0. The right-hand side of a row is (C*term + C*term + ...)/divisor. In the skeleton the constants of a row
follow the terms: the coefficient of each, then the constants inside it; those of the divisor come last.

The bits of a row are those of its number of terms and divisor, and of each term, less log2 k! because the order of k
terms is free. A term that the data or knowledge exclude gives its share to the others.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from lgf.data.problem import Problem
from lgf.data.row_knowledge import RowKnowledge, allowed, fixed, required, row_knowledge
from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.structure import shifted
from lgf.expression.canonical import to_terms
from lgf.expression.frame import Frame
from lgf.expression.monomials import Monomial, n_constants, renumber, to_expression
from lgf.expression.tree import MINUS_ONE, ONE, Expression, mul, power
from lgf.grammar import Grammar
from lgf.language.domain import Ranges, defined_on
from lgf.language.row_dictionary import MAX_BITS, Header, row_dictionary
from lgf.language.row_language import Row, RowTerm
from lgf.language.row_structure import RowStructure, right_side
from lgf.language.term_dictionary import parts, parts_of


@dataclass(frozen=True, eq=False)
class SystemLanguage:
    """What a grammar can say about the rows of a frame; see the module."""

    grammar: Grammar
    frame: Frame
    rows: tuple[Row, ...] = field(repr=False)

    def terms(self, row: int) -> tuple[RowTerm, ...]:
        """The terms that may stand in the row, cheapest first."""
        return self.rows[row].terms

    def divisors(self, row: int) -> tuple[RowTerm, ...]:
        """The common denominators of the row, cheapest first, with the bits that they add."""
        headers = self.rows[row].headers
        total = {divisor: sum(h.probability for h in group) for divisor, group in headers.items()}
        plain = total.pop(ONE, 1.0)
        return tuple(RowTerm(d, math.log2(plain / p)) for d, p in sorted(total.items(), key=lambda item: -item[1]))

    def bits(self, row: int, terms: Iterable[Expression], divisor: Expression = ONE) -> float:
        """The bits of these terms over the divisor as the right-hand side of the row; infinity if it cannot be so.

        A row that is known has no bits; `impose` of `lgf.data.row_knowledge` puts it into every skeleton.
        """
        rules = self.rows[row]
        chosen = tuple(terms)
        if rules.known is not None:
            return 0.0
        if any(term not in chosen for term in rules.required):
            return math.inf
        best = math.inf
        for bits, header in rules.by_length.get((divisor, len(chosen)), ()):
            rest = _without(chosen, header.own)
            if rest is not None:
                best = min(best, _bits(bits, rest, rules.cost))
        return best

    def count_cost(self, row: int, most: int, divisor: Expression = ONE) -> np.ndarray:
        """The description length of the number of terms over this divisor, from 0 (no cost) to `most`."""
        cost = np.full(most + 1, np.inf)
        cost[0] = 0.0
        for header in self.rows[row].headers.get(divisor, ()):
            if not header.own and 1 <= header.count <= most:
                bits = -math.log2(header.probability) - math.log2(math.factorial(header.count))
                cost[header.count] = min(cost[header.count], 2 * math.log(2) * bits)
        return cost

    def structures(self, row: int) -> Iterator[RowStructure]:
        """The right-hand sides of the row in order of their bits, each once, in different terms."""
        rules, place = self.rows[row], 0
        while True:
            while place < len(rules.made):
                yield rules.made[place]
                place += 1
            structure = next(rules.following, None)
            if structure is None:
                return
            rules.made.append(structure)

    def skeleton(self, rows: Sequence[RowStructure]) -> Skeleton:
        """The skeleton with these right-hand sides, constants numbered through all rows; see the module."""
        sides, start, consecutive = [], 0, True
        for variable, row in zip(self.frame.highest, rows, strict=True):
            right, end, in_order = _placed(row.terms, row.divisor, row.known, start)
            sides.append((variable.symbol, right))
            start, consecutive = max(start, end), consecutive and in_order
        return Skeleton(self.frame, tuple(sides)) if consecutive else numbered(self.frame, sides)

    def price(self, skeleton: Skeleton) -> float:
        """The bits of all rows of a skeleton of this frame; infinity where one cannot be said."""
        return sum(self.row_bits(skeleton))

    def row_bits(self, skeleton: Skeleton) -> tuple[float, ...]:
        """The bits of each row of a skeleton of this frame, infinity where the row cannot be said."""
        return tuple(s.bits for s in self.row_structures(skeleton))

    def row_structures(self, skeleton: Skeleton) -> tuple[RowStructure, ...]:
        """The cheapest structure of each row of a skeleton of this frame; of infinite bits where it cannot be said."""
        if skeleton.frame != self.frame or skeleton.right_sides is None:
            return (RowStructure((), ONE, math.inf),) * len(self.frame.states)
        return tuple(self.row_structure(i, right) for i, right in enumerate(skeleton.right_sides))

    def row_structure(self, row: int, right: Expression) -> RowStructure:
        """The cheapest structure of this right-hand side in the row; of infinite bits if it cannot be said."""
        known = self.rows[row].known
        if known is not None:
            return RowStructure((), ONE, 0.0, known)
        pool = [math.nan] * n_constants(right)
        terms = to_terms(right, pool)
        readings = [RowStructure(parts(terms, pool))]
        for divisor in self.rows[row].headers:
            if divisor != ONE and n_constants(divisor) == 0:
                readings.append(RowStructure(parts_of(mul(right, divisor)), divisor))
        if len(terms) == 1:
            readings += _quotients(next(iter(terms)), pool)
        priced = [s._replace(bits=self.bits(row, s.terms, s.divisor)) for s in readings]
        return min(priced, key=lambda s: s.bits)


def make_system_language(
    grammar: Grammar, problem: Problem, frame: Frame, ranges: Ranges = MappingProxyType({})
) -> SystemLanguage:
    """The language for systems of this frame, restricted by what is known; a missing range restricts nothing."""
    return _restricted(grammar, frame, ranges, row_knowledge(problem.knowledge, frame))


def unrestricted(grammar: Grammar, frame: Frame) -> SystemLanguage:
    """All that the grammar can say about the frame."""
    return _restricted(grammar, frame, {}, RowKnowledge(frame))


def _restricted(grammar: Grammar, frame: Frame, ranges: Ranges, known: RowKnowledge) -> SystemLanguage:
    anywhere = replace(known, populations=frozenset())  # a divisor need not have the state as a factor
    rows = []
    same: dict[Expression, Expression] = {}  # one object for the equal terms of all rows, which are compared often
    for i in range(len(frame.states)):
        dictionary = row_dictionary(grammar, frame, i)
        admitted = [e for e in dictionary.terms if allowed(known, i, e) and defined_on(e, ranges)]
        terms = {same.setdefault(e, e): dictionary.terms[e] for e in admitted}
        rest = 1.0 - sum(p for e, p in dictionary.terms.items() if e not in terms)
        for e in required(known, i):
            terms.setdefault(e, rest * 2.0**-MAX_BITS)  # a term that must stand need not be one of the grammar
        priced = [RowTerm(e, math.log2(rest / p)) for e, p in terms.items()]
        headers: dict[Expression, list[Header]] = {}
        for header in dictionary.headers:
            inside = (power(header.divisor, MINUS_ONE), *header.own)
            if all(allowed(anywhere, i, e) and defined_on(e, ranges) for e in inside):
                headers.setdefault(header.divisor, []).append(header)
        rows.append(
            Row(
                tuple(sorted(priced, key=lambda term: (term.bits, term.expression))),
                {divisor: tuple(group) for divisor, group in headers.items()},
                {e: rank for rank, e in enumerate(terms)},
                required(known, i),
                fixed(known, i),
            )
        )
    return SystemLanguage(grammar, frame, tuple(rows))


@lru_cache(maxsize=8192)  # a search combines the same rows again and again
def _placed(
    terms: tuple[Expression, ...], divisor: Expression, known: Expression | None, start: int
) -> tuple[Expression, int, bool]:
    """(right-hand side with constants from `start`, the first one after them, whether they stand in that order)."""
    right = shifted(right_side(RowStructure(terms, divisor, known=known)), start)
    places = [n.args[0] for n in right.nodes() if n.head == "constant"]
    end = max(places, default=start - 1) + 1
    return right, end, places == list(range(start, end))


def _without(terms: tuple[Expression, ...], own: tuple[Expression, ...]) -> tuple[Expression, ...] | None:
    """The terms without those that a header has of its own; None if it has others."""
    rest = list(terms)
    for term in own:
        if term not in rest:
            return None
        rest.remove(term)
    return tuple(rest)


def _bits(header: float, summands: tuple[Expression, ...], cost: Mapping[Expression, float]) -> float:
    """The bits of the header and of the summands in any order."""
    total = header
    for term in summands:
        total += cost.get(term, math.inf)
    if len(set(summands)) < len(summands):
        total += sum(math.log2(math.factorial(times)) for times in Counter(summands).values())
    return total


def _quotients(monomial: Monomial, pool: list[float]) -> Iterator[RowStructure]:
    """The readings of a single product as a sum of terms over each of its denominators."""
    for i, (base, exponent) in enumerate(monomial):
        if exponent == MINUS_ONE:
            divisor, _ = renumber(base, pool)
            rest = to_expression({monomial[:i] + monomial[i + 1 :]: (True, math.nan)}, list(pool))
            yield RowStructure(parts_of(renumber(rest, [math.nan] * (len(pool) + 1))[0]), divisor)
