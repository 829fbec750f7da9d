"""Plain right-hand sides, which are always tried: linear ones with all inputs, and mass action with all products."""

from collections.abc import Iterator
from itertools import combinations_with_replacement

from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.terms import term_of
from lgf.expression.monomials import n_constants
from lgf.expression.tree import ONE, Expression, mul
from lgf.language.system_language import SystemLanguage
from lgf.search.systems.combinations import Components
from lgf.search.systems.component import Component, known_component
from lgf.search.systems.conservation import closures

_MOST_TERMS = 12  # of a row: the fit of longer sums takes too long


def plain_components(language: SystemLanguage, known: RowKnowledge) -> Iterator[Components]:
    """The full linear system with all inputs, and mass action, as far as what is known allows their terms.

    Their coefficients are 1: as they are linear in the constants, the residual stage of the fit finds its start.
    """
    frame = language.frame
    linear = (*(v.symbol for v in frame.variables), *frame.input_symbols, ONE)
    states = [v.symbol for v in frame.variables if v.derivative == 0]
    products = tuple(term_of(mul(a, b)) for a, b in combinations_with_replacement(states, 2))
    for terms in (linear, (*linear[:-1], *products)):
        rows = tuple(_component(language, row, terms) for row in range(len(frame.states)))
        if all(c.known is not None or 0 < len(c.terms) <= _MOST_TERMS for c in rows):
            yield from closures(rows, known, language, changed=-1)[:1]


def _component(language: SystemLanguage, row: int, terms: tuple[Expression, ...]) -> Component:
    """The sum of those of the terms that the row may have, and of those that it must have."""
    rules = language.rows[row]
    if rules.known is not None:
        return known_component(rules.known)
    own = rules.ordered({*rules.required, *(t for t in terms if t in rules.cost)})
    return Component(own, (1.0,) * len(own), tuple((1.0,) * n_constants(t) for t in own))
