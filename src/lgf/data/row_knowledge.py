"""What is known about single equations of a system, read for one frame, and its enforcement.

A search asks `fixed`, `required` and `allowed` while it builds equations. `impose` is the gate for every skeleton, the
user's own included: it puts known right-hand sides in, ties constants, and refuses what contradicts the knowledge.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from lgf.data.bounds import Bounds
from lgf.data.knowledge import Knowledge
from lgf.data.row_terms import RowTerm, read_row_term, read_shared
from lgf.equation.dimensions import Units, objection, term_objection
from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.structure import open_constants, structure
from lgf.equation.terms import rows_of, term_of
from lgf.equation.tied_constants import Contradiction, Law, Relation, tie
from lgf.errors import LgfError, quoted
from lgf.expression.canonical import canonical, to_terms
from lgf.expression.frame import Frame, Variable
from lgf.expression.functions import FUNCTIONS
from lgf.expression.monomials import n_constants
from lgf.expression.numeric import has_values
from lgf.expression.parse import ReadingError, read_expression
from lgf.expression.print import plain
from lgf.expression.tree import (
    ONE,
    SIGNAL,
    ZERO,
    Expression,
    T,
    constant,
    factors,
    is_input,
    number,
    substitute,
    summands,
)

NUMBERS = 1_000  # that a constant with a number may have
_NUMBERED = re.compile(r"\bC[0-9]")

Place = tuple[int | None, Expression]
"""A term and the position of the state in whose equation it stands; None is any equation."""


@dataclass(frozen=True, eq=False)
class RowKnowledge:
    """The knowledge about terms and equations in the expressions of one frame; rows are positions of states."""

    frame: Frame
    rights: Mapping[int, Expression] = field(default_factory=dict)  # known right-hand sides
    names: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # of their constants: C0 is one in all of them
    musts: tuple[Place, ...] = ()
    mustnots: frozenset[Place] = frozenset()
    bounds: Mapping[Place, Bounds] = field(default_factory=dict)
    functions: Mapping[int, frozenset[str]] = field(default_factory=dict)  # the only ones allowed
    symbols: frozenset[Expression] | None = None  # the only ones allowed
    populations: frozenset[int] = frozenset()
    laws: tuple[Law, ...] = ()
    relations: tuple[Relation, ...] = ()
    varying: frozenset[Place] = frozenset()  # terms whose coefficient differs between experiments
    units: Units = ()
    hidden: int | None = None  # the state that was not measured

    @property
    def empty(self) -> bool:
        """Whether nothing has to be enforced."""
        return not any(
            (
                self.rights, self.musts, self.mustnots, self.functions, self.populations, self.laws, self.relations,
                self.units, self.symbols is not None,
            )
        )  # fmt: skip


@lru_cache(maxsize=64)  # asked for every proposal of a search
def row_knowledge(knowledge: Knowledge, frame: Frame) -> RowKnowledge:
    """The knowledge in the expressions of this frame; LgfError if a text does not fit the frame."""
    names = {row: i for i, row in enumerate(frame.names)}
    functions = {i: knowledge.functions_of(name) for name, i in names.items()}
    relations = []
    for shared in map(read_shared, knowledge.shared or ()):
        left, right = _place(shared.left, frame), _place(shared.right, frame)
        assert left[0] is not None
        assert right[0] is not None
        relations.append(Relation((left[0], left[1]), (right[0], right[1]), shared.factor))
    rights, constants = _rights(knowledge.known or {}, frame)
    return RowKnowledge(
        frame,
        rights,
        constants,
        tuple(_place(read_row_term(text), frame) for text in knowledge.required or ()),
        frozenset(_place(read_row_term(text), frame) for text in knowledge.forbidden or ()),
        {_place(read_row_term(text), frame): limits for text, limits in (knowledge.bounds or {}).items()},
        {i: frozenset(allowed) for i, allowed in functions.items() if allowed is not None},
        _symbols(knowledge, frame),
        frozenset(_row(name, frame) for name in knowledge.populations or ()),
        tuple(_law(text, frame) for text in knowledge.conserved or ()),
        tuple(relations),
        frozenset(_place(read_row_term(text), frame) for text in knowledge.vary)
        if not isinstance(knowledge.vary, str)
        else frozenset(),
        knowledge.unit_pairs,
        next((_row(name, frame) for name in knowledge.hidden or ()), None),
    )


def _row(name: str, frame: Frame) -> int:
    if name not in frame.names:
        raise LgfError(
            f"something is said about the equation of {quoted(name)}; the states are {', '.join(frame.names)}."
        )
    return frame.names.index(name)


def _place(text: RowTerm, frame: Frame) -> Place:
    row = None if text.row is None else _row(text.row, frame)
    expression = _read("term", text.term, frame)
    if canonical(expression)[0] == ZERO:
        raise LgfError(f"the term {quoted(text.term)} is 0; name another, or leave it out.")
    nodes = list(expression.nodes())
    if any(node.head == "constant" for node in nodes) and not any(node.head == "symbol" for node in nodes):
        raise LgfError(
            f"the term {quoted(text.term)} is a constant alone, and every term has one; write 1 for the constant term "
            "(a column called C is x_C)."
        )
    return row, term_of(expression)


def _read(what: str, text: str, frame: Frame) -> Expression:
    """The expression in what the user states."""
    try:
        expression = read_expression(text, frame)
    except ReadingError as error:
        raise LgfError(f"the {what} {quoted(text)} cannot be read: {error.message}.") from error
    if not has_values(expression):
        raise LgfError(f"the {what} {quoted(text)} has no value anywhere; correct it.")
    return expression


def _rights(known: Mapping[str, str], frame: Frame) -> tuple[dict[int, Expression], dict[int, tuple[int, ...]]]:
    """The known right-hand sides, their constants numbered from 0, and their names; a bare C has its own."""
    rights, names = {}, {}
    for place, (row, text) in enumerate(known.items(), 1):
        right, at = _right(row, text, frame), _row(Variable.read(row).name, frame)
        own = tuple(dict.fromkeys(_constants(right)))
        rights[at] = substitute(right, {c: constant(i) for i, c in enumerate(own)})
        names[at] = tuple(c.args[0] + (0 if _NUMBERED.search(text) else NUMBERS * place) for c in own)
    return rights, names


def _constants(e: Expression) -> list[Expression]:
    """The open constants of the expression in the order of their places."""
    return [node for node in e.nodes() if node.head == "constant"]


def _right(row: str, text: str, frame: Frame) -> Expression:
    """The known right-hand side of this row."""
    left = Variable.read(row)
    highest = frame.highest[_row(left.name, frame)]
    if left.derivative not in (0, highest.derivative):
        raise LgfError(
            f"the equation {row} = {text} is known but the data and what is known ask for {highest}; state the same "
            "order in both."
        )
    right = _read("known right-hand side", text, frame)
    for node in right.nodes():
        if node.head == "symbol" and node.args[1] != SIGNAL and Variable(*node.args) not in frame.variables:
            raise LgfError(
                f"the known right-hand side {quoted(text)} contains {Variable(*node.args)}; it may contain "
                f"{', '.join(map(str, frame.variables))}."
            )
    return right


def _symbols(knowledge: Knowledge, frame: Frame) -> frozenset[Expression] | None:
    """The only symbols allowed in a term; None allows all."""
    if not knowledge.autonomous and knowledge.variables is None:
        return None
    named = knowledge.variables
    allowed = {v.symbol for v in frame.columns if named is None or str(v) in named}
    if not knowledge.autonomous and (named is None or "t" in named):
        allowed.add(T)
    return frozenset(allowed)


def _law(text: str, frame: Frame) -> Law:
    """The weights of the right-hand sides in the rate of a conserved sum."""
    body = _read("conserved quantity", text, frame)
    law: dict[int, float] = {}
    just_below = {v.symbol: i for i, v in enumerate(frame.variables[r] for r in frame.rates)}
    for monomial, (free, weight) in to_terms(body, [math.nan] * n_constants(body)).items():
        variable = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == ONE else None
        if free or (monomial and variable not in just_below):
            raise LgfError(
                f"the conserved quantity {quoted(text)} is not a sum of {', '.join(plain(s) for s in just_below)} with "
                "numbers as weights; write it like S + I + R."
            )
        if variable is not None:
            law[just_below[variable]] = weight
    if not law:
        raise LgfError(f"the conserved quantity {quoted(text)} names no state; write it like S + I + R.")
    return law


def fixed(known: RowKnowledge, row: int) -> Expression | None:
    """The known right-hand side of this row, its constants numbered from 0; None if it is not known."""
    return known.rights.get(row)


def required(known: RowKnowledge, row: int) -> tuple[Expression, ...]:
    """The terms that must stand in this row."""
    return tuple(term for place, term in known.musts if place == row)


def allowed(known: RowKnowledge, row: int, term: Expression) -> bool:
    """Whether this term (canonical, without its coefficient) may stand in this row."""
    return _objection(known, row, term) is None


def _objection(known: RowKnowledge, row: int, term: Expression) -> str | None:
    """Why this term may not stand in this row; None if it may."""
    if (row, term) in known.mustnots or (None, term) in known.mustnots:
        return "which must not be there"
    heads = known.functions.get(row)
    if heads is not None and any(n.head in FUNCTIONS and n.head not in heads for n in term.nodes()):
        return f"where the functions allowed are {', '.join(sorted(heads)) or 'none'}"
    if known.symbols is not None and any(
        n.head == "symbol" and not is_input(n) and n not in known.symbols for n in term.nodes()
    ):
        return "with a variable that is not allowed"
    if row in known.populations and not divisible(term, Variable(known.frame.names[row]).symbol):
        return f"which is not divisible by {known.frame.names[row]}"
    wrong = term_objection(term, known.units) if known.units else None
    return None if wrong is None else f"which {wrong}"


def divisible(term: Expression, state: Expression) -> bool:
    """Whether the term has the state as a factor."""
    for factor in factors(term):
        if factor == state or (factor.head == "+" and all(divisible(s, state) for s in summands(factor))):
            return True
        if factor.head == "^" and factor.args[0] == state and factor.args[1].head == "number":
            return factor.args[1].args[0] >= 1.0
    return False


def impose(known: RowKnowledge, skeleton: Skeleton) -> Skeleton:
    """The skeleton with known right-hand sides and tied constants; Contradiction if it cannot fulfil the knowledge."""
    if known.empty or skeleton.frame != known.frame:
        return skeleton
    skeleton = _with_known_rows(known, skeleton)
    present = set()
    for row, summand in rows_of(skeleton):
        term = term_of(summand)
        present |= {(row, term), (None, term)}
        reason = None if row in known.rights else _objection(known, row, term)
        if reason is not None and not (skeleton.right_sides is None and term == skeleton.highest):
            raise Contradiction(f"has {_text(term)} in the equation of {known.frame.names[row]}, {reason}")
    for place in known.musts:
        if place not in present:
            row, term = place
            where = "" if row is None else f" in the equation of {known.frame.names[row]}"
            raise Contradiction(f"lacks the required term {_text(term)}{where}")
    wrong = objection(skeleton, known.units, known.rights) if known.units else None
    if wrong is not None:
        raise Contradiction(wrong)
    return tie(skeleton, known.laws, known.relations)


def _with_known_rows(known: RowKnowledge, skeleton: Skeleton) -> Skeleton:
    if not known.rights:
        return skeleton
    sides = list(skeleton.sides)
    first: dict[int, Expression] = {}  # the constant of each name
    same: dict[Expression, Expression] = {}
    for row, right in known.rights.items():
        left = known.frame.highest[row].symbol
        if _opened(left, sides[row][1]) != _opened(left, right):
            raise Contradiction(f"has another right-hand side of {known.frame.highest[row]} than the known one")
        present = dict(zip(_constants(right), _constants(sides[row][1]), strict=False))
        if substitute(right, present) != sides[row][1]:
            present = {c: constant(1_000 * NUMBERS + known.names[row][c.args[0]]) for c in _constants(right)}
            sides[row] = left, substitute(right, present)
        same |= {own: first.setdefault(known.names[row][c.args[0]], own) for c, own in present.items()}
    return numbered(skeleton.frame, [(left, substitute(right, same)) for left, right in sides])


def _opened(left: Expression, right: Expression) -> str:
    """The structure of an equation with every number in it open."""
    numbers: dict[Expression, Expression] = {n: number(1.5) for n in right.nodes() if n.head == "constant"}
    return structure(*open_constants(left, substitute(right, numbers), left)[:2])


def _text(term: Expression) -> str:
    return plain(term, ["C"] * 99)
