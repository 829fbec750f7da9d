"""How a grammar says an equation: the cheapest derivation with the same structure.

The terms of the equation are matched, never guessed: those that a header of the grammar brings along (a linear slot,
the forcing, a common denominator) against the headers, the rest against the dictionary of summands.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.system import System
from lgf.expression.canonical import canonical, to_terms
from lgf.expression.monomials import UNIT, n_constants, renumber, to_expression
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.tree import MINUS_ONE, ONE, ZERO, Expression, constant, mul, number, polynomial, power, symbol
from lgf.grammar import Derivation, Grammar, bits, restrict, spell
from lgf.grammar.tables import tables
from lgf.grammar.vocabulary import write
from lgf.language.sentences import INPUT, NoEquation, in_grammar_words, skeleton_of
from lgf.language.term_dictionary import Term, TermDictionary, parts_of, summand_span, term_dictionary

MAX_HEADERS = 4000
BLOCK = -1  # stands for a whole summand among the rules of a header
_MARK = symbol("x0")  # stands for a summand in the expression of a header
Parts = tuple[Expression, ...]  # sorted; a term with constants inside, a sine of time, may occur twice


@dataclass(frozen=True)
class Encoding:
    """How an equation is said: a derivation and its bits; or None, infinity and the terms that cannot be said."""

    derivation: Derivation | None
    bits: float
    unsaid: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Header:
    """Rules of a sentence (own + summands) / divisor, BLOCK in place of its `count` summands."""

    rules: Derivation
    bits: float
    count: int
    own: Parts


def encode(grammar: Grammar, equation: System | Skeleton, forced: bool | None = None) -> Derivation | None:
    """The cheapest derivation that says the equation, None if there is none; see `encoding`."""
    return encoding(grammar, equation, forced).derivation


def bits_of(grammar: Grammar, equation: System | Skeleton, forced: bool | None = None) -> float:
    """The bits of the cheapest derivation that says the equation; infinity if there is none."""
    return encoding(grammar, equation, forced).bits


def encoding(grammar: Grammar, equation: System | Skeleton, forced: bool | None = None) -> Encoding:
    """How the grammar, restricted to the equation's order and to this forcing (its own if None), says the equation.

    What is said has the equation's structure, or that of its branch u^(n) = C*R if it reads u^(n)^k = C*R^k.
    """
    named = equation.skeleton if isinstance(equation, System) else equation
    skeleton = in_grammar_words(named)
    if skeleton is None:
        return Encoding(None, math.inf)
    order = skeleton.frame.orders[0]
    allowed = restrict(grammar, order=order, forced=skeleton.forced if forced is None else forced)
    said = _search(grammar, skeleton, allowed)
    if said.derivation is not None:
        return said
    branch = branch_form(skeleton)
    return said if branch is skeleton else _search(grammar, branch, allowed)


def _search(grammar: Grammar, skeleton: Skeleton, allowed: np.ndarray) -> Encoding:
    dictionary = term_dictionary(grammar, allowed)
    pivot = {"explicit": skeleton.highest, "given forcing": INPUT}.get(grammar.template)
    candidates: list[tuple[float, Derivation]] = []
    unsaid: list[tuple[str, ...]] = []
    for divisor, headers in _headers(grammar, allowed.tobytes()).items():
        for wanted in _wanted(skeleton, pivot, divisor):
            candidates.extend(_matches(wanted, headers, dictionary))
            unsaid.append(_unsaid(wanted, headers, dictionary))
    for _, derivation in sorted(candidates):
        try:
            said = skeleton_of(grammar.template, spell(grammar, derivation), skeleton.frame)
        except NoEquation:
            continue
        if said.structure == skeleton.structure:
            return Encoding(derivation, bits(grammar, derivation, allowed))
    return Encoding(None, math.inf, min(unsaid, key=len, default=()))


def branch_form(skeleton: Skeleton) -> Skeleton:
    """The skeleton u^(n) = C*R if the given one reads u^(n)^k = C*R^k with k > 1, else unchanged.

    A trajectory follows one branch, so u''^2 = 81 u^2 is u'' = C*u to it.
    """
    coefficients = skeleton.polynomial
    if coefficients is None or len(coefficients) < 3 or any(c != ZERO for c in coefficients[1:-1]):
        return skeleton
    degree = len(coefficients) - 1
    quotient = coefficients[0] / coefficients[-1]
    terms = list(to_terms(quotient, [math.nan] * n_constants(quotient)))
    if len(terms) != 1 or any(e.head != "number" or e.args[0] % degree for _, e in terms[0]):
        return skeleton
    root = mul(*(power(base, number(e.args[0] / degree)) for base, e in terms[0]))
    return numbered(skeleton.frame, ((skeleton.highest, mul(constant(n_constants(root)), root)),))


def _wanted(skeleton: Skeleton, pivot: Expression | None, divisor: Expression) -> Iterator[Parts]:
    """The terms R of the equation, for each way of writing it as divisor*pivot = R (without a pivot: as 0 = R)."""
    structure = read_expression(skeleton.structure)
    pool = [math.nan] * n_constants(structure)
    terms = [to_expression({m: UNIT}, pool) for m in to_terms(structure, pool)]
    if pivot is None:
        leading, lead, others = terms[:1], [skeleton.highest], terms
        yield _sorted(structure)
    else:
        leading = [e for e in terms if pivot in e.nodes()]
        lead = [to_expression({m: UNIT}, pool) for m in to_terms(mul(divisor, pivot), [math.nan] * 9)]
        others = [e for e in terms if e not in leading]
    shape = {p for e in leading for p in parts_of(e)}
    # Constants inside the scale would not cancel, hence first without one.
    for scale in (ONE, *(leading[0] / one for one in lead)) if leading else ():
        if {p for e in lead for p in parts_of(e * scale)} == shape:
            yield _sorted(*(e / scale for e in others))
    factors = leading[0].args if len(leading) == 1 and leading[0].head == "*" else ()
    for i, factor in enumerate(factors):
        if _renumbered(factor) == divisor and pivot is not None:
            scale = mul(*factors[:i], *factors[i + 1 :]) / pivot
            yield _sorted(*(e / scale for e in others))
    if pivot is not None and divisor == ONE:
        # Two terms with open constants in a denominator are cleared of it by `structure`; this takes them back.
        coefficients = polynomial(structure, pivot)
        if coefficients is not None and len(coefficients) == 2:
            yield _sorted(coefficients[0] / coefficients[1])


def _matches(
    wanted: Parts, headers: Sequence[_Header], dictionary: TermDictionary
) -> Iterator[tuple[float, Derivation]]:
    """For every header whose own terms are wanted, the cheapest summands that make up the rest."""
    covers: dict[tuple[Parts, int], tuple[float, tuple[Term, ...]] | None] = {}
    distinct = frozenset(wanted)
    for header in headers:
        if header.count > len(wanted) or not distinct.issuperset(header.own):
            continue
        rest = _rest(wanted, header.own)
        if (rest, header.count) not in covers:
            covers[rest, header.count] = _cover(rest, header.count, distinct, dictionary)
        cover = covers[rest, header.count]
        if cover is not None:
            summands = iter(cover[1])
            walked = (next(summands).derivation if rule == BLOCK else (rule,) for rule in header.rules)
            yield header.bits + cover[0], tuple(rule for run in walked for rule in run)


def _cover(
    rest: Parts, count: int, wanted: frozenset[Expression], dictionary: TermDictionary
) -> tuple[float, tuple[Term, ...]] | None:
    """The cheapest `count` summands that together add the rest, and nothing that is not wanted."""
    if not rest or count == 0:
        return (0.0, ()) if not rest and count == 0 else None
    best = None
    for term in dictionary.by_part.get(rest[0], ()):
        if best is not None and term.bits >= best[0]:
            break
        if wanted.issuperset(term.parts):
            others = _cover(_rest(rest, term.parts), count - 1, wanted, dictionary)
            if others is not None and (best is None or term.bits + others[0] < best[0]):
                best = term.bits + others[0], (term, *others[1])
    return best


def _unsaid(wanted: Parts, headers: Sequence[_Header], dictionary: TermDictionary) -> tuple[str, ...]:
    """The terms that neither a header nor a summand can say."""
    known = dictionary.by_part.keys() | {p for header in headers for p in header.own}
    return tuple(plain(term, ["C"] * n_constants(term)) for term in dict.fromkeys(wanted) if term not in known)


def _sorted(*expressions: Expression) -> Parts:
    return tuple(sorted(p for expression in expressions for p in parts_of(expression)))


def _rest(whole: Parts, taken: Parts) -> Parts:
    """The terms left when each of `taken` has been taken away once."""
    left = list(whole)
    for one in taken:
        if one in left:
            left.remove(one)
    return tuple(left)


@lru_cache(maxsize=16)
def _headers(grammar: Grammar, allowed: bytes) -> dict[Expression, tuple[_Header, ...]]:
    """The cheapest headers by what they divide by, each meaning once."""
    found: dict[Expression, dict[tuple[Parts, int], _Header]] = {}
    for cost, rules, text in _walk(grammar, np.frombuffer(allowed, dtype=bool)):
        addends, factor = _fraction(read_expression(text))
        count = rules.count(BLOCK)
        if addends.count(_MARK) == count:
            own = tuple(sorted({p for addend in addends if addend != _MARK for p in _parts(_renumbered(addend))}))
            headers = found.setdefault(_reciprocal(_renumbered(factor)), {})
            headers.setdefault((own, count), _Header(rules, cost, count, own))
    return {divisor: tuple(headers.values()) for divisor, headers in found.items()}


def _walk(grammar: Grammar, allowed: np.ndarray) -> Iterator[tuple[float, Derivation, str]]:
    """(bits, rules, text) of the cheapest headers, the summands as BLOCK in the rules and as a mark in the text."""
    probability = tables(grammar, allowed, weighted=True).probability
    by_lhs: dict[str, list[tuple[float, int]]] = {name: [] for name in grammar.nonterminals}
    for r in np.flatnonzero(probability).tolist():
        by_lhs[grammar.rules[r].lhs].append((-math.log2(probability[r]), r))
    bodies = [_marked(grammar, rule.body) for rule in grammar.rules]
    heap: list[tuple[float, Derivation, tuple[str, ...], tuple[str, ...]]] = [(0.0, (), (), (grammar.start,))]
    given = 0
    while heap and given < MAX_HEADERS:
        cost, rules, words, open_symbols = heapq.heappop(heap)
        while open_symbols and open_symbols[0] not in by_lhs:
            word, *rest = open_symbols
            rules, words, open_symbols = ((*rules, BLOCK) if word == "x0" else rules), (*words, word), tuple(rest)
        if not open_symbols:
            given += 1
            yield cost, rules, write(list(words))
        elif len(rules) < grammar.max_length:
            for own, r in by_lhs[open_symbols[0]]:
                heapq.heappush(heap, (cost + own, (*rules, r), words, bodies[r] + open_symbols[1:]))


def _marked(grammar: Grammar, body: tuple[str, ...]) -> tuple[str, ...]:
    """The body of a rule with its summands as marks."""
    symbols = list(body)
    begin = 0
    while (span := summand_span(grammar, symbols, begin)) is not None:
        begin = span[0] + 1
        symbols[span[0] : span[1]] = ["x0"]
    return tuple(symbols)


def _fraction(expression: Expression) -> tuple[tuple[Expression, ...], Expression]:
    """(addends, factor) with expression = factor * sum of the addends."""
    factors = expression.args if expression.head == "*" else (expression,)
    sums = [f for f in factors if f.head == "+" or f == _MARK]
    if len(sums) != 1:
        return (expression,), ONE
    factor = mul(*(f for f in factors if f is not sums[0]))
    return sums[0].args if sums[0].head == "+" else (sums[0],), factor


def _renumbered(expression: Expression) -> Expression:
    return renumber(expression, [math.nan] * n_constants(expression))[0]


@lru_cache(maxsize=4096)
def _parts(expression: Expression) -> tuple[Expression, ...]:
    return parts_of(expression)


@lru_cache(maxsize=4096)
def _reciprocal(expression: Expression) -> Expression:
    return canonical(power(expression, MINUS_ONE))[0]


def cheapest(
    grammar: Grammar, allowed: np.ndarray, parts: Sequence[Expression], divisor: Expression = ONE
) -> tuple[float, Derivation] | None:
    """The cheapest way (bits, derivation) to say the sum of these canonical terms over a divisor, or None."""
    headers = _headers(grammar, allowed.tobytes()).get(divisor, ())
    return min(_matches(tuple(sorted(parts)), headers, term_dictionary(grammar, allowed)), default=None)


def header_parts(grammar: Grammar, allowed: np.ndarray) -> dict[Expression, tuple[float, frozenset[Expression]]]:
    """The terms that headers bring along by divisor: (bits of the cheapest header, its terms)."""
    return {
        divisor: (min(h.bits for h in headers), frozenset(p for h in headers for p in h.own))
        for divisor, headers in _headers(grammar, allowed.tobytes()).items()
    }
