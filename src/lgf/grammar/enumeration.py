"""Derivations in order of increasing bits, lazily, each once."""

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

# A derivation under construction, or a stack, as a linked list: partial derivations share what they have in common.
Chain: TypeAlias = "tuple[Chain, int] | None"


def enumerate_derivations(
    grammar: Grammar,
    max_bits: float,
    limit: int | None = None,
    allowed: ArrayLike | None = None,
    start: str | tuple[str, ...] | None = None,
) -> Iterator[tuple[float, Derivation]]:
    """The pairs (bits, derivation) up to `max_bits` bits, cheapest first; at most `limit`, none above `max_length`.

    `start` lets derivations begin with another nonterminal, or several.

    Best-first with an exact heuristic: the bits of the cheapest completion of every nonterminal are known, so each
    partial derivation taken from the heap is completed straight away, and only the turns not taken go back.
    """
    ranked, cheapest, bodies, shortest = _ranking(grammar, as_mask(grammar, allowed).tobytes())
    symbols = start_symbols(grammar, start).tolist()
    least = sum(cheapest[x] for x in symbols)
    if not all(ranked[x] for x in symbols) or least > max_bits:
        return
    opening: Chain = None
    for symbol in reversed(symbols):
        opening = (opening, symbol)
    given = 0
    ticket = 0
    # bits of the cheapest completion, tie-breaker, rules so far, their number, open nonterminals, the room these
    # need, and which of the leftmost nonterminal's rules (ranked by bits) to take next
    heap: list[tuple[float, int, Chain, int, Chain, int, int]] = [
        (least, 0, None, 0, opening, sum(shortest[x] for x in symbols), 0)
    ]
    while heap and (limit is None or given < limit):
        total, _, done, length, stack, room, turn = heapq.heappop(heap)
        while stack is not None:
            rest, symbol = stack
            rules = ranked[symbol]
            if turn + 1 < len(rules):
                later = total + (rules[turn + 1][0] - rules[turn][0])
                if later <= max_bits:
                    ticket += 1
                    heapq.heappush(heap, (later, ticket, done, length, stack, room, turn + 1))
            _, rule = rules[turn]
            done = (done, rule)
            length += 1
            room -= shortest[symbol]
            stack = rest
            for child in bodies[rule]:
                stack = (stack, child)
                room += shortest[child]
            if length + room > grammar.max_length:
                break
            turn = 0
        else:
            given += 1
            yield total, _unwound(done)


def _unwound(chain: Chain) -> Derivation:
    rules: list[int] = []
    while chain is not None:
        chain, rule = chain
        rules.append(rule)
    return tuple(reversed(rules))


@lru_cache(maxsize=64)
def _ranking(
    grammar: Grammar, allowed: bytes
) -> tuple[list[list[tuple[float, int]]], list[float], list[tuple[int, ...]], list[int]]:
    """Per nonterminal its rules by bits of their cheapest completion, and the least; per rule its body reversed."""
    weighted = tables(grammar, np.frombuffer(allowed, dtype=bool), weighted=True)
    own = [-math.log2(p) if p > 0 else math.inf for p in weighted.probability.tolist()]
    bodies = [tuple(weighted.body[b:e].tolist()) for b, e in zip(weighted.begin, weighted.begin[1:], strict=False)]
    by_lhs = [weighted.rules[b:e].tolist() for b, e in zip(weighted.first, weighted.first[1:], strict=False)]
    cheapest, turns = _cheapest(weighted, by_lhs, bodies, own)
    ranked = [sorted(((turns[r], r) for r in rules), key=lambda turn: turn[0]) for rules in by_lhs]
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
    # Bits first, then length: a loop of rules that costs nothing can then never be the cheapest completion.
    cheapest = [(math.inf, int(length)) for length in weighted.shortest]
    while True:
        turns = [
            (own[r] + sum(cheapest[x][0] for x in body), 1 + sum(cheapest[x][1] for x in body))
            for r, body in enumerate(bodies)
        ]
        found = [min((turns[r] for r in rules), default=(math.inf, 0)) for rules in by_lhs]
        if found == cheapest:
            return cheapest, turns
        cheapest = found
