"""The cheapest derivation of a grammar with the structure of a given equation.

The search matches the terms of the equation. Terms that belong to a header of the grammar (a linear slot, the forcing,
a common denominator) are matched against the headers, the others against the dictionary of summands.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.structure import structural
from lgf.equation.system import System
from lgf.expression.canonical import canonical, to_terms
from lgf.expression.monomials import UNIT, n_constants, renumber, to_expression
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.tree import MINUS_ONE, ONE, ZERO, Expression, constant, mul, number, polynomial, power, symbol
from lgf.grammar import Derivation, Grammar, bits, restrict, spell
from lgf.language.headers import BLOCK, cheapest_headers, fraction
from lgf.language.sentences import INPUT, NoEquation, in_grammar_words, skeleton_of
from lgf.language.stored import stored
from lgf.language.term_dictionary import Term, TermDictionary, parts_of, term_dictionary

_MARK = symbol("x0")  # the place of a summand in the expression of a header
Parts = tuple[Expression, ...]  # sorted; a term with constants inside, such as a sine of time, may occur twice


@dataclass(frozen=True)
class Encoding:
    """The derivation of an equation and its bits; or None, infinity and the terms that the grammar lacks."""

    derivation: Derivation | None
    bits: float
    unsaid: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Header:
    """The rules of a sentence (own + summands) / divisor, with BLOCK in place of each of the `count` summands."""

    rules: Derivation
    bits: float
    count: int
    own: Parts


def encode(grammar: Grammar, equation: System | Skeleton, forced: bool | None = None) -> Derivation | None:
    """The cheapest derivation of the equation, None if there is none; see `encoding`."""
    return encoding(grammar, equation, forced).derivation


def encoding(grammar: Grammar, equation: System | Skeleton, forced: bool | None = None) -> Encoding:
    """The encoding of the equation in the grammar restricted to its order and this forcing (None: its own).

    The derivation has the structure of the equation, or of its branch u^(n) = C*R if it reads u^(n)^k = C*R^k.
    """
    named = equation.skeleton if isinstance(equation, System) else equation
    skeleton = in_grammar_words(named)
    if skeleton is None:
        return Encoding(None, math.inf)
    order = skeleton.frame.orders[0]
    allowed = _rules_for(grammar, order, skeleton.forced if forced is None else forced)
    result = _search(grammar, skeleton, allowed)
    if result.derivation is not None:
        return result
    branch = branch_form(skeleton)
    return result if branch is skeleton else _search(grammar, branch, allowed)


@lru_cache(maxsize=16)
def _rules_for(grammar: Grammar, order: int, forced: bool) -> np.ndarray:
    return restrict(grammar, order=order, forced=forced)


def _search(grammar: Grammar, skeleton: Skeleton, allowed: np.ndarray) -> Encoding:
    dictionary = term_dictionary(grammar, allowed)
    pivot = {"explicit": skeleton.highest, "given forcing": INPUT}.get(grammar.template)
    structure = structural(skeleton.left, skeleton.right)
    targets = [
        (terms, headers)
        for divisor, headers in _headers(grammar, allowed.tobytes()).items()
        for terms in _target_terms(skeleton, structure, pivot, divisor)
    ]
    candidates = [match for terms, headers in targets for match in _matches(terms, headers, dictionary)]
    for _, derivation in sorted(candidates):
        try:
            candidate = skeleton_of(grammar.template, spell(grammar, derivation), skeleton.frame)
        except NoEquation:
            continue
        if candidate.structure == skeleton.structure:
            return Encoding(derivation, bits(grammar, derivation, allowed))
    missing = [_missing_terms(terms, headers, dictionary) for terms, headers in targets]
    return Encoding(None, math.inf, min(missing, key=len, default=()))


def branch_form(skeleton: Skeleton) -> Skeleton:
    """The skeleton u^(n) = C*R if this one reads u^(n)^k = C*R^k with k > 1, else unchanged.

    A trajectory follows one branch, so u''^2 = 81 u^2 is equivalent to u'' = C*u.
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


def _target_terms(
    skeleton: Skeleton, structure: Expression, pivot: Expression | None, divisor: Expression
) -> Iterator[Parts]:
    """The terms R of the equation, for each way of writing it as divisor*pivot = R (without a pivot: as 0 = R)."""
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
    # Constants inside a scale would not cancel, so the scale 1 is tried first.
    for scale in (ONE, *(leading[0] / e for e in lead)) if leading else ():
        if {p for e in lead for p in parts_of(e * scale)} == shape:
            yield _sorted(*(e / scale for e in others))
    factors = leading[0].args if len(leading) == 1 and leading[0].head == "*" else ()
    for i, factor in enumerate(factors):
        if _renumbered(factor) == divisor and pivot is not None:
            scale = mul(*factors[:i], *factors[i + 1 :]) / pivot
            yield _sorted(*(e / scale for e in others))
    if pivot is not None and divisor == ONE:
        # `structure` clears two terms of a denominator with open constants; this restores it.
        coefficients = polynomial(structure, pivot)
        if coefficients is not None and len(coefficients) == 2:
            yield _sorted(coefficients[0] / coefficients[1])


