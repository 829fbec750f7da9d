"""The equations that a grammar can say about a problem: derivation -> skeleton, under what is known."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lgf.data.observation import Problem
from lgf.equation.skeleton import NoEquation, Skeleton, numbered
from lgf.expression.canonical import canonical
from lgf.expression.parse import read_expression
from lgf.expression.tree import FUNCTIONS, MINUS_ONE, Expression, F, add, constant, mul, power, symbol
from lgf.fit.target import Target
from lgf.grammar import Derivation, Grammar, bits, mentions, restrict, spell


@dataclass(frozen=True, eq=False)
class Language:
    """A grammar restricted to one order and to what is known and defined on the data."""

    grammar: Grammar
    order: int
    forced: bool
    allowed: np.ndarray  # one truth value per rule
    required: tuple[Expression, ...] = ()  # terms that must stand in the equation
    stable: bool | None = None  # what is known of stability; no grammar can enforce it, but a proposer may heed it

    @cached_property
    def max_order(self) -> int | None:
        """The cap on nested derivatives, for grammars that spell them by nesting."""
        return None if self.grammar.template == "explicit" else self.order

    def skeleton(self, derivation: Derivation) -> Skeleton | None:
        """The equation that the derivation says, or None if it says none of this order or misses a required term."""
        try:
            skeleton = Skeleton.from_sentence(self.grammar.template, spell(self.grammar, derivation), self.order)
        except NoEquation:
            return None
        skeleton = linear_form(explicit_form(skeleton))
        if self.required and not all(_has_term(skeleton, term) for term in self.required):
            return None
        return skeleton

    def sentence_parts(self, parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The terms of the sentence that says u^(n) = sum of these terms."""
        if self.grammar.template == "explicit":
            return parts
        return (symbol("u", self.order), *(p for p in parts if p != F))

    def bits(self, derivation: Derivation) -> float:
        """What the derivation costs in this language."""
        return bits(self.grammar, derivation, self.allowed)


def make_language(grammar: Grammar, problem: Problem, target: Target) -> Language:
    """The language for equations of the target's order.

    Certain knowledge is enforced here, by leaving rules out: order, forcing, autonomy, allowed functions and
    variables, and whatever the range of the data makes undefined (log u where u is negative, 1/t at t = 0).
    """
    knowledge = problem.knowledge
    phrases: list[str] = []
    if knowledge.autonomous:
        phrases.append("t")
    if knowledge.functions is not None:
        phrases += [name for name in FUNCTIONS if name not in knowledge.functions]
    if knowledge.variables is not None:
        names = ["t", "u", *("u" + "'" * k for k in range(1, target.order))]
        phrases += [name for name in names if name not in knowledge.variables]
    phrases += undefined_on(target)
    forced = bool(problem.forced)
    allowed = restrict(grammar, order=target.order, forced=forced, forbid=mentions(*phrases))
    required = tuple(term_of(read_expression(text)) for text in knowledge.required or ())
    return Language(grammar, target.order, forced, allowed, required, knowledge.stable)


def undefined_on(target: Target) -> list[str]:
    """Phrases that have no finite value everywhere on the data."""
    phrases: list[str] = []
    u, t = target.states[0], target.t
    lowest, highest = min(float(u.min()), float(target.record.initial[:, 0].min())), float(u.max())
    if lowest <= 0.0:
        phrases += ["log(u", "sqrt(u", "u^C"]
        if highest >= 0.0:
            phrases += ["/u"]
    for k in range(1, target.order):
        values, name = target.states[k], "u" + "'" * k
        if values.min() <= 0.0 <= values.max():
            phrases += [f"/{name}", f"log({name}", f"sqrt({name}"]
    if t.min() <= 0.0:
        phrases += ["/t", "log(t", "/log(t", "/sin("]
    elif t.min() <= 1.0 <= t.max():
        phrases += ["/log(t"]
    return phrases


def explicit_form(skeleton: Skeleton) -> Skeleton:
    """The same structure as u^(n) = right side where the highest derivative enters linearly, else unchanged."""
    if skeleton.explicit is not None or skeleton.degree != 1:
        return skeleton
    coefficients = skeleton.polynomial
    assert coefficients is not None
    rest, leading = coefficients
    right, _ = canonical(mul(MINUS_ONE, rest, power(leading, MINUS_ONE)))
    explicit = Skeleton(skeleton.highest, right)
    # Canonicalising may cancel a factor that mattered; then the original is the better statement.
    return explicit if explicit.structure == skeleton.structure else skeleton


def linear_form(skeleton: Skeleton) -> Skeleton:
    """The same structure with C*(C*u + F)/D written as (C*u + C*F)/D, so that more constants enter linearly."""
    if skeleton.explicit is None:
        return skeleton
    summands = skeleton.right.args if skeleton.right.head == "+" else (skeleton.right,)
    if not any(s.head == "*" and any(f.head == "+" for f in s.args) for s in summands):
        return skeleton
    return numbered(skeleton.left, add(*(_drawn_in(s, i) for i, s in enumerate(summands))))


def _drawn_in(summand: Expression, position: int) -> Expression:
    """A product C*(sum)*rest with the open constant drawn into the sum, if that leaves the family as it is."""
    factors = summand.args if summand.head == "*" else ()
    sums = [f for f in factors if f.head == "+"]
    if not factors or factors[0].head != "constant" or len(sums) != 1:
        return summand
    fixed = [term for term in sums[0].args if _coefficient(term) is None]
    if len(fixed) != 1:
        return summand
    fresh = constant(1_000_000 + position)  # any index that is not in use; the caller numbers anew
    terms = (mul(fresh, term) if term is fixed[0] else term for term in sums[0].args)
    return mul(add(*terms), *(f for f in factors[1:] if f is not sums[0]))


def _coefficient(term: Expression) -> Expression | None:
    """The open constant by which the term is multiplied, if it is."""
    first = term.args[0] if term.head == "*" else term
    return first if first.head == "constant" else None


def terms_of(skeleton: Skeleton) -> tuple[Expression, ...]:
    """The summands of the right side (or of the residual), without their open or numerical coefficients."""
    body = skeleton.right if skeleton.explicit is not None else skeleton.residual
    return tuple(term_of(summand) for summand in (body.args if body.head == "+" else (body,)))


def term_of(summand: Expression) -> Expression:
    """The summand without its open or numerical coefficient, canonical."""
    factors = summand.args if summand.head == "*" else (summand,)
    return canonical(mul(*(f for f in factors if f.head not in ("constant", "number"))))[0]


def _has_term(skeleton: Skeleton, term: Expression) -> bool:
    return term in terms_of(skeleton)
