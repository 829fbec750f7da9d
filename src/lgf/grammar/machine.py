"""The compiled stack machine that writes leftmost derivations.

The stack holds the open nonterminals, leftmost on top, each with the number of derivatives around it. `admissible`
lists the rules that may replace the top one, `expand` replaces it. Room for the shortest completion of every open
nonterminal is reserved, so a derivation always ends within its length.
"""

import numpy as np

from lgf.compilation import CACHED, njit


@njit(cache=CACHED, nogil=True)
def admissible(tables, symbol, depth, max_order, room, candidates):
    """Fills `candidates` with the rules of `symbol` that fit `room` and the derivative cap; returns their number."""
    count = 0
    for i in range(tables.first[symbol], tables.first[symbol + 1]):
        rule = tables.rules[i]
        if tables.needs[rule] <= room and not (tables.differentiates[rule] and depth >= max_order):
            candidates[count] = rule
            count += 1
    return count


@njit(cache=CACHED, nogil=True)
def expand(tables, rule, depth, stack, depths, top):
    """Puts the nonterminals of the rule's body on the stack; returns the new height."""
    if tables.differentiates[rule]:
        depth += 1
    for i in range(tables.begin[rule + 1] - 1, tables.begin[rule] - 1, -1):
        stack[top] = tables.body[i]
        depths[top] = depth
        top += 1
    return top


@njit(cache=CACHED, nogil=True)
def derive(tables, logits, start, length, max_order, out):
    """Writes the likeliest admissible rules, greedily, into `out`; returns how many (0: no sentence fits)."""
    stack = np.empty(length + 1, dtype=np.int32)
    depths = np.empty(length + 1, dtype=np.int32)
    candidates = np.empty(tables.needs.size, dtype=np.int32)
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
        for i in range(admissible(tables, symbol, depth, max_order, room, candidates)):
            if best < 0 or logits[written, candidates[i]] > logits[written, best]:
                best = candidates[i]
        room -= tables.needs[best]
        out[written] = best
        written += 1
        top = expand(tables, best, depth, stack, depths, top)
    return written


@njit(cache=CACHED, nogil=True)
def derive_all(tables, logits, start, max_order, out):
    """`derive` for each sentence of a batch."""
    for n in range(logits.shape[0]):
        derive(tables, logits[n], start, logits.shape[1], max_order, out[n])


@njit(cache=CACHED, nogil=True)
def draw_all(tables, rng, symbol, length, max_order, out, lengths):
    """Writes random derivations and their lengths; rules are drawn by probability among the admissible ones."""
    stack = np.empty(length + 1, dtype=np.int32)
    depths = np.empty(length + 1, dtype=np.int32)
    candidates = np.empty(tables.needs.size, dtype=np.int32)
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
            count = admissible(tables, x, depth, max_order, room, candidates)
            total = 0.0
            for i in range(count):
                total += tables.probability[candidates[i]]
            point = rng.random() * total if count > 1 else 0.0
            chosen = candidates[count - 1]
            for i in range(count):
                point -= tables.probability[candidates[i]]
                if point < 0.0:
                    chosen = candidates[i]
                    break
            room -= tables.needs[chosen]
            out[n, written] = chosen
            written += 1
            top = expand(tables, chosen, depth, stack, depths, top)
        lengths[n] = written
