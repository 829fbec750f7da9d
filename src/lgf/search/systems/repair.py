"""Changes of a fitted system ranked by the linear responses of the coupled system: terms to add, drop or exchange."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.terms import rows_of, term_of
from lgf.expression.tree import ONE, Expression, factors
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Candidate
from lgf.search.sensitivity import linearise
from lgf.search.systems.component import Components, exchanged
from lgf.search.systems.conservation import Direction, directions
from lgf.search.systems.responses import Responses, inverse_divisors
from lgf.search.systems.term_grid import TermGrid

_NATS_PER_BIT = 2 * math.log(2)
_LEAST_LEFT = 0.05  # share of the residual that no single term is believed to explain
_ADDITIONS = 14  # to one system
_SWAPS = 6  # terms tried in place of one term
_MOVES = 40  # of one system, apart from drops


@dataclass(frozen=True)
class Move:
    """A changed system and how long its description is expected to become."""

    score: float
    components: Components
    kind: str


class _Part(NamedTuple):
    """A part of the system that can be taken out: a coefficient, tied or not, with all places where it stands."""

    places: frozenset[tuple[int, Expression]]
    constants: tuple[int, ...]  # the coefficient, then the constants inside its terms
    value: float  # of the coefficient


def moves(
    candidate: Candidate,
    components: Components,
    target: Target,
    language: SystemLanguage,
    known: RowKnowledge,
    terms: TermGrid,
) -> list[Move]:
    """The changes of the system: drops first, then the most promising additions and swaps."""
    tied = candidate.skeleton.n_constants < sum(len(c.values) for c in components)
    parts = _tied_parts(candidate, components) if tied else _parts(components)
    smaller = {part: _without(components, part, parts) for part in parts}
    drops = [Move(0.0, changed, "drop") for changed in smaller.values() if all(c.terms or c.known for c in changed)]
    drops += [
        Move(0.0, exchanged(components, row, replace(component, divisor=ONE, others=())), "drop")
        for row, component in enumerate(components)
        if component.divisor != ONE
    ]
    line = linearise(candidate, target)
    if line is None or not np.all(np.isfinite(line.own)):
        return drops
    changes = _Changes(directions(known, terms), language, terms)
    responses = Responses(line, terms, changes.directions, inverse_divisors(components, line, target))
    ranked = changes.ranked(responses, components, _ADDITIONS, 0.0, "add")
    for part, without in smaller.items():
        own = [responses.position[i] for i in part.constants]
        bits = sum(_bits(terms, row, term) for row, term in part.places)
        saved = len(own) * math.log(responses.n_samples) + _NATS_PER_BIT * bits
        rest = responses.without(own, own[0], part.value)
        ranked += changes.ranked(rest, without, _SWAPS, -saved, "swap", part.places)
    return drops + sorted(ranked, key=lambda move: move.score)[:_MOVES]


def _bits(terms: TermGrid, row: int, term: Expression) -> float:
    place = terms.position.get(term)
    bits = math.inf if place is None else float(terms.bits[row, place])
    return bits if math.isfinite(bits) else 0.0


def _parts(components: Components) -> list[_Part]:
    """A part for each term; constants are numbered in the order of the components."""
    parts, first = [], 0
    for row, component in enumerate(components):
        for term, coefficient, inner in zip(component.terms, component.coefficients, component.inner, strict=True):
            constants = tuple(range(first, first + 1 + len(inner)))
            parts.append(_Part(frozenset({(row, term)}), constants, coefficient))
            first += len(constants)
        first += len(component.others)
    return parts


def _tied_parts(candidate: Candidate, components: Components) -> list[_Part]:
    """A part for each open coefficient of a skeleton in which some are tied; not those of known rows."""
    places: dict[int, set[tuple[int, Expression]]] = {}
    inside: dict[int, set[int]] = {}
    for row, summand in rows_of(candidate.skeleton):
        coefficient = next((f.args[0] for f in factors(summand) if f.head == "constant"), None)
        if coefficient is not None:
            places.setdefault(coefficient, set()).add((row, term_of(summand)))
            own = {n.args[0] for n in summand.nodes() if n.head == "constant"}
            inside.setdefault(coefficient, set()).update(own - {coefficient})
    free = [c for c, where in places.items() if all(t in components[row].terms for row, t in where)]
    return [
        _Part(
            frozenset(places[c]),
            (c, *sorted(inside[c] - set().union(*(inside[other] for other in inside if other != c)))),
            candidate.fit.values[c],
        )
        for c in free
    ]


def _without(components: Components, part: _Part, parts: Sequence[_Part]) -> Components:
    """The components without the part; a term that has another coefficient too stays."""
    others = set().union(*(other.places for other in parts if other is not part))
    for row, term in part.places - others:
        component = components[row]
        components = exchanged(components, row, component.without(component.terms.index(term)))
    return components


class _Changes:
    """The systems that come of adding a term in one of the directions."""

    def __init__(self, ways: Sequence[Direction], language: SystemLanguage, terms: TermGrid):
        self.directions, self._language, self._terms = ways, language, terms
        self._first = np.cumsum([0, *(len(way.columns[0]) for way in ways)])

    def ranked(
        self,
        responses: Responses,
        components: Components,
        most: int,
        offset: float,
        kind: str,
        excluded: frozenset[tuple[int, Expression]] = frozenset(),
    ) -> list[Move]:
        """The most promising additions, each term once in a direction; none at the excluded places."""
        terms = self._terms
        left, gains, coefficients = responses.gains()
        n = len(responses.residual)
        rest = np.maximum(left - gains, _LEAST_LEFT * min(n, left))
        score = n * np.log(rest / n) + self._costs(components, excluded, responses.n_samples) + offset
        found: list[Move] = []
        seen: set[tuple[int, int]] = set()
        for slot in np.argsort(score, kind="stable"):
            if not math.isfinite(score[slot]) or len(found) == most:
                break
            number = int(np.searchsorted(self._first, slot, side="right")) - 1
            way, place = self.directions[number], int(slot) - int(self._first[number])
            key = number, int(terms.owner[way.columns[0][place]])
            if key not in seen:
                seen.add(key)
                changed = self._changed(components, way, place, float(coefficients[slot]))
                if all(c.terms or c.known for c in changed):
                    found.append(Move(float(score[slot]), changed, kind))
        return found

    def _costs(
        self, components: Components, excluded: frozenset[tuple[int, Expression]], n_samples: float
    ) -> np.ndarray:
        """The description length [slot] of the new term; infinite where it may not be or stands already."""
        terms = self._terms
        present = np.zeros(terms.bits.shape, bool)
        for row, component in enumerate(components):
            present[row, [terms.position[t] for t in component.terms if t in terms.position]] = True
        costs = []
        for way in self.directions:
            owners = [terms.owner[columns] for columns in way.columns]
            new = [~present[row, owner] for row, owner in zip(way.rows, owners, strict=True)]
            cost = (1 + terms.n_inner[owners[0]]) * math.log(n_samples)
            for row, owner, absent in zip(way.rows, owners, new, strict=True):
                cost = cost + np.where(absent, _NATS_PER_BIT * terms.bits[row, owner], 0.0)
                barred = [terms.position[t] for r, t in excluded if r == row and t in terms.position]
                cost[np.isin(owner, barred)] = np.inf
            cost[~np.any(new, axis=0)] = np.inf
            if any(components[row].known is not None for row in way.rows):
                cost[:] = np.inf
            costs.append(cost)
        return np.concatenate(costs)

    def _changed(self, components: Components, way: Direction, place: int, coefficient: float) -> Components:
        """The components with the term in all rows of the direction."""
        terms = self._terms
        for row, weight, columns in zip(way.rows, way.weights, way.columns, strict=True):
            column = int(columns[place])
            number = int(terms.owner[column])
            term, inner = terms.terms[number], tuple(float(v) for v in terms.values[column, : terms.n_inner[number]])
            component, value = components[row], weight * coefficient
            if term in component.terms:
                at = component.terms.index(term)
                value, inner = value + component.coefficients[at], component.inner[at]
            components = exchanged(components, row, component.plus(term, value, inner, self._language, row))
        return components
