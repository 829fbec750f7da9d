"""Leftmost derivations as tuples of rule numbers: sampling, spelling, bits, arrays, decoding from logits."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.errors import LgfError
from lgf.grammar.machine import derive_all, draw_all
from lgf.grammar.rules import Grammar
from lgf.grammar.tables import NEVER, start_symbols, tables
from lgf.grammar.vocabulary import write

Derivation = tuple[int, ...]

UNLIMITED = int(NEVER)


def sample(
    grammar: Grammar,
    rng: np.random.Generator,
    n: int,
    allowed: ArrayLike | None = None,
    max_length: int | None = None,
    max_order: int | None = None,
) -> list[Derivation]:
    """`n` random derivations by the rules' weights, none longer than `max_length` (None: the grammar's).

    Each rule is drawn among those whose shortest completion still fits, so no derivation is rejected. `max_order`
    caps the nesting of `diff`.
    """
    length = grammar.max_length if max_length is None else max_length
    weighted = tables(grammar, allowed, weighted=True)
    _require_room(grammar, int(weighted.shortest[0]), length)
    out = np.empty((n, length), dtype=np.int32)
    lengths = np.empty(n, dtype=np.int32)
    draw_all(weighted, rng, 0, length, UNLIMITED if max_order is None else max_order, out, lengths)
    return [tuple(row[:end]) for row, end in zip(out.tolist(), lengths.tolist(), strict=True)]


def decode(
    grammar: Grammar,
    logits: ArrayLike,
    allowed: ArrayLike | None = None,
    max_order: int | None = None,
    start: str | tuple[str, ...] | None = None,
) -> NDArray[np.int32]:
    """The derivations [n, N] decoded greedily from the logits [n, N, n_rules + 1], with the padding rule at the end.

    Each step takes the likeliest rule of the leftmost nonterminal among those allowed, below the cap on nested `diff`
    and short enough to finish within N. So every row is complete. `start` names other nonterminals to begin with.
    """
    scores = np.ascontiguousarray(logits, dtype=np.float32)
    if scores.ndim != 3 or scores.shape[2] != grammar.n_rules + 1:
        raise ValueError(
            f"logits have shape {scores.shape}; grammar {grammar.name!r} needs [n, N, {grammar.n_rules + 1}], "
            "one column per rule and one for the padding rule."
        )
    symbols = start_symbols(grammar, start)
    rules = tables(grammar, allowed)
    _require_room(grammar, int(rules.shortest[symbols].sum()), scores.shape[1])
    out = np.full(scores.shape[:2], grammar.n_rules, dtype=np.int32)
    derive_all(rules, scores, symbols, UNLIMITED if max_order is None else max_order, out)
    return out


def spell(grammar: Grammar, derivation: Sequence[int], start: Sequence[str] | None = None) -> str:
    """The sentence of the derivation; `start` names other symbols to begin with, words or nonterminals."""
    sentence: list[str] = []
    bodies, nonterminals = _bodies(grammar)
    stack = [grammar.start] if start is None else list(reversed(start))
    while stack and stack[-1] not in nonterminals:
        sentence.append(stack.pop())
    for rule in _steps(grammar, derivation, stack):
        stack.extend(bodies[rule])
        while stack and stack[-1] not in nonterminals:
            sentence.append(stack.pop())
    return write(sentence)


def bits(grammar: Grammar, derivation: Sequence[int], allowed: ArrayLike | None = None) -> float:
    """-log2 of the derivation's probability over the allowed rules; inf if it uses a rule that is not allowed."""
    probability = tables(grammar, allowed, weighted=True).probability
    bodies, nonterminals = _bodies(grammar)
    stack = [grammar.start]
    total = 0.0
    for rule in _steps(grammar, derivation, stack):
        total += -math.log2(probability[rule]) if probability[rule] > 0 else math.inf
        stack.extend(symbol for symbol in bodies[rule] if symbol in nonterminals)
    return total


def pad(grammar: Grammar, derivations: Sequence[Sequence[int]], length: int | None = None) -> NDArray[np.int32]:
    """The derivations as one array [n, length], with the padding rule at the end."""
    length = grammar.max_length if length is None else length
    out = np.full((len(derivations), length), grammar.n_rules, dtype=np.int32)
    for row, derivation in zip(out, derivations, strict=True):
        if len(derivation) > length:
            raise ValueError(f"a derivation has {len(derivation)} rules but there is room for {length}; leave it out.")
        row[: len(derivation)] = derivation
    return out


def unpad(grammar: Grammar, padded: ArrayLike) -> list[Derivation]:
    """The derivations of the rows, each up to its first padding rule."""
    rows = np.asarray(padded)
    ends = np.concatenate([rows == grammar.n_rules, np.ones((len(rows), 1), dtype=bool)], axis=1).argmax(axis=1)
    return [tuple(row[:end]) for row, end in zip(rows.tolist(), ends.tolist(), strict=True)]


@lru_cache(maxsize=64)
def _bodies(grammar: Grammar) -> tuple[list[tuple[str, ...]], frozenset[str]]:
    return [rule.body[::-1] for rule in grammar.rules], frozenset(grammar.nonterminals)


def _steps(grammar: Grammar, derivation: Sequence[int], stack: list[str]) -> Iterator[int]:
    """Yields the rules, each checked against the nonterminal that it pops off the stack."""
    for step, rule in enumerate(derivation):
        if not (stack and 0 <= rule < grammar.n_rules and grammar.rules[rule].lhs == stack.pop()):
            raise ValueError(
                f"rule {rule} at step {step} does not continue a derivation of grammar {grammar.name!r}; "
                "give the rule numbers of one complete sentence in leftmost order, without padding."
            )
        yield rule
    if stack:
        raise ValueError(f"the derivation stops with {stack[-1]!r} open; give the rules of a complete sentence.")


def _require_room(grammar: Grammar, needed: int, length: int) -> None:
    if needed >= NEVER:
        raise LgfError(f"the allowed rules of grammar {grammar.name!r} complete no sentence; allow more of them.")
    if needed > length:
        raise LgfError(f"grammar {grammar.name!r} needs {needed} rules for a sentence but length is {length}.")
