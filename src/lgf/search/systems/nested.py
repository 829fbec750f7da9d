"""The choice between systems of which one has all terms of the other."""

from collections.abc import Callable, Sequence

from lgf.equation.terms import rows_of, term_of
from lgf.expression.tree import Expression
from lgf.search.candidate import Candidate


def simplest_nested(
    candidates: Sequence[Candidate],
    best: Candidate,
    margin: float,
    penalty: Callable[[Candidate], float] = lambda candidate: 0.0,
) -> Candidate:
    """The candidate with the fewest of the best one's terms whose objective is within the margin, or the best one.

    It may not have a larger penalty than the best one.

    Among some hundred terms that could be added, the noise of a record lets one look useful more often than the
    description length of a single comparison says.
    """
    terms = _terms(best)
    near = [c for c in candidates if c.objective <= best.objective + margin and _terms(c) < terms]
    near = [c for c in near if penalty(c) <= penalty(best)]
    return min(near, key=lambda c: (len(_terms(c)), c.objective), default=best)


def _terms(candidate: Candidate) -> frozenset[tuple[int, Expression]]:
    return frozenset((row, term_of(summand)) for row, summand in rows_of(candidate.skeleton))
