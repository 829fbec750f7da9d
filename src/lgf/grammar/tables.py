"""A grammar as arrays, for compiled code."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.grammar.restriction import as_mask, terminating
from lgf.grammar.rules import Grammar

NEVER = np.int32(1 << 20)
"""The length of a completion that does not exist: above that of any derivation, and small enough to add up."""


class Tables(NamedTuple):
    """The allowed rules of a grammar; nonterminals are numbered in the grammar's order.

    The rules of nonterminal x are rules[first[x]:first[x + 1]]; the nonterminals in the body of rule r are
    body[begin[r]:begin[r + 1]]. A rule that is not allowed, or cannot terminate, is not among the rules and has
    probability 0.
    """

    first: NDArray[np.int32]
    rules: NDArray[np.int32]
    begin: NDArray[np.int32]
    body: NDArray[np.int32]
    shortest: NDArray[np.int32]  # per nonterminal: rules of its shortest completion, or NEVER
    needs: NDArray[np.int32]  # per rule: itself and the shortest completion of its body
    differentiates: NDArray[np.bool_]
    probability: NDArray[np.float64]


def tables(grammar: Grammar, allowed: ArrayLike | None = None, *, weighted: bool = False) -> Tables:
    """The tables of the allowed rules; `weighted` leaves out the rules of weight 0 too. The result is cached."""
    return _tables(grammar, as_mask(grammar, allowed).tobytes(), weighted)


def shortest(grammar: Grammar, allowed: ArrayLike | None = None) -> NDArray[np.int32]:
    """Per nonterminal, the number of rules of its shortest completion by allowed rules."""
    return tables(grammar, allowed).shortest


def start_symbols(grammar: Grammar, start: str | tuple[str, ...] | None) -> NDArray[np.int32]:
    """The numbers of the nonterminals that a derivation begins with, leftmost first; None is the grammar's start."""
    names = (grammar.start,) if start is None else (start,) if isinstance(start, str) else start
    for name in names:
        if name not in grammar.nonterminals:
            raise ValueError(
                f"{name!r} is not a nonterminal of grammar {grammar.name!r}; give one of "
                f"{', '.join(grammar.nonterminals)}."
            )
    return np.array([grammar.nonterminals.index(name) for name in names], dtype=np.int32)


@lru_cache(maxsize=256)
def _tables(grammar: Grammar, allowed: bytes, weighted: bool) -> Tables:
    mask = np.frombuffer(allowed, dtype=bool)
    if weighted:
        mask = mask & np.array([rule.weight > 0 for rule in grammar.rules])
    mask = terminating(grammar, mask)
    number = {name: i for i, name in enumerate(grammar.nonterminals)}
    lhs = np.array([number[rule.lhs] for rule in grammar.rules])
    bodies = [[number[s] for s in rule.body if s in number] for rule in grammar.rules]
    by_lhs = [[r for r in range(grammar.n_rules) if mask[r] and lhs[r] == x] for x in range(len(number))]
    weights = np.array([rule.weight for rule in grammar.rules]) * mask
    totals = np.bincount(lhs, weights, minlength=len(number))[lhs]
    length, needs = _shortest(by_lhs, bodies)
    arrays = Tables(
        first=np.cumsum([0, *map(len, by_lhs)], dtype=np.int32),
        rules=np.array([r for rules in by_lhs for r in rules], dtype=np.int32),
        begin=np.cumsum([0, *map(len, bodies)], dtype=np.int32),
        body=np.array([x for body in bodies for x in body], dtype=np.int32),
        shortest=length,
        needs=needs,
        differentiates=np.array([rule.differentiates for rule in grammar.rules]),
        probability=np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0),
    )
    for array in arrays:
        array.flags.writeable = False
    return arrays


def _shortest(by_lhs: list[list[int]], bodies: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    length = np.full(len(by_lhs), NEVER, dtype=np.int32)
    while True:
        # Python integers: an int32 sum could overflow and look short, and compiled code would write past its stack
        needs = np.array([min(1 + sum(int(length[x]) for x in body), NEVER) for body in bodies], dtype=np.int32)
        updated = np.array([min((needs[r] for r in rules), default=NEVER) for rules in by_lhs], dtype=np.int32)
        if (updated == length).all():
            return length, needs
        length = updated
