"""The terms of all rows of a system, compiled, with a coarse grid of values for the constants inside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lgf.expression.monomials import n_constants
from lgf.expression.numeric import evaluate_known
from lgf.expression.tree import Expression, T
from lgf.fit.initial_guesses import choices
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.solver.constant_roles import Role, role_of
from lgf.solver.kernels.machine import LARGEST_VALUE, Programs
from lgf.solver.program import compile_expression, concatenate

# Values of a constant relative to one over the size of what it multiplies.
_WAVES = (0.7, 1.2, 1.8, 2.6, 3.5, 5.0)
_EXPONENTIALS = (-6.0, -3.0, -1.5, -0.7, 0.7, 1.5, 3.0)
_STEPS = (0.7, 1.5, 4.0)
_SUMS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, -0.5)
_EXPONENTS = (0.5, 1.5, 2.0, 3.0, -1.0)
_PHASES = (0.0, 1.6, 3.1, 4.7)
_TERMS = 220  # of each row, the cheapest
_VALUES = 16  # tried for the constants inside one term
_NO_POLE = 0.05  # least value of a denominator on the data, relative to its largest


@dataclass(frozen=True, eq=False)
class TermGrid:
    """The union of the terms of all rows; a column is a term with values for the constants inside it."""

    terms: tuple[Expression, ...]
    bits: np.ndarray  # [row, term], infinite where a term may not stand in a row
    programs: Programs
    n_inner: np.ndarray  # [term] constants inside
    owner: np.ndarray  # [column] its term
    values: np.ndarray  # [column, constant]
    tangent_of: np.ndarray  # [tangent] the column whose tangent it is
    tangent_constant: np.ndarray  # [tangent] the constant that is moved

    @cached_property
    def position(self) -> dict[Expression, int]:
        """The number of each term."""
        return {term: i for i, term in enumerate(self.terms)}

    @cached_property
    def middle(self) -> list[int]:
        """The middle one of the columns of each term, -1 if it has none."""
        counts = np.bincount(self.owner, minlength=len(self.terms))
        return np.where(counts > 0, np.cumsum(counts) - counts + counts // 2, -1).tolist()


def make_term_grid(language: SystemLanguage, target: Target, n_terms: int = _TERMS) -> TermGrid:
    """The `n_terms` cheapest terms of each row of the language with a grid of inner constants for this record."""
    n_rows = len(language.frame.states)
    costs = [dict(_cheapest(language, row, n_terms)) for row in range(n_rows)]
    terms = tuple(dict.fromkeys(term for cost in costs for term in cost))
    bits = np.array([[cost.get(term, np.inf) for term in terms] for cost in costs])
    n_inner = np.array([n_constants(term) for term in terms], np.int64)
    owner, rows = [], []
    inside = InnerValues(target, _VALUES)
    for i, term in enumerate(terms):
        for values in inside.of(term, int(n_inner[i])):
            owner.append(i)
            rows.append(values)
    values = np.zeros((len(rows), max(int(n_inner.max(initial=0)), 1)))
    for c, row in enumerate(rows):
        values[c, : len(row)] = row
    owners = np.array(owner, np.int64)
    tangent_of = np.flatnonzero(n_inner[owners] > 0)
    # Of several constants the second is moved: in 1/(1 + C*exp(C*x)) it is the one inside the function.
    constant = np.minimum(n_inner[owners[tangent_of]] - 1, 1)
    programs = concatenate(
        [compile_expression(t, target.frame, int(p)) for t, p in zip(terms, n_inner, strict=True)], n_inner
    )
    return TermGrid(terms, bits, programs, n_inner, owners, values, tangent_of, constant)


def _cheapest(language: SystemLanguage, row: int, most: int) -> Iterable[tuple[Expression, float]]:
    """The cheapest terms of the row, and those that are required; none of a row that is known."""
    if language.rows[row].known is not None:
        return []
    required = language.rows[row].required
    cheap = [*language.terms(row)[:most]]
    cheap += [term for term in language.terms(row)[most:] if term.expression in required]
    return [(term.expression, term.bits) for term in cheap]


class InnerValues:
    """Values that are tried for the constants inside terms; what several terms have in common is computed once."""

    def __init__(self, target: Target, most: int):
        self._target, self._most = target, most
        # by expression, then by the values of its constants
        self._sizes: dict[Expression, dict[tuple[float, ...], float]] = {}
        self._sound: dict[Expression, dict[tuple[float, ...], bool]] = {}

    def of(self, term: Expression, count: int) -> list[tuple[float, ...]]:
        """Values of the constants inside the term for which it has no pole on the data; [()] without constants."""
        if count == 0:
            return [()]
        points: list[tuple[float, ...]] = [()]
        # Inner constants come later, and the size of what an outer one multiplies depends on them.
        for i in reversed(range(count)):
            role = role_of(term, i)
            points = [(value, *later) for later in points for value in self._values(role, (1.0,) * (i + 1) + later)]
        points = _thinned(points, 2 * self._most)
        for base in _denominators(term):
            points = self._without_pole(base, points)
        return _thinned(points, self._most)

    def _values(self, role: Role, constants: tuple[float, ...]) -> Sequence[float]:
        """Values of a constant in this role beside the others."""
        if role.place == "exponent":
            return _EXPONENTS
        if role.place == "offset":
            return _PHASES
        if role.cofactor == T:
            return choices(role, self._target, self._most)[: self._most].tolist()
        relative = {"sin": _WAVES, "cos": _WAVES, "exp": _EXPONENTIALS, "tanh": _STEPS}.get(role.place, _SUMS)
        if role.cofactor is None:
            return relative
        sizes = self._sizes.setdefault(role.cofactor, {})
        if constants not in sizes:
            sizes[constants] = _size(evaluate_known(role.cofactor, self._target.known_values, constants))
        size = sizes[constants]
        return [r / size for r in relative] if 1.0 / LARGEST_VALUE < size < LARGEST_VALUE else ()

    def _without_pole(self, base: Expression, points: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        """The points at which the base of a denominator neither changes its sign nor nearly vanishes on the data."""
        sound = self._sound.setdefault(base, {})
        new = [point for point in points if point not in sound]
        if new:
            below = evaluate_known(base, self._target.known_values, np.array(new).T[:, :, None])
            below = np.broadcast_to(below, (len(new), below.shape[-1]))
            apart = np.isfinite(below).all(axis=1) & (below.min(axis=1) >= _NO_POLE)
            sound |= zip(new, apart.tolist(), strict=True)
        return [point for point in points if sound[point]]


def _size(values: np.ndarray) -> float:
    """The upper decile of the absolute values that are finite, 0 if there is none."""
    finite = np.abs(values[np.isfinite(values)])
    if not finite.size:
        return 0.0
    place = 0.9 * (finite.size - 1)
    below, above = int(place), min(int(place) + 1, finite.size - 1)
    ordered = np.partition(finite, (below, above))  # np.quantile takes ten times as long
    return float(ordered[below] + (ordered[above] - ordered[below]) * (place - below))


def _thinned(points: list[tuple[float, ...]], most: int) -> list[tuple[float, ...]]:
    if len(points) <= most:
        return points
    return [points[i] for i in np.linspace(0, len(points) - 1, most).astype(int)]


def _denominators(term: Expression) -> list[Expression]:
    """The denominators of the term that have a constant."""
    powers = [n.args for n in term.nodes() if n.head == "^" and n.args[1].head == "number"]
    return [base for base, exponent in powers if exponent.args[0] < 0 and n_constants(base)]
