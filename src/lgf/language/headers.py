"""The headers of a grammar: what its sentences hold beside the summands, cheapest first."""

import heapq
import math
from collections.abc import Iterator

import numpy as np

from lgf.expression.tree import ONE, Expression, mul
from lgf.grammar import Derivation, Grammar
from lgf.grammar.blocks import BLOCK, with_mark
from lgf.grammar.tables import tables
from lgf.grammar.vocabulary import write

MAX_HEADERS = 4000


def cheapest_headers(
    grammar: Grammar, allowed: np.ndarray | None, mark: str
) -> Iterator[tuple[float, Derivation, str]]:
    """(bits, rules, text) of the cheapest headers; a summand is BLOCK in the rules and the mark in the text."""
    probability = tables(grammar, allowed, weighted=True).probability
    by_lhs: dict[str, list[tuple[float, int]]] = {name: [] for name in grammar.nonterminals}
    for r in np.flatnonzero(probability).tolist():
        by_lhs[grammar.rules[r].lhs].append((-math.log2(probability[r]), r))
    bodies = [rule.body for rule in with_mark(grammar, mark).rules]
    heap: list[tuple[float, Derivation, tuple[str, ...], tuple[str, ...]]] = [(0.0, (), (), (grammar.start,))]
    n_yielded = 0
    while heap and n_yielded < MAX_HEADERS:
        cost, rules, words, open_symbols = heapq.heappop(heap)
        while open_symbols and open_symbols[0] not in by_lhs:
            word, *rest = open_symbols
            rules, words, open_symbols = ((*rules, BLOCK) if word == mark else rules), (*words, word), tuple(rest)
        if not open_symbols:
            n_yielded += 1
            yield cost, rules, write(list(words))
        elif len(rules) < grammar.max_length:
            for rule_bits, r in by_lhs[open_symbols[0]]:
                heapq.heappush(heap, (cost + rule_bits, (*rules, r), words, bodies[r] + open_symbols[1:]))


def fraction(expression: Expression, mark: Expression) -> tuple[tuple[Expression, ...], Expression]:
    """(addends, factor) of a header with expression = factor * sum of the addends."""
    factors = expression.args if expression.head == "*" else (expression,)
    sums = [f for f in factors if f.head == "+" or f == mark]
    if len(sums) != 1:
        return (expression,), ONE
    factor = mul(*(f for f in factors if f is not sums[0]))
    return sums[0].args if sums[0].head == "+" else (sums[0],), factor
