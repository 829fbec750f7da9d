import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.tree import mul, number, summands
from lgf.grammar import bits, enumerate_derivations, load_grammar, read_grammar, restrict, sample, spell
from lgf.grammar.blocks import summand_symbols
from lgf.language.cheapest_derivation import encode, encoding
from lgf.language.sentences import NoEquation, grammar_frame, skeleton_of
from lgf.language.term_dictionary import parts_of, term_dictionary

STANDARD = load_grammar("standard")
CASES = [(1, False), (1, True), (2, False), (2, True)]
SMALL = read_grammar(
    """
    template: explicit
    max_length: 12
    summand: T
    S -> E [0.7] | (E)/(1 + C*u^2) [0.2] | (E)/sin(C*t) [0.1]
    E -> C*u [0.3] | C*u + N [0.4] | N [0.3]
    N -> T [0.5] | T + N [0.5]
    T -> C*u^2 [0.3] | C*log(C*u) [0.2] | C*u*(C + u^3) [0.1] | C*t [0.3] | C*u/(1 + C*u) [0.1]
    """,
    name="small",
)


def listed(grammar, order, forced, max_bits):
    """The oracle, by listing all derivations: (bits of the cheapest, bits of all together, skeleton) by structure."""
    found = {}
    for cost, derivation in enumerate_derivations(
        grammar, max_bits + 2, allowed=restrict(grammar, order=order, forced=forced)
    ):
        try:
            skeleton = skeleton_of(grammar.template, spell(grammar, derivation), grammar_frame(order, forced))
        except NoEquation:
            continue
        least, together, _ = found.setdefault(skeleton.structure, (cost, math.inf, skeleton))
        found[skeleton.structure] = least, -np.logaddexp2(-together, -cost), skeleton
    return [entry for entry in found.values() if entry[0] <= max_bits]


@pytest.mark.parametrize(("order", "forced"), CASES)
def test_the_bits_of_a_structure_are_those_of_its_derivations_together(order, forced):
    for cheapest, together, skeleton in listed(STANDARD, order, forced, 11)[::4]:
        # dearer derivations than those listed, and by other headers, hold little
        assert together - 0.1 < encoding(STANDARD, skeleton, forced).bits < cheapest + 1e-9, str(skeleton)


def test_the_cheapest_is_found_with_denominators_and_sums_as_summands():
    structures = listed(SMALL, 1, False, 10)
    assert len(structures) > 40
    for cheapest, together, skeleton in structures:
        assert together - 0.3 < encoding(SMALL, skeleton).bits < cheapest + 1e-9, str(skeleton)


@pytest.mark.parametrize(("name", "order"), [("b1", 1), ("b3", 2)])
def test_the_grammars_of_the_paper_are_read_too(name, order):
    grammar = load_grammar(name)
    forced = name == "b3"
    for cheapest, _, skeleton in listed(grammar, order, forced, 11)[::6]:
        assert encoding(grammar, skeleton, forced).bits < cheapest + 1e-9, str(skeleton)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from(CASES), st.randoms(use_true_random=False))
def test_how_an_equation_is_written_does_not_matter(seed, case, random):
    order, forced = case
    allowed = restrict(STANDARD, order=order, forced=forced)
    (derivation,) = sample(STANDARD, np.random.default_rng(seed), 1, allowed)
    skeleton = skeleton_of("explicit", spell(STANDARD, derivation), grammar_frame(order, forced))
    found = encoding(STANDARD, skeleton, forced)
    assert found.bits <= bits(STANDARD, derivation, allowed) + 1e-9
    terms = list(summands(skeleton.right))
    random.shuffle(terms)
    moved = Skeleton.read(f"3*{_text(skeleton.left)} - ({' + '.join(map(_text, terms))}) = 0", skeleton.frame)
    assert moved.structure == skeleton.structure
    assert encoding(STANDARD, moved, forced) == found


def _text(expression):
    return plain(expression, ["C"] * 64)


