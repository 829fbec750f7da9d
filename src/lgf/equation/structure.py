"""Structure: a text that two skeletons of the same equation share; the skeleton of an equation with numbers."""

import math

from lgf.errors import LgfError
from lgf.expression.canonical import factored, multiply, reduced, times, to_terms
from lgf.expression.monomials import (
    EULER,
    UNIT,
    Coefficient,
    Monomial,
    Terms,
    accumulate,
    common_factor,
    has_constants,
    in_order,
    n_constants,
    renumber,
    to_expression,
)
from lgf.expression.print import plain
from lgf.expression.tree import ONE, ZERO, Expression, constant, is_input, mul, number, power, rebuild, summands

Sides = tuple[Expression, Expression, tuple[float, ...]]


def structure(left: Expression, right: Expression) -> str:
    """The structure as text, equal for skeletons of the same equation; every coefficient in it is open.

    It is invariant when terms move across `=`, when both sides are multiplied by a number, a constant or a common
    factor (u''*u' = C/t^3 is u'' = C/(t^3*u')), and under the choice of the one coefficient that is not open.
    Terms with fixed coefficients count as one: u' - u*u' + C*u is C*u'*(1 - u) + C*u.
    """
    expression = structural(left, right)
    return plain(expression, ["C"] * n_constants(expression))


def structural(left: Expression, right: Expression) -> Expression:
    """The expression that `structure` prints, its constants numbered from 0."""
    pool = [math.nan] * n_constants(left, right)
    terms = to_terms(left - right, pool)
    if sum(not free for free, _ in terms.values()) <= 1:
        terms = _with_free_coefficients(terms, pool)
    terms = _with_joined_fixed_terms(cleared(terms, pool), pool)
    return renumber(to_expression(terms, pool), pool)[0]


def _with_free_coefficients(terms: Terms, pool: list[float]) -> Terms:
    """The terms with every coefficient free."""
    result: Terms = {}
    for monomial, (_, value) in terms.items():
        accumulate(result, multiply([{monomial: (True, value)}], pool))
    return reduced(result, pool)


def _with_joined_fixed_terms(terms: Terms, pool: list[float]) -> Terms:
    """The terms with every coefficient free, those of fixed coefficients first joined into one product."""
    fixed: Terms = {m: c for m, c in terms.items() if not c[0]}
    if len(fixed) < 2:
        return _with_free_coefficients(terms, pool)
    rest = _with_free_coefficients({m: c for m, c in terms.items() if c[0]}, pool)
    accumulate(rest, factored(fixed, math.nan, pool))
    return reduced(rest, pool)


def cleared(terms: Terms, pool: list[float]) -> Terms:
    """The terms multiplied so that no common factor and no denominators remain.

    A factor with open constants inside is moved only if it then still occurs once.
    """
    if len(terms) < 2:
        return terms
    common = common_factor(terms)
    multiplier = [(base, number(-e)) for base, e in common.items()]
    for monomial in in_order(terms):
        for base, e in monomial:
            inside = has_constants(((base, ONE),))
            if inside and len(terms) == 2 and e.head == "number" and e.args[0] < 0.0:
                multiplier.append((base, number(-e.args[0])))
    if multiplier:  # a former denominator may contain denominators itself
        return cleared(times(terms, tuple(multiplier), pool), pool)
    return _without_leading_exponential(terms, pool)


def _without_leading_exponential(terms: Terms, pool: list[float]) -> Terms:
    """The terms divided by the exponential factor of the term with the highest derivative, if there is one."""
    leading = in_order(terms)[0]
    exponent = dict(leading).get(EULER)
    if exponent is None or (len(terms) > 2 and has_constants(((EULER, exponent),))):
        return terms
    others = {m: c for m, c in terms.items() if m != leading}
    result = times(others, ((EULER, mul(number(-1.0), exponent)),), pool)
    accumulate(result, {tuple(pair for pair in leading if pair[0] is not EULER): terms[leading]})
    return result


