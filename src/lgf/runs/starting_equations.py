"""Equations to try first, which the user gives as text, as proposals of a search."""

import math
import re
from collections.abc import Sequence
from itertools import count

from lgf.data import Problem
from lgf.data.column_roles import DEFAULT_INPUT
from lgf.data.row_knowledge import NUMBERS, impose, row_knowledge
from lgf.equation.skeleton import Skeleton
from lgf.equation.structure import shifted
from lgf.equation.system import System
from lgf.equation.terms import term_of
from lgf.equation.tied_constants import Contradiction
from lgf.errors import LgfError, quoted
from lgf.expression.canonical import canonical
from lgf.expression.frame import Frame
from lgf.expression.numeric import has_values
from lgf.expression.parse import ReadingError, read_equations
from lgf.expression.print import plain
from lgf.expression.tree import Expression, constant, mul, summands
from lgf.grammar import Grammar
from lgf.language.cheapest_derivation import encoding
from lgf.language.language import explicit_form, linear_form
from lgf.language.system_language import unrestricted
from lgf.search.candidate import GIVEN, Proposal
from lgf.search.objective import ObjectiveSettings
from lgf.search.systems.language import grammar_of_systems


def starting_proposals(
    texts: Sequence[str], grammar: Grammar, problem: Problem, settings: ObjectiveSettings = ObjectiveSettings()
) -> list[Proposal]:
    """The user's equations as proposals; one that the grammar cannot derive has a fixed length in bits.

    Numbers in the equations are fitted to the data, those in known right-hand sides are not. A system whose right-hand
    sides are all known is a proposal too.
    """
    if len(problem.knowledge.known or {}) == len(problem.states):
        texts = (*texts, "")
    proposals = []
    for text in texts:
        skeleton = linear_form(explicit_form(_read_start(text, problem)))
        try:
            skeleton = impose(row_knowledge(problem.knowledge, skeleton.frame), skeleton)
        except Contradiction as error:
            what = f"the equation {quoted(text)}" if text else "the system of the known right-hand sides"
            raise LgfError(f"{what} contradicts what is known: it {error}; change one of the two.") from error
        encoded = encoding(grammar, skeleton, bool(problem.forced))
        bits = encoded.bits if encoded.derivation is not None else settings.foreign_bits
        proposals.append(Proposal(skeleton, bits, encoded.derivation, GIVEN if text else "known"))
    return proposals


def check_shared(grammar: Grammar, problem: Problem, proposals: Sequence[Proposal]) -> None:
    """Raises LgfError if a shared constant is that of a term which no equation can have."""
    for frame in problem.frames:
        known = row_knowledge(problem.knowledge, frame)
        own = {(row, term) for p in proposals if p.skeleton.frame == frame for row, term in _terms(p.skeleton.sides)}
        for text, relation in zip(problem.knowledge.shared or (), known.relations, strict=True):
            for row, term in (relation.left, relation.right):
                fixed = known.rights.get(row)
                possible = (row, term) in own or (
                    _sayable(grammar, frame, row, term) if fixed is None else (0, term) in _terms([(term, fixed)])
                )
                if not possible:
                    raise LgfError(
                        f"the shared constant {quoted(text)} says nothing: no equation of {frame.names[row]} that is "
                        f"searched has the term {plain(term, ['C'] * 99)}; correct it, or give the equations."
                    )


def _terms(sides: Sequence[tuple[Expression, Expression]]) -> set[tuple[int, Expression]]:
    """(equation, term) of the right sides, as they are compared with those that share a constant."""
    return {(row, term_of(s)) for row, (_, right) in enumerate(sides) for s in summands(canonical(right)[0])}


def _sayable(grammar: Grammar, frame: Frame, row: int, term: Expression) -> bool:
    """Whether the grammar can say an equation of this row with this term."""
    right = mul(constant(0), shifted(term, 1))
    if len(frame.states) > 1:
        return math.isfinite(unrestricted(grammar_of_systems(grammar), frame).row_structure(row, right).bits)
    skeleton = Skeleton(frame, ((frame.highest[0].symbol, right),))
    return not grammar.summand or encoding(grammar, skeleton).derivation is not None


def _read_start(text: str, problem: Problem) -> Skeleton:
    """The user's equations in one of the problem's frames, known right-hand sides added where they are left out."""
    widest = problem.frames[-1]
    try:
        text, fitted = _with_known_rows(text, problem, widest)
        sides = read_equations(text, widest)
        if not all(has_values(left - right) for left, right in sides):
            raise LgfError(f"the equation {quoted(text)} has no value anywhere; correct it.")
        orders = [max((n.args[1] for e in pair for n in e.nodes() if n.head == "symbol"), default=0) for pair in sides]
        frame = next((f for f in problem.frames if len(f.states) > 1 or f.orders[0] == orders[0]), None)
        if frame is None:
            known = " or ".join(str(f.orders[0]) for f in problem.frames)
            raise LgfError(
                f"the equation {quoted(text)} is of order {orders[0]}, but order {known} is looked for; change one of "
                "the two."
            )
        skeleton = System.read(text, frame=frame).skeleton if fitted else Skeleton.read(text, frame)
        if any(v.symbol not in canonical(r)[0].nodes() for v, r in zip(frame.highest, skeleton.residuals, strict=True)):
            raise LgfError(f"the equation {quoted(text)} is no differential equation: its highest derivative cancels.")
        if skeleton.tied and skeleton.right_sides is None:
            raise LgfError(
                f"the equation {quoted(text)} cannot be used: an open constant occurs twice; solve it for the highest "
                "derivative, or give every place a constant of its own."
            )
        return skeleton
    except ReadingError as error:
        if _lacks_input(text, widest):
            raise LgfError(
                f"the equation {quoted(text)} contains the forcing {DEFAULT_INPUT}, but none is given; give one."
            ) from error
        raise LgfError(f"the equation {quoted(text)} cannot be read: {error.message}.") from error


def _with_known_rows(text: str, problem: Problem, frame: Frame) -> tuple[str, bool]:
    """(the equations with the known ones that are left out, whether their numbers are to be fitted)."""
    known = row_knowledge(problem.knowledge, frame)
    sides = read_equations(text, frame) if text else ()
    constants = [n.args[0] for pair in sides for e in pair for n in e.nodes() if n.head == "constant"]
    lefts = {left for left, _ in sides}
    missing = [(row, right) for row, right in known.rights.items() if frame.highest[row].symbol not in lefts]
    lines = [text] if text else []
    numbers = [name for own in known.names.values() for name in own if name < NUMBERS]
    unused = count(max([*constants, *numbers], default=-1) + 1)
    for row, right in missing:
        own = known.names[row]
        if not constants:  # every number will be open, so a constant is written as a number
            names = ["1.5"] * len(own)
        elif re.search(r"\bC[0-9]", text):
            names = [f"C{name if name < NUMBERS else next(unused)}" for name in own]
        else:
            names = ["C"] * len(own)
        lines.append(f"{frame.highest[row]} = {plain(right, names)}")
    return "; ".join(lines), not constants


def _lacks_input(text: str, frame: Frame) -> bool:
    """Whether the text is valid once an input is declared."""
    if frame.inputs or DEFAULT_INPUT in frame.names:
        return False
    try:
        read_equations(text, frame.with_inputs((DEFAULT_INPUT,)))
    except LgfError:
        return False
    return True
