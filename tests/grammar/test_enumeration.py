import math
from itertools import pairwise

import numpy as np
import pytest

from lgf.grammar import bits, enumerate_derivations, load_grammar, read_grammar, restrict, sample, spell

SMALL = read_grammar(
    """\
template: explicit
max_length: 9
S -> T [0.5] | T + S [0.3] | (S) [0.1] | W [0.1]
W -> V
V -> T*T [3] | S [1]
T -> u [4] | t [2] | C [2] | u' [1] {order 2} | t^2 [0]
"""
)


def brute_force(grammar, max_bits, allowed):
    """Every complete derivation within the bits and the length, by trying all rules."""
    nonterminals = set(grammar.nonterminals)
    weights = np.array([rule.weight for rule in grammar.rules]) * allowed
    totals = {
        lhs: sum(w for w, rule in zip(weights, grammar.rules, strict=True) if rule.lhs == lhs) for lhs in nonterminals
    }
    found = []

    def grow(derivation, stack, cost):
        if cost > max_bits or len(derivation) + len(stack) > grammar.max_length:
            return
        if not stack:
            found.append((cost, derivation))
            return
        for number, rule in enumerate(grammar.rules):
            if rule.lhs == stack[-1] and weights[number] > 0:
                children = [s for s in reversed(rule.body) if s in nonterminals]
                p = weights[number] / totals[rule.lhs]
                grow((*derivation, number), [*stack[:-1], *children], cost - math.log2(p))

    grow((), [grammar.start], 0.0)
    return found


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("max_bits", [0.5, 6, 10.5])
def test_complete_ordered_and_each_once(order, max_bits):
    allowed = restrict(SMALL, order=order)
    expected = brute_force(SMALL, max_bits, allowed)
    found = list(enumerate_derivations(SMALL, max_bits, allowed=allowed))
    assert len(found) == len(expected)
    assert {derivation for _, derivation in found} == {derivation for _, derivation in expected}
    assert all(a[0] <= b[0] for a, b in pairwise(found))
    for cost, derivation in found:
        assert cost == pytest.approx(bits(SMALL, derivation, allowed), abs=1e-9)
    assert len(found) > 100 or max_bits < 10


def test_the_length_limit_alone_ends_an_unbounded_enumeration():
    tight = read_grammar(SMALL.text.replace("max_length: 9", "max_length: 5"))
    found = list(enumerate_derivations(tight, math.inf))
    assert {d for _, d in found} == {d for _, d in brute_force(tight, math.inf, restrict(tight))}


def test_limit_and_laziness():
    standard = load_grammar("standard")
    everything = list(enumerate_derivations(standard, 10))
    assert list(enumerate_derivations(standard, math.inf, limit=50)) == everything[:50]
    assert list(enumerate_derivations(standard, 10, limit=0)) == []
    assert next(enumerate_derivations(standard, math.inf)) == everything[0]


def test_standard_grammar_holds_every_cheap_sample():
    standard = load_grammar("standard")
    allowed = restrict(standard, order=2, forced=False)
    found = {derivation: cost for cost, derivation in enumerate_derivations(standard, 16, allowed=allowed)}
    assert len(found) > 3_000
    assert sum(2.0**-cost for cost in found.values()) < 1
    cheap = [d for d in sample(standard, np.random.default_rng(0), 2000, allowed) if bits(standard, d, allowed) < 15.9]
    assert len(cheap) > 1000
    assert all(found[d] == pytest.approx(bits(standard, d, allowed), abs=1e-9) for d in cheap)


def test_van_der_pol_comes_early():
    standard = load_grammar("standard")
    allowed = restrict(standard, order=2, forced=False)
    sentences = [spell(standard, d) for _, d in enumerate_derivations(standard, 12, limit=400, allowed=allowed)]
    assert "C*u+C*u'+C*u^2*u'" in sentences


def test_derivations_may_begin_elsewhere():
    whole = read_grammar("template: explicit\nS -> A*B [0.4] | B [0.6]\nA -> u [0.7] | t [0.3]\nB -> C [0.2] | A [0.8]")
    part = read_grammar("template: explicit\nB -> C [0.2] | A [0.8]\nA -> u [0.7] | t [0.3]")
    shifted = [(cost, spell(part, d)) for cost, d in enumerate_derivations(part, math.inf)]
    begun = [(cost, spell(whole, d, ("B",))) for cost, d in enumerate_derivations(whole, math.inf, start="B")]
    assert begun == shifted
    both = {
        spell(whole, d, ("A", "*", "B")): cost for cost, d in enumerate_derivations(whole, math.inf, start=("A", "B"))
    }
    assert set(both) == {f"{a}*{b}" for a in "ut" for b in "Cut"}
    assert both["t*u"] == pytest.approx(-math.log2(0.3 * 0.8 * 0.7))
    assert spell(whole, (2, 4), ("1", "+", "A", "+", "B")) == "1+u+C"
