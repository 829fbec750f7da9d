"""A grammar restricted to a frame and to prior knowledge, and the skeletons of its derivations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lgf.data.problem import Problem
from lgf.data.row_knowledge import row_knowledge
from lgf.equation.dimensions import Units, objection, term_objection
from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.structure import shifted
from lgf.equation.terms import terms_of
from lgf.errors import LgfError, quoted
from lgf.expression.canonical import canonical
from lgf.expression.frame import Frame, Variable
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import MINUS_ONE, Expression, add, constant, mul, power, summands, symbol
from lgf.grammar import Derivation, Grammar, mentions, restrict, spell
from lgf.grammar.vocabulary import STATE_WORD
from lgf.language.cheapest_derivation import Encoding, encoding
from lgf.language.domain import Ranges
from lgf.language.sentences import INPUT, NoEquation, grammar_term, in_frame, phrase, skeleton_of
from lgf.language.term_dictionary import term_dictionary


@dataclass(frozen=True, eq=False)
class Language:
    """A grammar restricted to one frame, to prior knowledge and to terms that are defined on the data."""

    grammar: Grammar
    frame: Frame
    forced: bool
    allowed: np.ndarray  # one truth value per rule
    required: tuple[Expression, ...] = ()  # terms that the equation must have
    stable: bool | None = None  # known stability; a grammar cannot enforce it, but a proposer may use it
    units: Units = ()
    as_written: bool = False  # C*u'' + C*u = F stays an operator, in place of u'' = C*u + C*F

    @cached_property
    def max_order(self) -> int | None:
        """The cap on nested `diff`; None for explicit grammars."""
        return None if self.grammar.template == "explicit" else self.frame.orders[0]

    def skeleton(self, derivation: Derivation) -> Skeleton | None:
        """The equation of the derivation with the terms that are required; None if it is none or breaks units."""
        try:
            skeleton = skeleton_of(self.grammar.template, spell(self.grammar, derivation), self.frame)
        except NoEquation:
            return None
        skeleton = skeleton if self.as_written else linear_form(explicit_form(skeleton))
        skeleton = _with_terms(skeleton, self.required)
        if self.units and objection(skeleton, self.units) is not None:
            return None
        return skeleton

    def sentence_parts(self, parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The terms, in the grammar's words, of the sentence for u^(n) = sum of these terms."""
        words = tuple(dict.fromkeys(grammar_term(p, self.frame) for p in parts))
        if self.grammar.template == "explicit":
            return words
        return (symbol(STATE_WORD, self.frame.orders[0]), *(p for p in words if p != INPUT))

    def term(self, expression: Expression) -> Expression:
        """A term of the grammar with the names of the frame."""
        return in_frame(expression, self.frame)

    def encoding(self, skeleton: Skeleton) -> Encoding:
        """The cheapest derivation of the skeleton's structure in this language, and the bits of the structure."""
        return encoding(self.grammar, skeleton, allowed=self.allowed)

    def price(self, skeleton: Skeleton) -> float:
        """The bits of the skeleton's structure, whatever derivation it came from; infinity if it has none."""
        return self.encoding(skeleton).bits if self.grammar.summand else math.inf


def make_language(
    grammar: Grammar, problem: Problem, frame: Frame, ranges: Ranges, as_written: bool = False
) -> Language:
    """The language for equations of this frame of one state; `as_written` they keep the form of the sentence.

    Excluded rules enforce certain knowledge: order, forcing, autonomy, and allowed functions and variables. Rules with
    terms that are undefined on the data are excluded too (log u where u is negative, 1/t at t = 0).
    """
    if len(frame.states) > 1:
        raise LgfError(
            f"the grammar {quoted(grammar.name)} says equations of one state, but {', '.join(frame.names)} are "
            "measured; give the equations to fit, or name one column."
        )
    if grammar.template == "system":
        raise LgfError(
            f"the grammar {quoted(grammar.name)} says systems, but {frame.names[0]} is the only state; take "
            "'standard', or a grammar for one state."
        )
    knowledge = problem.knowledge
    phrases: list[str] = []
    if knowledge.autonomous:
        phrases.append("t")
    if knowledge.functions is not None:
        phrases += [name for name in FUNCTIONS if name not in knowledge.functions]
    if knowledge.variables is not None:
        phrases += [phrase(v) for v in ("t", *frame.variables) if str(v) not in knowledge.variables]
    phrases += undefined_on(frame, ranges)
    forced = bool(problem.forced)
    allowed = restrict(grammar, order=frame.orders[0], forced=forced, forbid=mentions(*phrases))
    required = tuple(term for _, term in row_knowledge(knowledge, frame).musts)
    if problem.units and grammar.summand:
        allowed = _possible_rules(grammar, frame, allowed, problem.units)
    return Language(grammar, frame, forced, allowed, required, knowledge.stable, problem.units, as_written)


