"""Component: a right-hand side of one row with values of its constants. A proposal has one for each row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lgf.data.row_knowledge import RowKnowledge, impose
from lgf.equation.skeleton import Skeleton
from lgf.equation.terms import rows_of, term_of
from lgf.equation.tied_constants import Contradiction
from lgf.expression.canonical import canonical
from lgf.expression.monomials import n_constants
from lgf.expression.tree import MINUS_ONE, ONE, Expression, factors, mul, power, summands
from lgf.fit.segments import Shooting
from lgf.language.row_structure import RowStructure
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Candidate, Proposal

PLAIN = "components: plain"  # the origin of systems that are tried whatever the record says


@dataclass(frozen=True)
class Component:
    """A right-hand side: terms with coefficients and the constants inside them, over a divisor.

    A right-hand side that is known stands in `known`, and there are no terms. `rank` is small for promising ones.
    """

    terms: tuple[Expression, ...]
    coefficients: tuple[float, ...]
    inner: tuple[tuple[float, ...], ...]
    divisor: Expression = ONE
    others: tuple[float, ...] = ()  # constants of the divisor or of the known right-hand side
    known: Expression | None = None
    rank: float = math.nan

    @property
    def values(self) -> tuple[float, ...]:
        """The constants in the order of the skeleton: each coefficient, then the constants inside its term."""
        pairs = zip(self.coefficients, self.inner, strict=True)
        return tuple(v for c, inside in pairs for v in (c, *inside)) + self.others

    @property
    def key(self) -> tuple[tuple[Expression, ...], Expression]:
        """Equal for components of the same structure."""
        return self.terms, self.divisor

    def ranked(self, rank: float) -> "Component":
        """The component with this rank; `replace` takes three times as long."""
        return Component(self.terms, self.coefficients, self.inner, self.divisor, self.others, self.known, rank)

    def without(self, place: int) -> "Component":
        """The component without one of its terms."""
        return replace(
            self,
            terms=self.terms[:place] + self.terms[place + 1 :],
            coefficients=self.coefficients[:place] + self.coefficients[place + 1 :],
            inner=self.inner[:place] + self.inner[place + 1 :],
        )

    def plus(
        self, term: Expression, coefficient: float, inner: tuple[float, ...], language: SystemLanguage, row: int
    ) -> "Component":
        """The component with one more term, in the order of printed equations."""
        values = {t: (c, i) for t, c, i in zip(self.terms, self.coefficients, self.inner, strict=True)}
        values[term] = coefficient, inner
        terms = language.rows[row].ordered(values)
        coefficients, inners = tuple(values[t][0] for t in terms), tuple(values[t][1] for t in terms)
        return replace(self, terms=terms, coefficients=coefficients, inner=inners)


def known_component(known: Expression) -> Component:
    """The component of a known right-hand side, its open constants at 1."""
    return Component((), (), (), others=(1.0,) * n_constants(known), known=known, rank=0.0)


def component_of(
    terms: Sequence[Expression], coefficients: Sequence[float], language: SystemLanguage, row: int
) -> Component:
    """The component of terms without constants inside, in the order of printed equations."""
    coefficient = dict(zip(terms, coefficients, strict=True))
    ordered = language.rows[row].ordered(terms)
    return Component(ordered, tuple(float(coefficient[t]) for t in ordered), ((),) * len(ordered))


Components = tuple[Component, ...]


def summands_of(component: Component) -> list[tuple[Expression, float, tuple[float, ...]]]:
    """(term, coefficient, constants inside it) of each summand, also of a known right-hand side."""
    if component.known is None:
        return list(zip(component.terms, component.coefficients, component.inner, strict=True))
    values = component.others
    return [
        (term_of(s), _coefficient(s, values), tuple(values[i] for i in _inside(s)))
        for s in summands(component.known)
    ]  # fmt: skip


def cancelled(component: Component, language: SystemLanguage, row: int) -> Component:
    """The component with the divisor inside its terms, if that is shorter: (z^2 + x*z)/z is z + x."""
    if component.divisor == ONE or n_constants(component.divisor, *component.terms):
        return component
    inverse = power(component.divisor, MINUS_ONE)
    values = {canonical(mul(t, inverse))[0]: c for t, c in zip(component.terms, component.coefficients, strict=True)}
    if not language.bits(row, values) < language.bits(row, component.terms, component.divisor):
        return component
    terms = language.rows[row].ordered(values)
    return replace(component, terms=terms, coefficients=tuple(values[t] for t in terms), divisor=ONE)


def exchanged(components: Components, row: int, component: Component) -> Components:
    """The components with another one in this row."""
    return (*components[:row], component, *components[row + 1 :])


def propose_components(
    language: SystemLanguage, known: RowKnowledge, components: Components, shooting: Shooting, origin: str
) -> Proposal | None:
    """The proposal of these right-hand sides; None if the language cannot say them or they contradict what is known."""
    bits = sum(language.bits(row, c.terms, c.divisor) for row, c in enumerate(components))
    if origin == PLAIN and math.isinf(bits):  # a sum longer than any of the grammar has the bits of its terms
        bits = sum(language.rows[row].cost.get(t, math.inf) for row, c in enumerate(components) for t in c.terms)
    if not math.isfinite(bits):
        return None
    skeleton = language.skeleton([RowStructure(c.terms, c.divisor, known=c.known) for c in components])
    start = tuple(v for c in components for v in c.values)
    if not known.empty:
        try:
            imposed = impose(known, skeleton)
        except Contradiction:
            return None
        start = _values_in(imposed, components)
        skeleton = imposed
    if len(start) != skeleton.n_constants:
        return None
    # Where nothing was regressed the fit has to find a start.
    regressed = origin != PLAIN and any(c.known is None for c in components)
    return Proposal(
        skeleton, bits, origin=origin, start=start if regressed else None, shooting=shooting, again=True
    )  # fmt: skip


def fitted_components(components: Components, candidate: Candidate) -> Components:
    """The components with the values of the candidate's fit."""
    skeleton, values = candidate.skeleton, candidate.fit.values
    if len(values) == sum(len(c.values) for c in components):
        return _with_values(components, list(values))
    by_term = {
        (row, term_of(summand)): (_coefficient(summand, values), tuple(values[i] for i in _inside(summand)))
        for row, summand in rows_of(skeleton)
    }
    fitted = []
    for row, component in enumerate(components):
        pairs = zip(component.terms, component.coefficients, component.inner, strict=True)
        new = [by_term.get((row, term), (coefficient, inner)) for term, coefficient, inner in pairs]
        inner = tuple(i if len(i) == len(old) else old for (_, i), old in zip(new, component.inner, strict=True))
        others = component.others
        if component.known is not None:
            others = tuple(values[i] for i in _constants(skeleton, row))
        fitted.append(replace(component, coefficients=tuple(c for c, _ in new), inner=inner, others=others))
    return tuple(fitted)


