"""Canonical form: one expression for every family of expressions that open constants span.

Free coefficients absorb numbers and other free coefficients: C*C*u + 2*u is C*u. The criterion is the number of
degrees of freedom. Signs and ranges do not count, so exp(C*t + C) is C*exp(C*t) although the first cannot be negative.
Rules that split arguments (log(C*u) = C + log(u), sqrt(C*u) = C*sqrt(u), (C*u)^C = C*u^C) assume a positive argument;
with values, the sign of a negative constant stays inside. A constant that occurs twice is treated as two.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product as cartesian

from lgf.expression.functions import FUNCTIONS
from lgf.expression.monomials import (
    EULER,
    UNIT,
    Monomial,
    Terms,
    accumulate,
    common_factor,
    has_constants,
    in_order,
    n_constants,
    renumber,
    sorted_monomial,
    to_expression,
)
from lgf.expression.tree import ONE, ZERO, Expression, function, number

HALF = number(0.5)
MAX_EXPANSION = 64  # monomials; a longer product of sums is not expanded


def canonical(expression: Expression, values: Sequence[float] | None = None) -> tuple[Expression, tuple[float, ...]]:
    """The canonical expression, constants numbered by position, and their values (NaN where none were given)."""
    pool = [math.nan] * n_constants(expression) if values is None else list(values)
    return renumber(to_expression(to_terms(expression, pool), pool), pool)


def to_terms(e: Expression, pool: list[float]) -> Terms:
    """The expression as a sum of monomials; the pool holds the values of its constants by index."""
    head = e.head
    if head == "symbol":
        return {((e, ONE),): UNIT}
    if head == "number":
        return {(): (False, e.args[0])} if e.args[0] != 0.0 else {}
    if head == "constant":
        return {(): (True, pool[e.args[0]])}
    if head == "+":
        result: Terms = {}
        for a in e.args:
            accumulate(result, to_terms(a, pool))
        return reduced(result, pool)
    if head == "*":
        return _product(e, pool)
    if head == "^":
        if e.args[0].head == "symbol" and e.args[1].head == "number":
            return {(e.args,): UNIT}
        return _raise(to_terms(e.args[0], pool), to_terms(e.args[1], pool), pool)
    return _apply(head, to_terms(e.args[0], pool), pool)


def _product(e: Expression, pool: list[float]) -> Terms:
    """The terms of a product; its leaves are multiplied directly, for speed."""
    free, value = UNIT
    factors: dict[Expression, Expression] = {}
    parts = []
    for a in e.args:
        if a.head == "constant":
            free, value = True, value * pool[a.args[0]]
        elif a.head == "number":
            value *= a.args[0]
        elif a.head == "symbol":
            factors[a] = _sum_of_exponents(factors[a], ONE, pool) if a in factors else ONE
        else:
            parts.append(to_terms(a, pool))
    return _multiply(free, value, factors, parts, pool)


def multiply(parts: list[Terms], pool: list[float]) -> Terms:
    """The product of sums: equal bases merged, scales factored out, expanded where the family stays the same."""
    return _multiply(False, 1.0, {}, parts, pool)


def _multiply(
    free: bool, value: float, factors: dict[Expression, Expression], parts: list[Terms], pool: list[float]
) -> Terms:
    for part in parts:
        if not part:
            return {}
        if len(part) == 1:
            ((monomial, (part_free, part_value)),) = part.items()
            free, value = free or part_free, value * part_value
            for base, exponent in monomial:
                factors[base] = _sum_of_exponents(factors[base], exponent, pool) if base in factors else exponent
    sums: list[Terms] = [part for part in parts if len(part) > 1]
    if not sums and not any(base.head in ("+", "*") or base is EULER for base in factors):
        monomial = sorted_monomial(factors)
        return {monomial: (free, value)} if free or value != 0.0 else {}
    for base in [b for b, e in factors.items() if b.head == "+" and e == ONE]:
        del factors[base]
        sums.append(to_terms(base, pool))
    if len(sums) == 1 and _distributes(free, factors, sums[0]):
        result: Terms = {}
        for monomial, (part_free, part_value) in sums[0].items():
            part = {monomial: (free or part_free, value * part_value)}
            accumulate(result, multiply([part, {sorted_monomial(factors): UNIT}], pool))
        return reduced(result, pool)
    return _multiply_sums(free, value, factors, sums, pool)


def _distributes(free: bool, factors: dict[Expression, Expression], terms: Terms) -> bool:
    """Whether the factor can be distributed over the sum without changing the family."""
    if free and sum(not c[0] for c in terms.values()) > 1:
        return False
    return all(base.head != "+" for base in factors) and not has_constants(tuple(factors.items()))


def _sum_of_exponents(a: Expression, b: Expression, pool: list[float]) -> Expression:
    if a.head == b.head == "number":
        return _exponent(a.args[0] + b.args[0])
    terms = to_terms(a, pool)
    accumulate(terms, to_terms(b, pool))
    return to_expression(terms, pool)


def _exponent(value: float) -> Expression:
    return ONE if value == 1.0 else number(value)


def _multiply_sums(
    free: bool, value: float, factors: dict[Expression, Expression], sums: list[Terms], pool: list[float]
) -> Terms:
    if EULER in factors:
        # exp(a + c) = exp(c)*exp(a) for a constant c
        exponent = to_terms(factors.pop(EULER), pool)
        offset_free, offset = exponent.pop((), (False, 0.0))
        scale = _real(math.exp, offset)
        if offset_free or (math.isfinite(scale) and scale != 0.0):
            free, value = free or offset_free, value * scale
        else:
            exponent[()] = (False, offset)
        if exponent:
            factors[EULER] = to_expression(exponent, pool)
    powers = [(terms, ONE) for terms in sums]
    for base in [b for b in factors if b.head in ("+", "*")]:
        powers.append((to_terms(base, pool), factors.pop(base)))
    free = free or any(_scale_is_free(terms, exponent) for terms, exponent in powers)
    for terms, exponent in powers:
        common = common_factor(terms) if exponent.head == "number" and exponent.args[0].is_integer() else {}
        if common:
            terms = times(terms, tuple((base, number(-e)) for base, e in common.items()), pool)
            for base, e in common.items():
                e = _exponent(e * exponent.args[0])
                factors[base] = _sum_of_exponents(factors[base], e, pool) if base in factors else e
        scaled, scale = normalise_scale(terms, exponent, free, pool)
        value *= scale
        for base, e in _raised_monomial(scaled, exponent, pool):
            factors[base] = _sum_of_exponents(factors[base], e, pool) if base in factors else e
    if not free and value == 0.0:
        return {}
    monomial = sorted_monomial(factors)
    return _expand(free, value, monomial, pool)


def _expand(free: bool, value: float, monomial: Monomial, pool: list[float]) -> Terms:
    """The monomial with its plain sums expanded, if that does not increase the number of free coefficients."""
    whole = {monomial: (free, value)}
    plain_sums = [base for base, exponent in monomial if base.head == "+" and exponent == ONE]
    rest = tuple(pair for pair in monomial if pair[0].head != "+" or pair[1] != ONE)
    if not plain_sums or has_constants(rest):
        return whole
    sums = [to_terms(base, pool) for base in plain_sums]
    if math.prod(len(s) for s in sums) > MAX_EXPANSION:
        return whole
    if len(sums) > 1 and any(has_constants(m) for s in sums for m in s):
        return whole
    result: Terms = {}
    for choice in cartesian(*(s.items() for s in sums)):
        parts: list[Terms] = [{rest: (free, value)}]
        parts.extend({m: c} for m, c in choice)
        accumulate(result, multiply(parts, pool))
    freedom = free + sum(c[0] for s in sums for c in s.values())
    return reduced(result, pool) if sum(c[0] for c in result.values()) <= freedom else whole


def reduced(terms: Terms, pool: list[float]) -> Terms:
    """The sum without the parts of products that other free terms absorb: C*u + C*u*(1 - u) is C*u + C*u^2."""
    products = [m for m in terms for base, exponent in m if base.head == "+" and exponent == ONE]
    for monomial in products:
        free, value = terms[monomial]
        if not free or has_constants(monomial):
            continue
        expanded = _expand(False, 1.0, monomial, pool)
        absorbed = [m for m in expanded if m in terms and terms[m][0] and m != monomial]
        if absorbed:
            del terms[monomial]
            for m in absorbed:
                accumulate(terms, {m: (True, value * expanded.pop(m)[1])})
            if expanded:
                accumulate(terms, factored(expanded, value, pool))
            return reduced(terms, pool)
    return terms


def factored(terms: Terms, value: float, pool: list[float]) -> Terms:
    """A free coefficient of this value times the sum, with the common factor in front."""
    common = common_factor(terms)
    inside = times(terms, tuple((base, number(-e)) for base, e in common.items()), pool)
    return multiply([{tuple((base, _exponent(e)) for base, e in common.items()): (True, value)}, inside], pool)


def times(terms: Terms, factor: Monomial, pool: list[float]) -> Terms:
    """Every term times the factor."""
    result: Terms = {}
    for monomial, coefficient in terms.items():
        accumulate(result, multiply([{monomial: coefficient}, {factor: UNIT}], pool))
    return result


def _scale_is_free(terms: Terms, exponent: Expression) -> bool:
    """Whether every coefficient of the sum is free, so that one of them can be factored out."""
    if exponent.head not in ("number", "constant") or not all(free for free, _ in terms.values()):
        return False
    value = terms[in_order(terms)[-1]][1]
    return value != 0.0 and not math.isinf(value)


def normalise_scale(terms: Terms, exponent: Expression, free: bool, pool: list[float]) -> tuple[Terms, float]:
    """The sum divided by one of its coefficients, and the scale in front: terms^e = scale * result^e.

    `free` says whether a free coefficient in front can absorb a free scale.
    """
    if exponent.head not in ("number", "constant") or (exponent.head == "constant" and not free):
        return terms, 1.0
    order = in_order(terms)
    fixed = [m for m in order if not terms[m][0]]
    # the ratio of two fixed coefficients matters: only a number may be divided out then
    if not fixed and not free:
        return terms, 1.0
    pivot = order[-1] if free and len(fixed) <= 1 else fixed[-1]
    pivot_free, value = terms[pivot]
    e = exponent.args[0] if exponent.head == "number" else pool[exponent.args[0]]
    divisor = value if exponent.head == "number" and e.is_integer() else abs(value)
    scale = _real(pow, divisor, e)
    unsound = divisor == 0.0 or math.isinf(divisor) or scale == 0.0 or math.isinf(scale)
    if unsound or (not pivot_free and divisor == 1.0):
        return terms, 1.0
    scaled: Terms = {}
    for monomial, (term_free, term_value) in terms.items():
        if monomial == pivot:
            accumulate(scaled, {pivot: (False, -1.0 if value / divisor < 0.0 else 1.0)})
        elif term_free or not pivot_free:
            accumulate(scaled, {monomial: (term_free, term_value / divisor)})
        else:  # a coefficient that has become free absorbs scales from inside its monomial
            accumulate(scaled, multiply([{monomial: (True, term_value / divisor)}], pool))
    return scaled, scale


def _raise(base: Terms, exponent: Terms, pool: list[float]) -> Terms:
    """The sum raised to the exponent."""
    if exponent == {(): UNIT}:
        return base
    e = to_expression(exponent, pool)
    if e == ZERO:
        return {(): UNIT}
    if not base:
        return {} if e.head == "number" and e.args[0] > 0.0 else {((ZERO, e),): UNIT}
    if len(base) == 1 and e.head in ("number", "constant"):
        ((monomial, (free, value)),) = base.items()
        whole = e.head == "number" and e.args[0].is_integer()
        magnitude = value if whole else abs(value)
        scale = _real(pow, magnitude, e.args[0] if e.head == "number" else pool[e.args[0]])
        # a number to an open power depends on that power, unless it stands alone
        foldable = free or (math.isfinite(scale) and scale != 0.0 and (e.head == "number" or magnitude == 1.0))
        if not monomial and e.head == "constant" and (free or (value > 0.0 and value != 1.0)):
            return {(): (True, scale)}
        if foldable and (monomial or whole or not value < 0.0):
            inside = {monomial: UNIT if whole or not value < 0.0 else (False, -1.0)}
            return multiply([{_raised_monomial(inside, e, pool): (free, scale)}], pool)
    return multiply([{((to_expression(base, pool), e),): UNIT}], pool)


def _raised_monomial(terms: Terms, exponent: Expression, pool: list[float]) -> Monomial:
    """The sum to this power, as a monomial: one base, or several where the power distributes."""
    if len(terms) == 1:
        ((monomial, coefficient),) = terms.items()
        whole = exponent.head == "number" and exponent.args[0].is_integer()
        if coefficient == UNIT and (whole or not monomial or (len(monomial) == 1 and _powers_merge(*monomial[0]))):
            return tuple((base, _product_of_exponents(e, exponent, pool)) for base, e in monomial)
    return ((to_expression(terms, pool), exponent),)


def _powers_merge(base: Expression, exponent: Expression) -> bool:
    """Whether (base^exponent)^p is base^(exponent*p) for every p; not so for even powers of a negative base."""
    return base is EULER or exponent.head == "constant" or (exponent.head == "number" and exponent.args[0] % 2 != 0)


def _product_of_exponents(a: Expression, b: Expression, pool: list[float]) -> Expression:
    if a.head == b.head == "number":
        return _exponent(a.args[0] * b.args[0])
    return to_expression(multiply([to_terms(a, pool), to_terms(b, pool)], pool), pool)


def _apply(name: str, argument: Terms, pool: list[float]) -> Terms:
    """The function of the argument."""
    if name == "exp":
        return multiply([{((EULER, to_expression(argument, pool)),): UNIT}], pool)
    if name == "sqrt":
        return _raise(argument, {(): (False, 0.5)}, pool)
    if not argument or (len(argument) == 1 and () in argument):
        free, value = argument.get((), (False, 0.0))
        image = _real(FUNCTIONS[name].scalar, value)
        if free or math.isfinite(image):
            return {(): (free, image)} if free or image != 0.0 else {}
    result: Terms = {}
    scale = 1.0
    free = bool(argument) and _scale_is_free(argument, ONE)
    if name == "log" and free:
        result[()] = (True, _real(math.log, abs(argument[in_order(argument)[-1]][1])))
        argument, _ = normalise_scale(argument, HALF, True, pool)  # as for a root, the sign stays inside
        free = False
    elif name == "abs" and (free or len(argument) == 1):
        argument, scale = normalise_scale(argument, ONE, free, pool)
        scale = abs(scale)
    else:
        free = False
        if name != "log" and _is_negative(argument):
            argument = {m: (f, -v) for m, (f, v) in argument.items()}
            scale = 1.0 if name in ("cos", "abs") else -1.0
    accumulate(result, {((function(name, to_expression(argument, pool)), ONE),): (free, scale)})
    return result


def _is_negative(terms: Terms) -> bool:
    """Whether the sum is written as minus another: most fixed terms are negative, or half of them, as in 1 - u.

    These are SymPy's signs, so that its nodes can be counted here.
    """
    signs = [terms[m][1] < 0.0 for m in in_order(terms) if not terms[m][0]]
    negative = sum(signs)
    if 2 * negative != len(signs):
        return 2 * negative > len(signs)
    return bool(signs) and (not signs[-1] if () in terms and not terms[()][0] else signs[0])


def _real(f: Callable[..., float], *args: float) -> float:
    """f(*args), or NaN where that is not a finite real number."""
    try:
        result = f(*args)
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan
    return math.nan if isinstance(result, complex) else result
