"""The terms of a skeleton: its summands by equation, and a summand without its coefficient."""

from lgf.equation.skeleton import Skeleton
from lgf.expression.canonical import canonical
from lgf.expression.tree import Expression, factors, mul, summands


def terms_of(skeleton: Skeleton) -> tuple[Expression, ...]:
    """The summands of the right sides (or of the residual), without their open or numerical coefficients."""
    return tuple(term_of(summand) for _, summand in rows_of(skeleton))


def rows_of(skeleton: Skeleton) -> tuple[tuple[int, Expression], ...]:
    """(equation, summand) of every summand of the right sides, or of the residual of an implicit equation."""
    bodies = skeleton.residuals if skeleton.right_sides is None else skeleton.right_sides
    return tuple((i, summand) for i, body in enumerate(bodies) for summand in summands(body))


def term_of(summand: Expression) -> Expression:
    """The summand without its open or numerical coefficient, canonical."""
    return canonical(mul(*(f for f in factors(summand) if f.head not in ("constant", "number"))))[0]
