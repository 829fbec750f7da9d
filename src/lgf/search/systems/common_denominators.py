"""Selection of right-hand sides with a common denominator, (C*f + C*g)/(1 + C*x), in integral form.

The constants of a denominator are taken from a coarse grid. For each choice the numerator is linear, and its terms are
selected by the same beam search as without a denominator.
"""

import math
from collections.abc import Sequence

import numpy as np

from lgf.expression.monomials import n_constants
from lgf.expression.numeric import evaluate_known, known_values
from lgf.expression.tree import MINUS_ONE, Expression, power
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.systems.component import Component
from lgf.search.systems.integral_form import Needed
from lgf.search.systems.term_grid import InnerValues
from lgf.solver.kernels.beam import BeamOptions, Choices, shortest_sets
from lgf.solver.kernels.integral_form import Grid, Rows, integrate_values, whiten
from lgf.solver.kernels.machine import LARGEST_VALUE

_DIVISORS = 12  # of each row, the cheapest
_NUMERATORS = 14  # the cheapest terms of each row
_VALUES = 9  # of the constants of one divisor
_WIDTH, _DEPTH = 6, 5  # of the beam
_LISTED = 10  # right-hand sides of a row and noise model


class DividedTerms:
    """Terms over every divisor with constants from its grid, integrated along a trajectory."""

    def __init__(self, language: SystemLanguage, target: Target, grid: Grid, needed: Needed):
        self._language = language
        rows = [row for row, own in enumerate(language.rows) if own.known is None]
        self._numerators = tuple(dict.fromkeys(t for row in rows for t in self._cheapest(row)))
        divisors = {d: None for row in rows for d, _ in language.divisors(row)[:_DIVISORS]}
        names = ["t", *map(str, target.frame.columns), *target.frame.inputs]
        known = known_values(dict(zip(names, [grid.t, *grid.columns, *grid.inputs], strict=True)))
        shape = grid.t.shape
        above = np.array([np.broadcast_to(evaluate_known(t, known), shape) for t in self._numerators])
        self._choices: list[tuple[Expression, tuple[float, ...]]] = []
        inverses: list[np.ndarray] = []
        inside = InnerValues(target, _VALUES)
        for divisor in divisors:
            for values in inside.of(power(divisor, MINUS_ONE), n_constants(divisor)):
                below = evaluate_known(divisor, known, values)
                if np.all(np.isfinite(below)) and np.abs(below).min() > 0.0:
                    self._choices.append((divisor, values))
                    inverses.append(np.broadcast_to(1.0 / below, shape))
        self._integrals = _integrals(above * np.array(inverses).reshape(-1, 1, *shape), grid, needed)
        self._largest = np.abs(self._integrals).max(axis=(1, 2), initial=0.0).reshape(-1, len(self._numerators))
        self._keys = np.random.default_rng(0).integers(1, 2**63, len(self._numerators), dtype=np.uint64)

    def _cheapest(self, row: int) -> list[Expression]:
        plain = [t.expression for t in self._language.terms(row) if n_constants(t.expression) == 0]
        return plain[:_NUMERATORS]

    def whitened(self, filtered: Rows) -> tuple[np.ndarray, np.ndarray]:
        """(whitened rows of length 1 [choice, numerator, row], their lengths, infinite where they vanish).

        `filtered` is for the needed places.
        """
        out = np.empty((len(self._integrals), len(filtered.sample)))
        whiten(self._integrals, filtered, out)
        out = out.reshape(len(self._choices), len(self._numerators), len(filtered.sample))
        sizes = np.sqrt(np.einsum("ijk,ijk->ij", out, out))
        sizes = np.where(sizes > 1e-9 * self._largest, sizes, np.inf)
        out /= sizes[:, :, None]
        return out, sizes

    def selected(
        self, row: int, whitened: np.ndarray, sizes: np.ndarray, y: np.ndarray, floor: float
    ) -> list[tuple[float, Component]]:
        """(description length without the determinant, component) of the best right-hand sides, best first."""
        language, n = self._language, len(y)
        bits = np.array([language.rows[row].cost.get(t, math.inf) for t in self._numerators])
        count_cost = self._count_costs(row, n)
        possible = np.flatnonzero(np.isfinite(count_cost[:, 2:]).any(axis=1))
        if not len(possible):
            return []
        cost = np.where(sizes[possible] < np.inf, math.log(n) + 2 * math.log(2) * bits, np.inf)
        found = shortest_sets(
            Choices(
                whitened[possible], y, np.arange(len(bits)), cost, count_cost[possible], self._keys
            ),
            # A single term over a divisor is a term of the language by itself.
            BeamOptions(_WIDTH, _DEPTH, _WIDTH, _WIDTH, _WIDTH, math.inf, floor, 2, 2),
        )  # fmt: skip
        best: dict[tuple, tuple[float, Component]] = {}
        choice, place = np.nonzero(np.isfinite(found.length))
        for i in np.argsort(found.length[choice, place], kind="stable"):
            number, chosen = int(possible[choice[i]]), found.columns[choice[i], place[i]]
            chosen = chosen[: found.size[choice[i], place[i]]].tolist()
            key = frozenset(chosen), self._choices[number][0]
            if key not in best:
                length = float(found.length[choice[i], place[i]])
                columns = whitened[number, chosen]  # the selection leaves none that the others explain
                try:
                    coefficients = np.linalg.solve(columns @ columns.T, columns @ y)
                except np.linalg.LinAlgError:  # the columns are independent, but their products are not to 16 digits
                    coefficients = np.linalg.lstsq(columns.T, y)[0]
                best[key] = length, self._component(row, length, number, chosen, coefficients / sizes[number, chosen])
            if len(best) == _LISTED:
                break
        return list(best.values())

    def _count_costs(self, row: int, n: int) -> np.ndarray:
        """The description length [choice, depth + 1] of the number of terms over each divisor and its constants."""
        by_divisor = {d: self._language.count_cost(row, _DEPTH, d) for d in dict.fromkeys(d for d, _ in self._choices)}
        costs = [by_divisor[divisor] + len(values) * math.log(n) for divisor, values in self._choices]
        return np.array(costs).reshape(-1, _DEPTH + 1)

    def _component(
        self, row: int, length: float, number: int, chosen: Sequence[int], coefficients: np.ndarray
    ) -> Component:
        divisor, values = self._choices[number]
        by_term = {self._numerators[c]: float(v) for c, v in zip(chosen, coefficients, strict=True)}
        terms = self._language.rows[row].ordered(by_term)
        inner = ((),) * len(terms)
        return Component(terms, tuple(by_term[t] for t in terms), inner, divisor, values, rank=length)


def _integrals(values: np.ndarray, grid: Grid, needed: Needed) -> np.ndarray:
    """The integrals [column, depth, sample] of values [..., node] at the needed places; 0 of values too large."""
    values = values.reshape(-1, values.shape[-1])
    # NaN fails the comparison.
    values[~(np.abs(values).max(axis=1, initial=0.0) < LARGEST_VALUE)] = 0.0
    out = np.zeros((len(values), grid.n_depths, len(grid.node)))
    integrate_values(values, grid, out)
    return needed.of(out)
