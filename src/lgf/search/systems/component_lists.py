"""Lists of right-hand sides for each row of a system, selected in integral form along a smooth trajectory."""

import math
from collections.abc import Container, Mapping, Sequence
from itertools import islice

import numpy as np

from lgf.expression.tree import ONE, Expression
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.systems.common_denominators import DividedTerms
from lgf.search.systems.component import Component, known_component
from lgf.search.systems.integral_form import whitened
from lgf.search.systems.row_evidence import KAPPAS, RowEvidence, TermValues, certain, row_evidence
from lgf.search.systems.row_fits import Described, RowFits
from lgf.search.systems.term_grid import TermGrid
from lgf.solver.kernels.beam import BeamOptions, Choices, shortest_sets
from lgf.threads import Spread, alone

_NATS_PER_BIT = 2 * math.log(2)
CHEAP_KAPPA = 10.0  # noise model of the constants of cheap right-hand sides
_FARTHEST = 600.0  # rank of what cannot be fitted


_DEPTH = 7  # most terms of a right-hand side
_LISTED = 60  # right-hand sides of a row and noise model
_REFINED = 15  # of these, with constants inside functions fitted
_OTHER_NOISE = 8.0  # most that a noise model of smaller likelihood counts against its list
_CHEAP = 100  # cheapest right-hand sides of a row that the trained ranking is asked about


