"""Lists of right-hand sides for each row of a system, selected in integral form along a smooth trajectory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lgf.expression.tree import Expression
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.systems.common_denominators import DenominatorSettings, DividedTerms
from lgf.search.systems.component import Component, known_component
from lgf.search.systems.integral_form import (
    MeasuredRows,
    integrals_of,
    make_grid,
    measured_rows,
    whitened,
    whitening,
)
from lgf.search.systems.term_grid import TermGrid
from lgf.settings.ranges import Count, Positive, Weight
from lgf.solver.kernels.beam import BeamOptions, Columns, make_pool, select_terms
from lgf.solver.kernels.integral_form import Grid, Rows, fit_row

_TANGENT_STEP = 0.02
_NATS_PER_BIT = 2 * math.log(2)


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
    ):
        self._language, self._target, self._terms, self._settings = language, target, terms, settings
        self._grid: Grid = make_grid(target, columns)
        self._rows: list[MeasuredRows] = measured_rows(target, settings.most_rows)
        moved = terms.values[terms.tangent_of].copy()
        moved[np.arange(len(moved)), terms.tangent_constant] *= 1.0 + _TANGENT_STEP
        owner = np.concatenate([terms.owner, terms.owner[terms.tangent_of]])
        self._integrals = integrals_of(terms.programs, owner, np.concatenate([terms.values, moved]), self._grid)
        for tangent, column in zip(self._integrals[len(terms.owner) :], terms.tangent_of, strict=True):
            tangent -= self._integrals[column]
            tangent /= _TANGENT_STEP
        self._filters: dict[tuple[bytes, float], tuple[Rows, float]] = {}
        self._divided = DividedTerms(language, target, self._grid, settings.denominators)

    def lists(self, rows: Sequence[int], kappas: Sequence[float] | None = None) -> dict[int, list[Component]]:
        """For each of these rows its right-hand sides, the most promising first."""
        kappas = self._settings.kappas if kappas is None else kappas
        known = {row: self._language.rows[row].known for row in rows}
        rows = [row for row in rows if known[row] is None]
        found: dict[int, list[tuple[float, list[tuple[float, Component]]]]] = {row: [] for row in rows}
        for kappa in kappas:
            grams: dict[bytes, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
            divided: dict[bytes, np.ndarray] = {}
            for row in rows:
                pattern = self._rows[row].pattern
                if pattern not in grams:
                    grams[pattern] = self._gram(row, kappa)
                    divided[pattern] = self._divided.whitened(self._filter(row, kappa)[0])
                ranked = self._selected(row, kappa, *grams[pattern]) + self._over(row, kappa, divided[pattern])
                ranked.sort(key=lambda pair: pair[0])
                if ranked:
                    found[row].append((ranked[0][0], ranked))
        lists = {row: _merged(models, self._settings.other_noise) for row, models in found.items()}
        return lists | {row: [known_component(right)] for row, right in known.items() if right is not None}

    def fitted(self, row: int, terms: Sequence[Expression], kappa: float) -> tuple[float, Component] | None:
        """(description length, the component) of these terms, inner constants by a search from the grid's middle."""
        numbers = [self._terms.position.get(term, -1) for term in terms]
        if min(numbers, default=0) < 0:
            return None
        columns = []
        for number in numbers:
            own = np.flatnonzero(self._terms.owner == number)
            if not len(own):
                return None
            columns.append(int(own[len(own) // 2]))
        return self._fit(row, kappa, columns)

    def _filter(self, row: int, kappa: float) -> tuple[Rows, float]:
        key = self._rows[row].pattern, kappa
        if key not in self._filters:
            self._filters[key] = whitening(self._target, self._rows[row], kappa)
        return self._filters[key]

    def _explained(self, row: int, kappa: float) -> np.ndarray:
        filtered, _ = self._filter(row, kappa)
        return whitened(self._rows[row].values[None], filtered)[0]

    def _floor(self, row: int) -> float:
        rows = self._rows[row]
        measured = rows.values[rows.depth, rows.sample] * rows.scale
        return self._settings.floor**2 * len(measured) * max(float(np.var(measured)), 1e-300)

    def _gram(self, row: int, kappa: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(Gram matrix of columns and tangents, whitened columns of length 1, lengths of the columns)."""
        filtered, _ = self._filter(row, kappa)
        rows = whitened(self._integrals, filtered)
        n = len(self._terms.owner)
        sizes = np.linalg.norm(rows[:n], axis=1)
        least = 1e-9 * np.abs(self._integrals[:n]).max(axis=(1, 2))
        sizes = np.where(sizes > least, sizes, np.inf)  # a column that is undefined or like an initial value
        rows[:n] /= sizes[:, None]
        rows[n:] /= sizes[self._terms.tangent_of][:, None]
        return rows @ rows.T, rows, sizes

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
            float(n_rows), self._floor(row),
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
        selected = self._divided.selected(row, divided, self._explained(row, kappa), self._floor(row))
        return [(length + log_determinant, c) for length, c in selected if required <= set(c.terms)]

    def _fit(self, row: int, kappa: float, columns: Sequence[int]) -> tuple[float, Component] | None:
        """(description length, component) of these columns, their inner constants fitted."""
        terms = self._terms
        filtered, log_determinant = self._filter(row, kappa)
        y = self._explained(row, kappa)
        numbers = terms.owner[list(columns)]
        values = terms.values[list(columns)].copy()
        lower, upper = np.minimum(values * 20.0, values / 20.0), np.maximum(values * 20.0, values / 20.0)
        coefficients, rss = fit_row(
            terms.programs, numbers, values, self._grid, filtered, y, lower, upper, self._settings.iterations
        )
        if not np.isfinite(rss):
            return None
        expressions = [terms.terms[i] for i in numbers]
        order = {e: i for i, e in enumerate(self._language.rows[row].ordered(expressions))}
        places = sorted(range(len(numbers)), key=lambda i: order[expressions[i]])
        n_inner = [int(terms.n_inner[i]) for i in numbers]
        bits = self._language.bits(row, expressions)
        n = len(y)
        length = n * math.log(max(rss, self._floor(row)) / n) + log_determinant
        length += (len(numbers) + sum(n_inner)) * math.log(n) + _NATS_PER_BIT * bits
        component = Component(
            tuple(expressions[i] for i in places),
            tuple(float(coefficients[i]) for i in places),
            tuple(tuple(float(v) for v in values[i, : n_inner[i]]) for i in places),
            rank=length,
        )
        return length, component


def _merged(models: list[tuple[float, list[tuple[float, Component]]]], most: float) -> list[Component]:
    """The lists of several noise models as one, ranked by the distance to the best of their own model."""
    merged: dict[tuple[tuple[Expression, ...], Expression], Component] = {}
    best = min((own for own, _ in models), default=0.0)
    for own, ranked in models:
        for length, component in ranked:
            rank = length - own + min(0.5 * (own - best), most)
            if component.key not in merged or rank < merged[component.key].rank:
                merged[component.key] = replace(component, rank=rank)
    return sorted(merged.values(), key=lambda c: c.rank)
