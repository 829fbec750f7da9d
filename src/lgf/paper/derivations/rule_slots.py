"""Assigns each grammar choice a fixed network output, so that editing one choice leaves the others in place.

In a summand, the slot of a choice is its nonterminal and its occurrence: how often that nonterminal was rewritten
before. In a header, the open choices depend on the number of summands, so a nonterminal that is used at most once has
one slot for all positions. Other header choices are identified by their position.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.compilation import CACHED, njit
from lgf.grammar import Grammar
from lgf.grammar.blocks import header_items
from lgf.grammar.derivation import UNLIMITED
from lgf.grammar.machine import admissible, expand
from lgf.grammar.tables import start_symbols, tables


def left_sides(grammar: Grammar) -> NDArray[np.int64]:
    """The number of each rule's left-hand side; the padding rule has its own."""
    names = [*grammar.nonterminals, ""]
    return np.array([names.index(rule.lhs) for rule in grammar.rules] + [len(names) - 1])


def occurrences(left_sides: NDArray[np.int64], sequence: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each position of sequences [..., L], how often its nonterminal was rewritten before."""
    here = left_sides[sequence]
    return np.tril(here[..., :, None] == here[..., None, :], -1).sum(-1)


def used_once(grammar: Grammar) -> NDArray[np.bool_]:
    """For each rule and padding, whether a header uses its left-hand side at most once in any sentence."""
    bodies = [[item for item in items if isinstance(item, str)] for items in header_items(grammar)]
    most = {name: dict.fromkeys(grammar.nonterminals, 0) for name in grammar.nonterminals}
    for _ in range(2 * len(most)):
        for rule, body in zip(grammar.rules, bodies, strict=True):
            for name in most:
                count = (rule.lhs == name) + sum(most[symbol][name] for symbol in body)
                most[rule.lhs][name] = max(most[rule.lhs][name], min(count, 2))
    return np.array([most[grammar.start][rule.lhs] <= 1 for rule in grammar.rules] + [False])


def logits_by_position(
    grammar: Grammar, logits: NDArray[np.float32], allowed: ArrayLike | None, max_order: int | None
) -> NDArray[np.float32]:
    """Summand logits by position [n, L, R] of logits by occurrence [n, L, R]."""
    out = np.full_like(logits, -np.inf)
    out[:, 0, -1] = logits[:, 0, -1]
    start = start_symbols(grammar, grammar.summand)
    _fill_positions(tables(grammar, allowed), logits, start, UNLIMITED if max_order is None else max_order, out)
    return out


@njit(cache=CACHED, nogil=True)
def _fill_positions(tables, logits, start, max_order, out):
    length = logits.shape[1]
    stack = np.empty(length + 1, dtype=np.int32)
    depths = np.empty(length + 1, dtype=np.int32)
    choices = np.empty(tables.needs.size, dtype=np.int32)
    counts = np.empty(tables.shortest.size, dtype=np.int32)
    for n in range(logits.shape[0]):
        counts[:] = 0
        room = length
        top = 0
        for i in range(start.size - 1, -1, -1):
            room -= tables.shortest[start[i]]
            stack[top] = start[i]
            depths[top] = 0
            top += 1
        written = 0
        # Decoding drops a summand that is too long for its slot.
        while top > 0 and room >= 0:
            top -= 1
            symbol, depth = stack[top], depths[top]
            room += tables.shortest[symbol]
            best = -1
            for i in range(admissible(tables, symbol, depth, max_order, room, choices)):
                rule = choices[i]
                out[n, written, rule] = logits[n, counts[symbol], rule]
                if best < 0 or out[n, written, rule] > out[n, written, best]:
                    best = rule
            counts[symbol] += 1
            room -= tables.needs[best]
            written += 1
            top = expand(tables, best, depth, stack, depths, top)
