"""The terms of a grammar on which records are projected, as columns with trial values of their inner constants.

A group is one term; its columns are the term with different values of the constants inside. Values are in units of the
record (its window, its dominant frequencies, the size of the cofactor), so the table holds for records in any units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from lgf.expression.frame import Frame
from lgf.expression.monomials import n_constants, renumber
from lgf.expression.parse import read_expression
from lgf.expression.tree import ONE, Expression, T, is_input, symbol
from lgf.grammar import Derivation, Grammar, restrict, spell
from lgf.grammar.blocks import summand_symbols, with_mark
from lgf.grammar.vocabulary import STATE_WORD
from lgf.language.cheapest_derivation import header_parts, reciprocal
from lgf.language.headers import cheapest_headers, fraction
from lgf.language.sentences import grammar_frame
from lgf.language.stored import stored
from lgf.language.term_dictionary import parts_of, term_dictionary
from lgf.solver.constant_roles import Role, role_of
from lgf.solver.halton import halton
from lgf.solver.kernels.machine import Programs
from lgf.solver.program import compile_expression, concatenate

ORDERS = (1, 2)
N_TERMS = 96
"""Summands with a group of their own: the cheapest."""

PEAKS = 3
ONE_UNIT, RATE, FREQUENCY, FIRST_PEAK = 0, 1, 2, 3
N_UNITS = FIRST_PEAK + PEAKS
"""The given units of inner constants: 1, the window, the window over 2 pi, and 1 over each dominant frequency."""

_MANY_BITS = 7.0  # terms up to here have the long list of frequencies
_FREQUENCIES = (0.3, 0.7, 1.3, 2.2, 4.0, 7.0, 12.0)  # cycles in the window
_FEW_FREQUENCIES = (0.6, 2.0)
_ROWS_OF_SEVERAL = 4  # columns of a term with several inner constants
_HEADERS = 64  # the cheapest with different terms
_HEADERS_SEEN = 1000  # among which they are searched


@dataclass(frozen=True, eq=False)
class OrderTable:
    """The columns for equations of one order: their programs, groups, and inner constants (see `term_rows`)."""

    programs: Programs
    owner: np.ndarray
    group: np.ndarray
    relative: np.ndarray
    unit: np.ndarray
    cofactors: Programs


@dataclass(frozen=True, eq=False)
class TermTable:
    """The groups of a grammar, terms and divisors, and their columns by order.

    headers  the groups of the terms of the cheapest headers without a divisor, each set of terms once
    kinds    the kind of each group: 0 for terms of headers, 1 for divisors, the others by the first rule of a summand
    """

    terms: tuple[Expression, ...]
    divisors: tuple[Expression, ...]
    headers: tuple[tuple[int, ...], ...]
    kinds: tuple[int, ...]
    by_order: dict[int, OrderTable]

    @property
    def n_kinds(self) -> int:
        """The number of kinds."""
        return max(self.kinds) + 1

    @property
    def n_groups(self) -> int:
        """The number of groups: terms, then divisors."""
        return len(self.terms) + len(self.divisors)

    def base(self, order: int) -> list[int]:
        """The groups of the linear terms 1, u, u', ... below the order; the grammar may lack some."""
        linear = [ONE, *(symbol(STATE_WORD, d) for d in range(order))]
        return [self.terms.index(e) for e in linear if e in self.terms]


def term_table(grammar: Grammar, n_terms: int = N_TERMS) -> TermTable:
    """The table of an explicit grammar: linear terms, terms of its headers, its cheapest summands, its divisors."""
    return _table(grammar, _rules(grammar), n_terms)


@lru_cache(maxsize=4)
def _rules(grammar: Grammar) -> bytes:
    return restrict(grammar, order=ORDERS[-1]).tobytes()


