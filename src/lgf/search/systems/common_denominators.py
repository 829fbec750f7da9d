"""Selection of right-hand sides with a common denominator, (C*f + C*g)/(1 + C*x), in integral form.

The constants of a denominator are taken from a coarse grid. For each choice the numerator is linear, and its terms are
selected by the same beam search as without a denominator.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lgf.expression.monomials import n_constants
from lgf.expression.numeric import evaluate_known, known_values
from lgf.expression.tree import MINUS_ONE, Expression, power
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.systems.component import Component
from lgf.search.systems.integral_form import Needed
from lgf.search.systems.term_grid import values_inside
from lgf.settings.ranges import Count, Tally
from lgf.solver.kernels.beam import BeamOptions, Columns, make_pool, select_terms
from lgf.solver.kernels.integral_form import Grid, Rows, integrate_values, whiten


@dataclass(frozen=True)
class DenominatorSettings:
    """The sizes of the selection; no denominators with `divisors = 0`."""

    divisors: Tally = 12  # the cheapest of each row
    numerators: Count = 14  # the cheapest terms of each row
    values: Count = 9  # of the constants of one divisor
    width: Count = 6
    depth: Count = 5
    listed: Count = 10  # right-hand sides of a row and noise model


class DividedTerms:
    """Terms over every divisor with constants from its grid, integrated along a trajectory."""

    def __init__(
        self, language: SystemLanguage, target: Target, grid: Grid, needed: Needed, settings: DenominatorSettings
    ):
        self._language, self._settings = language, settings
        rows = [row for row, own in enumerate(language.rows) if own.known is None]
        self._numerators = tuple(dict.fromkeys(t for row in rows for t in self._cheapest(row)))
        divisors = {d: None for row in rows for d, _ in language.divisors(row)[: settings.divisors]}
        names = ["t", *map(str, target.frame.columns), *target.frame.inputs]
        known = known_values(dict(zip(names, [grid.t, *grid.columns, *grid.inputs], strict=True)))
        shape = grid.t.shape
        above = np.array([np.broadcast_to(evaluate_known(t, known), shape) for t in self._numerators])
        self._choices: list[tuple[Expression, tuple[float, ...]]] = []
        parts: list[np.ndarray] = []
        for divisor in divisors:
            for values in values_inside(power(divisor, MINUS_ONE), n_constants(divisor), target, settings.values):
                below = np.broadcast_to(evaluate_known(divisor, known, values), shape)
                if np.all(np.isfinite(below)) and np.abs(below).min() > 0.0:
                    self._choices.append((divisor, values))
                    parts.append(needed.of(_integrals(above / below, grid)))
        self._integrals = np.concatenate(parts) if parts else needed.of(_integrals(above[:0], grid))

    def _cheapest(self, row: int) -> list[Expression]:
        plain = [t.expression for t in self._language.terms(row) if n_constants(t.expression) == 0]
        return plain[: self._settings.numerators]

    def whitened(self, filtered: Rows) -> np.ndarray:
        """The whitened rows [choice, numerator, row]; `filtered` is for the needed places."""
        out = np.empty((len(self._integrals), len(filtered.sample)))
        whiten(self._integrals, filtered, out)
        return out.reshape(len(self._choices), len(self._numerators), len(filtered.sample))

    def selected(self, row: int, whitened: np.ndarray, y: np.ndarray, floor: float) -> list[tuple[float, Component]]:
        """(description length without the determinant, component) of the best right-hand sides, best first."""
        settings, language = self._settings, self._language
        n = len(y)
        bits = np.array([language.rows[row].cost.get(t, math.inf) for t in self._numerators])
        cost = math.log(n) + 2 * math.log(2) * bits
        keys = np.random.default_rng(0).integers(1, 2**63, len(bits), dtype=np.uint64)
        options = BeamOptions(
            settings.width, settings.depth, settings.width, settings.width, settings.width, math.inf, float(n), floor
        )
        results: list[tuple[float, int, list[int]]] = []
        for number, (divisor, values) in enumerate(self._choices):
            count_cost = language.count_cost(row, settings.depth, divisor) + len(values) * math.log(n)
            if not np.any(np.isfinite(count_cost[2:])):
                continue
            sizes = np.linalg.norm(whitened[number], axis=1)
            sound = sizes > 1e-9 * sizes.max(initial=1e-300)
            columns = whitened[number] / np.where(sound, sizes, 1.0)[:, None]
            none = np.full(len(bits), -1, np.int64)
            pool = make_pool(options)
            select_terms(
                Columns(
                    columns @ columns.T, columns @ y, float(y @ y), np.arange(len(bits)), none,
                    np.where(sound, cost, np.inf), keys,
                ),
                count_cost, options, pool,
            )  # fmt: skip
            found = int(pool.count[0])
            # A single term over a divisor is a term of the language by itself.
            lengths = np.where(pool.size[:found] > 1, pool.length[:found], np.inf)
            for place in np.argsort(lengths, kind="stable")[:2]:
                if math.isfinite(lengths[place]):
                    chosen = [int(c) for c in pool.columns[place, : pool.size[place]]]
                    results.append((float(lengths[place]), number, chosen))
        results.sort(key=lambda result: result[0])
        best: dict[tuple, tuple[float, Component]] = {}
        for length, number, chosen in results:
            component = self._component(row, length, number, chosen, whitened[number], y)
            best.setdefault(component.key, (length, component))
            if len(best) == settings.listed:
                break
        return list(best.values())

    def _component(
        self, row: int, length: float, number: int, chosen: Sequence[int], whitened: np.ndarray, y: np.ndarray
    ) -> Component:
        divisor, values = self._choices[number]
        coefficients = np.linalg.lstsq(whitened[list(chosen)].T, y, rcond=None)[0]
        by_term = {self._numerators[c]: float(v) for c, v in zip(chosen, coefficients, strict=True)}
        terms = self._language.rows[row].ordered(by_term)
        inner = ((),) * len(terms)
        return Component(terms, tuple(by_term[t] for t in terms), inner, divisor, values, rank=length)


def _integrals(values: np.ndarray, grid: Grid) -> np.ndarray:
    """The integrals [column, depth, sample] of values [column, node]; 0 of values that are too large."""
    values[~np.all(np.abs(values) < 1e12, axis=1)] = 0.0
    out = np.zeros((len(values), grid.n_depths, len(grid.node)))
    integrate_values(values, grid, out)
    return out
