import numpy as np
import pytest

from lgf.grammar import load_grammar, read_grammar
from lgf.language.summand_tree import summand_tree
from lgf.language.term_dictionary import term_dictionary
from lgf.language.term_table import term_table

SMALL = """template: explicit
max_length: 12
summand: T
S -> C*u [0.5] | C*u + T [0.5]
T -> C*u^2 [0.5] | C*f [0.5]
f -> sin(C*t) [0.7] | u^3 [0.2] | exp(C*u) [0.1]
"""


def test_gain_of_a_rule_is_the_mean_of_the_odds_it_leads_to():
    grammar = read_grammar(SMALL, name="small")
    tree, table = summand_tree(grammar), term_table(grammar)
    by_text = {str(term.expression): term for term in term_dictionary(grammar).terms}
    odds = np.ones(table.n_groups)
    sine = next(g for g, e in enumerate(table.terms) if e.head == "sin")
    odds[sine] = 11.0
    rules = [rule.body for rule in grammar.rules]
    gain = tree.gain(odds, ())
    to_f = next(i for i, rule in enumerate(grammar.rules) if rule.lhs == "T" and "f" in rule.body)
    assert np.exp(gain[to_f]) == pytest.approx(0.7 * 11.0 + 0.3, rel=1e-5)
    others = [i for i in range(len(rules)) if i != to_f]
    assert np.abs(gain[others]).max() < 1e-5
    assert np.exp(tree.gain(odds, (to_f,))).max() == pytest.approx(11.0, rel=1e-5)
    assert not tree.gain(odds, (to_f, to_f)).any()
    assert len(by_text) == 4


def test_with_odds_of_1_the_standard_grammar_gains_nothing():
    grammar = load_grammar("standard")
    tree = summand_tree(grammar)
    assert len(tree.nodes) > 30
    gains = [tree.gain(np.ones(term_table(grammar).n_groups), begin) for begin in tree.nodes]
    assert np.abs(gains).max() < 1e-4
