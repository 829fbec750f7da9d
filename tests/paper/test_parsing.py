import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.grammar import grammar_names, load_grammar, read_grammar, sample, spell
from lgf.paper.derivations.parsing import ParseError, parse

QUIET = settings(deadline=None, derandomize=True, max_examples=60)
GRAMMARS = {name: load_grammar(name) for name in grammar_names()}
UNAMBIGUOUS = sorted(name for name in GRAMMARS if name != "systems")  # its probabilities add up over derivations

AMBIGUOUS = """\
template: explicit
S -> S + S | S * S | T | A
T -> u | t
A -> u | C
"""


@QUIET
@given(st.sampled_from(UNAMBIGUOUS), st.integers(0, 2**32 - 1))
def test_parsing_undoes_spelling(name, seed):
    grammar = GRAMMARS[name]
    for derivation in sample(grammar, np.random.default_rng(seed), 3):
        sentence = spell(grammar, derivation)
        assert parse(grammar, sentence) == derivation
        assert parse(grammar, sentence.replace("*", " * ").replace("(", "( ")) == derivation


@pytest.mark.parametrize("name", ["b1", "b2", "b3"])
def test_sentences_of_the_twin_are_sentences_of_the_model_grammar(name):
    grammar, twin = GRAMMARS[name], GRAMMARS[f"{name}_corpus"]
    assert twin.template == grammar.template
    lengths = []
    for derivation in sample(twin, np.random.default_rng(7), 150):
        sentence = spell(twin, derivation)
        parsed = parse(grammar, sentence)
        assert spell(grammar, parsed) == sentence
        lengths.append(len(parsed))
    assert np.mean(np.array(lengths) <= grammar.max_length) > 0.95


def test_known_sentences():
    b2 = GRAMMARS["b2"]
    sentence = "C*diff(diff(u,t),t)+C/t*u*diff(u,t)-C*sin(C*t)"
    names = [b2.rules[rule].lhs for rule in parse(b2, sentence)]
    assert spell(b2, parse(b2, sentence)) == sentence
    assert names[:6] == ["start", "expr", "lin", "lin_all", "num", "Diff"]
    standard = GRAMMARS["standard"]
    beam = "(C*u+C*u'+C*u^3+C*F)/(1+C*u^2)"
    assert spell(standard, parse(standard, beam)) == beam


def test_ambiguity_is_resolved_the_same_way_in_every_process():
    sentences = ["u+u*t+u", "u*u*u+C", "t+t+t+t*u"]
    program = (
        "from lgf.grammar import read_grammar\nfrom lgf.paper.derivations.parsing import parse\n"
        f"grammar = read_grammar({AMBIGUOUS!r})\n"
        f"print([parse(grammar, sentence) for sentence in {sentences!r}])"
    )
    grammar = read_grammar(AMBIGUOUS)
    expected = [parse(grammar, sentence) for sentence in sentences]
    assert [spell(grammar, derivation) for derivation in expected] == sentences
    for seed in ("1", "2"):
        command = [sys.executable, "-c", program]
        run = subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == str(expected)


@QUIET
@given(st.integers(0, 2**32 - 1))
def test_an_ambiguous_sentence_spells_the_same(seed):
    grammar = read_grammar(AMBIGUOUS)
    for derivation in sample(grammar, np.random.default_rng(seed), 5, max_length=15):
        sentence = spell(grammar, derivation)
        assert spell(grammar, parse(grammar, sentence)) == sentence


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("C*tanh(u)", "'tanh' at column 3 is not a word of the grammar"),
        ("C*u $", "'\\$' is not a character of equations \\(column 5\\)"),
        ("C*u^2+*", "'\\*' at column 7 cannot stand there"),
        ("C*u^2+", "it ends too early"),
        ("", "it ends too early"),
    ],
)
def test_complaints(sentence, reason):
    with pytest.raises(ParseError, match=f"is not a sentence of grammar 'b1': {reason}; "):
        parse(GRAMMARS["b1"], sentence)


@QUIET
@given(st.lists(st.sampled_from(["C", "*", "u", "+", "1", "(", ")", "^", "2", " ", "t", "x", "é", "'"]), max_size=12))
def test_any_text_is_parsed_or_complained_of(words):
    sentence = "C*u^2" + "".join(words)
    try:
        derivation = parse(GRAMMARS["b1"], sentence)
    except ParseError:
        return
    assert spell(GRAMMARS["b1"], derivation) == sentence.replace(" ", "")
