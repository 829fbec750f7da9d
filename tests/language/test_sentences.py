"""What sentences say in frames of other names and of several inputs, and back."""

import math

import numpy as np
import pytest

from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.frame import Frame, Variable
from lgf.expression.parse import read_expression
from lgf.grammar import bits, load_grammar, restrict, sample, spell
from lgf.language.cheapest_derivation import encode, encoding
from lgf.language.sentences import (
    NoEquation,
    grammar_frame,
    grammar_term,
    in_frame,
    in_grammar_words,
    phrase,
    skeleton_of,
)

STANDARD = load_grammar("standard")
PREY = Frame((("prey", 1),), ("voltage",))
SPRING = Frame((("x", 2),), ("voltage",))
TWO = Frame((("prey", 1),), ("food", "hunters"))


def test_the_frame_in_words():
    assert grammar_frame(2, True) == Frame((("u", 2),), ("F",))
    assert grammar_frame(1, False) == Frame((("u", 1),))


@pytest.mark.parametrize(
    ("template", "sentence", "frame", "expected"),
    [
        ("explicit", "C*u + C*F", PREY, "prey' = C*prey + C*voltage"),
        ("explicit", "C*u' + C*sin(C*u)*F", SPRING, "x'' = C*x' + C*sin(C*x)*voltage"),
        ("explicit", "C*u", SPRING, "x'' = C*x"),
        ("given forcing", "C*diff(diff(u,t),t) + C*u", SPRING, "C*x'' + C*x = voltage"),
        ("own forcing", "C*diff(u,t) + C*u*t", PREY, "prey' + C*t*prey = 0"),
        ("explicit", "C*u + C*F", TWO, "prey' = C*prey + C*food + C*hunters"),
        ("explicit", "C*u*F + C*sin(C*F)", TWO,
         "prey' = C*food*prey + C*hunters*prey + C*sin(C*food) + C*sin(C*hunters)"),
        ("explicit", "C*u + C", TWO, "prey' = C*prey + C"),
        ("given forcing", "C*diff(u,t) + C*u", TWO, "C*prey' + C*prey = food + C*hunters"),
        ("own forcing", "C*diff(u,t) + C*u + C*F", TWO, "prey' + C*prey + C*food + C*hunters = 0"),
    ],
)  # fmt: skip
def test_sentences_in_the_names_of_a_frame_and_back(template, sentence, frame, expected):
    skeleton = skeleton_of(template, sentence, frame)
    assert skeleton.frame == frame
    assert skeleton.structure == Skeleton.read(expected, frame).structure
    assert skeleton.n_constants == expected.count("C")
    words = in_grammar_words(skeleton)
    assert words is not None
    plain = skeleton_of(template, sentence, grammar_frame(frame.orders[0], True))
    assert words.frame == plain.frame
    assert words.structure == plain.structure


def test_the_order_of_a_frame_must_be_met():
    with pytest.raises(NoEquation) as caught:
        skeleton_of("explicit", "C*u'", PREY)
    assert caught.value.reason == "order"
    with pytest.raises(NoEquation) as caught:
        skeleton_of("given forcing", "C*diff(u,t) + C*u", SPRING)
    assert caught.value.reason == "order"


def test_random_sentences_survive_the_way_to_other_names_and_back():
    rng = np.random.default_rng(5)
    for order in (1, 2):
        words_frame = grammar_frame(order, True)
        named = Frame((("theta", order),), ("voltage",))
        allowed = restrict(STANDARD, order=order, forced=True)
        for derivation in sample(STANDARD, rng, 60, allowed):
            sentence = spell(STANDARD, derivation)
            plain = skeleton_of(STANDARD.template, sentence, words_frame)
            skeleton = skeleton_of(STANDARD.template, sentence, named)
            assert in_grammar_words(skeleton) == plain
            assert skeleton.n_constants == plain.n_constants
            assert str(skeleton) == str(plain).replace("F", "voltage").replace("u", "theta")


def test_what_is_already_in_words_is_the_same_object():
    skeleton = Skeleton.read("u'' = C*u + F")
    assert in_grammar_words(skeleton) is skeleton
    expression = read_expression("C*u*F")
    assert in_frame(expression, grammar_frame(1, True)) is expression


@pytest.mark.parametrize(
    "text",
    [
        "prey' = C*prey + C*food",  # one input only
        "prey' = C*prey + C*food*hunters",  # the product of both
        "prey' = C*food + C*hunters*prey",  # each in its own way
        "prey' = C*food + C*hunters + C*food^2",
    ],
)
def test_no_sentence_treats_inputs_differently(text):
    skeleton = Skeleton.read(text, TWO)
    assert in_grammar_words(skeleton) is None
    assert encoding(STANDARD, skeleton).derivation is None
    assert encoding(STANDARD, skeleton).bits == math.inf


def test_no_sentence_says_two_states():
    assert in_grammar_words(Skeleton.read("x' = C*y; y' = C*x")) is None
    assert encode(STANDARD, System.read("x' = y; y' = -x")) is None


def test_an_equation_costs_the_same_under_any_name():
    for text in ("u' = 2*u - 3*u^2 + F", "u'' = -u - 0.1*u' + 5*F", "u'' = -sin(u) + F"):
        plain = System.read(text)
        frame = Frame((("theta", plain.frame.orders[0]),), ("voltage",))
        named = System.read(text.replace("u", "theta").replace("F", "voltage"), frame=frame)
        found = encoding(STANDARD, named)
        assert found == encoding(STANDARD, plain)
        assert found.derivation is not None
        allowed = restrict(STANDARD, order=frame.orders[0], forced=True)
        assert found.bits <= bits(STANDARD, found.derivation, allowed) + 1e-9
        said = skeleton_of(STANDARD.template, spell(STANDARD, found.derivation), frame)
        assert said.structure == named.skeleton.structure


def test_two_inputs_cost_as_much_as_one():
    both = System.read("prey' = -2*prey + 3*food - 0.5*hunters", frame=TWO)
    one = System.read("prey' = -2*prey + 3*voltage", frame=PREY)
    assert encoding(STANDARD, both).bits == encoding(STANDARD, one).bits < math.inf


def test_terms_and_phrases_in_words():
    assert grammar_term(read_expression("prey*hunters", TWO), TWO) == read_expression("u*F")
    assert in_frame(read_expression("u''*F"), SPRING) == read_expression("x''*voltage", SPRING)
    assert phrase("t") == "t"
    assert phrase(Variable("prey", 1)) == "u'"