def _with_values(components: Components, values: list[float]) -> Components:
    """The components with these constants, in the order of the skeleton."""
    fitted = []
    for component in components:
        coefficients, inner = [], []
        for term in component.terms:
            coefficients.append(values.pop(0))
            inner.append(tuple(values.pop(0) for _ in range(n_constants(term))))
        others = tuple(values.pop(0) for _ in component.others)
        fitted.append(replace(component, coefficients=tuple(coefficients), inner=tuple(inner), others=others))
    return tuple(fitted)


def _values_in(skeleton: Skeleton, components: Components) -> tuple[float, ...]:
    """The constants of a skeleton in which some are tied or known, from the components."""
    values = [1.0] * skeleton.n_constants
    for row, component in enumerate(components):
        if component.known is not None:
            for i, value in zip(_constants(skeleton, row), component.others, strict=False):
                values[i] = value
    for row, summand in rows_of(skeleton):
        component, term = components[row], term_of(summand)
        if term not in component.terms:
            continue
        place = component.terms.index(term)
        scale = math.prod(f.args[0] for f in factors(summand) if f.head == "number")
        for f in factors(summand):
            if f.head == "constant":
                values[f.args[0]] = component.coefficients[place] / scale
        inside = _inside(summand)
        if len(inside) == len(component.inner[place]):
            for i, value in zip(inside, component.inner[place], strict=True):
                values[i] = value
    return tuple(values)


def _constants(skeleton: Skeleton, row: int) -> list[int]:
    """The constants of one right-hand side, in the order in which they stand there."""
    return list(dict.fromkeys(n.args[0] for n in skeleton.sides[row][1].nodes() if n.head == "constant"))


def _coefficient(summand: Expression, values: Sequence[float]) -> float:
    """The numerical coefficient of a summand."""
    parts = [f.args[0] if f.head == "number" else values[f.args[0]] for f in factors(summand) if _is_number(f)]
    return math.prod(parts)


def _is_number(factor: Expression) -> bool:
    return factor.head in ("number", "constant")


def _inside(summand: Expression) -> list[int]:
    """The constants inside a summand, apart from its coefficient."""
    return [n.args[0] for f in factors(summand) if not _is_number(f) for n in f.nodes() if n.head == "constant"]