def open_constants(left: Expression, right: Expression, leading: Expression | None = None) -> Sides:
    """The two canonical sides of an equation with every number replaced by an open constant, and the values.

    Whole exponents and roots stay. One coefficient is fixed at 1: that of `leading`, a term of the left side, if it is
    given; else that of a known input that is the whole right side; else that of the highest derivative.
    """
    pool: list[float] = []
    sides = [to_terms(_open_summands(side, pool), pool) for side in (left, right)]
    sides = [{m: c for m, c in side.items() if c[1] != 0.0} for side in sides]
    if leading is not None:
        own: Monomial = ((leading, ONE),)
        sides = [_divided(side, own, sides[0][own]) for side in sides]
    elif is_input(right):
        alone: Monomial = ((right, ONE),)
        sides = [_divided(side, alone, sides[1][alone]) for side in sides]
    elif sides[0] or sides[1]:
        pivot = in_order({**sides[0], **sides[1]})[0]
        sides = [_divided(side, pivot, sides[0].get(pivot) or sides[1][pivot]) for side in sides]
    return _numbered(sides[0], sides[1], pool)


def canonical_sides(left: Expression, right: Expression, values: tuple[float, ...]) -> Sides:
    """Both sides in canonical form, constants numbered across them, and their values."""
    pool = list(values)
    return _numbered(to_terms(left, pool), to_terms(right, pool), pool)


def leading_fixed(expression: Expression) -> tuple[Expression, tuple[float, ...]]:
    """The canonical expression, divided by an open coefficient of its highest derivative, and NaN values."""
    pool = [math.nan] * n_constants(expression)
    terms = to_terms(expression, pool)
    if terms:
        pivot = in_order(terms)[0]
        if terms[pivot][0]:
            terms = _divided(terms, pivot, terms[pivot])
    return renumber(to_expression(terms, pool), pool)


def _divided(terms: Terms, pivot: Monomial, coefficient: Coefficient) -> Terms:
    """The terms divided by the free coefficient of the pivot."""
    return {m: UNIT if m == pivot else (True, value / coefficient[1]) for m, (_, value) in terms.items()}


def _numbered(left: Terms, right: Terms, pool: list[float]) -> Sides:
    left_side, left_values = renumber(to_expression(left, pool), pool)
    right_side, right_values = renumber(to_expression(right, pool), pool)
    return left_side, shifted(right_side, len(left_values)), left_values + right_values


def shifted(e: Expression, by: int) -> Expression:
    """The expression with the indices of its constants raised by `by`."""
    if e.head == "constant":
        return constant(e.args[0] + by)
    return e if e.is_leaf else Expression(e.head, tuple(shifted(a, by) for a in e.args))


def _open_summands(side: Expression, pool: list[float]) -> Expression:
    opened = []
    for summand in summands(side):
        if summand == ZERO:
            continue
        if summand.head not in ("number", "*") or (summand.head == "*" and summand.args[0].head != "number"):
            pool.append(1.0)
            opened.append(mul(constant(len(pool) - 1), _open(summand, pool)))
        else:
            opened.append(_open(summand, pool))
    return rebuild("+", tuple(opened)) if opened else ZERO


def _open(e: Expression, pool: list[float]) -> Expression:
    if e.head == "number":
        pool.append(e.args[0])
        return constant(len(pool) - 1)
    if e.head == "constant":
        raise LgfError("the equation has an open constant C already; fill it in or read it as a Skeleton")
    if e.is_leaf:
        return e
    if e.head == "^" and e.args[1].head == "number":
        exponent = e.args[1].args[0]
        if exponent.is_integer() or abs(exponent) == 0.5:
            return power(_open(e.args[0], pool), e.args[1])
    return rebuild(e.head, tuple(_open(a, pool) for a in e.args))


def operator_form(left: Expression, right: Expression, values: tuple[float, ...], drive: Expression) -> Sides:
    """The sides of the equation with the input `drive` alone on the right, and the values."""
    pool = list(values)
    name = plain(drive)
    terms = cleared(to_terms(left - right, pool), pool)
    alone: Monomial = ((drive, ONE),)
    others: Terms = {m: c for m, c in terms.items() if m != alone}
    if alone not in terms or any(drive in e.nodes() for m in others for pair in m for e in pair):
        raise LgfError(f"{name} does not stand as a term of its own, so the equation cannot be solved for it")
    free, scale = terms[alone]
    if scale == 0.0:
        raise LgfError(f"the coefficient of {name} is 0, so the equation cannot be solved for it")
    left_terms: Terms = {m: (free or c_free, -v / scale) for m, (c_free, v) in others.items()}
    return _numbered(left_terms, {alone: UNIT}, pool)
