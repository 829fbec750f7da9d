"""The cheapest derivation of a grammar with the structure of a given equation, and the bits of the structure.

The search matches the terms of the equation. Terms that belong to a header of the grammar (a linear slot, the forcing,
a common denominator) are matched against the headers, the others against the dictionary of summands.

Bits are those of the structure, as for the rows of systems: a header and each summand have the probability of all their
derivations, and the order of k summands is free, which saves log2 k! bits.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations

import numpy as np

from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.structure import structural
from lgf.equation.system import System
from lgf.expression.canonical import canonical, to_terms
from lgf.expression.monomials import UNIT, n_constants, renumber, to_expression
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.tree import MINUS_ONE, ONE, ZERO, Expression, constant, mul, number, polynomial, power, symbol
from lgf.grammar import Derivation, Grammar, restrict, spell
from lgf.grammar.blocks import BLOCK
from lgf.language.headers import cheapest_headers, fraction
from lgf.language.sentences import INPUT, NoEquation, in_grammar_words, skeleton_of
from lgf.language.stored import stored
from lgf.language.term_dictionary import Term, TermDictionary, parts_of, term_dictionary

_MARK = symbol("x0")  # the place of a summand in the expression of a header
Parts = tuple[Expression, ...]  # sorted; a term with constants inside, such as a sine of time, may occur twice


@dataclass(frozen=True)
class Encoding:
    """The derivation of an equation and the bits of its structure; or None, infinity and the terms that lack."""

    derivation: Derivation | None
    bits: float
    unsaid: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Header:
    """A sentence (own + summands) / divisor with `count` summands: its cheapest rules, with BLOCK for each summand.

    The bits are those of all its derivations together.
    """

    rules: Derivation
    bits: float
    count: int
    own: Parts


Headers = dict[Parts, tuple[_Header, ...]]  # of one divisor, by their own terms


def encode(grammar: Grammar, equation: System | Skeleton, forced: bool | None = None) -> Derivation | None:
    """The cheapest derivation of the equation, None if there is none; see `encoding`."""
    return encoding(grammar, equation, forced).derivation


def encoding(
    grammar: Grammar, equation: System | Skeleton, forced: bool | None = None, allowed: np.ndarray | None = None
) -> Encoding:
    """The encoding of the equation by the allowed rules; None: those of its order and this forcing (None: its own).

    The derivation has the structure of the equation, or of its branch u^(n) = C*R if it reads u^(n)^k = C*R^k.
    """
    named = equation.skeleton if isinstance(equation, System) else equation
    skeleton = in_grammar_words(named)
    if skeleton is None:
        return Encoding(None, math.inf)
    if allowed is None:
        allowed = _rules_for(grammar, skeleton.frame.orders[0], skeleton.forced if forced is None else forced)
    return _encoding(grammar, skeleton, allowed.tobytes())


@lru_cache(maxsize=20_000)  # a structure is proposed again and again
def _encoding(grammar: Grammar, skeleton: Skeleton, rules: bytes) -> Encoding:
    allowed = np.frombuffer(rules, dtype=bool)
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
    pool = [math.nan] * n_constants(structure)
    terms = [to_expression({m: UNIT}, pool) for m in to_terms(structure, pool)]
    best, missing = Encoding(None, math.inf), []
    by_divisor = _headers(grammar, allowed.tobytes())
    for divisor, (least, _) in sorted(header_parts(grammar, allowed).items(), key=lambda item: item[1][0]):
        if least >= best.bits:
            break
        headers = by_divisor[divisor]
        targets = list(_target_terms(skeleton, structure, terms, pivot, divisor))
        for bits, derivation in sorted({m for target in targets for m in _matches(target, headers, dictionary)}):
            if bits >= best.bits:
                break
            if _says(grammar, derivation, skeleton):
                best = Encoding(derivation, bits)
                break
        if best.derivation is None:
            missing += [_missing_terms(target, headers, dictionary) for target in targets]
    return best if best.derivation is not None else Encoding(None, math.inf, min(missing, key=len, default=()))


def _says(grammar: Grammar, derivation: Derivation, skeleton: Skeleton) -> bool:
    """Whether the derivation has the structure of the skeleton."""
    try:
        sentence = skeleton_of(grammar.template, spell(grammar, derivation), skeleton.frame)
    except NoEquation:
        return False
    return sentence == skeleton or sentence.structure == skeleton.structure


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
    skeleton: Skeleton,
    structure: Expression,
    terms: Sequence[Expression],
    pivot: Expression | None,
    divisor: Expression,
) -> Iterator[Parts]:
    """The terms R of the equation, for each way of writing it as divisor*pivot = R (without a pivot: as 0 = R)."""
    if pivot is None:
        leading, lead, others = terms[:1], [skeleton.highest], terms
        yield _sorted(structure)
    else:
        leading = [e for e in terms if pivot in e.nodes()]
        lead = _lead(divisor, pivot)
        others = [e for e in terms if e not in leading]
    if len(lead) == len(leading):
        shape = {p for e in leading for p in _parts(e)}
        # Constants inside a scale would not cancel, so the scale 1 is tried first.
        for scale in (ONE, *(leading[0] / e for e in lead)):
            if {p for e in lead for p in _parts(e * scale)} == shape:
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


@lru_cache(maxsize=1024)
def _lead(divisor: Expression, pivot: Expression) -> list[Expression]:
    """The terms of divisor*pivot."""
    pool = [math.nan] * 9
    return [to_expression({m: UNIT}, pool) for m in to_terms(mul(divisor, pivot), pool)]


def _matches(target: Parts, headers: Headers, dictionary: TermDictionary) -> Iterator[tuple[float, Derivation]]:
    """(bits, derivation) for every header whose terms occur, with the cheapest summands for the remaining terms."""
    covers: dict[tuple[Parts, int], tuple[float, tuple[Term, ...]] | None] = {}
    target_set = frozenset(target)
    present = sorted(target_set)
    subsets = (own for n in range(len(present) + 1) for own in combinations(present, n))
    for header in (header for own in subsets for header in headers.get(own, ())):
        rest = _rest(target, header.own)
        if (rest, header.count) not in covers:
            covers[rest, header.count] = _cover(rest, header.count, target_set, dictionary)
        cover = covers[rest, header.count]
        if cover is not None:
            summands = iter(cover[1])
            parts = (next(summands).derivation if rule == BLOCK else (rule,) for rule in header.rules)
            saved = _orders(cover[1]) if header.count > 1 else 0.0
            yield header.bits + cover[0] - saved, tuple(rule for run in parts for rule in run)


def _orders(summands: tuple[Term, ...]) -> float:
    """The bits of the order of the summands: log2 of the number of different orders."""
    repeated = Counter(summand.derivation for summand in summands).values()
    return math.log2(math.factorial(len(summands)) / math.prod(map(math.factorial, repeated)))


def _cover(
    rest: Parts, count: int, target: frozenset[Expression], dictionary: TermDictionary
) -> tuple[float, tuple[Term, ...]] | None:
    """The bits and terms of the cheapest `count` summands that add up to the rest and hold only target terms."""
    if not rest or count == 0:
        return (0.0, ()) if not rest and count == 0 else None
    best = None
    for term in dictionary.by_part.get(rest[0], ()):
        if best is not None and term.price >= best[0]:
            break
        if target.issuperset(term.parts):
            others = _cover(_rest(rest, term.parts), count - 1, target, dictionary)
            if others is not None and (best is None or term.price + others[0] < best[0]):
                best = term.price + others[0], (term, *others[1])
    return best


def _missing_terms(target: Parts, headers: Headers, dictionary: TermDictionary) -> tuple[str, ...]:
    """The terms that occur in no header and no summand."""
    known = dictionary.by_part.keys() | {p for own in headers for p in own}
    return tuple(plain(term, ["C"] * n_constants(term)) for term in dict.fromkeys(target) if term not in known)


def _sorted(*expressions: Expression) -> Parts:
    return tuple(sorted(p for expression in expressions for p in _parts(expression)))


def _rest(whole: Parts, taken: Parts) -> Parts:
    """The terms that remain after each of `taken` is removed once."""
    rest = list(whole)
    for term in taken:
        if term in rest:
            rest.remove(term)
    return tuple(rest)


def _by_own(headers: Iterable[_Header]) -> Headers:
    groups: dict[Parts, tuple[_Header, ...]] = {}
    for header in headers:
        groups[header.own] = (*groups.get(header.own, ()), header)
    return groups


@stored
def _headers(grammar: Grammar, allowed: bytes) -> dict[Expression, Headers]:
    """The headers by divisor and own terms, one for each number of summands."""
    rules_of: dict[Expression, dict[tuple[Parts, int], Derivation]] = {}
    probability: dict[tuple[Expression, Parts, int], float] = defaultdict(float)
    for cost, rules, text in cheapest_headers(grammar, np.frombuffer(allowed, dtype=bool), _MARK.args[0]):
        addends, factor = fraction(read_expression(text), _MARK)
        count = rules.count(BLOCK)
        if addends.count(_MARK) == count:
            own = tuple(sorted({p for addend in addends if addend != _MARK for p in _parts(_renumbered(addend))}))
            divisor = reciprocal(_renumbered(factor))
            rules_of.setdefault(divisor, {}).setdefault((own, count), rules)
            probability[divisor, own, count] += 2.0**-cost
    return {
        divisor: _by_own(
            _Header(rules, -math.log2(probability[divisor, own, count]), count, own)
            for (own, count), rules in headers.items()
        )
        for divisor, headers in rules_of.items()
    }


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
    """(bits, derivation) of the sum of these canonical terms over a divisor, or None."""
    headers = _headers(grammar, allowed.tobytes()).get(divisor, {})
    return min(_matches(tuple(sorted(parts)), headers, term_dictionary(grammar, allowed)), default=None)


def header_parts(grammar: Grammar, allowed: np.ndarray) -> dict[Expression, tuple[float, frozenset[Expression]]]:
    """(bits of the most probable header, terms of all headers) by divisor."""
    return _header_parts(grammar, allowed.tobytes())


@lru_cache(maxsize=16)
def _header_parts(grammar: Grammar, allowed: bytes) -> dict[Expression, tuple[float, frozenset[Expression]]]:
    return {
        divisor: (min(h.bits for group in headers.values() for h in group), frozenset(chain(*headers)))
        for divisor, headers in _headers(grammar, allowed).items()
    }
