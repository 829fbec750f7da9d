"""Enumeration of derivations by increasing bits, lazy and without duplicates."""

import heapq
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from lgf.grammar.derivation import Derivation
from lgf.grammar.restriction import as_mask
from lgf.grammar.rules import Grammar
from lgf.grammar.tables import Tables, start_symbols, tables

# A partial derivation, or a stack, as a linked list: partial derivations share their common beginnings.
Chain: TypeAlias = "tuple[Chain, int] | None"


def enumerate_derivations(
    grammar: Grammar,
    max_bits: float,
    limit: int | None = None,
    allowed: ArrayLike | None = None,
    start: str | tuple[str, ...] | None = None,
) -> Iterator[tuple[float, Derivation]]:
    """The pairs (bits, derivation) up to `max_bits` bits, cheapest first; at most `limit`, none above `max_length`.

    `start` names other nonterminals to begin with.

    The search is best-first with an exact heuristic, the bits of the cheapest completion of every nonterminal. So each
    partial derivation taken from the heap is completed at once, and only its alternatives go back.
    """
    ranked, cheapest, bodies, shortest = _ranking(grammar, as_mask(grammar, allowed).tobytes())
    symbols = start_symbols(grammar, start).tolist()
    least = sum(cheapest[x] for x in symbols)
    if not all(ranked[x] for x in symbols) or least > max_bits:
        return
    start_stack: Chain = None
    for symbol in reversed(symbols):
        start_stack = (start_stack, symbol)
    n_yielded = 0
    tie_breaker = 0
    # bits of the cheapest completion, tie-breaker, rules so far, their number, open nonterminals, the rules these
    # need, and the rank (by bits) of the leftmost nonterminal's next rule
    heap: list[tuple[float, int, Chain, int, Chain, int, int]] = [
        (least, 0, None, 0, start_stack, sum(shortest[x] for x in symbols), 0)
    ]
    while heap and (limit is None or n_yielded < limit):
        total, _, done, length, stack, room, rank = heapq.heappop(heap)
        while stack is not None:
            rest, symbol = stack
            rules = ranked[symbol]
            if rank + 1 < len(rules):
                later = total + (rules[rank + 1][0] - rules[rank][0])
                if later <= max_bits:
                    tie_breaker += 1
                    heapq.heappush(heap, (later, tie_breaker, done, length, stack, room, rank + 1))
            _, rule = rules[rank]
            done = (done, rule)
            length += 1
            room -= shortest[symbol]
            stack = rest
            for child in bodies[rule]:
                stack = (stack, child)
                room += shortest[child]
            if length + room > grammar.max_length:
                break
            rank = 0
        else:
            n_yielded += 1
            yield total, _to_derivation(done)


def _to_derivation(chain: Chain) -> Derivation:
    rules: list[int] = []
    while chain is not None:
        chain, rule = chain
        rules.append(rule)
    return tuple(reversed(rules))


@lru_cache(maxsize=64)
def _ranking(
    grammar: Grammar, allowed: bytes
) -> tuple[list[list[tuple[float, int]]], list[float], list[tuple[int, ...]], list[int]]:
    """Per nonterminal its rules sorted by bits and the least bits; per rule its reversed body; the shortest lengths."""
    weighted = tables(grammar, np.frombuffer(allowed, dtype=bool), weighted=True)
    own = [-math.log2(p) if p > 0 else math.inf for p in weighted.probability.tolist()]
    bodies = [tuple(weighted.body[b:e].tolist()) for b, e in zip(weighted.begin, weighted.begin[1:], strict=False)]
    by_lhs = [weighted.rules[b:e].tolist() for b, e in zip(weighted.first, weighted.first[1:], strict=False)]
    cheapest, rule_bits = _cheapest(weighted, by_lhs, bodies, own)
    ranked = [sorted(((rule_bits[r], r) for r in rules), key=lambda pair: pair[0]) for rules in by_lhs]
    totals = [bits for bits, _ in cheapest]
    return (
        [[(bits, r) for (bits, _), r in rules] for rules in ranked],
        totals,
        [body[::-1] for body in bodies],
        weighted.shortest.tolist(),
    )


def _cheapest(
    weighted: Tables, by_lhs: list[list[int]], bodies: list[tuple[int, ...]], own: list[float]
) -> tuple[list[tuple[float, int]], list[tuple[float, int]]]:
    # Bits first, then length, so that a loop of rules of 0 bits is never the cheapest completion.
    cheapest = [(math.inf, int(length)) for length in weighted.shortest]
    while True:
        rule_bits = [
            (own[r] + sum(cheapest[x][0] for x in body), 1 + sum(cheapest[x][1] for x in body))
            for r, body in enumerate(bodies)
        ]
        updated = [min((rule_bits[r] for r in rules), default=(math.inf, 0)) for rules in by_lhs]
        if updated == cheapest:
            return cheapest, rule_bits
        cheapest = updated
