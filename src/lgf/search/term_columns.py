"""The terms of a language, compiled for evaluation along a trajectory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lgf.equation.dimensions import term_objection
from lgf.expression.frame import Frame, Variable
from lgf.expression.monomials import n_constants
from lgf.expression.tree import ONE, SIGNAL, Expression, is_input
from lgf.fit.initial_guesses import choices
from lgf.fit.target import Target
from lgf.language.cheapest_derivation import header_parts
from lgf.language.language import Language
from lgf.language.term_dictionary import term_dictionary
from lgf.solver.constant_roles import role_of
from lgf.solver.kernels.machine import Programs
from lgf.solver.program import Program, compile_expression, concatenate

_TERMS = 500  # the shortest of the term dictionary
_VALUES = 8  # per constant inside a term; three times as many for a single constant
HEADER_BITS = 3.0  # largest length of a term in the header


@dataclass(frozen=True, eq=False)
class CompiledTerm:
    """A term with its bits, its program, and trial values of the constants inside."""

    expression: Expression
    bits: float
    program: Program
    values: np.ndarray  # [v, constants inside]


class TermColumns:
    """The terms and divisors of a language, as programs with trial values. A divisor is a term in u^(n)."""

    def __init__(self, language: Language, target: Target):
        grammar, allowed = language.grammar, language.allowed
        costs: dict[Expression, float] = {}
        headers = header_parts(grammar, allowed)
        highest = language.frame.highest[0].symbol
        for term in term_dictionary(grammar, allowed).terms[:_TERMS]:
            costs.setdefault(language.term(term.parts[0]), term.bits)
        plain_cost, plain_parts = headers.get(ONE, (0.0, frozenset()))
        for part in map(language.term, sorted(plain_parts)):
            costs[part] = min(costs.get(part, np.inf), HEADER_BITS)
        costs.pop(highest, None)
        self.terms = tuple(
            _prepare(e, bits, target, _VALUES)
            for e, bits in costs.items()
            if not any(is_input(n) for n in e.nodes())
            and _within(e, language.frame)
            and (not language.units or term_objection(e, language.units) is None)
        )
        # u^(n) * (1 + C*h) = E is u^(n) = E - C*h*u^(n), so a divisor is ranked as the term h*u^(n).
        self.divisors: tuple[tuple[Expression, CompiledTerm], ...] = tuple(
            (divisor, _prepare(language.term(h) * highest, max(cost - plain_cost, 0.0), target, _VALUES))
            for divisor, (cost, _) in headers.items()
            if (h := _varying_part(divisor)) is not None
        )
        # of terms, then divisors: programs, the term of each column, its constants
        self.programs, self.owner, self.values = _concatenate([*self.terms, *(term for _, term in self.divisors)])


def _within(expression: Expression, frame: Frame) -> bool:
    """Whether it has no derivative above the frame's: operators of a grammar may be of any order."""
    return all(
        n.head != "symbol" or n.args[1] == SIGNAL or Variable(*n.args) in frame.positions for n in expression.nodes()
    )


def _concatenate(terms: Sequence[CompiledTerm]) -> tuple[Programs, np.ndarray, np.ndarray]:
    """(concatenated programs of the terms, term of each row, constants [row, constant])."""
    programs = [term.program for term in terms]
    p = np.array([term.values.shape[1] for term in terms], np.int64)
    rows = [len(term.values) for term in terms]
    values = np.zeros((sum(rows), max(p, default=0)))
    for begin, term in zip(np.cumsum([0, *rows]).tolist(), terms, strict=False):
        values[begin : begin + len(term.values), : term.values.shape[1]] = term.values
    return concatenate(programs, p), np.repeat(np.arange(len(terms)), rows), values


def _prepare(expression: Expression, bits: float, target: Target, n_values: int) -> CompiledTerm:
    count = n_constants(expression)
    if count == 0:
        values = np.zeros((1, 0))
    else:
        lists = [choices(role_of(expression, i), target, 3 * n_values) for i in range(count)]
        if count == 1:
            values = lists[0][:: max(1, len(lists[0]) // (3 * n_values)), None]
        else:
            rng = np.random.default_rng(0)
            values = np.array([[rng.choice(v) for v in lists] for _ in range(2 * n_values)])
    program = compile_expression(expression, target.frame, count)
    return CompiledTerm(expression, bits, program, np.ascontiguousarray(values))


def _varying_part(divisor: Expression) -> Expression | None:
    """The part h of a divisor 1 + C*h; None for divisors of another form."""
    if divisor.head != "+" or len(divisor.args) != 2:
        return None
    parts = [p for p in divisor.args if p.head == "*" and p.args[0].head == "constant"]
    if len(parts) != 1 or not any(p == ONE for p in divisor.args) or n_constants(parts[0]) != 1:
        return None
    factors = parts[0].args[1:]
    return factors[0] if len(factors) == 1 else None
