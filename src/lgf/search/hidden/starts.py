"""Starts of systems with a hidden state, from paths that the hidden state may have taken.

A measured equation x' = rest + factor * y gives the path y = (x' - rest) / factor for every guess of the rest's
coefficients. A conserved sum gives it for every guess of its value. Along a path all other equations are regressed in
integral form, z(t) = z(0) + sum of c_k times the integral of f_k, with few terms each. The structures are ranked by
their description length on the best of their paths.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations, product

import numpy as np

from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.terms import term_of
from lgf.expression.frame import Variable
from lgf.expression.monomials import n_constants
from lgf.expression.numeric import evaluate
from lgf.expression.tree import ONE, Expression, factors, summands
from lgf.language.system_language import RowTerm, SystemLanguage
from lgf.search.hidden.coupling import Coupling, couplings, polynomial_terms, symbol_of
from lgf.search.hidden.record import Curves
from lgf.search.systems.component import Component, known_component
from lgf.settings.ranges import Count, Positive, Share, Tally, Weight
from lgf.solver.halton import halton

_NATS_PER_BIT = 2 * math.log(2)


@dataclass(frozen=True)
class StartSettings:
    """The paths that are tried, and the terms that are combined."""

    points: Count = 80  # of a path, at least
    most_bits: Positive = 8.0  # of a term
    terms: Count = 12  # of a row
    rest: Tally = 2  # terms beside the hidden state in the equation through which it shows
    regressed: Count = 3  # terms of any other equation
    one_coefficient: Count = 60  # paths for one unknown coefficient
    several_coefficients: Count = 300  # and for more
    sizes: tuple[float, float] = (
        -1.0,
        0.9,
    )  # decimal logarithms of an unknown coefficient's term, relative to the rate
    wrong_sign: Share = 0.15  # share of the path on which a hidden population may be negative
    floor: Weight = 3e-3  # share of the variance that smoothing leaves in any case
    independent: Positive = 8.0  # points of a path that count as one
    combinations: Count = 200  # of right-hand sides, where several rows are regressed
    paths: Count = 2  # starts of one structure


@dataclass(frozen=True, eq=False)
class Start:
    """Right-hand sides with rough constants, and the hidden path that goes with them."""

    key: tuple  # equal for starts of the same structure
    coupled: tuple[int, Expression] | None  # row and term whose coefficient sets the scale of the hidden state
    path: np.ndarray = field(repr=False)  # of the hidden state, at the points of the curves
    score: float
    make: Callable[[], tuple[Component, ...]] = field(repr=False)

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The right-hand sides; they are made when they are asked for, because most never are."""
        return self.make()


@dataclass(frozen=True, eq=False)
class _Paths:
    """Hidden paths [K, N], each with the component of the equation that it comes from."""

    values: np.ndarray
    weight: np.ndarray  # [N] of its errors
    power: np.ndarray  # [K] the sum of squares of the measured rate, in units of the path, so that paths compare
    row: int | None  # of the equation it comes from
    components: Sequence[Component | None]
    coupled: tuple[int, Expression] | None


def find_starts(
    language: SystemLanguage,
    known: RowKnowledge,
    curves: Curves,
    hidden: int,
    scale: float,
    given: Mapping[int, float],
    settings: StartSettings = StartSettings(),
) -> list[list[Start]]:
    """The starts of each structure, the most promising structure first.

    `scale` is the size that the hidden state gets where nothing fixes it; `given` are its known initial values by
    experiment.
    """
    rows = range(len(language.frame.states))
    row_terms = [polynomial_terms(language, r, settings.most_bits, settings.terms) for r in rows]
    finder = _Finder(language, known, curves, hidden, scale, given, settings, row_terms)
    structures: dict[tuple, list[Start]] = {}
    for paths in finder.paths():
        for start in finder.regressed(paths):
            structures.setdefault(start.key, []).append(start)
    ranked = [sorted(own, key=lambda s: s.score)[: settings.paths] for own in structures.values()]
    return sorted(ranked, key=lambda own: own[0].score)


