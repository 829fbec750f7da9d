"""Right-hand sides that fulfil conservation laws and shared constants together.

A term of a conserved sum must stand in two rows at least, and a coefficient that is shared stands in two places. Rows
that were selected one by one are closed here: one row of a law is rebuilt from the others, and the other place of a
shared coefficient is filled. Terms that are added later go along `directions`: into several rows at once, with weights.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.tied_constants import Law, Relation
from lgf.expression.monomials import n_constants
from lgf.expression.tree import ONE, Expression
from lgf.language.system_language import SystemLanguage
from lgf.search.systems.component import Component, Components, exchanged, summands_of
from lgf.search.systems.term_grid import TermGrid

_CANCELS = 0.5  # terms whose sum is below this share of their sizes are taken to cancel
_MOST_ROWS = 3  # that one added term enters
_ZERO = 1e-9


class Direction(NamedTuple):
    """Places that a term enters together: rows, the weights of its coefficient, and columns of the grid by row."""

    rows: tuple[int, ...]
    weights: tuple[float, ...]
    columns: tuple[np.ndarray, ...]


def closures(components: Components, known: RowKnowledge, language: SystemLanguage, changed: int) -> list[Components]:
    """The components with the rows other than `changed` adapted to the laws and relations, in every simple way.

    They come back as they are if there is nothing to fulfil.
    """
    if not known.laws and not known.relations:
        return [components]
    results = [_with_partners(components, known.relations, language)]
    for law in known.laws:
        results = [closed for c in results for closed in _closed(c, law, language, changed)]
    return results


def _closed(components: Components, law: Law, language: SystemLanguage, changed: int) -> Iterator[Components]:
    """The components as they are if they fulfil the law; else each other row of it rebuilt from the rest."""
    weights = {row: weight for row, weight in law.items() if weight != 0.0}
    if any(components[row].divisor != ONE for row in weights):
        return
    if _fulfilled(components, weights):
        yield components
        return
    for row in weights:
        if row != changed and components[row].known is None:
            rebuilt = _rebuilt(components, weights, row, language)
            if rebuilt is not None:
                yield exchanged(components, row, rebuilt)


def _fulfilled(components: Components, weights: Law) -> bool:
    """Whether every term of the law stands in two rows of it or more, so that it can cancel."""
    rows = [{term for term, _, _ in summands_of(components[row])} for row in weights]
    return all(sum(term in own for own in rows) > 1 for term in set().union(*rows))


def _rebuilt(components: Components, weights: Law, row: int, language: SystemLanguage) -> Component | None:
    """The row that balances the others of the law; None if it would have no terms."""
    sums: dict[Expression, list[tuple[float, tuple[float, ...]]]] = {}
    for other, weight in weights.items():
        if other != row:
            for term, coefficient, inner in summands_of(components[other]):
                sums.setdefault(term, []).append((weight * coefficient, inner))
    component = replace(components[row], terms=(), coefficients=(), inner=())
    for term, parts in sums.items():
        total = sum(value for value, _ in parts)
        if len(parts) == 1 or abs(total) > _CANCELS * sum(abs(value) for value, _ in parts):
            component = component.plus(term, -total / weights[row], parts[0][1], language, row)
    return component if component.terms else None


def _with_partners(components: Components, relations: tuple[Relation, ...], language: SystemLanguage) -> Components:
    """The components with the missing place of each shared coefficient filled."""
    rows = list(components)
    for relation in relations:
        for (here, term), (there, partner), factor in (
            (relation.left, relation.right, 1.0 / relation.factor if relation.factor else 0.0),
            (relation.right, relation.left, relation.factor),
        ):
            own, other = rows[here], rows[there]
            if term in own.terms and partner not in other.terms and other.known is None and factor:
                place = own.terms.index(term)
                value = factor * own.coefficients[place]
                inner = own.inner[place] if partner == term else (1.0,) * n_constants(partner)
                rows[there] = other.plus(partner, value, inner, language, there)
    return tuple(rows)


def directions(known: RowKnowledge, terms: TermGrid) -> list[Direction]:
    """The ways in which a term can be added: to single rows, or to rows that a law or a relation ties together."""
    n = len(terms.bits)
    every = np.arange(len(terms.owner))
    laws = np.array([[law.get(row, 0.0) for row in range(n)] for law in known.laws]).reshape(-1, n)
    result: list[Direction] = []
    for size in range(1, min(_MOST_ROWS, n) + 1):
        for rows in combinations(range(n), size):
            weights = _cancelling(laws[:, list(rows)])
            if weights is not None:
                result.append(Direction(rows, weights, (every,) * size))
    for relation in known.relations:
        (here, term), (there, partner) = relation.left, relation.right
        if here != there and term in terms.position and partner in terms.position:
            own, other = (np.flatnonzero(terms.owner == terms.position[t]) for t in (term, partner))
            if len(own) == len(other):
                result.append(Direction((here, there), (relation.factor, 1.0), (own, other)))
    return result


def _cancelling(laws: np.ndarray) -> tuple[float, ...] | None:
    """The weights, none of them 0, for which all laws [law, row] are fulfilled; None unless there is one way."""
    size = laws.shape[1]
    if not np.any(laws):
        return (1.0,) if size == 1 else None
    _, s, basis = np.linalg.svd(laws)
    null = basis[int(np.sum(s > _ZERO)) :]
    if len(null) != 1 or np.abs(null[0]).min() < _ZERO:
        return None
    return tuple(float(w) for w in null[0] / null[0, 0])