@stored
def _table(grammar: Grammar, allowed_rules: bytes, n_terms: int) -> TermTable:
    allowed = np.frombuffer(allowed_rules, dtype=bool)
    headers = header_parts(grammar, allowed)
    linear = [ONE, *(symbol(STATE_WORD, d) for d in range(ORDERS[-1]))]
    # A header of one term over a divisor is written as one term; what all divisors have is none of these.
    own = sorted(frozenset.intersection(*(parts for _, parts in headers.values())))
    costs: dict[Expression, float] = dict.fromkeys([*linear, *own], 0.0)
    first_rules: dict[Expression, int] = {}
    for term in term_dictionary(grammar, allowed).terms:
        if len(costs) >= len(linear) + len(own) + n_terms:
            break
        if len(term.parts) == 1:
            costs.setdefault(term.parts[0], term.bits)
            first_rules.setdefault(term.parts[0], term.derivation[0])
    costs = {e: bits for e, bits in costs.items() if not any(is_input(n) for n in e.nodes())}
    divisors = {d: _varying(d) for d in headers if d != ONE}
    known = {d: e for d, e in divisors.items() if e is not None}
    terms = tuple(costs)
    rules = {e: first_rules[e] for e in terms if e not in linear and e not in own}
    number = {rule: 2 + i for i, rule in enumerate(sorted(set(rules.values())))}
    kinds = (*(number[rules[e]] if e in rules else 0 for e in terms), *(1 for _ in known))
    tables = {order: _order_table(terms, tuple(costs.values()), tuple(known.values()), order) for order in ORDERS}
    return TermTable(terms, tuple(known), _headers(grammar, allowed, terms), kinds, tables)


def _headers(grammar: Grammar, allowed: np.ndarray, terms: Sequence[Expression]) -> tuple[tuple[int, ...], ...]:
    sets: dict[tuple[int, ...], None] = {}
    for _, _, text in islice(cheapest_headers(grammar, allowed, _MARK.args[0]), _HEADERS_SEEN):
        addends, factor = fraction(read_expression(text), _MARK)
        parts = {p for a in addends if a != _MARK for p in parts_of(_renumbered(a))}
        parts = {p for p in parts if not any(is_input(n) for n in p.nodes())}
        if parts and factor == ONE and parts.issubset(terms):
            sets.setdefault(tuple(sorted(terms.index(p) for p in parts)))
    return tuple(sets)[:_HEADERS]


def _varying(divisor: Expression) -> Expression | None:
    """H of a divisor 1 + C*h, for which u^(n) gains the term C*h*u^(n); any other divisor itself."""
    if divisor.head == "+" and len(divisor.args) == 2 and ONE in divisor.args:
        (rest,) = (a for a in divisor.args if a != ONE)
        if rest.head == "*" and rest.args[0].head == "constant" and n_constants(rest) == 1 and len(rest.args) == 2:
            return rest.args[1]
        return None
    return divisor


def _order_table(
    terms: Sequence[Expression], bits: Sequence[float], divisors: Sequence[Expression], order: int
) -> OrderTable:
    frame = grammar_frame(order, True)
    top = symbol(STATE_WORD, order)
    usable = [(i, e, b) for i, (e, b) in enumerate(zip(terms, bits, strict=True)) if not _reaches(e, order)]
    over = [(len(terms) + i, e * top, 0.0) for i, e in enumerate(divisors) if not _reaches(e, order)]
    cofactors: dict[Expression, int] = {}
    rows: list[tuple[int, int, list[float], list[int]]] = []
    chosen = [*usable, *over]
    for number, (group, expression, cost) in enumerate(chosen):
        values, units = _values(expression, cost, cofactors)
        rows += [(number, group, list(v), list(u)) for v, u in zip(values, units, strict=True)]
    most = max(1, *(len(v) for _, _, v, _ in rows))
    relative, unit = np.zeros((len(rows), most)), np.zeros((len(rows), most), np.int64)
    for i, (_, _, v, u) in enumerate(rows):
        relative[i, : len(v)], unit[i, : len(u)] = v, u
    return OrderTable(
        _joined([e for _, e, _ in chosen], frame),
        np.array([number for number, _, _, _ in rows]),
        np.array([group for _, group, _, _ in rows]),
        relative,
        unit,
        _joined(list(cofactors) or [ONE], frame),
    )


