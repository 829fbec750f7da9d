"""Decoding that the encoder checks: among the likeliest sentences of a code, the one that has this code."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lgf.grammar import Grammar, decode
from lgf.paper.autoencoder.autoencoder import encode
from lgf.paper.autoencoder.quantisation import to_codes
from lgf.paper.autoencoder.sequence_autoencoder import SequenceAutoencoder

CHANGED = 12  # the least certain choices, each changed by itself
PAIRED = 8  # of these, also changed in pairs


def checked_share(model: SequenceAutoencoder, derivations: NDArray[np.int64]) -> float:
    """The share of padded derivations that come back exactly from their codes."""
    return float((decode_checked(model, encode(model, derivations)) == derivations).all(1).mean())


def decode_checked(model: SequenceAutoencoder, tokens: NDArray[np.int8]) -> NDArray[np.int64]:
    """Padded derivations [n, N] of tokens [n, D].

    The likeliest sentence is taken if the encoder gives it these tokens; otherwise the first sentence with one or two
    of its least certain choices changed to which it does; otherwise the likeliest after all.
    """
    logits = model.logits(to_codes(tokens, model.layout.levels))
    likeliest = decode(model.grammar, logits).astype(np.int64)
    found = likeliest.copy()
    for row in np.flatnonzero((encode(model, likeliest) != tokens).any(1)):
        others = _neighbours(model.grammar, logits[row], likeliest[row])
        has_code = (encode(model, others) == tokens[row]).all(1)
        if has_code.any():
            found[row] = others[has_code.argmax()]
    return found


def _neighbours(grammar: Grammar, logits: NDArray[np.float32], likeliest: NDArray[np.int64]) -> NDArray[np.int64]:
    """The likeliest sentences without one or two of the least certain rules of the likeliest one."""
    uncertain = np.argsort(_margins(grammar, logits, likeliest), kind="stable")
    changes: Iterable[tuple[int, ...]] = combinations(uncertain[:CHANGED], 1)
    changes = [*changes, *combinations(uncertain[:PAIRED], 2)]
    excluded = np.repeat(logits[None], len(changes), axis=0)
    for others, places in zip(excluded, changes, strict=True):
        for place in places:
            others[place, likeliest[place]] = -np.inf
    return decode(grammar, excluded).astype(np.int64)


def _margins(grammar: Grammar, logits: NDArray[np.float32], rules: NDArray[np.int64]) -> NDArray[np.float32]:
    """By how much each rule is likelier than the next one of its nonterminal [N]; infinite where there is no other."""
    sides = np.array([*(rule.lhs for rule in grammar.rules), ""])  # padding has no other
    own = np.arange(len(rules)), rules
    rivals = np.where(sides[rules][:, None] == sides, logits, -np.inf)
    rivals[own] = -np.inf
    return logits[own] - rivals.max(1)
