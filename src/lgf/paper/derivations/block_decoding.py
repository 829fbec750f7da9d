"""Complete derivations decoded from the logits of a header and of summand slots.

The decoder first chooses the slots that are present and the rules of each. It then derives the header for that number
of summands. It reads a header logit wherever that number leaves a choice in the whole grammar, as `blocks.split` does,
so the positions of a model trained on the whole grammar stay valid when rules are forbidden.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.compilation import CACHED, njit
from lgf.grammar.blocks import BLOCK, header_items
from lgf.grammar.derivation import UNLIMITED
from lgf.grammar.machine import derive
from lgf.grammar.restriction import as_mask, terminating
from lgf.grammar.rules import Grammar
from lgf.grammar.tables import NEVER, start_symbols, tables


class Header(NamedTuple):
    """The header's rules as arrays: rule r has items[begin[r]:begin[r + 1]], each a nonterminal or BLOCK.

    A cost is the least number of header rules that make exactly k summands (NEVER if none do).
    """

    begin: NDArray[np.int32]
    items: NDArray[np.int32]
    cost: NDArray[np.int32]  # [nonterminal, k]
    rule_cost: NDArray[np.int32]  # [rule, k], the rule itself counted


def possible_counts(grammar: Grammar, allowed: ArrayLike | None = None) -> tuple[int, ...]:
    """The possible numbers of summands of a sentence within `max_length` by the allowed rules, ascending."""
    header = _header(grammar, as_mask(grammar, allowed).tobytes(), grammar.max_length)
    lengths = header.cost[0] + np.arange(grammar.max_length + 1) * _shortest_summand(grammar, allowed)
    return tuple(np.flatnonzero(lengths <= grammar.max_length).tolist())


def decode_blocks(
    grammar: Grammar,
    header_logits: ArrayLike,
    summand_logits: ArrayLike,
    allowed: ArrayLike | None = None,
    max_order: int | None = None,
) -> NDArray[np.int32]:
    """The padded derivations [n, max_length] for header logits [n, H, R] and summand logits [n, K, L, R].

    R = n_rules + 1. A slot whose likeliest first rule is the padding rule is absent. If the grammar excludes that
    number of summands, the nearest possible number of likeliest slots is present. A choice beyond H takes the
    shortest completion. Every row is a complete derivation.
    """
    head = np.ascontiguousarray(header_logits, dtype=np.float32)
    slots = np.ascontiguousarray(summand_logits, dtype=np.float32)
    width = grammar.n_rules + 1
    if head.ndim != 3 or slots.ndim != 4 or len(head) != len(slots) or {head.shape[2], slots.shape[3]} != {width}:
        raise ValueError(
            f"header logits have shape {head.shape} and summand logits {slots.shape}; grammar {grammar.name!r} "
            f"needs [n, H, {width}] and [n, K, L, {width}] with the same n."
        )
    if not grammar.summand:
        raise ValueError(f"grammar {grammar.name!r} has no summand; write a line 'summand: ...' into its file.")
    most, longest = slots.shape[1:3]
    fits = _shortest_summand(grammar, allowed) <= longest
    counts = [k for k in possible_counts(grammar, allowed) if k == 0 or (k <= most and fits)]
    if not counts:
        raise ValueError(
            f"the allowed rules of grammar {grammar.name!r} make no sentence of at most {most} summands of at most "
            f"{longest} rules; give more or longer slots, or allow more rules."
        )
    out = np.full((len(head), grammar.max_length), grammar.n_rules, dtype=np.int32)
    _derive_all(
        tables(grammar),
        tables(grammar, allowed),
        _header(grammar, as_mask(grammar, None).tobytes(), most),
        _header(grammar, as_mask(grammar, allowed).tobytes(), most),
        start_symbols(grammar, grammar.summand),
        np.array(counts, dtype=np.int32),
        head,
        slots,
        UNLIMITED if max_order is None else max_order,
        out,
    )
    return out


def _shortest_summand(grammar: Grammar, allowed: ArrayLike | None) -> int:
    if not grammar.summand:
        return int(NEVER)
    return int(tables(grammar, allowed).shortest[start_symbols(grammar, grammar.summand)].sum())


@lru_cache(maxsize=256)
def _header(grammar: Grammar, allowed: bytes, most: int) -> Header:
    mask = terminating(grammar, np.frombuffer(allowed, dtype=bool))
    number = {name: i for i, name in enumerate(grammar.nonterminals)}
    items = [[item if isinstance(item, int) else number[item] for item in row] for row in header_items(grammar)]
    block = np.full(most + 1, NEVER, dtype=np.int32)
    block[1:2] = 0
    cost = np.full((len(number), most + 1), NEVER, dtype=np.int32)
    while True:
        rule_cost = np.full((grammar.n_rules, most + 1), NEVER, dtype=np.int32)
        updated = np.full_like(cost, NEVER)
        for r, rule in enumerate(grammar.rules):
            if not mask[r]:
                continue
            rule_cost[r, 0] = 1
            for item in items[r]:
                rule_cost[r] = _combined_cost(rule_cost[r], block if item == BLOCK else cost[item])
            updated[number[rule.lhs]] = np.minimum(updated[number[rule.lhs]], rule_cost[r])
        if (updated == cost).all():
            break
        cost = updated
    header = Header(
        np.cumsum([0, *map(len, items)], dtype=np.int32),
        np.array([item for row in items for item in row], dtype=np.int32),
        cost,
        rule_cost,
    )
    for array in header:
        array.flags.writeable = False
    return header


def _combined_cost(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int32]:
    """The least sum of both costs for each total number of summands."""
    total = np.full_like(a, NEVER)
    for k in range(len(a)):
        total[k:] = np.minimum(total[k:], a[k] + b[: len(b) - k])
    return np.minimum(total, NEVER)


@njit(cache=CACHED, nogil=True)
def _derive_all(whole, rules, whole_header, header, summand, counts, head, slots, max_order, out):
    n_slots, longest = slots.shape[1], slots.shape[2]
    max_length = out.shape[1]
    shortest = 0
    for symbol in summand:
        shortest += rules.shortest[symbol]
    present = np.empty(n_slots, dtype=np.bool_)
    blocks = np.empty((n_slots, longest), dtype=np.int32)
    lengths = np.empty(n_slots, dtype=np.int32)
    for n in range(out.shape[0]):
        count = _choose_slots(rules, slots[n], summand[0], counts, present)
        room = max_length - header.cost[0, count] - count * shortest
        used = 0
        block = 0
        for slot in range(n_slots):
            if present[slot]:
                most = min(longest, room + shortest)
                lengths[block] = derive(rules, slots[n, slot], summand, most, max_order, blocks[block])
                room -= lengths[block] - shortest
                used += lengths[block]
                block += 1
        room = max_length - used
        _derive_header(whole, rules, whole_header, header, count, head[n], room, max_order, blocks, lengths, out[n])


@njit(cache=CACHED, nogil=True)
def _choose_slots(rules, slots, symbol, counts, present):
    """Marks in `present` the slots that hold a summand; returns their number, one of `counts`."""
    padding = slots.shape[2] - 1
    score = np.empty(present.size, dtype=np.float64)
    predicted = 0
    for slot in range(present.size):
        present[slot] = False
        best = -np.inf
        for i in range(rules.first[symbol], rules.first[symbol + 1]):
            best = max(best, slots[slot, 0, rules.rules[i]])
        score[slot] = best - slots[slot, 0, padding]
        if score[slot] > 0:
            predicted += 1
    count = counts[0]
    for possible in counts:
        if abs(possible - predicted) < abs(count - predicted):
            count = possible
    for _ in range(count):
        likeliest = -1
        for slot in range(present.size):
            if not present[slot] and (likeliest < 0 or score[slot] > score[likeliest]):
                likeliest = slot
        present[likeliest] = True
    return count


@njit(cache=CACHED, nogil=True)
def _derive_header(whole, rules, whole_header, header, count, logits, room, max_order, blocks, lengths, out):
    """Writes the header with its summands into `out`; `room` is the number of rules the header may have."""
    n_counts = header.cost.shape[1]
    size = room + count + 1
    stack = np.empty(size, dtype=np.int32)
    depths = np.empty(size, dtype=np.int32)
    # below[i]: the least rules for k summands from the items under stack place i; open_below: in the whole grammar
    below = np.full((size + 1, n_counts), NEVER, dtype=np.int32)
    open_below = np.full((size + 1, n_counts), NEVER, dtype=np.int32)
    below[0, 0] = 0
    open_below[0, 0] = 0
    stack[0] = 0
    depths[0] = 0
    top = 1
    missing = count
    written = 0
    place = 0
    block = 0
    while top > 0:
        top -= 1
        symbol, depth = stack[top], depths[top]
        if symbol == BLOCK:
            for i in range(lengths[block]):
                out[written] = blocks[block, i]
                written += 1
            block += 1
            missing -= 1
            continue
        n_open = 0
        for i in range(whole.first[symbol], whole.first[symbol + 1]):
            if _split_cost(whole_header.rule_cost[whole.rules[i]], open_below[top], missing) < NEVER:
                n_open += 1
        best = -1
        least = NEVER
        for i in range(rules.first[symbol], rules.first[symbol + 1]):
            rule = rules.rules[i]
            cost = _split_cost(header.rule_cost[rule], below[top], missing)
            if cost > room or (rules.differentiates[rule] and depth >= max_order):
                continue
            has_logit = place < logits.shape[0]
            if best < 0 or (logits[place, rule] > logits[place, best] if has_logit else cost < least):
                best = rule
                least = cost
        if n_open > 1:
            place += 1
        if rules.differentiates[best]:
            depth += 1
        room -= 1
        out[written] = best
        written += 1
        for i in range(header.begin[best + 1] - 1, header.begin[best] - 1, -1):
            item = header.items[i]
            stack[top] = item
            depths[top] = depth
            for k in range(missing + 1):
                if item == BLOCK:
                    below[top + 1, k] = below[top, k - 1] if k > 0 else NEVER
                    open_below[top + 1, k] = open_below[top, k - 1] if k > 0 else NEVER
                else:
                    below[top + 1, k] = _split_cost(header.cost[item], below[top], k)
                    open_below[top + 1, k] = _split_cost(whole_header.cost[item], open_below[top], k)
            top += 1


@njit(cache=CACHED, nogil=True)
def _split_cost(first, second, count):
    """The least cost of `count` summands split between both."""
    least = NEVER
    for k in range(count + 1):
        least = min(least, first[k] + second[count - k])
    return min(least, NEVER)
