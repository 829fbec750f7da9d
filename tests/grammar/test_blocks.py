import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.grammar import (
    Blocks,
    Extent,
    enumerate_derivations,
    extent,
    grammar_names,
    join,
    load_grammar,
    mentions,
    pad,
    read_grammar,
    restrict,
    sample,
    spell,
    split,
    unpad,
)
from lgf.paper.derivations.block_decoding import decode_blocks, possible_counts
from lgf.paper.derivations.parsing import parse

QUIET = settings(deadline=None, derandomize=True, max_examples=40)
GRAMMARS = {name: load_grammar(name) for name in grammar_names()}
GRAMMARS["one or three"] = read_grammar(
    """\
template: own forcing
max_length: 25
summand: a b
S -> N - R | (N)/D
N -> a*b | a*b + a*b + N | M
M -> a*b + M | a*b
D -> u | D*D
R -> a | a + t
a -> C | C*t
b -> diff(b, t) | u
"""
)
names = st.sampled_from(sorted(GRAMMARS))
seeds = st.integers(0, 2**32 - 1)


def one_hot(derivations, grammar, length):
    return np.eye(grammar.n_rules + 1)[pad(grammar, derivations, length)]


def one_hot_blocks(grammar, blocks, size):
    header = one_hot([b.header for b in blocks], grammar, size.header)
    slots = [[*b.summands, *[()] * (size.summands - len(b.summands))] for b in blocks]
    summands = np.stack([one_hot(rows, grammar, size.summand) for rows in slots])
    return header.astype(np.float32), summands.astype(np.float32)


@QUIET
@given(names, seeds)
def test_split_and_join_round_trip(name, seed):
    grammar = GRAMMARS[name]
    for derivation in sample(grammar, np.random.default_rng(seed), 20):
        blocks = split(grammar, derivation)
        assert join(grammar, blocks.header, blocks.summands) == derivation
        assert sum(len(s) for s in blocks.summands) + len(blocks.header) <= len(derivation)


@QUIET
@given(names, seeds)
def test_a_model_that_knows_the_blocks_decodes_the_derivation(name, seed):
    grammar = GRAMMARS[name]
    derivations = sample(grammar, np.random.default_rng(seed), 20)
    blocks = [split(grammar, d) for d in derivations]
    size = extent(grammar, derivations)
    size = Extent(size.header + 1, size.summands + 1, size.summand + 2)
    decoded = decode_blocks(grammar, *one_hot_blocks(grammar, blocks, size))
    assert unpad(grammar, decoded) == derivations


@QUIET
@given(names, seeds, st.integers(0, 6), st.integers(3, 6), st.integers(4, 30), st.sampled_from([None, 1]))
def test_any_logits_decode_to_sentences_of_the_allowed_rules(name, seed, n_header, n_slots, longest, max_order):
    grammar = GRAMMARS[name]
    rng = np.random.default_rng(seed)
    allowed = restrict(grammar, order=2, forced=bool(rng.integers(2)), forbid=mentions("/", "sin"))
    longest = max(longest, 6)
    header = rng.normal(size=(20, n_header, grammar.n_rules + 1))
    slots = rng.normal(size=(20, n_slots, longest, grammar.n_rules + 1))
    slots[:, :, 0, -1] += rng.choice([-5, 1, 5])
    decoded = decode_blocks(grammar, header, slots, allowed, max_order)
    for derivation in unpad(grammar, decoded):
        assert allowed[list(derivation)].all()
        sentence = spell(grammar, derivation)
        assert max_order is None or name.endswith("corpus") or "diff(diff" not in sentence
        blocks = split(grammar, derivation)
        assert len(blocks.summands) <= n_slots
        assert all(len(s) <= longest for s in blocks.summands)


@QUIET
@given(names, seeds)
def test_forbidding_rules_does_not_move_the_header_positions(name, seed):
    grammar = GRAMMARS[name]
    allowed = restrict(grammar, order=1, forced=False)
    derivations = sample(grammar, np.random.default_rng(seed), 20, allowed)
    blocks = [split(grammar, d) for d in derivations]
    size = extent(grammar, derivations)
    header, summands = one_hot_blocks(grammar, blocks, Extent(size.header, max(size.summands, 1), size.summand + 6))
    assert unpad(grammar, decode_blocks(grammar, header, summands, allowed)) == derivations


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_three_thousand_random_logits_are_all_complete(name):
    grammar = GRAMMARS[name]
    rng = np.random.default_rng(0)
    header = rng.standard_normal((3_000, 6, grammar.n_rules + 1), dtype=np.float32)
    slots = rng.standard_normal((3_000, 4, 12, grammar.n_rules + 1), dtype=np.float32)
    slots[:, :, 0, -1] += 1
    counts = set()
    for derivation in unpad(grammar, decode_blocks(grammar, header, slots)):
        spell(grammar, derivation)
        counts.add(len(split(grammar, derivation).summands))
    assert counts == {k for k in possible_counts(grammar) if k <= 4}


