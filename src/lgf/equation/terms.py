"""The terms of a skeleton: its summands by equation, and a summand without its coefficient."""

import math
from functools import lru_cache

from lgf.equation.skeleton import Skeleton
from lgf.expression.canonical import canonical, to_terms
from lgf.expression.monomials import UNIT, n_constants, renumber, to_expression
from lgf.expression.tree import Expression, constant, factors, mul, summands


def terms_of(skeleton: Skeleton) -> tuple[Expression, ...]:
    """The summands of the right sides (or of the residual), without their open or numerical coefficients."""
    return tuple(term_of(summand) for _, summand in rows_of(skeleton))


def rows_of(skeleton: Skeleton) -> tuple[tuple[int, Expression], ...]:
    """(equation, summand) of every summand of the right sides, or of the residual of an implicit equation."""
    bodies = skeleton.residuals if skeleton.right_sides is None else skeleton.right_sides
    return tuple((i, summand) for i, body in enumerate(bodies) for summand in summands(body))


@lru_cache(maxsize=16384)  # a search asks again and again about the same summands
def term_of(summand: Expression) -> Expression:
    """The summand without its coefficient, canonical; an open coefficient, which takes up others, is implied.

    >>> from lgf.expression.parse import read_expression
    >>> from lgf.expression.print import plain
    >>> plain(term_of(read_expression("3*S*X/(C + S)")), ["C"])
    'S*X/(C*S + 1)'
    """
    body = mul(*(f for f in factors(summand) if f.head not in ("constant", "number")))
    pool = [math.nan] * (n_constants(body) + 1)
    terms = to_terms(mul(constant(len(pool) - 1), body), pool)
    if len(terms) > 1:
        return canonical(body)[0]
    return renumber(to_expression(dict.fromkeys(terms, UNIT), pool), pool)[0]
