"""Starts of systems with a hidden state, from paths that the hidden state may have taken (`hidden.paths`).

Along a path all other equations are regressed in integral form, z(t) = z(0) + sum of c_k times the integral of f_k,
with few terms each. The structures are ranked by their description length on the best of their paths.
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
from lgf.language.row_language import RowTerm
from lgf.language.system_language import SystemLanguage
from lgf.search.hidden.coupling import polynomial_terms, symbol_of
from lgf.search.hidden.paths import PathFinder, Paths
from lgf.search.hidden.record import Curves
from lgf.search.systems.component import Component, component_of

_NATS_PER_BIT = 2 * math.log(2)
_MOST_BITS = 8.0  # of a term
_TERMS = 12  # of a row
_REGRESSED = 3  # terms of an equation other than that through which the hidden state shows
_COMBINATIONS = 200  # of right-hand sides, where several rows are regressed
_PATHS = 2  # starts of one structure
_FLOOR = 3e-3  # share of the variance that smoothing leaves in any case
_INDEPENDENT = 8.0  # points of a path that count as one


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


def find_starts(
    language: SystemLanguage,
    known: RowKnowledge,
    curves: Curves,
    hidden: int,
    scale: float,
    given: Mapping[int, float],
) -> list[list[Start]]:
    """The starts of each structure, the most promising structure first.

    `scale` is the size that the hidden state gets where nothing fixes it; `given` are its known initial values by
    experiment.
    """
    rows = range(len(language.frame.states))
    row_terms = [polynomial_terms(language, r, _MOST_BITS, _TERMS) for r in rows]
    finder = _Finder(language, known, curves, hidden, row_terms)
    structures: dict[tuple, list[Start]] = {}
    for paths in PathFinder(language, known, curves, hidden, scale, given, row_terms).paths():
        for start in finder.regressed(paths):
            structures.setdefault(start.key, []).append(start)
    ranked = [sorted(own, key=lambda s: s.score)[:_PATHS] for own in structures.values()]
    return sorted(ranked, key=lambda own: own[0].score)


class _Finder:
    def __init__(
        self,
        language: SystemLanguage,
        known: RowKnowledge,
        curves: Curves,
        hidden: int,
        row_terms: Sequence[Sequence[RowTerm]],
    ):
        self.language, self.known, self.curves, self.hidden = language, known, curves, hidden
        self.row_terms = row_terms
        self.symbol = symbol_of(language.frame, hidden)
        self.subsets = {r: self._subsets(r) for r in range(len(language.frame.states))}

    def _subsets(self, row: int) -> list[tuple[tuple[int, ...], float]]:
        """(positions of terms, bits) of the right-hand sides of a row that are regressed."""
        terms = [t.expression for t in self.row_terms[row]]
        found = []
        for count in range(1, _REGRESSED + 1):
            for chosen in combinations(range(len(terms)), count):
                bits = self.language.bits(row, [terms[i] for i in chosen])
                if math.isfinite(bits):
                    found.append((chosen, bits))
        return found

    def regressed(self, paths: Paths) -> Iterator[Start]:
        """The starts along these paths: all other equations regressed."""
        frame = self.language.frame
        conserved = paths.row is None
        rows = [r for r in range(len(frame.states)) if r != paths.row and not (conserved and r == self.hidden)]
        fits = {r: self._row_fits(r, paths) for r in rows}
        lists = {r: range(fits[r].scores.shape[1]) for r in rows}
        open_rows = [r for r in rows if len(lists[r]) > 1]
        if len(open_rows) > 1:
            most = int(_COMBINATIONS ** (1.0 / len(open_rows)))
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
            for k in np.argsort(scores, kind="stable")[:_PATHS]:
                if math.isfinite(scores[k]):
                    pairs = tuple((fits[r], s) for r, s in zip(rows, chosen, strict=True))
                    make = partial(self._components, paths, int(k), rows, pairs)
                    yield Start(key, paths.coupled, paths.values[k], float(scores[k]), make)

    def _components(
        self, paths: Paths, k: int, rows: Sequence[int], fits: Sequence[tuple["_RowFits", int]]
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
        return component_of(terms, [values[t] for t in terms], self.language, self.hidden)

    def _shows(self, terms: Mapping[int, tuple[Expression, ...]]) -> bool:
        """Whether the hidden state stands in the equation of a measured one."""
        return any(
            self.symbol in term.nodes()
            for row, own in terms.items()
            if row != self.hidden
            for term in self._all_terms(row, own)
        )

    def _row_fits(self, row: int, paths: Paths) -> "_RowFits":
        """The regression of one equation along every path."""
        curves, frame = self.curves, self.language.frame
        environment = {**curves.environment, Variable(frame.names[self.hidden]): paths.values}
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
        n = len(finder.curves.t)
        self.scores = np.empty((len(total), len(subsets)))
        for s, (chosen, bits) in enumerate(subsets):
            index = list(chosen)
            explained = np.zeros(len(total))
            if index:
                solution = self._solved(index)
                explained = np.einsum("ki,ki->k", solution, moment[:, index])
            share = np.maximum(left - explained, 0.0) / np.maximum(total, 1e-300)
            cost = len(index) * math.log(n) + _NATS_PER_BIT * bits
            self.scores[:, s] = n / _INDEPENDENT * np.log(share + _FLOOR) + cost
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
        return component_of([self._terms[i] for i in index], values.tolist(), self._finder.language, self._row)
