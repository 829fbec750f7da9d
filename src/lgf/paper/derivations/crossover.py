"""Crossover of summands: new training examples beyond the sentences of a corpus."""

from collections.abc import Sequence

import numpy as np

from lgf.grammar import Derivation, Grammar


def crossover(
    grammar: Grammar, summands: Sequence[Derivation], n: int, rng: np.random.Generator, longest: int
) -> list[Derivation]:
    """Distinct summands of at most `longest` rules, from `n` exchanges of subtrees with the same root symbol."""
    open_symbols = [sum(symbol in grammar.nonterminals for symbol in rule.body) for rule in grammar.rules]
    subtrees: dict[str, list[Derivation]] = {}
    for summand in summands:
        for begin in range(len(summand)):
            subtree = summand[begin : _end(open_symbols, summand, begin)]
            subtrees.setdefault(grammar.rules[summand[begin]].lhs, []).append(subtree)
    children: dict[Derivation, None] = {}
    for _ in range(n):
        summand = summands[int(rng.integers(len(summands)))]
        begin = int(rng.integers(len(summand)))
        donors = subtrees[grammar.rules[summand[begin]].lhs]
        donor = donors[int(rng.integers(len(donors)))]
        child = summand[:begin] + donor + summand[_end(open_symbols, summand, begin) :]
        if len(child) <= longest:
            children[child] = None
    return list(children)


def _end(open_symbols: list[int], derivation: Derivation, begin: int) -> int:
    """The end of the subtree that starts at `begin`."""
    missing, place = 1, begin
    while missing:
        missing += open_symbols[derivation[place]] - 1
        place += 1
    return place
