"""The headers of a grammar: what its sentences hold beside the summands, cheapest first."""

import heapq
import math
from collections.abc import Iterator

import numpy as np

from lgf.expression.tree import ONE, Expression, mul
from lgf.grammar import Derivation, Grammar
from lgf.grammar.tables import tables
from lgf.grammar.vocabulary import write
from lgf.language.term_dictionary import summand_span

MAX_HEADERS = 4000
BLOCK = -1  # the place of a summand among the rules of a header


def cheapest_headers(
    grammar: Grammar, allowed: np.ndarray | None, mark: str
) -> Iterator[tuple[float, Derivation, str]]:
    """(bits, rules, text) of the cheapest headers; a summand is BLOCK in the rules and the mark in the text."""
    probability = tables(grammar, allowed, weighted=True).probability
    by_lhs: dict[str, list[tuple[float, int]]] = {name: [] for name in grammar.nonterminals}
    for r in np.flatnonzero(probability).tolist():
        by_lhs[grammar.rules[r].lhs].append((-math.log2(probability[r]), r))
    bodies = [_marked(grammar, rule.body, mark) for rule in grammar.rules]
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


def spell_header(grammar: Grammar, rules: Derivation, mark: str) -> str:
    """The sentence of all rules of a header, in leftmost order, with the mark in place of each summand."""
    nonterminals = frozenset(grammar.nonterminals)
    following = iter(rules)
    words: list[str] = []
    stack = [grammar.start]
    while stack:
        word = stack.pop()
        if word in nonterminals:
            stack.extend(reversed(_marked(grammar, grammar.rules[next(following)].body, mark)))
        else:
            words.append(word)
    return write(words)


def _marked(grammar: Grammar, body: tuple[str, ...], mark: str) -> tuple[str, ...]:
    """The body of a rule with a mark for each summand."""
    symbols = list(body)
    begin = 0
    while (span := summand_span(grammar, symbols, begin)) is not None:
        begin = span[0] + 1
        symbols[span[0] : span[1]] = [mark]
    return tuple(symbols)


def fraction(expression: Expression, mark: Expression) -> tuple[tuple[Expression, ...], Expression]:
    """(addends, factor) of a header with expression = factor * sum of the addends."""
    factors = expression.args if expression.head == "*" else (expression,)
    sums = [f for f in factors if f.head == "+" or f == mark]
    if len(sums) != 1:
        return (expression,), ONE
    factor = mul(*(f for f in factors if f is not sums[0]))
    return sums[0].args if sums[0].head == "+" else (sums[0],), factor