def _matches(
    target: Parts, headers: Sequence[_Header], dictionary: TermDictionary
) -> Iterator[tuple[float, Derivation]]:
    """(bits, derivation) for every header whose terms occur, with the cheapest summands for the remaining terms."""
    covers: dict[tuple[Parts, int], tuple[float, tuple[Term, ...]] | None] = {}
    target_set = frozenset(target)
    for header in headers:
        if header.count > len(target) or not target_set.issuperset(header.own):
            continue
        rest = _rest(target, header.own)
        if (rest, header.count) not in covers:
            covers[rest, header.count] = _cover(rest, header.count, target_set, dictionary)
        cover = covers[rest, header.count]
        if cover is not None:
            summands = iter(cover[1])
            parts = (next(summands).derivation if rule == BLOCK else (rule,) for rule in header.rules)
            yield header.bits + cover[0], tuple(rule for run in parts for rule in run)


def _cover(
    rest: Parts, count: int, target: frozenset[Expression], dictionary: TermDictionary
) -> tuple[float, tuple[Term, ...]] | None:
    """The bits and terms of the cheapest `count` summands that add up to the rest and hold only target terms."""
    if not rest or count == 0:
        return (0.0, ()) if not rest and count == 0 else None
    best = None
    for term in dictionary.by_part.get(rest[0], ()):
        if best is not None and term.bits >= best[0]:
            break
        if target.issuperset(term.parts):
            others = _cover(_rest(rest, term.parts), count - 1, target, dictionary)
            if others is not None and (best is None or term.bits + others[0] < best[0]):
                best = term.bits + others[0], (term, *others[1])
    return best


def _missing_terms(target: Parts, headers: Sequence[_Header], dictionary: TermDictionary) -> tuple[str, ...]:
    """The terms that occur in no header and no summand."""
    known = dictionary.by_part.keys() | {p for header in headers for p in header.own}
    return tuple(plain(term, ["C"] * n_constants(term)) for term in dict.fromkeys(target) if term not in known)


def _sorted(*expressions: Expression) -> Parts:
    return tuple(sorted(p for expression in expressions for p in parts_of(expression)))


def _rest(whole: Parts, taken: Parts) -> Parts:
    """The terms that remain after each of `taken` is removed once."""
    rest = list(whole)
    for term in taken:
        if term in rest:
            rest.remove(term)
    return tuple(rest)


Headers = dict[Expression, tuple[_Header, ...]]


@stored
def _headers(grammar: Grammar, allowed: bytes) -> Headers:
    """The cheapest headers by divisor, one for each set of own terms and number of summands."""
    by_divisor: dict[Expression, dict[tuple[Parts, int], _Header]] = {}
    for cost, rules, text in cheapest_headers(grammar, np.frombuffer(allowed, dtype=bool), _MARK.args[0]):
        addends, factor = fraction(read_expression(text), _MARK)
        count = rules.count(BLOCK)
        if addends.count(_MARK) == count:
            own = tuple(sorted({p for addend in addends if addend != _MARK for p in _parts(_renumbered(addend))}))
            headers = by_divisor.setdefault(reciprocal(_renumbered(factor)), {})
            headers.setdefault((own, count), _Header(rules, cost, count, own))
    return {divisor: tuple(headers.values()) for divisor, headers in by_divisor.items()}


def _renumbered(expression: Expression) -> Expression:
    return renumber(expression, [math.nan] * n_constants(expression))[0]


@lru_cache(maxsize=4096)
def _parts(expression: Expression) -> tuple[Expression, ...]:
    return parts_of(expression)


@lru_cache(maxsize=4096)
def reciprocal(expression: Expression) -> Expression:
    """The canonical form of 1 / expression."""
    return canonical(power(expression, MINUS_ONE))[0]


def cheapest(
    grammar: Grammar, allowed: np.ndarray, parts: Sequence[Expression], divisor: Expression = ONE
) -> tuple[float, Derivation] | None:
    """(bits, derivation) of the cheapest sentence for the sum of these canonical terms over a divisor, or None."""
    headers = _headers(grammar, allowed.tobytes()).get(divisor, ())
    return min(_matches(tuple(sorted(parts)), headers, term_dictionary(grammar, allowed)), default=None)


def header_parts(grammar: Grammar, allowed: np.ndarray) -> dict[Expression, tuple[float, frozenset[Expression]]]:
    """(bits of the cheapest header, terms of all headers) by divisor."""
    return {
        divisor: (min(h.bits for h in headers), frozenset(p for h in headers for p in h.own))
        for divisor, headers in _headers(grammar, allowed.tobytes()).items()
    }