def test_what_the_number_of_summands_decides_is_not_kept():
    standard = GRAMMARS["standard"]
    derivation = parse(standard, "C*u+C*1/u+C*t")
    blocks = split(standard, derivation)
    kept = [standard.rules[rule] for rule in blocks.header]
    assert [rule.lhs for rule in kept] == ["S", "E", "L"]
    assert kept[1].body == ("L", "+", "N")
    assert len(blocks.summands) == 2
    # Two slots can say C*u without further summands, in several ways, so E stays a choice.
    assert [standard.rules[r].lhs for r in split(standard, parse(standard, "C*u")).header] == ["S", "E", "L"]
    b1 = GRAMMARS["b1"]
    assert split(b1, parse(b1, "C*1+C*t*u^2")).header == ()
    assert [len(s) for s in split(b1, parse(b1, "C*1+C*t*u^2")).summands] == [3, 7]


def test_summands_may_change_places():
    b2 = GRAMMARS["b2"]
    blocks = split(b2, parse(b2, "C*u+C*diff(u,t)+C*t*u*u-C*sin(C*t)"))
    sentences = {spell(b2, join(b2, blocks.header, order)) for order in permutations(blocks.summands)}
    assert len(sentences) == 6
    assert "C*t*u*u+C*u+C*diff(u,t)-C*sin(C*t)" in sentences


def test_possible_counts_are_those_of_all_sentences():
    for length in (5, 6, 7, 8, 10):
        grammar = read_grammar(GRAMMARS["one or three"].text.replace("max_length: 25", f"max_length: {length}"))
        found = {len(split(grammar, d).summands) for _, d in enumerate_derivations(grammar, math.inf)}
        assert set(possible_counts(grammar)) == found
    assert possible_counts(GRAMMARS["standard"]) == (0, 1, 2, 3)
    assert possible_counts(
        GRAMMARS["standard"], restrict(GRAMMARS["standard"], forbid=lambda rule: "N" in rule.body)
    ) == (0,)


def test_missing_slots_are_filled_with_the_likeliest():
    b3 = GRAMMARS["b3"]
    slots = np.full((1, 3, 8, b3.n_rules + 1), -1.0)
    slots[0, :, 0, -1] = [5, 3, 4]
    decoded = unpad(b3, decode_blocks(b3, np.zeros((1, 0, b3.n_rules + 1)), slots))[0]
    slots[0, 1, 0, -1] = -2
    assert decoded == unpad(b3, decode_blocks(b3, np.zeros((1, 0, b3.n_rules + 1)), slots))[0]
    assert len(split(b3, decoded).summands) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_that_are_no_numbers_still_decode(value):
    b2 = GRAMMARS["b2"]
    decoded = decode_blocks(b2, np.full((1, 3, 24), value), np.full((1, 3, 12, 24), value))
    spell(b2, unpad(b2, decoded)[0])


def test_a_grammar_without_summands_is_all_header():
    grammar = read_grammar("template: explicit\nS -> T | T + S\nT -> V\nV -> u | t")
    assert split(grammar, (1, 2, 3, 0, 2, 4)) == Blocks((1, 3, 0, 4), ())
    assert join(grammar, (1, 3, 0, 4), ()) == (1, 2, 3, 0, 2, 4)
    with pytest.raises(ValueError, match="has no summand"):
        decode_blocks(grammar, np.zeros((1, 2, 6)), np.zeros((1, 2, 2, 6)))


def test_complaints():
    b1, standard = GRAMMARS["b1"], GRAMMARS["standard"]
    for derivation in ((1,), (1, 16, 19), (27,), ()):
        with pytest.raises(ValueError, match="does not continue a derivation"):
            split(b1, derivation)
    complete = parse(b1, "C*1")
    with pytest.raises(ValueError, match="goes on after its sentence is complete, at step 4"):
        split(b1, (*complete, 0))
    with pytest.raises(ValueError, match="no sentence of grammar 'standard' has 4 summands"):
        join(standard, (0, 1), [(1,)] * 4)
    with pytest.raises(
        ValueError, match=r"header \(\) does not fit 1 summands.*None was found where one of the rules \[0"
    ):
        join(standard, (), [(1,)])
    with pytest.raises(ValueError, match="is too long for 1 summands"):
        join(b1, (3,), [complete[1:]])
    with pytest.raises(ValueError, match=r"needs \[n, H, 28\] and \[n, K, L, 28\]"):
        decode_blocks(b1, np.zeros((1, 2, 27)), np.zeros((1, 2, 2, 28)))
    with pytest.raises(ValueError, match="make no sentence of at most 2 summands of at most 2 rules"):
        decode_blocks(b1, np.zeros((1, 2, 28)), np.zeros((1, 2, 2, 28)))