def test_what_cannot_be_said_is_named():
    found = encoding(STANDARD, System.read("u' = -2*u + 3*log(u)^3"))
    assert (found.derivation, found.bits, found.unsaid) == (None, math.inf, ("log(u)^3",))
    assert encode(STANDARD, System.read("u'' = sin(cos(u)) + 2*F")) is None
    # every term of it can be said, but not so many together
    many = encoding(STANDARD, System.read("u' = 2*t + 3/u + 4*sin(5*t) + 6*exp(7*u) + 8*sqrt(u)"))
    assert (many.derivation, many.unsaid) == (None, ())


def test_a_term_with_constants_inside_may_occur_twice():
    two = encode(STANDARD, System.read("u' = -2*u + 3*sin(2*t) + 4*sin(5*t)"))
    assert two is not None
    assert spell(STANDARD, two) == "C*u+C*sin(C*t)+C*sin(C*t)"


def test_order_and_forcing_restrict_what_is_said():
    equation = System.read("u'' = -3*u' - 2*u")
    assert encode(STANDARD, equation) == encode(STANDARD, equation, False)
    assert encode(STANDARD, equation, True) is None
    sentence = spell(STANDARD, encode(STANDARD, equation))
    assert skeleton_of("explicit", sentence, grammar_frame(2, False)).structure == equation.skeleton.structure
    with pytest.raises(NoEquation, match="not below 1"):
        skeleton_of("explicit", sentence, grammar_frame(1, False))
    assert encoding(STANDARD, System.read("u'' = -3*u' - 2*u + F")).bits < 7


def test_an_even_power_of_the_highest_derivative_is_said_by_its_branch():
    assert encode(STANDARD, System.read("u''^2 = 81*u^2")) == encode(STANDARD, System.read("u'' = -9*u"))
    assert encode(STANDARD, System.read("u''^2 + u'' = 81*u^2")) is None
    b2 = load_grammar("b2")
    squared = encode(b2, System.read("u''^2 - 81*u^2 = 0"))
    assert squared is not None
    assert spell(b2, squared).count("diff(diff(u,t),t)") == 2


def _look_up(dictionary, text):
    return next((t for t in dictionary.terms if set(t.parts) == set(parts_of(text))), None)


def test_the_dictionary_holds_every_summand_once_at_its_cheapest():
    allowed = restrict(STANDARD, order=2, forced=False)
    dictionary = term_dictionary(STANDARD, allowed)
    assert dictionary is term_dictionary(STANDARD, allowed)
    costs = [term.bits for term in dictionary.terms]
    assert costs == sorted(costs)
    assert len({frozenset(term.parts) for term in dictionary.terms}) == len(costs)
    for _, derivation in enumerate_derivations(STANDARD, 12, allowed=allowed, start="T"):
        sentence = spell(STANDARD, derivation, ("T",))
        term = _look_up(dictionary, sentence)
        assert term is not None
        assert term.bits <= -math.log2(_probability(derivation, allowed)) + 1e-9
        assert _look_up(dictionary, mul(number(7.0), read_expression(sentence))) == term
    assert _look_up(dictionary, "C*u*log(sin(u))") is None
    assert _look_up(term_dictionary(STANDARD, restrict(STANDARD, order=1, forced=False)), "u'^2") is None


def _probability(derivation, allowed):
    product = 1.0
    for rule in derivation:
        lhs = STANDARD.rules[rule].lhs
        total = sum(r.weight for r, ok in zip(STANDARD.rules, allowed, strict=True) if ok and r.lhs == lhs)
        product *= STANDARD.rules[rule].weight / total
    return product


def test_a_summand_may_be_a_sum():
    dictionary = term_dictionary(SMALL)
    both = _look_up(dictionary, "C*u + C*u^4")
    assert both is not None
    assert set(both.parts) == {*parts_of("u"), *parts_of("u^4")}
    assert _look_up(dictionary, "C*u^4") is None
    assert encoding(SMALL, Skeleton.read("u' = C*u + C*u^4")).bits < math.inf
    assert encoding(SMALL, Skeleton.read("u' = C*u^4")).bits == math.inf


def test_summands_of_several_nonterminals_keep_the_words_between():
    assert summand_symbols(load_grammar("b1")) == ("term", "*", "expr")
    assert summand_symbols(STANDARD) == ("T",)
    with pytest.raises(ValueError, match="names no summand"):
        term_dictionary(read_grammar("template: explicit\nS -> C*u | C*t"))
