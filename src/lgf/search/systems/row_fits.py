"""Sums of terms fitted to the rows of a system, in integral form along one trajectory."""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, pairwise

import numpy as np

from lgf.expression.tree import ONE
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.systems.component import Component
from lgf.search.systems.integral_form import (
    MeasuredRows,
    integrals_of,
    make_grid,
    measured_rows,
    needed_places,
    whitened,
    whitening,
)
from lgf.search.systems.term_grid import TermGrid
from lgf.solver.kernels.integral_form import Grid, Integrated, Rows, Sums, fit_sums

_TANGENT_STEP = 0.02
_NATS_PER_BIT = 2 * math.log(2)
_MOST_ROWS = 600  # of the record that are used
FLOOR = 1e-3  # least deviation of the residual that is believed, relative to the signal
_ITERATIONS = 8  # of the constants inside terms
_FEW_ITERATIONS = 2  # of constants that were fitted with another noise model

Described = tuple[float, Component]
"""(description length, component)"""


class RowFits:
    """The integral form of every row along one trajectory, with the integrals of the columns and their tangents."""

    def __init__(
        self,
        language: SystemLanguage,
        target: Target,
        terms: TermGrid,
        columns: np.ndarray,
    ):
        self._language, self._target, self._terms = language, target, terms
        self.grid: Grid = make_grid(target, columns)
        self.rows: list[MeasuredRows] = measured_rows(target, _MOST_ROWS)
        self.needed = needed_places(self.rows)
        moved = terms.values[terms.tangent_of].copy()
        moved[np.arange(len(moved)), terms.tangent_constant] *= 1.0 + _TANGENT_STEP
        owner = np.concatenate([terms.owner, terms.owner[terms.tangent_of]])
        self.integrals, self.largest = integrals_of(
            terms.programs, owner, np.concatenate([terms.values, moved]), self.grid, self.needed
        )
        tangents = self.integrals[len(terms.owner) :]
        tangents -= self.integrals[terms.tangent_of]
        tangents /= _TANGENT_STEP
        self.floors = [_least_squared_residual(rows, FLOOR) for rows in self.rows]
        self._filters: dict[tuple[bytes, float], tuple[Rows, Rows, float]] = {}
        self._measured: dict[tuple[int, float], np.ndarray] = {}
        self._bits: list[dict[frozenset[int], float]] = [{} for _ in language.rows]

    @cached_property
    def _order(self) -> list[list[int]]:
        """The place [row, term] of each term in printed equations."""
        return [[row.rank.get(term, len(row.rank)) for term in self._terms.terms] for row in self._language.rows]

    def filtered(self, row: int, kappa: float) -> tuple[Rows, Rows, float]:
        """(the whitened rows, the same for the needed places, the logarithm of the determinant)."""
        key = self.rows[row].pattern, kappa
        if key not in self._filters:
            filtered, log_determinant = whitening(self._target, self.rows[row], kappa)
            self._filters[key] = filtered, self.needed.rows(filtered), log_determinant
        return self._filters[key]

    def explained(self, row: int, kappa: float) -> np.ndarray:
        """What was measured of a row, whitened."""
        key = row, kappa
        if key not in self._measured:
            filtered, _, _ = self.filtered(row, kappa)
            self._measured[key] = whitened(self.rows[row].values[None], filtered)[0]
        return self._measured[key]

    def fitted(self, row: int, kappa: float, sets: Sequence[Sequence[int]]) -> list[Described]:
        """The sums of these columns, their inner constants fitted; without those that cannot be fitted."""
        terms = self._terms
        column = np.array([c for chosen in sets for c in chosen], np.int64)
        sums = _sums(list(map(len, sets)), terms.owner[column], column, terms.values[column])
        lengths = self._described(row, kappa, sums, _ITERATIONS)
        first, numbers, weights, values = sums.first.tolist(), sums.term.tolist(), sums.weight.tolist(), sums.x.tolist()
        n_inner, order = terms.n_inner.tolist(), self._order[row]
        found = []
        for (begin, end), length in zip(pairwise(first), lengths, strict=True):
            if math.isfinite(length):
                places = sorted(range(begin, end), key=lambda i: order[numbers[i]])
                component = Component(
                    tuple(terms.terms[numbers[i]] for i in places),
                    tuple(weights[i] for i in places),
                    tuple(tuple(values[i][: n_inner[numbers[i]]]) for i in places),
                    rank=length,
                )
                found.append((length, component))
        return found

    def lengths(self, row: int, kappa: float, components: Sequence[Component]) -> list[float]:
        """The description lengths of components without a divisor, which another noise model has selected."""
        terms = self._terms
        number = np.array([terms.position[term] for c in components for term in c.terms], np.int64)
        values = np.zeros((len(number), terms.values.shape[1]))
        for i, inner in enumerate(chain.from_iterable(c.inner for c in components)):
            values[i, : len(inner)] = inner
        column = np.where(terms.n_inner[number] == 0, np.array(terms.middle)[number], -1)
        sums = _sums([len(c.terms) for c in components], number, column, values)
        return self._described(row, kappa, sums, _FEW_ITERATIONS)

    def _described(self, row: int, kappa: float, sums: Sums, iterations: int) -> list[float]:
        """The description lengths of the sums, which are fitted in place; infinite if one cannot be fitted."""
        terms, y = self._terms, self.explained(row, kappa)
        filtered, at_needed, log_determinant = self.filtered(row, kappa)
        integrated = Integrated(self.integrals, self.largest, at_needed)
        fit_sums(terms.programs, sums, self.grid, filtered, integrated, y, iterations)
        n = len(y)
        numbers, first = sums.term.tolist(), sums.first.tolist()
        bits = [self._bits_of(row, numbers[begin:end]) for begin, end in pairwise(first)]
        n_constants = np.add.reduceat(1 + terms.n_inner[sums.term], sums.first[:-1]) if len(bits) else np.zeros(0)
        lengths = n * np.log(np.maximum(sums.rss, self.floors[row]) / n) + log_determinant
        return (lengths + n_constants * math.log(n) + _NATS_PER_BIT * np.array(bits)).tolist()

    def bits(self, row: int, component: Component) -> float:
        """The bits of a component in this row."""
        if component.divisor == ONE:
            return self._bits_of(row, [self._terms.position[term] for term in component.terms])
        return self._language.bits(row, component.terms, component.divisor)

    def _bits_of(self, row: int, numbers: list[int]) -> float:
        known, key = self._bits[row], frozenset(numbers)
        if key not in known:
            known[key] = self._language.bits(row, [self._terms.terms[i] for i in numbers])
        return known[key]


def _sums(sizes: Sequence[int], term: np.ndarray, column: np.ndarray, x: np.ndarray) -> Sums:
    return Sums(np.cumsum([0, *sizes]), term, column, x, np.zeros(len(term)), np.zeros(len(sizes)))


def _least_squared_residual(rows: MeasuredRows, floor: float) -> float:
    """The least squared residual of a row that is believed."""
    measured = rows.values[rows.depth, rows.sample] * rows.scale
    return floor**2 * len(measured) * max(float(np.var(measured)), 1e-300)
