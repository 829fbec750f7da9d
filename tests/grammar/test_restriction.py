import numpy as np
import pytest

from lgf.grammar import (
    Rule,
    decode,
    enumerate_derivations,
    grammar_names,
    load_grammar,
    mentions,
    read_grammar,
    restrict,
    sample,
    spell,
    unpad,
)

GRAMMAR = read_grammar(
    """\
template: explicit
S -> u {free} | A*b {order 2} | c | F + e {forced} | u''
A -> t
b -> u' {order 2}
c -> t {order 1}
e -> sin(t) | cos(t)
"""
)


def remaining(mask):
    return {f"{rule.lhs}:{''.join(rule.body)}" for rule, ok in zip(GRAMMAR.rules, mask, strict=True) if ok}


def test_conditions_and_what_follows_from_them():
    everything = {"S:u", "S:A*b", "S:c", "S:F+e", "S:u''", "A:t", "b:u'", "c:t", "e:sin(t)", "e:cos(t)"}
    assert remaining(restrict(GRAMMAR)) == everything
    # At order 1 neither b nor, then, the A that only stands beside it can be used; u'' never stands in u' = S.
    assert remaining(restrict(GRAMMAR, order=1, forced=False)) == {"S:u", "S:c", "c:t"}
    assert remaining(restrict(GRAMMAR, order=2, forced=True)) == {
        "S:A*b",
        "A:t",
        "b:u'",
        "S:F+e",
        "e:sin(t)",
        "e:cos(t)",
    }
    assert remaining(restrict(GRAMMAR, order=3, forced=False)) == {"S:u", "S:A*b", "A:t", "b:u'", "S:u''"}


def test_forbidding_by_words_phrases_numbers_or_any_question():
    assert remaining(restrict(GRAMMAR, order=2, forced=True, forbid=mentions("sin", "u'"))) == {"S:F+e", "e:cos(t)"}
    assert remaining(restrict(GRAMMAR, forbid=mentions("t"))) == {"S:u", "S:u''"}
    assert remaining(restrict(GRAMMAR, forbid=mentions("cos(t"))) == remaining(restrict(GRAMMAR, forbid={9}))
    assert remaining(restrict(GRAMMAR, forbid=lambda rule: rule.lhs == "A" or len(rule.body) > 1)) == {
        "S:u", "S:c", "S:u''", "c:t"
    }  # fmt: skip


def test_the_time_of_a_derivative_is_not_explicit():
    question = mentions("t")
    assert not question(Rule("D", ("diff", "(", "D", ",", "t", ")")))
    assert question(Rule("T", ("t", "^", "2")))
    b3 = load_grammar("b3")
    autonomous = restrict(b3, forbid=mentions("t"))
    sentences = {spell(b3, d).replace(",t)", ")") for d in sample(b3, np.random.default_rng(0), 200, autonomous)}
    assert len(sentences) > 20
    assert not any("t" in s for s in sentences)


def test_complaints():
    with pytest.raises(ValueError, match="nothing of grammar 'grammar' remains"):
        restrict(GRAMMAR, forbid=lambda rule: rule.lhs == "S")
    with pytest.raises(ValueError, match="'sinh' is not a word"):
        mentions("sinh")
    with pytest.raises(ValueError, match=r"allowed has shape \(3,\) but grammar 'grammar' has 10 rules"):
        sample(GRAMMAR, np.random.default_rng(0), 1, allowed=[True] * 3)


@pytest.mark.parametrize("name", grammar_names())
def test_nothing_forbidden_is_ever_used(name):
    grammar = load_grammar(name)
    rng = np.random.default_rng(5)
    for words in (("sin", "exp"), ("log(", "t^3"), ("/",)):
        allowed = restrict(grammar, order=2, forced=True, forbid=mentions(*words))
        derivations = sample(grammar, rng, 200, allowed)
        logits = rng.normal(size=(200, grammar.max_length, grammar.n_rules + 1))
        derivations += unpad(grammar, decode(grammar, logits, allowed))
        derivations += [d for _, d in enumerate_derivations(grammar, 20, limit=200, allowed=allowed)]
        used = {rule for derivation in derivations for rule in derivation}
        assert allowed[sorted(used)].all()
        assert not any(word in spell(grammar, d) for word in words for d in derivations)
