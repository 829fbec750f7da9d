import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from lgf.grammar import (
    bits,
    decode,
    grammar_names,
    load_grammar,
    pad,
    read_grammar,
    restrict,
    sample,
    spell,
    unpad,
)
from lgf.grammar.tables import shortest

QUIET = settings(deadline=None, derandomize=True, max_examples=40)
GRAMMARS = {name: load_grammar(name) for name in grammar_names()}
names = st.sampled_from(sorted(GRAMMARS))
seeds = st.integers(0, 2**32 - 1)

SUMS = read_grammar(
    """\
template: explicit
max_length: 30
S -> T [0.6] | T + S [0.3] | (S) [0.1]
T -> u [1] | C*t [2] | sin(u) [5] | u' [2] {order 2} | t^2 [0]
"""
)


def slow_decode(grammar, logits, allowed=None, max_order=math.inf, start=None):
    """The plain twin of `decode`, for one sentence: lists, recursion-free, no tables."""
    allowed = restrict(grammar) if allowed is None else allowed
    least = dict(zip(grammar.nonterminals, shortest(grammar, allowed).tolist(), strict=True))
    stack = [(symbol, 0) for symbol in reversed(start or (grammar.start,))]
    derivation = []
    while stack:
        symbol, depth = stack.pop()
        reserved = sum(least[other] for other, _ in stack)
        options = []
        for number, rule in enumerate(grammar.rules):
            children = [s for s in rule.body if s in grammar.nonterminals]
            length = len(derivation) + 1 + sum(least[s] for s in children) + reserved
            too_deep = rule.differentiates and depth >= max_order
            if rule.lhs == symbol and allowed[number] and length <= len(logits) and not too_deep:
                options.append(number)
        best = max(options, key=lambda number: logits[len(derivation), number])
        rule = grammar.rules[best]
        children = [s for s in rule.body if s in grammar.nonterminals]
        stack.extend((s, depth + rule.differentiates) for s in reversed(children))
        derivation.append(best)
    return tuple(derivation)


def test_spelling_and_bits():
    derivation = (1, 4, 2, 0, 3)
    assert spell(SUMS, derivation) == "C*t+(u)"
    assert bits(SUMS, derivation) == pytest.approx(-math.log2(0.3 * 0.2 * 0.1 * 0.6 * 0.1))
    first_order = restrict(SUMS, order=1)
    assert bits(SUMS, derivation, first_order) == pytest.approx(-math.log2(0.3 * 2 / 8 * 0.1 * 0.6 * 1 / 8))
    assert bits(SUMS, (0, 6), first_order) == math.inf
    assert bits(SUMS, (0, 7)) == math.inf


def test_words_that_would_run_together_are_kept_apart():
    grammar = read_grammar("template: explicit\nS -> C A\nA -> u")
    assert spell(grammar, (0, 1)) == "C u"


@pytest.mark.parametrize(
    ("derivation", "complaint"),
    [
        ((0,), "stops with 'T' open"),
        ((), "stops with 'S' open"),
        ((0, 0), "rule 0 at step 1"),
        ((0, 3, 3), "rule 3 at step 2"),
        ((0, 8), "rule 8 at step 1"),
        ((-1,), "rule -1 at step 0"),
    ],
)
def test_what_is_no_derivation_is_refused(derivation, complaint):
    for function in (spell, bits):
        with pytest.raises(ValueError, match=complaint):
            function(SUMS, derivation)


@pytest.mark.parametrize("order", [1, 2])
def test_sampled_frequencies_follow_the_weights(order):
    allowed = restrict(SUMS, order=order)
    derivations = sample(SUMS, np.random.default_rng(11), 20_000, allowed)
    counts = np.bincount([rule for d in derivations for rule in d], minlength=SUMS.n_rules)
    weights = np.array([rule.weight for rule in SUMS.rules]) * allowed
    assert counts[weights == 0].sum() == 0
    for lhs in SUMS.nonterminals:
        mine = np.array([rule.lhs == lhs for rule in SUMS.rules]) & (weights > 0)
        expected = weights[mine] / weights[mine].sum() * counts[mine].sum()
        assert chisquare(counts[mine], expected).pvalue > 1e-3


def test_derivations_are_sampled_with_their_probability():
    derivations = sample(SUMS, np.random.default_rng(3), 50_000)
    short = [d for d in set(derivations) if bits(SUMS, d) < 6]
    assert len(short) > 5
    counts = np.array([derivations.count(d) for d in short])
    expected = np.array([2.0 ** -bits(SUMS, d) for d in short]) * len(derivations)
    rest = len(derivations)
    assert chisquare([*counts, rest - counts.sum()], [*expected, rest - expected.sum()]).pvalue > 1e-3