def _possible_rules(grammar: Grammar, frame: Frame, allowed: np.ndarray, units: Units) -> np.ndarray:
    """The allowed rules without those that occur only in summands which units exclude, such as sin(t) for t in s."""
    used, excluded = set(), set()
    for term in term_dictionary(grammar, allowed).terms:
        wrong = any(term_objection(in_frame(part, frame), units) for part in term.parts)
        (excluded if wrong else used).update(term.derivation)
    possible = np.array(allowed)
    possible[sorted(excluded - used)] = False
    return possible


def undefined_on(frame: Frame, ranges: Ranges) -> list[str]:
    """The phrases of a grammar that are not finite everywhere on the data."""
    phrases: list[str] = []
    name = frame.names[0]
    lowest, highest = ranges[Variable(name)]
    if lowest <= 0.0:
        phrases += ["log(u", "sqrt(u", "u^C"]
        if highest >= 0.0:
            phrases += ["/u"]
    for variable in frame.variables[1:]:
        lowest, highest = ranges[variable]
        word = phrase(variable)
        if lowest <= 0.0 <= highest:
            phrases += [f"/{word}", f"log({word}", f"sqrt({word}"]
    start, stop = ranges["t"]
    if start <= 0.0:
        phrases += ["/t", "log(t", "/log(t", "/sin("]
    elif start <= 1.0 <= stop:
        phrases += ["/log(t"]
    return phrases


def _with_terms(skeleton: Skeleton, terms: Sequence[Expression]) -> Skeleton:
    """The equation with those of the terms that it lacks added, each with an open coefficient."""
    present = terms_of(skeleton)
    lacking = [
        mul(constant(10_000 * i), shifted(t, 10_000 * i + 1)) for i, t in enumerate(terms, 1) if t not in present
    ]
    if not lacking:
        return skeleton
    return numbered(skeleton.frame, ((skeleton.left, add(skeleton.right, *lacking)),))


def explicit_form(skeleton: Skeleton) -> Skeleton:
    """The same structure as u^(n) = right side where the highest derivative enters linearly, else unchanged."""
    if skeleton.right_sides is not None or skeleton.degree != 1:
        return skeleton
    coefficients = skeleton.polynomial
    assert coefficients is not None
    rest, leading = coefficients
    right, _ = canonical(mul(MINUS_ONE, rest, power(leading, MINUS_ONE)))
    explicit = Skeleton(skeleton.frame, ((skeleton.highest, right),))
    # The canonical form may cancel a factor that is part of the structure; the original is returned then.
    return explicit if explicit.structure == skeleton.structure else skeleton


def linear_form(skeleton: Skeleton) -> Skeleton:
    """The same structure with C*(C*u + F)/D written as (C*u + C*F)/D, so that more constants enter linearly."""
    if skeleton.right_sides is None or skeleton.tied:
        return skeleton
    terms = [s for right in skeleton.right_sides for s in summands(right)]
    if not any(s.head == "*" and any(f.head == "+" for f in s.args) for s in terms):
        return skeleton
    distributed = iter([_distributed(s, i) for i, s in enumerate(terms)])
    rights = [add(*(next(distributed) for _ in summands(right))) for right in skeleton.right_sides]
    return numbered(skeleton.frame, tuple(zip((left for left, _ in skeleton.sides), rights, strict=True)))


def _distributed(summand: Expression, position: int) -> Expression:
    """A product C*(sum)*rest with the open constant distributed over the sum, if the family stays the same."""
    parts = summand.args if summand.head == "*" else ()
    sums = [f for f in parts if f.head == "+"]
    if not parts or parts[0].head != "constant" or len(sums) != 1:
        return summand
    fixed = [term for term in sums[0].args if _coefficient(term) is None]
    if len(fixed) != 1:
        return summand
    unused = constant(1_000_000 + position)  # any unused index; the caller renumbers
    terms = (mul(unused, term) if term is fixed[0] else term for term in sums[0].args)
    return mul(add(*terms), *(f for f in parts[1:] if f is not sums[0]))


def _coefficient(term: Expression) -> Expression | None:
    """The open constant that multiplies the term, or None."""
    first = term.args[0] if term.head == "*" else term
    return first if first.head == "constant" else None
