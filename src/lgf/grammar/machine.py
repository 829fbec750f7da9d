"""The stack machine that writes leftmost derivations, compiled: arrays in, arrays out.

The machine holds the open nonterminals on a stack, leftmost on top, each with the number of derivatives taken around
it. `admissible` lists the rules that may replace the top one, `expand` replaces it. Every open nonterminal has the
room for its shortest completion reserved, so a derivation always ends within its length.
"""

import numpy as np
from numba import njit

from lgf.compilation import KEPT


@njit(cache=KEPT, nogil=True)
def admissible(tables, symbol, depth, max_order, room, found):
    """Fills `found` with the rules of `symbol` that fit into `room` and its derivative cap; gives their number."""
    count = 0
    for i in range(tables.first[symbol], tables.first[symbol + 1]):
        rule = tables.rules[i]
        if tables.needs[rule] <= room and not (tables.differentiates[rule] and depth >= max_order):
            found[count] = rule
            count += 1
    return count


@njit(cache=KEPT, nogil=True)
def expand(tables, rule, depth, stack, depths, top):
    """Puts the nonterminals of the rule's body on the stack; gives its new height."""
    if tables.differentiates[rule]:
        depth += 1
    for i in range(tables.begin[rule + 1] - 1, tables.begin[rule] - 1, -1):
        stack[top] = tables.body[i]
        depths[top] = depth
        top += 1
    return top


@njit(cache=KEPT, nogil=True)
def derive(tables, logits, start, length, max_order, out):
    """Writes the likeliest admissible rules, greedily, into `out`; gives how many (0: no room for any sentence)."""
    stack = np.empty(length + 1, dtype=np.int32)
    depths = np.empty(length + 1, dtype=np.int32)
    found = np.empty(tables.needs.size, dtype=np.int32)
    room = length
    top = 0
    for i in range(start.size - 1, -1, -1):
        room -= tables.shortest[start[i]]
        if room < 0:
            return 0
        stack[top] = start[i]
        depths[top] = 0
        top += 1
    written = 0
    while top > 0:
        top -= 1
        symbol, depth = stack[top], depths[top]
        room += tables.shortest[symbol]
        best = -1
        for i in range(admissible(tables, symbol, depth, max_order, room, found)):
            if best < 0 or logits[written, found[i]] > logits[written, best]:
                best = found[i]
        room -= tables.needs[best]
        out[written] = best
        written += 1
        top = expand(tables, best, depth, stack, depths, top)
    return written


@njit(cache=KEPT, nogil=True)
def derive_all(tables, logits, start, max_order, out):
    """`derive` for each sentence of a batch."""
    for n in range(logits.shape[0]):
        derive(tables, logits[n], start, logits.shape[1], max_order, out[n])


@njit(cache=KEPT, nogil=True)
def draw_all(tables, rng, symbol, length, max_order, out, lengths):
    """Writes random derivations, each rule with its probability among the admissible ones, and their lengths."""
    stack = np.empty(length + 1, dtype=np.int32)
    depths = np.empty(length + 1, dtype=np.int32)
    found = np.empty(tables.needs.size, dtype=np.int32)
    for n in range(out.shape[0]):
        stack[0] = symbol
        depths[0] = 0
        top = 1
        room = length - tables.shortest[symbol]
        written = 0
        while top > 0:
            top -= 1
            x, depth = stack[top], depths[top]
            room += tables.shortest[x]
            count = admissible(tables, x, depth, max_order, room, found)
            total = 0.0
            for i in range(count):
                total += tables.probability[found[i]]
            point = rng.random() * total if count > 1 else 0.0
            chosen = found[count - 1]
            for i in range(count):
                point -= tables.probability[found[i]]
                if point < 0.0:
                    chosen = found[i]
                    break
            room -= tables.needs[chosen]
            out[n, written] = chosen
            written += 1
            top = expand(tables, chosen, depth, stack, depths, top)
        lengths[n] = written