def _reaches(expression: Expression, order: int) -> bool:
    """Whether a derivative of this order or above occurs."""
    return any(n.head == "symbol" and n.args[0] == STATE_WORD and n.args[1] >= order for n in expression.nodes())


def _joined(expressions: Sequence[Expression], frame: Frame) -> Programs:
    counts = [n_constants(e) for e in expressions]
    most = max(counts, default=0)
    programs = [compile_expression(e, frame, most) for e in expressions]
    return concatenate(programs, np.full(len(programs), most))


def _values(
    expression: Expression, bits: float, cofactors: dict[Expression, int]
) -> tuple[list[tuple[float, ...]], list[tuple[int, ...]]]:
    """(trial values of the inner constants, their units), a row for each column of the term."""
    count = n_constants(expression)
    if count == 0:
        return [()], [()]
    lists = [_choices(role_of(expression, i), bits, cofactors) for i in range(count)]
    if count == 1:
        return [(v,) for v, _ in lists[0]], [(u,) for _, u in lists[0]]
    draws = halton(count, _ROWS_OF_SEVERAL)
    rows = [[c[int(x * len(c))] for c, x in zip(lists, draw, strict=True)] for draw in draws]
    return [tuple(v for v, _ in row) for row in rows], [tuple(u for _, u in row) for row in rows]


def _choices(role: Role, bits: float, cofactors: dict[Expression, int]) -> list[tuple[float, int]]:
    """(value, unit) of the trial values of a constant in this role."""
    if role.place == "exponent":
        return [(v, ONE_UNIT) for v in (-1.0, -0.5, 0.25, 1.5, 2.5)]
    if role.place == "offset":
        return [(v, ONE_UNIT) for v in (0.8, 2.4, 3.9, 5.5)]
    if role.place in ("sin", "cos") and role.cofactor == T:
        even = _FREQUENCIES if bits <= _MANY_BITS else _FEW_FREQUENCIES
        peaks = [(1.0, FIRST_PEAK + i) for i in range(PEAKS)]
        return [*peaks, *((v, FREQUENCY) for v in even)]
    if role.cofactor == T:
        return [(v, RATE) for v in ((-4.0, -1.5, 1.5, 5.0) if bits <= _MANY_BITS else (-2.0, 2.0))]
    unit = ONE_UNIT
    if role.cofactor is not None and not any(n.head == "constant" for n in role.cofactor.nodes()):
        unit = N_UNITS + cofactors.setdefault(role.cofactor, len(cofactors))
    if role.place in ("sin", "cos"):
        return [(v, unit) for v in (0.8, 1.8, 3.5)]
    if role.place in ("exp", "tanh"):
        return [(v, unit) for v in ((-2.0, -0.7, 0.7, 2.0) if role.place == "exp" else (0.8, 2.5))]
    return [(v, unit) for v in (0.4, 3.0)]


_MARK = symbol("x0")


@lru_cache(maxsize=20_000)
def header_terms(grammar: Grammar, rules: Derivation) -> tuple[int, ...]:
    """The groups of a header's own terms, and of its divisor, as far as there are; the header is given by its rules."""
    table = term_table(grammar)
    addends, factor = fraction(read_expression(spell(with_mark(grammar, _MARK.args[0]), rules)), _MARK)
    parts = {p for a in addends if a != _MARK for p in parts_of(_renumbered(a))}
    groups = sorted(table.terms.index(p) for p in parts if p in table.terms)
    divisor = reciprocal(_renumbered(factor))
    if divisor in table.divisors:
        groups.append(len(table.terms) + table.divisors.index(divisor))
    return tuple(groups)


@lru_cache(maxsize=20_000)
def summand_group(grammar: Grammar, derivation: Derivation) -> int | None:
    """The group of a summand; None if it has none."""
    parts = parts_of(spell(grammar, derivation, summand_symbols(grammar)))
    terms = term_table(grammar).terms
    return terms.index(parts[0]) if len(parts) == 1 and parts[0] in terms else None


def _renumbered(expression: Expression) -> Expression:
    return renumber(expression, [0.0] * n_constants(expression))[0]