def test_sampling_is_reproducible_and_bounded():
    first = sample(SUMS, np.random.default_rng(1), 500)
    assert first == sample(SUMS, np.random.default_rng(1), 500)
    assert first != sample(SUMS, np.random.default_rng(2), 500)
    assert {len(d) for d in sample(SUMS, np.random.default_rng(1), 500, max_length=4)} == {2, 3, 4}
    assert sample(SUMS, np.random.default_rng(1), 0) == []
    with pytest.raises(ValueError, match="needs 2 rules for a sentence but length is 1"):
        sample(SUMS, np.random.default_rng(1), 1, max_length=1)
    with pytest.raises(ValueError, match="complete no sentence"):
        sample(SUMS, np.random.default_rng(1), 1, allowed=np.zeros(8, dtype=bool))


@QUIET
@given(names, seeds, st.integers(0, 30))
def test_samples_are_complete_and_fit_any_length(name, seed, extra):
    grammar = GRAMMARS[name]
    length = min(int(shortest(grammar)[0]) + extra, grammar.max_length)
    for derivation in sample(grammar, np.random.default_rng(seed), 20, max_length=length, max_order=1):
        assert len(derivation) <= length
        sentence = spell(grammar, derivation)
        assert "diff(diff" not in sentence or name.endswith("corpus")


@QUIET
@given(names, seeds)
def test_padding_and_decoding_give_the_derivations_again(name, seed):
    grammar = GRAMMARS[name]
    derivations = sample(grammar, np.random.default_rng(seed), 10)
    rows = pad(grammar, derivations)
    assert rows.shape == (10, grammar.max_length)
    assert unpad(grammar, rows) == derivations
    assert unpad(grammar, decode(grammar, np.eye(grammar.n_rules + 1)[rows])) == derivations


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="a derivation has 2 rules but there is room for 1"):
        pad(SUMS, [(0, 3)], length=1)
    with pytest.raises(ValueError, match=r"logits have shape \(1, 30, 8\).*needs \[n, N, 9\]"):
        decode(SUMS, np.zeros((1, 30, 8)))
    with pytest.raises(ValueError, match=r"'E' is not a nonterminal.*S, T"):
        decode(SUMS, np.zeros((1, 30, 9)), start="E")


@QUIET
@given(names, seeds, st.sampled_from([None, 0, 1, 2]), st.integers(0, 60), st.sampled_from([0.5, 5.0]))
def test_every_logit_decodes_as_the_plain_twin_says(name, seed, max_order, extra, scale):
    grammar = GRAMMARS[name]
    rng = np.random.default_rng(seed)
    length = int(shortest(grammar)[0]) + extra
    logits = rng.normal(scale=scale, size=(6, length, grammar.n_rules + 1)).astype(np.float32)
    allowed = restrict(grammar, order=int(rng.integers(1, 3)), forced=bool(rng.integers(2)))
    decoded = unpad(grammar, decode(grammar, logits, allowed, max_order))
    cap = math.inf if max_order is None else max_order
    assert decoded == [slow_decode(grammar, row, allowed, cap) for row in logits]
    for derivation in decoded:
        sentence = spell(grammar, derivation)
        if max_order is not None and not name.endswith("corpus"):
            assert "diff(" * (max_order + 1) not in sentence


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_ten_thousand_random_logits_are_all_complete(name):
    grammar = GRAMMARS[name]
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((10_000, grammar.max_length, grammar.n_rules + 1), dtype=np.float32)
    for derivation in unpad(grammar, decode(grammar, logits)):
        spell(grammar, derivation)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_that_are_no_numbers_still_decode(value):
    grammar = GRAMMARS["b2"]
    logits = np.full((1, grammar.max_length, grammar.n_rules + 1), value)
    spell(grammar, unpad(grammar, decode(grammar, logits))[0])


def test_decoding_from_other_nonterminals():
    grammar = GRAMMARS["b1"]
    rng = np.random.default_rng(4)
    logits = rng.normal(size=(50, 20, grammar.n_rules + 1)).astype(np.float32)
    for start in ("expr", ("term", "expr")):
        symbols = (start,) if isinstance(start, str) else start
        decoded = unpad(grammar, decode(grammar, logits, start=start))
        assert decoded == [slow_decode(grammar, row, start=symbols) for row in logits]
