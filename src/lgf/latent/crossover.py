"""New summands from known ones, by exchange of subtrees: what a coder must hold beyond the sentences of a corpus."""

from collections.abc import Sequence

import numpy as np

from lgf.grammar import Derivation, Grammar


def crossed(
    grammar: Grammar, summands: Sequence[Derivation], n: int, rng: np.random.Generator, longest: int
) -> list[Derivation]:
    """Distinct summands of at most `longest` rules that `n` exchanges of a subtree for one of its kind have made."""
    open_symbols = [sum(symbol in grammar.nonterminals for symbol in rule.body) for rule in grammar.rules]
    found: dict[str, list[Derivation]] = {}
    for summand in summands:
        for begin in range(len(summand)):
            subtree = summand[begin : _end(open_symbols, summand, begin)]
            found.setdefault(grammar.rules[summand[begin]].lhs, []).append(subtree)
    made: dict[Derivation, None] = {}
    for _ in range(n):
        summand = summands[int(rng.integers(len(summands)))]
        begin = int(rng.integers(len(summand)))
        known = found[grammar.rules[summand[begin]].lhs]
        other = known[int(rng.integers(len(known)))]
        new = summand[:begin] + other + summand[_end(open_symbols, summand, begin) :]
        if len(new) <= longest:
            made[new] = None
    return list(made)


def _end(open_symbols: list[int], derivation: Derivation, begin: int) -> int:
    """Where the subtree that begins there ends."""
    missing, place = 1, begin
    while missing:
        missing += open_symbols[derivation[place]] - 1
        place += 1
    return place