class _Finder:
    def __init__(
        self,
        language: SystemLanguage,
        known: RowKnowledge,
        curves: Curves,
        hidden: int,
        scale: float,
        given: Mapping[int, float],
        settings: StartSettings,
        row_terms: Sequence[Sequence[RowTerm]],
    ):
        self.language, self.known, self.curves, self.hidden = language, known, curves, hidden
        self.scale, self.given, self.settings, self.row_terms = scale, given, settings, row_terms
        self.symbol = symbol_of(language.frame, hidden)
        self.environment = {"t": curves.t, **curves.columns, **curves.inputs}
        self.population = hidden in known.populations
        self.subsets = {r: self._subsets(r) for r in range(len(language.frame.states))}

    def _subsets(self, row: int) -> list[tuple[tuple[int, ...], float]]:
        """(positions of terms, bits) of the right-hand sides of a row that are regressed."""
        terms = [t.expression for t in self.row_terms[row]]
        found = []
        for count in range(1, self.settings.regressed + 1):
            for chosen in combinations(range(len(terms)), count):
                bits = self.language.bits(row, [terms[i] for i in chosen])
                if math.isfinite(bits):
                    found.append((chosen, bits))
        return found

    def paths(self) -> Iterator[_Paths]:
        """All hidden paths to try."""
        law = next((law for law in self.known.laws if self.hidden in law), None)
        if law is not None:
            yield from self._conserved(law)
            return
        for coupling in couplings(self.language, self.known, self.hidden, self.row_terms, self.settings.rest):
            paths = self._coupled(coupling)
            if paths is not None and len(paths.values):
                yield paths

    def _conserved(self, law: Mapping[int, float]) -> Iterator[_Paths]:
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
        totals = least + np.sign(own) * size * np.geomspace(0.01, 100.0, self.settings.one_coefficient)
        if not self.population:
            totals = np.concatenate(
                [totals, least - np.sign(own) * size * np.geomspace(0.01, 100.0, self.settings.one_coefficient)]
            )
        if self.given:
            e, value = next(iter(self.given.items()))
            totals = np.array([others[curves.first[e]] + own * value])
        values = (totals[:, None] - others) / own
        yield _Paths(values, np.ones(len(curves.t)), np.ones(len(values)), None, [None] * len(values), None)

    def _coupled(self, coupling: Coupling) -> _Paths | None:
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
            return _Paths(paths, weight, power, row, components, None)
        coefficient, sound = self._scaled(paths, weight, size / float(np.sqrt(np.mean(factor**2))))
        paths = paths / coefficient[:, None]
        components = [
            self._component(row, (*coupling.terms, coupling.coupled), (*c, s))
            for c, s in zip(drawn[sound], coefficient[sound], strict=True)
        ]
        return _Paths(
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
            sound &= wrong <= self.settings.wrong_sign
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
        count = self.settings.one_coefficient if n == 1 else self.settings.several_coefficients
        count = max(count // (len(self.language.frame.states) - 1) ** 2, 1)
        drawn = halton(2 * n, count)
        low, high = self.settings.sizes
        return np.where(drawn[:, :n] < 0.5, -1.0, 1.0) * 10.0 ** (low + (high - low) * drawn[:, n:])

    def _component(self, row: int, terms: Sequence[Expression], values: Sequence[float]) -> Component:
        coefficient = dict(zip(terms, values, strict=True))
        ordered = self.language.rows[row].ordered(terms)
        return Component(ordered, tuple(float(coefficient[t]) for t in ordered), ((),) * len(ordered))

    def _along(self, expression: Expression, constants: Sequence[float] | None = None) -> np.ndarray:
        return np.broadcast_to(evaluate(expression, self.environment, constants), self.curves.t.shape)

    def regressed(self, paths: _Paths) -> Iterator[Start]:
        """The starts along these paths: all other equations regressed."""
        frame = self.language.frame
        conserved = paths.row is None
        rows = [r for r in range(len(frame.states)) if r != paths.row and not (conserved and r == self.hidden)]
        fits = {r: self._row_fits(r, paths) for r in rows}
        lists = {r: range(fits[r].scores.shape[1]) for r in rows}
        open_rows = [r for r in rows if len(lists[r]) > 1]
        if len(open_rows) > 1:
            most = int(self.settings.combinations ** (1.0 / len(open_rows)))
            for r in open_rows:
                lists[r] = np.argsort(fits[r].scores.min(axis=0), kind="stable")[:most].tolist()
        n = len(self.curves.t)
        for chosen in product(*lists.values()):
            terms = {r: fits[r].terms_of(s) for r, s in zip(rows, chosen, strict=True)}
            extra = 0.0
            if conserved:
                own = self._balanced_terms(terms)
                extra = _NATS_PER_BIT * self.language.bits(self.hidden, own) if own else math.inf
                terms[self.hidden] = own
            elif paths.row is not None:
                own = paths.components[0]
                assert own is not None
                terms[paths.row] = own.terms
                bits = 0.0 if own.known is not None else self.language.bits(paths.row, own.terms)
                extra = _NATS_PER_BIT * bits + len(own.terms) * math.log(n)
            if not math.isfinite(extra) or not self._shows(terms):
                continue
            key = tuple(terms[r] for r in sorted(terms)), paths.coupled
            scores = np.sum([fits[r].scores[:, s] for r, s in zip(rows, chosen, strict=True)], axis=0) + extra
            for k in np.argsort(scores, kind="stable")[: self.settings.paths]:
                if math.isfinite(scores[k]):
                    pairs = tuple((fits[r], s) for r, s in zip(rows, chosen, strict=True))
                    make = partial(self._components, paths, int(k), rows, pairs)
                    yield Start(key, paths.coupled, paths.values[k], float(scores[k]), make)

    def _components(
        self, paths: _Paths, k: int, rows: Sequence[int], fits: Sequence[tuple["_RowFits", int]]
    ) -> tuple[Component, ...]:
        """The right-hand sides along one path."""
        components = {r: fit.component(k, s) for r, (fit, s) in zip(rows, fits, strict=True)}
        if paths.row is None:
            components[self.hidden] = self._balanced(components)
        else:
            own = paths.components[k]
            assert own is not None
            components[paths.row] = own
        return tuple(components[r] for r in sorted(components))

    def _balanced_terms(self, terms: Mapping[int, tuple[Expression, ...]]) -> tuple[Expression, ...]:
        """The terms that the equation of the hidden state needs so that the sum is conserved; others cancel."""
        law = next(law for law in self.known.laws if self.hidden in law)
        places = [t for row, own in terms.items() if row in law for t in self._all_terms(row, own)]
        return self.language.rows[self.hidden].ordered(t for t in dict.fromkeys(places) if places.count(t) == 1)

    def _all_terms(self, row: int, terms: tuple[Expression, ...]) -> tuple[Expression, ...]:
        known = self.known.rights.get(row)
        return terms if known is None else tuple(term_of(s) for s in summands(known))

    def _balanced(self, components: Mapping[int, Component]) -> Component:
        """The equation of the hidden state that conserves the sum."""
        law = next(law for law in self.known.laws if self.hidden in law)
        terms = self._balanced_terms({row: c.terms for row, c in components.items()})
        values = dict.fromkeys(terms, 0.0)
        for row, component in components.items():
            for term, value in zip(component.terms, component.coefficients, strict=True):
                if row in law and term in values:
                    values[term] -= law[row] * value / law[self.hidden]
        return self._component(self.hidden, terms, [values[t] for t in terms])

    def _shows(self, terms: Mapping[int, tuple[Expression, ...]]) -> bool:
        """Whether the hidden state stands in the equation of a measured one."""
        return any(
            self.symbol in term.nodes()
            for row, own in terms.items()
            if row != self.hidden
            for term in self._all_terms(row, own)
        )

    def _row_fits(self, row: int, paths: _Paths) -> "_RowFits":
        """The regression of one equation along every path."""
        curves, frame = self.curves, self.language.frame
        environment = {**self.environment, Variable(frame.names[self.hidden]): paths.values}
        shape = paths.values.shape
        if row == self.hidden:
            response, weight, total = paths.values, paths.weight, paths.power
        else:
            below = frame.variables[frame.rates[row]]
            response, weight = np.broadcast_to(curves.columns[below], shape), curves.weight[row]
            total = np.sum(weight * curves.centred(response, weight) ** 2, axis=1)
        right = self.known.rights.get(row)
        if right is not None:
            return self._known_fits(row, right, environment, response, weight, total)
        terms = [t.expression for t in self.row_terms[row]]
        values = [np.broadcast_to(evaluate(term, environment), shape) for term in terms]
        integrals = curves.centred(curves.integral(np.stack(values, axis=1)), weight)
        y = curves.centred(response, weight)
        gram = np.einsum("kin,kjn,n->kij", integrals, integrals, weight)
        moment = np.einsum("kin,kn,n->ki", integrals, y, weight)
        left = np.einsum("kn,kn,n->k", y, y, weight)
        return _RowFits(self, row, terms, self.subsets[row], gram, moment, total, left)

    def _known_fits(
        self,
        row: int,
        right: Expression,
        environment: Mapping,
        response: np.ndarray,
        weight: np.ndarray,
        total: np.ndarray,
    ) -> "_RowFits":
        """The fit of a known equation: its open constants by regression where they are coefficients, else 1."""
        curves, shape = self.curves, response.shape
        offset, terms, owners = np.zeros(shape), [], []
        for summand in summands(right):
            constants = [n.args[0] for n in summand.nodes() if n.head == "constant"]
            values = np.broadcast_to(evaluate(summand, environment, [1.0] * 99), shape)
            if len(constants) == 1 and any(f.head == "constant" for f in factors(summand)):
                terms.append(values)
                owners.append(constants[0])
            else:
                offset = offset + values
        y = curves.centred(response - curves.integral(offset), weight)
        if not terms:
            left = np.einsum("kn,kn,n->k", y, y, weight)
            empty = np.zeros((shape[0], 0))
            return _RowFits(self, row, [], [((), 0.0)], empty[:, :, None], empty, total, left, known=right)
        integrals = curves.centred(curves.integral(np.stack(terms, axis=1)), weight)
        gram = np.einsum("kin,kjn,n->kij", integrals, integrals, weight)
        moment = np.einsum("kin,kn,n->ki", integrals, y, weight)
        left = np.einsum("kn,kn,n->k", y, y, weight)
        subset = [(tuple(range(len(terms))), 0.0)]
        return _RowFits(
            self, row, [ONE] * len(terms), subset, gram, moment, total, left, known=right, owners=tuple(owners)
        )


class _RowFits:
    """Scores [path, subset] of the right-hand sides of a row, and their coefficients."""

    def __init__(
        self, finder: _Finder, row: int, terms: Sequence[Expression], subsets: Sequence[tuple[tuple[int, ...], float]],
        gram: np.ndarray, moment: np.ndarray, total: np.ndarray, left: np.ndarray, known: Expression | None = None,
        owners: tuple[int, ...] = (),
    ):  # fmt: skip
        self._finder, self._row, self._terms, self._subsets = finder, row, terms, subsets
        self._gram, self._moment, self._known, self._owners = gram, moment, known, owners
        n, settings = len(finder.curves.t), finder.settings
        self.scores = np.empty((len(total), len(subsets)))
        for s, (chosen, bits) in enumerate(subsets):
            index = list(chosen)
            explained = np.zeros(len(total))
            if index:
                solution = self._solved(index)
                explained = np.einsum("ki,ki->k", solution, moment[:, index])
            share = np.maximum(left - explained, 0.0) / np.maximum(total, 1e-300)
            cost = len(index) * math.log(n) + _NATS_PER_BIT * bits
            self.scores[:, s] = n / settings.independent * np.log(share + settings.floor) + cost
        self.scores[~np.isfinite(self.scores)] = np.inf

    def _solved(self, index: list[int], k: int | None = None) -> np.ndarray:
        paths = slice(None) if k is None else slice(k, k + 1)
        gram, moment = self._gram[paths][:, index][:, :, index], self._moment[paths][:, index]
        sizes = np.sqrt(np.maximum(np.einsum("kii->ki", gram), 1e-300))
        scaled = gram / (sizes[:, :, None] * sizes[:, None, :]) + 1e-8 * np.eye(len(index))
        scaled[~np.isfinite(scaled).all(axis=(1, 2))] = np.eye(len(index))
        return np.linalg.solve(scaled, (moment / sizes)[:, :, None])[:, :, 0] / sizes

    def terms_of(self, s: int) -> tuple[Expression, ...]:
        """The terms of this subset, in the order of printed equations; none of a known equation."""
        if self._known is not None:
            return ()
        return self._finder.language.rows[self._row].ordered(self._terms[i] for i in self._subsets[s][0])

    def component(self, k: int, s: int) -> Component:
        """The right-hand side of this subset on this path."""
        index = list(self._subsets[s][0])
        values = self._solved(index, k)[0] if index else np.zeros(0)
        if self._known is not None:
            others = [1.0] * n_constants(self._known)
            for place, value in zip(self._owners, values, strict=True):
                others[place] = float(value)
            return Component((), (), (), others=tuple(others), known=self._known, rank=0.0)
        return self._finder._component(self._row, [self._terms[i] for i in index], values.tolist())
