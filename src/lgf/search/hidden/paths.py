"""Paths that a hidden state may have taken.

A measured equation x' = rest + factor * y gives the path y = (x' - rest) / factor for every guess of the rest's
coefficients. A conserved sum gives it for every guess of its value.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lgf.data.row_knowledge import RowKnowledge
from lgf.expression.monomials import n_constants
from lgf.expression.numeric import evaluate
from lgf.expression.tree import Expression
from lgf.language.row_language import RowTerm
from lgf.language.system_language import SystemLanguage
from lgf.search.hidden.coupling import Coupling, couplings
from lgf.search.hidden.record import Curves
from lgf.search.systems.component import Component, component_of, known_component
from lgf.solver.halton import halton

_REST = 2  # terms beside the hidden state in the equation through which it shows
_ONE_COEFFICIENT, _SEVERAL_COEFFICIENTS = 60, 300  # paths for one unknown coefficient, and for more
_SIZES = (-1.0, 0.9)  # decimal logarithms of an unknown coefficient's term, relative to the rate
_WRONG_SIGN = 0.15  # share of the path on which a hidden population may be negative


@dataclass(frozen=True, eq=False)
class Paths:
    """Hidden paths [K, N], each with the component of the equation that it comes from."""

    values: np.ndarray
    weight: np.ndarray  # [N] of its errors
    power: np.ndarray  # [K] the sum of squares of the measured rate, in units of the path, so that paths compare
    row: int | None  # of the equation it comes from
    components: Sequence[Component | None]
    coupled: tuple[int, Expression] | None


class PathFinder:
    """Finder of the paths of one hidden state.

    `scale` is its size where nothing fixes it, `given` are its known initial values by experiment, and `row_terms` the
    terms that may stand in each row.
    """

    def __init__(
        self,
        language: SystemLanguage,
        known: RowKnowledge,
        curves: Curves,
        hidden: int,
        scale: float,
        given: Mapping[int, float],
        row_terms: Sequence[Sequence[RowTerm]],
    ):
        self.language, self.known, self.curves, self.hidden = language, known, curves, hidden
        self.scale, self.given, self.row_terms = scale, given, row_terms
        self.population = hidden in known.populations

    def paths(self) -> Iterator[Paths]:
        """All hidden paths to try."""
        law = next((law for law in self.known.laws if self.hidden in law), None)
        if law is not None:
            yield from self._conserved(law)
            return
        for coupling in couplings(self.language, self.known, self.hidden, self.row_terms, _REST):
            paths = self._coupled(coupling)
            if paths is not None and len(paths.values):
                yield paths

    def _conserved(self, law: Mapping[int, float]) -> Iterator[Paths]:
        """The paths for several values of the conserved sum."""
        frame, curves = self.language.frame, self.curves
        others = sum(
            (
                weight * curves.columns[frame.variables[frame.rates[row]]]
                for row, weight in law.items()
                if row != self.hidden
            ),
            np.zeros(len(curves.t)),
        )
        own = law[self.hidden]
        size = float(np.ptp(others)) or 1.0
        least = float(others.max() if own > 0 else others.min())
        totals = least + np.sign(own) * size * np.geomspace(0.01, 100.0, _ONE_COEFFICIENT)
        if not self.population:
            totals = np.concatenate([totals, least - np.sign(own) * size * np.geomspace(0.01, 100.0, _ONE_COEFFICIENT)])
        if self.given:
            e, value = next(iter(self.given.items()))
            totals = np.array([others[curves.first[e]] + own * value])
        values = (totals[:, None] - others) / own
        yield Paths(values, np.ones(len(curves.t)), np.ones(len(values)), None, [None] * len(values), None)

    def _coupled(self, coupling: Coupling) -> Paths | None:
        """The paths for many coefficients of the rest of the equation through which the hidden state shows."""
        curves, row = self.curves, coupling.row
        rate = curves.columns[self.language.frame.highest[row]]
        size = float(np.sqrt(np.mean(rate**2)))
        if coupling.coupled is None:
            n = n_constants(coupling.rest, coupling.factor)
            drawn = self._draws(n)
            rests = np.array([self._along(coupling.rest, list(c)) for c in drawn])
            factor = np.array([self._along(coupling.factor, list(c)) for c in drawn])
        else:
            values = np.array([self._along(term) for term in coupling.terms]).reshape(-1, len(rate))
            sizes = np.sqrt(np.mean(values**2, axis=1))
            drawn = self._draws(len(coupling.terms)) * size / np.where(sizes > 0, sizes, 1.0)
            rests, factor = drawn @ values, self._along(coupling.factor)[None, :]
        small = 1e-3 * np.sqrt(np.mean(factor**2, axis=1, keepdims=True))
        safe = np.where(np.abs(factor) > small, factor, np.where(factor < 0, -small, small))
        paths = (rate - rests) / safe
        weight = np.mean(safe**2, axis=0)
        power = np.full(len(paths), float(np.sum(rate**2)) / float(weight.mean()))
        weight = weight / weight.mean()
        if coupling.coupled is None:
            parts = [known_component(self.known.rights[row])] * len(paths)
            components = [
                Component((), (), (), others=tuple(c), known=k.known, rank=0.0)
                for c, k in zip(drawn, parts, strict=True)
            ]
            return Paths(paths, weight, power, row, components, None)
        coefficient, sound = self._scaled(paths, weight, size / float(np.sqrt(np.mean(factor**2))))
        paths = paths / coefficient[:, None]
        components = [
            component_of((*coupling.terms, coupling.coupled), (*c, s), self.language, row)
            for c, s in zip(drawn[sound], coefficient[sound], strict=True)
        ]
        return Paths(
            paths[sound], weight, power[sound] / coefficient[sound] ** 2, row, components, (row, coupling.coupled)
        )

    def _scaled(self, paths: np.ndarray, weight: np.ndarray, typical: float) -> tuple[np.ndarray, np.ndarray]:
        """(the coefficient of the coupling that gives each path its size and sign, whether the path is possible).

        `typical` is the ratio of the measured rate and the factor of the hidden state. The coefficient is a power of
        ten, so that equal structures have equal numbers.
        """
        mean = np.average(paths, axis=1, weights=weight)
        sign = np.where(mean < 0, -1.0, 1.0)
        sound = np.isfinite(paths).all(axis=1)
        if self.population:
            wrong = np.average(paths * sign[:, None] < 0, axis=1, weights=weight)
            sound &= wrong <= _WRONG_SIGN
        if self.given:
            ratios = [paths[:, self.curves.first[e]] / value for e, value in self.given.items() if value != 0.0]
            coefficient = np.mean(ratios, axis=0) if ratios else np.ones(len(paths))
            return np.where(coefficient == 0, 1.0, coefficient), sound & (coefficient != 0)
        coefficient = 10.0 ** round(math.log10(typical / self.scale)) if typical > 0 else 1.0
        return sign * coefficient, sound & (np.abs(paths).max(axis=1) > 0)

    def _draws(self, n: int) -> np.ndarray:
        """Quasi-random coefficients [K, n] of any sign, of sizes near 1."""
        if n == 0:
            return np.zeros((1, 0))
        count = _ONE_COEFFICIENT if n == 1 else _SEVERAL_COEFFICIENTS
        count = max(count // (len(self.language.frame.states) - 1) ** 2, 1)
        drawn = halton(2 * n, count)
        low, high = _SIZES
        return np.where(drawn[:, :n] < 0.5, -1.0, 1.0) * 10.0 ** (low + (high - low) * drawn[:, n:])

    def _along(self, expression: Expression, constants: Sequence[float] | None = None) -> np.ndarray:
        return np.broadcast_to(evaluate(expression, self.curves.environment, constants), self.curves.t.shape)
