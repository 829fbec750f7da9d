"""Constants that a conservation law or the user ties to each other, within one equation or between several.

A law says that a sum of weight * right-hand side vanishes: every term must cancel. With the coefficients as unknowns
this is a linear system. Its pivots are written in terms of the coefficients that stay free, so the tied skeleton has
fewer constants and fulfils the law for any values.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.terms import term_of
from lgf.errors import LgfError
from lgf.expression.canonical import canonical
from lgf.expression.print import plain
from lgf.expression.tree import ONE, Expression, add, constant, factors, mul, number, substitute, summands

Law = Mapping[int, float]
"""Weights of the right-hand sides, by the position of their state, whose weighted sum vanishes."""

_ZERO = 1e-12  # coefficients of the elimination below this size are rounding errors


class Contradiction(LgfError):
    """A skeleton that cannot fulfil what is known; the message is a sentence without a subject."""


@dataclass(frozen=True)
class Relation:
    """The coefficient of one term is `factor` times that of another; each is given by (row, term)."""

    left: tuple[int, Expression]
    right: tuple[int, Expression]
    factor: float = 1.0


@dataclass(frozen=True)
class _Summand:
    """A summand of a right-hand side: number * constant * term, the constant open or 1."""

    row: int
    term: Expression  # canonical, its inner constants numbered from 0
    number: float
    constant: Expression | None
    body: Expression  # the term with the constants of the skeleton

    def times(self, value: Expression) -> Expression:
        return mul(value, self.body)


class _Same(NamedTuple):
    """A constant of the summands that is `factor` times another, because the skeleton has one for both."""

    first: Expression
    second: Expression
    factor: float


def tie(skeleton: Skeleton, laws: Sequence[Law] = (), relations: Sequence[Relation] = ()) -> Skeleton:
    """The skeleton with its coefficients tied so that it fulfils the laws and relations for any constants.

    Raises Contradiction if a term of a law stands alone, or if a coefficient would have to vanish.

    >>> sir = Skeleton.read("S' = C*S*I; I' = C*S*I + C*I; R' = C*I")
    >>> print(tie(sir, [{0: 1.0, 1: 1.0, 2: 1.0}]))
    S' = C0*I*S
    I' = C1*I - C0*I*S
    R' = -C1*I
    """
    if not laws and not relations:
        return skeleton
    rights = skeleton.right_sides
    if rights is None:
        raise Contradiction("is not solved for its highest derivatives")
    concerned = {row for law in laws for row in law} | {row for r in relations for row, _ in (r.left, r.right)}
    parts, same = _summands(skeleton, rights, concerned if not skeleton.tied else set(range(len(rights))))
    concerned |= {s.row for s in parts}
    parts = _with_common_inner_constants(parts, laws, relations, same)
    matrix, fixed = _equations(skeleton, parts, laws, relations, same)
    free = [s for s in parts if s.constant is not None]
    solution = _solved(matrix, fixed)
    if solution is None:
        raise Contradiction("has fixed numbers that contradict each other")
    coefficients: dict[int, Expression] = {}
    for i, (offset, weights) in solution.items():
        terms = [number(offset)] if offset != 0.0 else []
        terms += [mul(number(w), _constant(free[j])) for j, w in weights.items()]
        if not terms:
            where = skeleton.frame.highest[free[i].row]
            raise Contradiction(f"has {_text(free[i].term)} in {where}, whose coefficient would have to be 0")
        coefficients[i] = add(*terms)
    bodies: dict[int, list[Expression]] = {row: [] for row in concerned}
    position = 0
    for s in parts:
        coefficient = number(s.number)
        if s.constant is not None:
            coefficient = coefficients.get(position, s.constant)
            position += 1
        bodies[s.row] += [s.times(c) for c in summands(coefficient)]
    sides = [
        (left, add(*bodies[row]) if row in concerned and bodies[row] else right)
        for row, (left, right) in enumerate(skeleton.sides)
    ]
    return numbered(skeleton.frame, sides)


def _constant(summand: _Summand) -> Expression:
    assert summand.constant is not None
    return summand.constant


def _text(term: Expression) -> str:
    return plain(term, ["C"] * 99)


def _summands(
    skeleton: Skeleton, rights: Sequence[Expression], concerned: set[int]
) -> tuple[list[_Summand], list[_Same]]:
    """(the summands of these rows, like terms joined, each row with constants of its own; which of these are one)."""
    parts, values = [], {}
    for row in sorted(concerned):
        body, first = canonical(rights[row], _generic(skeleton.n_constants, 1.0))
        second = canonical(rights[row], _generic(skeleton.n_constants, 0.5))[1] if skeleton.tied else first
        base = 1_000 * (row + 1) + 1_000_000  # indices that no other row has; `numbered` makes them consecutive
        values |= {constant(base + i): pair for i, pair in enumerate(zip(first, second, strict=False))}
        body = substitute(body, {c: constant(base + c.args[0]) for c in body.nodes() if c.head == "constant"})
        for summand in summands(body):
            if summand.head == "number" and summand.args[0] == 0.0:
                continue
            numbers = [f.args[0] for f in factors(summand) if f.head == "number"]
            constants = [f for f in factors(summand) if f.head == "constant"]
            rest = [f for f in factors(summand) if f.head not in ("number", "constant")]
            inside = mul(ONE, *rest)
            parts.append(
                _Summand(row, term_of(inside), float(np.prod(numbers)), constants[0] if constants else None, inside)
            )
    same = [
        _Same(a, b, values[b][0] / values[a][0])
        for a, b in combinations(values if skeleton.tied else (), 2)
        if math.isclose(values[b][0] * values[a][1], values[b][1] * values[a][0], rel_tol=1e-9)
    ]
    return parts, same


def _generic(n: int, power: float) -> list[float]:
    """Values of constants, of which no product of few is a number times another."""
    return [1.1 * (2.0 + math.sqrt(p)) ** power for p in range(2, n + 2)]


def _with_common_inner_constants(
    parts: list[_Summand], laws: Sequence[Law], relations: Sequence[Relation], same: Sequence[_Same]
) -> list[_Summand]:
    """The summands with the inner constants of equal terms of a law or a relation made the same."""
    names = {s.second: mul(number(s.factor), s.first) for s in reversed(same)}
    groups = [{(s.row, s.term) for s in parts if s.row in law} for law in laws]
    groups += [{relation.left, relation.right} for relation in relations]
    for group in groups:
        first: dict[Expression, list[Expression]] = {}
        for s in parts:
            if (s.row, s.term) in group:
                own = [n for n in s.body.nodes() if n.head == "constant"]
                for mine, common in zip(own, first.setdefault(s.term, own), strict=True):
                    names[mine] = names.get(common, common)
    return [replace(s, body=substitute(s.body, names)) for s in parts]


def _equations(
    skeleton: Skeleton,
    parts: list[_Summand],
    laws: Sequence[Law],
    relations: Sequence[Relation],
    same: Sequence[_Same],
) -> tuple[np.ndarray, np.ndarray]:
    """(matrix, right side) of the linear equations for the open coefficients."""
    free = [s for s in parts if s.constant is not None]
    rows, values = [], []

    def equation(weight_of) -> None:
        rows.append([weight_of(s) for s in free])
        values.append(-sum(weight_of(s) * s.number for s in parts if s.constant is None))

    for s in same:
        equation(lambda p, s=s: s.factor * (p.constant == s.first) - (p.constant == s.second))
    for law in laws:
        for term in dict.fromkeys(s.term for s in parts if s.row in law):
            members = [s for s in parts if s.row in law and s.term == term]
            if len(members) == 1 and law[members[0].row] != 0.0:
                where = skeleton.frame.highest[members[0].row]
                raise Contradiction(f"has {_text(term)} in {where} and in no other equation of the conserved sum")
            equation(lambda s, law=law, term=term: law.get(s.row, 0.0) if s.term == term else 0.0)
    for relation in relations:
        sides = {relation.left: 1.0}
        sides[relation.right] = sides.get(relation.right, 0.0) - relation.factor
        present = [any((s.row, s.term) == side for s in parts) for side in (relation.left, relation.right)]
        if any(present) and not all(present):
            row, term = relation.left if present[0] else relation.right
            where = skeleton.frame.highest[row]
            raise Contradiction(f"has {_text(term)} in {where} without the term that shares its constant")
        if all(present):
            equation(lambda s, sides=sides: sides.get((s.row, s.term), 0.0))
    return np.array(rows, float).reshape(len(rows), len(free)), np.array(values, float)


def _solved(matrix: np.ndarray, fixed: np.ndarray) -> dict[int, tuple[float, dict[int, float]]] | None:
    """(offset, weights of free unknowns) by dependent unknown; None if there is no solution. Later ones depend."""
    a = np.column_stack([matrix, fixed])
    pivots: list[tuple[int, int]] = []
    for column in range(matrix.shape[1] - 1, -1, -1):
        rest = [r for r in range(len(a)) if r not in [p for p, _ in pivots]]
        row = max(rest, key=lambda r: abs(a[r, column]), default=None)
        if row is None or abs(a[row, column]) < _ZERO:
            continue
        a[row] /= a[row, column]
        for other in range(len(a)):
            if other != row:
                a[other] -= a[other, column] * a[row]
        pivots.append((row, column))
    used = [row for row, _ in pivots]
    if any(abs(a[r, -1]) > _ZERO for r in range(len(a)) if r not in used):
        return None
    return {
        column: (
            float(a[row, -1]) if abs(a[row, -1]) > _ZERO else 0.0,
            {j: -float(a[row, j]) for j in range(matrix.shape[1]) if j != column and abs(a[row, j]) > _ZERO},
        )
        for row, column in pivots
    }