class ComponentSelection:
    """The integral form of every row along one trajectory, in which terms are selected and fitted."""

    def __init__(
        self,
        language: SystemLanguage,
        target: Target,
        terms: TermGrid,
        columns: np.ndarray,
        spread: Spread = alone,
    ):
        self._language, self._target, self._terms, self._spread = language, target, terms, spread
        self._fits = RowFits(language, target, terms, columns)
        self._divided = DividedTerms(language, target, self._fits.grid, self._fits.needed)
        self._keys = np.random.default_rng(0).integers(1, 2**63, len(terms.terms), dtype=np.uint64)

    def lists(self, rows: Sequence[int], kappas: Sequence[float] = KAPPAS) -> dict[int, list[Component]]:
        """For each of these rows its right-hand sides, the most promising first."""
        found = self._by_noise(rows, kappas)
        return {row: _merged(models) for row, models in found.items()} | self._known(rows)

    def evidence(self, rows: Sequence[int]) -> dict[int, RowEvidence]:
        """For each of these rows its right-hand sides, and the cheapest of the language, with what is known of them."""
        along = TermValues(self._target, self._terms)
        evidence = {row: self._evidence(row, found, along) for row, found in self._by_noise(rows, KAPPAS).items()}
        return evidence | {row: certain(known) for row, known in self._known(rows).items()}

    def cheapest(self, row: int, most: int, besides: Container[tuple] = ()) -> list[Component]:
        """The cheapest right-hand sides of the row, fitted; without those that are in `besides` by their key."""
        position, middle = self._terms.position, self._terms.middle
        sets = []
        for structure in islice(self._language.structures(row), most):
            if structure.divisor == ONE and (structure.terms, ONE) not in besides:
                numbers = [position.get(term, -1) for term in structure.terms]
                columns = [middle[number] if number >= 0 else -1 for number in numbers]
                if columns and min(columns) >= 0:
                    sets.append(columns)
        return [component for _, component in self._fits.fitted(row, CHEAP_KAPPA, sets)]

    def _known(self, rows: Sequence[int]) -> dict[int, list[Component]]:
        known = {row: self._language.rows[row].known for row in rows}
        return {row: [known_component(right)] for row, right in known.items() if right is not None}

    def _by_noise(self, rows: Sequence[int], kappas: Sequence[float]) -> dict[int, dict[float, list[Described]]]:
        """For each row that is not known, the right-hand sides that each noise model selects, shortest first."""
        rows = [row for row in rows if self._language.rows[row].known is None]
        found: dict[int, dict[float, list[Described]]] = {row: {} for row in rows}
        patterns = dict.fromkeys(self._fits.rows[row].pattern for row in rows)
        for kappa in kappas:
            for pattern in patterns:
                own = [row for row in rows if self._fits.rows[row].pattern == pattern]
                for row, ranked in zip(own, self._ranked(own, kappa), strict=True):
                    if ranked:
                        found[row][kappa] = ranked
        return found

    def _evidence(self, row: int, found: dict[float, list[Described]], along: TermValues) -> RowEvidence:
        components = {c.key: c for c in _merged(found)}
        components |= {c.key: c for c in self.cheapest(row, _CHEAP, components)}
        distances = np.full((len(components), len(KAPPAS)), np.nan)
        for k, kappa in enumerate(KAPPAS):
            lengths = {c.key: length for length, c in reversed(found.get(kappa, []))}
            shortest = min(lengths.values(), default=math.nan)
            missing = [c for key, c in components.items() if key not in lengths and c.divisor == ONE]
            lengths |= zip([c.key for c in missing], self._fits.lengths(row, kappa, missing), strict=True)
            for i, key in enumerate(components):
                length = lengths.get(key, math.inf)
                if math.isfinite(length):
                    distances[i, k] = length - shortest
        handicaps = _handicaps(found)
        ranks = distances + [handicaps.get(kappa, math.nan) for kappa in KAPPAS]
        ranks = np.where(np.isnan(ranks), _FARTHEST, ranks).min(axis=1, initial=_FARTHEST)
        listed = list(components.values())
        bits = [self._fits.bits(row, c) for c in listed]
        return row_evidence(listed, ranks, distances, bits, along.shares(row, listed))

    def _ranked(self, rows: Sequence[int], kappa: float) -> list[list[Described]]:
        """(description length, component) of each of these rows, of one pattern and noise model, the best first."""
        columns = self._columns(rows[0], kappa)
        divided = self._divided.whitened(self._fits.filtered(rows[0], kappa)[1])

        def selected(job: tuple[int, bool]) -> list[Described]:
            row, over = job
            return self._over(row, kappa, *divided) if over else self._selected(row, kappa, *columns)

        parts = iter(self._spread(selected, [(row, over) for row in rows for over in (False, True)]))
        return [sorted([*next(parts), *next(parts)], key=lambda pair: pair[0]) for _ in rows]

    def _columns(self, row: int, kappa: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(whitened columns of length 1 and their tangents, lengths of the columns, tangents that do not vanish)."""
        terms, fits = self._terms, self._fits
        rows = whitened(fits.integrals, fits.filtered(row, kappa)[1])
        n = len(terms.owner)
        sizes = np.sqrt(np.einsum("ij,ij->i", rows[:n], rows[:n]))
        # A column that is undefined, or like an initial value, is left out.
        sizes = np.where(sizes > 1e-9 * fits.largest[:n], sizes, np.inf)
        rows[:n] /= sizes[:, None]
        rows[n:] /= sizes[terms.tangent_of][:, None]
        return rows, sizes, np.einsum("ij,ij->i", rows[n:], rows[n:]) > 1e-12

    def _selected(
        self, row: int, kappa: float, rows: np.ndarray, sizes: np.ndarray, moving: np.ndarray
    ) -> list[Described]:
        """(description length, component) of the best sums of terms."""
        terms = self._terms
        y = self._fits.explained(row, kappa)
        n, bits = len(terms.owner), terms.bits[row]
        own = np.isfinite(sizes) & np.isfinite(bits)[terms.owner]  # the columns that may stand in this row
        tangents = np.flatnonzero(own[terms.tangent_of] & moving)
        own[terms.tangent_of[tangents]] = False
        own = np.concatenate([terms.tangent_of[tangents], np.flatnonzero(own)])  # those with a tangent first
        cost = (1 + terms.n_inner) * math.log(len(y)) + _NATS_PER_BIT * bits
        found = shortest_sets(
            Choices(
                rows[np.concatenate([own, n + tangents])][None], y, terms.owner[own], cost[None],
                self._language.count_cost(row, _DEPTH)[None], self._keys,
            ),
            BeamOptions(
                width=25, depth=_DEPTH, branches=20, swaps=20, swap_branches=8, margin=25.0,
                floor=self._fits.floors[row], fewest=1, listed=_LISTED,
            ),
        )  # fmt: skip
        required = {terms.position[term] for term in self._language.rows[row].required}
        open_inside = terms.n_inner[terms.owner] > 0
        sets = []
        for i, (columns, size) in enumerate(zip(own[found.columns[0]], found.size[0], strict=True)):
            chosen = columns[:size]
            fitted = i < _REFINED or not open_inside[chosen].any()
            if size and fitted and required <= set(terms.owner[chosen].tolist()):
                sets.append(chosen.tolist())
        return self._fits.fitted(row, kappa, sets)

    def _over(self, row: int, kappa: float, divided: np.ndarray, sizes: np.ndarray) -> list[Described]:
        """(description length, component) of right-hand sides with a common denominator."""
        required = set(self._language.rows[row].required)
        _, _, log_determinant = self._fits.filtered(row, kappa)
        selected = self._divided.selected(row, divided, sizes, self._fits.explained(row, kappa), self._fits.floors[row])
        return [(length + log_determinant, c) for length, c in selected if required <= set(c.terms)]


def _handicaps(found: Mapping[float, Sequence[Described]]) -> dict[float, float]:
    """What counts against the list of each noise model, by how much longer its best one is than that of the others."""
    shortest = {kappa: ranked[0][0] for kappa, ranked in found.items()}
    best = min(shortest.values(), default=0.0)
    return {kappa: min(0.5 * (length - best), _OTHER_NOISE) for kappa, length in shortest.items()}


def _merged(found: Mapping[float, Sequence[Described]]) -> list[Component]:
    """The lists of several noise models as one, ranked by the distance to the best of their own model."""
    merged: dict[tuple[tuple[Expression, ...], Expression], Component] = {}
    handicaps = _handicaps(found)
    for kappa, ranked in found.items():
        for length, component in ranked:
            rank = length - ranked[0][0] + handicaps[kappa]
            if component.key not in merged or rank < merged[component.key].rank:
                merged[component.key] = component.ranked(rank)
    return sorted(merged.values(), key=lambda c: c.rank)
