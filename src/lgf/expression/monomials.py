"""Terms: sums of monomials, the representation in which canonical forms are computed.

A sum is a dictionary monomial -> coefficient, a monomial a sorted tuple of (base, exponent), a coefficient (free,
value). The pool is the list of the values of the open constants inside bases and exponents, by index.
"""

from collections.abc import Sequence
from functools import lru_cache

from lgf.expression.tree import MINUS_ONE, ONE, ZERO, Expression, add, constant, function, number, power, signal

Coefficient = tuple[bool, float]
Monomial = tuple[tuple[Expression, Expression], ...]
Terms = dict[Monomial, Coefficient]

UNIT: Coefficient = (False, 1.0)
EULER = signal("~e")  # exp(x) is stored as the power EULER^x, so that equal bases merge


def n_constants(*expressions: Expression) -> int:
    """One more than the highest index of an open constant."""
    return max(map(_n_constants, expressions), default=0)


@lru_cache(maxsize=16384)  # a search asks again and again about the same terms
def _n_constants(e: Expression) -> int:
    return max((n.args[0] + 1 for n in e.nodes() if n.head == "constant"), default=0)


def renumber(expression: Expression, pool: Sequence[float]) -> tuple[Expression, tuple[float, ...]]:
    """The expression with its constants numbered by position, and their values."""
    values: list[float] = []
    return _renumber(expression, pool, values), tuple(values)


def _renumber(e: Expression, pool: Sequence[float], values: list[float]) -> Expression:
    if e.head == "constant":
        values.append(pool[e.args[0]])
        return constant(len(values) - 1)
    if e.head == "symbol" or e.head == "number":
        return e
    args = tuple([_renumber(a, pool, values) for a in e.args])
    return e if args == e.args else Expression(e.head, args)


def to_expression(terms: Terms, pool: list[float]) -> Expression:
    """The sum as an expression, in canonical order; every free coefficient becomes a new constant of the pool."""
    if not terms:
        return ZERO
    summands = []
    for monomial in in_order(terms):
        free, value = terms[monomial]
        factors = [_factor(base, exponent) for base, exponent in monomial]
        if free:
            factors.insert(0, constant(len(pool)))
            pool.append(value)
        elif value != 1.0 or not factors:
            factors.insert(0, number(value))
        summands.append(Expression("*", tuple(factors)) if len(factors) > 1 else factors[0])
    return add(*summands) if len(summands) > 1 else summands[0]


def _factor(base: Expression, exponent: Expression) -> Expression:
    if exponent == ONE:
        return base
    if base is EULER:
        return function("exp", exponent)
    if exponent.head == "number" and abs(exponent.args[0]) == 0.5:
        root = function("sqrt", base)
        return root if exponent.args[0] > 0 else power(root, MINUS_ONE)
    return power(base, exponent)


def in_order(terms: Terms) -> list[Monomial]:
    """The monomials in order: highest derivatives first, then those of time alone, then the constant."""
    if len(terms) < 2:
        return list(terms)
    return sorted(terms, key=lambda m: _term_key(m, terms[m]))


def _term_key(monomial: Monomial, coefficient: Coefficient) -> tuple:
    order = -2
    keys = []
    for base, exponent in monomial:
        order = max(order, _state_order(base), _state_order(exponent))
        keys.append(_pair_key((base, exponent)))
    return -order, len(monomial), keys, (True, 0.0) if coefficient[0] else coefficient


def _state_order(e: Expression) -> int:
    if e.head == "number":
        return -2
    if e.head == "symbol":
        return e.args[1]
    return max((_state_order(a) for a in e.children), default=-2)


def has_constants(monomial: Monomial) -> bool:
    """Whether an open constant stands inside a base or an exponent."""
    return any(
        n.head == "constant" for pair in monomial for e in pair if e.head not in ("symbol", "number") for n in e.nodes()
    )


def accumulate(result: Terms, terms: Terms) -> None:
    """Adds the terms to the result, in place."""
    for monomial, (free, value) in terms.items():
        if monomial in result:
            free_before, value_before = result[monomial]
            free, value = free or free_before, value + value_before
            if value == 0.0 and not free:
                del result[monomial]
                continue
        result[monomial] = (free, value)


def sorted_monomial(factors: dict[Expression, Expression]) -> Monomial:
    """The monomial with these bases and exponents."""
    pairs = [pair for pair in factors.items() if pair[1] != ZERO]
    if len(pairs) > 1:
        pairs.sort(key=_pair_key)
    return tuple(pairs)


def _pair_key(pair: tuple[Expression, Expression]) -> tuple:
    divides = pair[1].head == "number" and pair[1].args[0] < 0.0
    return divides, pair[0].sort_key(), pair[1].sort_key()


def common_factor(terms: Terms) -> dict[Expression, float]:
    """Exponents by base of the factor common to all terms, negative for denominators; bases without constants.

    A term with an open exponent absorbs any factor: u^C*u is u^C.
    """
    exponents: dict[Expression, list[float]] = {}
    n_open: dict[Expression, int] = {}
    blocked = {EULER}
    for monomial in terms:
        for base, e in monomial:
            if e.head == "constant":
                n_open[base] = n_open.get(base, 0) + 1
            elif e.head == "number" and not has_constants(((base, ONE),)):
                exponents.setdefault(base, []).append(e.args[0])
            else:
                blocked.add(base)
    common = {}
    for base, powers in exponents.items():
        everywhere = len(powers) + n_open.get(base, 0) == len(terms)
        lowest = min(powers) if everywhere else min(0.0, *powers)
        if lowest != 0.0 and base not in blocked:
            common[base] = lowest
    return common
