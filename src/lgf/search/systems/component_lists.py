"""Lists of right-hand sides for each row of a system, selected in integral form along a smooth trajectory."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from lgf.expression.tree import ONE, Expression
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.systems.common_denominators import DenominatorSettings, DividedTerms
from lgf.search.systems.component import Component, known_component
from lgf.search.systems.integral_form import (
    MeasuredRows,
    gram_matrix,
    integrals_of,
    make_grid,
    measured_rows,
    needed_places,
    whitened,
    whitening,
)
from lgf.search.systems.row_evidence import KAPPAS, RowEvidence, TermShares, certain, row_evidence
from lgf.search.systems.term_grid import TermGrid
from lgf.settings.ranges import Count, Positive, Tally, Weight
from lgf.solver.kernels.beam import BeamOptions, Columns, make_pool, select_terms
from lgf.solver.kernels.integral_form import Grid, Rows, fit_row
from lgf.threads import Spread, alone

_TANGENT_STEP = 0.02
_NATS_PER_BIT = 2 * math.log(2)
CHEAP_KAPPA = 10.0  # noise model of the constants of cheap right-hand sides
_FEW_ITERATIONS = 2  # of constants that were fitted with another noise model
_FARTHEST = 600.0  # rank of what cannot be fitted

_Described = tuple[float, Component]
"""(description length, component)"""


@dataclass(frozen=True)
class SelectionOfTermsSettings:
    """The selection of terms for one row: noise models and sizes of the beam search."""

    kappas: tuple[Weight, ...] = (0.0, 10.0, 100.0)  # variance of the random walk, in units of the white noise
    width: Count = 25
    depth: Count = 7
    branches: Count = 20
    swaps: Count = 20
    swap_branches: Count = 8
    margin: Weight = 25.0
    listed: Count = 60  # right-hand sides of a row and noise model
    refined: Count = 15  # of these, with constants inside functions fitted
    iterations: Count = 8
    floor: Positive = 1e-3  # least deviation of the residual that is believed, relative to the signal
    other_noise: Weight = 8.0  # most that a noise model of smaller likelihood counts against its list
    most_rows: Count = 600
    cheap: Tally = 100  # cheapest right-hand sides of a row that a trained ranking is asked about
    denominators: DenominatorSettings = DenominatorSettings()


class ComponentSelection:
    """The integral form of every row along one trajectory, in which terms are selected and fitted."""

    def __init__(
        self,
        language: SystemLanguage,
        target: Target,
        terms: TermGrid,
        columns: np.ndarray,
        settings: SelectionOfTermsSettings = SelectionOfTermsSettings(),
        spread: Spread = alone,
    ):
        self._language, self._target, self._terms, self._settings = language, target, terms, settings
        self._spread = spread
        self._grid: Grid = make_grid(target, columns)
        self._rows: list[MeasuredRows] = measured_rows(target, settings.most_rows)
        moved = terms.values[terms.tangent_of].copy()
        moved[np.arange(len(moved)), terms.tangent_constant] *= 1.0 + _TANGENT_STEP
        owner = np.concatenate([terms.owner, terms.owner[terms.tangent_of]])
        self._needed = needed_places(self._rows)
        self._integrals, self._largest = integrals_of(
            terms.programs, owner, np.concatenate([terms.values, moved]), self._grid, self._needed
        )
        for tangent, column in zip(self._integrals[len(terms.owner) :], terms.tangent_of, strict=True):
            tangent -= self._integrals[column]
            tangent /= _TANGENT_STEP
        self._filters: dict[tuple[bytes, float], tuple[Rows, float]] = {}
        self._measured: dict[tuple[int, float], np.ndarray] = {}
        self._room: np.ndarray | None = None  # for the Gram matrix of one noise model after the other
        self._floors = [self._floor_of(rows) for rows in self._rows]
        self._divided = DividedTerms(language, target, self._grid, self._needed, settings.denominators)

    def lists(self, rows: Sequence[int], kappas: Sequence[float] | None = None) -> dict[int, list[Component]]:
        """For each of these rows its right-hand sides, the most promising first."""
        found = self._by_noise(rows, self._settings.kappas if kappas is None else kappas)
        return {row: _merged(models, self._settings.other_noise) for row, models in found.items()} | self._known(rows)

    def evidence(self, rows: Sequence[int]) -> dict[int, RowEvidence]:
        """For each of these rows its right-hand sides, and the cheapest of the language, with what is known of them."""
        evidence = {row: self._evidence(row, found) for row, found in self._by_noise(rows, KAPPAS).items()}
        return evidence | {row: certain(known) for row, known in self._known(rows).items()}

    def _known(self, rows: Sequence[int]) -> dict[int, list[Component]]:
        known = {row: self._language.rows[row].known for row in rows}
        return {row: [known_component(right)] for row, right in known.items() if right is not None}

    def _by_noise(self, rows: Sequence[int], kappas: Sequence[float]) -> dict[int, dict[float, list[_Described]]]:
        """For each row that is not known, the right-hand sides that each noise model selects, shortest first."""
        rows = [row for row in rows if self._language.rows[row].known is None]
        found: dict[int, dict[float, list[_Described]]] = {row: {} for row in rows}
        patterns = dict.fromkeys(self._rows[row].pattern for row in rows)
        for kappa in kappas:
            for pattern in patterns:
                own = [row for row in rows if self._rows[row].pattern == pattern]
                for row, ranked in zip(own, self._ranked(own, kappa), strict=True):
                    if ranked:
                        found[row][kappa] = ranked
        self._room = None  # it is the largest part of the memory of a search
        return found

    def _evidence(self, row: int, found: dict[float, list[_Described]]) -> RowEvidence:
        language, settings = self._language, self._settings
        components = {c.key: c for c in _merged(found, settings.other_noise)}
        for structure in islice(language.structures(row), settings.cheap):
            if structure.divisor == ONE and (structure.terms, ONE) not in components:
                fit = self.fitted(row, structure.terms, CHEAP_KAPPA)
                if fit is not None:
                    components.setdefault(fit[1].key, fit[1])
        distances = np.full((len(components), len(KAPPAS)), np.nan)
        for k, kappa in enumerate(KAPPAS):
            lengths = {c.key: length for length, c in reversed(found.get(kappa, []))}
            shortest = min(lengths.values(), default=math.nan)
            for i, (key, component) in enumerate(components.items()):
                length = lengths.get(key)
                if length is None and component.divisor == ONE:
                    length = self._length(row, kappa, component)
                if length is not None and math.isfinite(length):
                    distances[i, k] = length - shortest
        handicaps = _handicaps(found, settings.other_noise)
        ranks = distances + [handicaps.get(kappa, math.nan) for kappa in KAPPAS]
        ranks = np.where(np.isnan(ranks), _FARTHEST, ranks).min(axis=1, initial=_FARTHEST)
        listed = [replace(c, rank=float(rank)) for c, rank in zip(components.values(), ranks, strict=True)]
        bits = [language.bits(row, c.terms, c.divisor) for c in listed]
        return row_evidence(listed, distances, bits, TermShares(self._target, row))

    def _ranked(self, rows: Sequence[int], kappa: float) -> list[list[_Described]]:
        """(description length, component) of each of these rows, of one pattern and noise model, the best first."""
        gram = self._gram(rows[0], kappa)
        divided = self._divided.whitened(self._needed.rows(self._filter(rows[0], kappa)[0]))

        def selected(job: tuple[int, bool]) -> list[_Described]:
            row, over = job
            return self._over(row, kappa, divided) if over else self._selected(row, kappa, *gram)

        parts = iter(self._spread(selected, [(row, over) for row in rows for over in (False, True)]))
        return [sorted([*next(parts), *next(parts)], key=lambda pair: pair[0]) for _ in rows]

    def fitted(self, row: int, terms: Sequence[Expression], kappa: float) -> tuple[float, Component] | None:
        """(description length, the component) of these terms, inner constants by a search from the grid's middle."""
        numbers = [self._terms.position.get(term, -1) for term in terms]
        if min(numbers, default=0) < 0:
            return None
        columns = [self._terms.middle[number] for number in numbers]
        return None if min(columns, default=0) < 0 else self._fit(row, kappa, columns)

    def _filter(self, row: int, kappa: float) -> tuple[Rows, float]:
        key = self._rows[row].pattern, kappa
        if key not in self._filters:
            self._filters[key] = whitening(self._target, self._rows[row], kappa)
        return self._filters[key]

    def _explained(self, row: int, kappa: float) -> np.ndarray:
        key = row, kappa
        if key not in self._measured:
            filtered, _ = self._filter(row, kappa)
            self._measured[key] = whitened(self._rows[row].values[None], filtered)[0]
        return self._measured[key]

    def _floor_of(self, rows: MeasuredRows) -> float:
        """The least squared residual of a row that is believed."""
        measured = rows.values[rows.depth, rows.sample] * rows.scale
        return self._settings.floor**2 * len(measured) * max(float(np.var(measured)), 1e-300)

    def _gram(self, row: int, kappa: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(Gram matrix of columns and tangents, whitened columns of length 1, lengths of the columns)."""
        filtered, _ = self._filter(row, kappa)
        rows = whitened(self._integrals, self._needed.rows(filtered))
        n = len(self._terms.owner)
        sizes = np.linalg.norm(rows[:n], axis=1)
        # A column that is undefined, or like an initial value, is left out.
        sizes = np.where(sizes > 1e-9 * self._largest[:n], sizes, np.inf)
        rows[:n] /= sizes[:, None]
        rows[n:] /= sizes[self._terms.tangent_of][:, None]
        if self._room is None:  # one for all noise models, so that memory is not touched anew
            self._room = np.empty((len(rows), len(rows)))
        return gram_matrix(rows, self._room, self._spread), rows, sizes

    def _selected(
        self, row: int, kappa: float, gram: np.ndarray, rows: np.ndarray, sizes: np.ndarray
    ) -> list[tuple[float, Component]]:
        settings, terms = self._settings, self._terms
        y = self._explained(row, kappa)
        n, n_rows = len(terms.owner), len(y)
        required = set(self._language.rows[row].required)
        tangent = np.full(n, -1, np.int64)
        lengths = np.sum(rows[n:] ** 2, axis=1)
        tangent[terms.tangent_of[lengths > 1e-12]] = n + np.flatnonzero(lengths > 1e-12)
        bits = terms.bits[row][terms.owner]
        cost = (1 + terms.n_inner[terms.owner]) * math.log(n_rows) + _NATS_PER_BIT * bits
        cost[~np.isfinite(sizes)] = np.inf  # an infinite cost excludes a column
        columns = Columns(
            gram,
            rows @ y,
            float(y @ y),
            terms.owner,
            tangent,
            cost,
            np.random.default_rng(0).integers(1, 2**63, len(terms.terms), dtype=np.uint64),
        )
        options = BeamOptions(
            settings.width, settings.depth, settings.branches, settings.swaps, settings.swap_branches, settings.margin,
            float(n_rows), self._floors[row],
        )  # fmt: skip
        pool = make_pool(options)
        select_terms(columns, self._language.count_cost(row, settings.depth), options, pool)
        count = int(pool.count[0])
        order = np.argsort(pool.length[:count], kind="stable")[: settings.listed]
        results = []
        for i, place in enumerate(order):
            chosen = [int(c) for c in pool.columns[place, : pool.size[place]]]
            if not required <= {terms.terms[terms.owner[c]] for c in chosen}:
                continue
            if i < settings.refined or not terms.n_inner[terms.owner[chosen]].any():
                fit = self._fit(row, kappa, chosen)
                if fit is not None:
                    results.append(fit)
        return results

    def _over(self, row: int, kappa: float, divided: np.ndarray) -> list[tuple[float, Component]]:
        """(description length, component) of right-hand sides with a common denominator."""
        required = set(self._language.rows[row].required)
        _, log_determinant = self._filter(row, kappa)
        selected = self._divided.selected(row, divided, self._explained(row, kappa), self._floors[row])
        return [(length + log_determinant, c) for length, c in selected if required <= set(c.terms)]

    def _fit(self, row: int, kappa: float, columns: Sequence[int]) -> tuple[float, Component] | None:
        """(description length, component) of these columns, their inner constants fitted."""
        terms = self._terms
        numbers = terms.owner[list(columns)]
        values = terms.values[list(columns)].copy()
        coefficients, length = self._fit_terms(row, kappa, numbers, values, self._settings.iterations)
        if not np.isfinite(length):
            return None
        expressions = [terms.terms[i] for i in numbers]
        order = {e: i for i, e in enumerate(self._language.rows[row].ordered(expressions))}
        places = sorted(range(len(numbers)), key=lambda i: order[expressions[i]])
        n_inner = [int(terms.n_inner[i]) for i in numbers]
        component = Component(
            tuple(expressions[i] for i in places),
            tuple(float(coefficients[i]) for i in places),
            tuple(tuple(float(v) for v in values[i, : n_inner[i]]) for i in places),
            rank=length,
        )
        return length, component

    def _length(self, row: int, kappa: float, component: Component) -> float:
        """The description length of the terms of a component, which another noise model has selected."""
        numbers = np.array([self._terms.position[term] for term in component.terms])
        values = np.zeros((len(numbers), self._terms.values.shape[1]))
        for i, inner in enumerate(component.inner):
            values[i, : len(inner)] = inner
        return self._fit_terms(row, kappa, numbers, values, _FEW_ITERATIONS)[1]

    def _fit_terms(
        self, row: int, kappa: float, numbers: np.ndarray, values: np.ndarray, iterations: int
    ) -> tuple[np.ndarray, float]:
        """(coefficients, description length) of these terms; the values of their constants are fitted in place."""
        terms = self._terms
        filtered, log_determinant = self._filter(row, kappa)
        y = self._explained(row, kappa)
        lower, upper = np.minimum(values * 20.0, values / 20.0), np.maximum(values * 20.0, values / 20.0)
        coefficients, rss = fit_row(
            terms.programs, numbers, values, self._grid, filtered, y, lower, upper, iterations
        )  # fmt: skip
        if not np.isfinite(rss):
            return coefficients, math.inf
        bits = self._language.bits(row, [terms.terms[i] for i in numbers])
        n = len(y)
        length = n * math.log(max(rss, self._floors[row]) / n) + log_determinant
        length += (len(numbers) + int(terms.n_inner[numbers].sum())) * math.log(n) + _NATS_PER_BIT * bits
        return coefficients, length


def _handicaps(found: Mapping[float, Sequence[_Described]], most: float) -> dict[float, float]:
    """What counts against the list of each noise model, by how much longer its best one is than that of the others."""
    shortest = {kappa: ranked[0][0] for kappa, ranked in found.items()}
    best = min(shortest.values(), default=0.0)
    return {kappa: min(0.5 * (length - best), most) for kappa, length in shortest.items()}


def _merged(found: Mapping[float, Sequence[_Described]], most: float) -> list[Component]:
    """The lists of several noise models as one, ranked by the distance to the best of their own model."""
    merged: dict[tuple[tuple[Expression, ...], Expression], Component] = {}
    handicaps = _handicaps(found, most)
    for kappa, ranked in found.items():
        for length, component in ranked:
            rank = length - ranked[0][0] + handicaps[kappa]
            if component.key not in merged or rank < merged[component.key].rank:
                merged[component.key] = replace(component, rank=rank)
    return sorted(merged.values(), key=lambda c: c.rank)
