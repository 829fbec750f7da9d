import pytest

from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.grammar import GrammarError, instantiate, load_grammar, read_grammar

SMALL = read_grammar(
    """
    template: system
    summand: T
    S -> T [0.5] | T + T [0.5]
    T -> C*u [0.3] | C*v [0.3] | C*v*w [0.2] | C*u' [0.1] | C*v' [0.1] | C*F [0.4] {forced} | C*u^2 {order 2}
    """
)


def bodies(frame, row):
    """{body of a rule of T: its share}."""
    rules = [rule for rule in instantiate(SMALL, frame, row).rules if rule.lhs == "<T>"]
    total = sum(rule.weight for rule in rules)
    return {"".join(rule.body): rule.weight / total for rule in rules}


def test_a_rule_stands_for_every_choice_of_states_and_they_share_its_weight():
    frame = Frame((("prey", 1), ("fox", 1), ("hawk", 1)))
    assert bodies(frame, 0) == pytest.approx(
        {"C*prey": 0.375, "C*fox": 0.1875, "C*hawk": 0.1875, "C*fox*hawk": 0.125, "C*hawk*fox": 0.125}
    )


def test_rules_without_a_choice_do_not_exist():
    assert bodies(Frame((("x", 1), ("y", 1))), 1) == pytest.approx({"C*y": 0.5, "C*x": 0.5})
    assert bodies(Frame((("x", 1),)), 0) == {"C*x": 1.0}


def test_derivatives_exist_below_the_order_of_their_state():
    frame = Frame((("x", 2), ("y", 1), ("z", 2)))
    assert {"C*x'", "C*z'", "C*x^2"} <= bodies(frame, 0).keys()
    assert not {"C*x''", "C*y'"} & bodies(frame, 0).keys()
    assert {"C*x'", "C*z'"} <= bodies(frame, 1).keys()
    assert not {"C*y'", "C*y^2"} & bodies(frame, 1).keys()


def test_a_rule_with_an_input_stands_for_every_input():
    shares = bodies(Frame((("x", 1), ("y", 1)), ("voltage", "load")), 0)
    assert shares["C*voltage"] == shares["C*load"] == pytest.approx(0.2)


def test_a_state_may_have_the_name_of_a_nonterminal():
    rules = instantiate(load_grammar("systems"), Frame((("T", 1), ("S", 1))), 0)
    assert rules.start == "<S>"
    assert "T" in rules.terminals


def test_a_grammar_for_one_state_is_refused():
    with pytest.raises(LgfError, match="'standard' says equations of one state, but the states are x, y"):
        instantiate(load_grammar("standard"), Frame((("x", 1), ("y", 1))), 0)


def test_nothing_may_remain():
    derivatives = read_grammar("template: system\nsummand: T\nS -> T\nT -> C*u'")
    with pytest.raises(LgfError, match="nothing of grammar 'grammar' remains for the row of y"):
        instantiate(derivatives, Frame((("x", 1), ("y", 1))), 1)


BAD = {
    "concrete state": ("template: system\nS -> C*x0", 2, "x0", "a variable (t, u, u', v, w, F)"),
    "primed name": ("template: system\nS -> C*x0'", 2, "x0'", "the states are u (the row's own), v and w (others)"),
    "other as nonterminal": ("template: system\nS -> u\nv -> C", 3, "v", "'v' is a word of the vocabulary"),
    "derivative": ("template: system\nS -> diff(u, t)", 2, "diff", "unknown function 'diff'"),
    "missing sign": ("template: system\nS -> u v", 2, "v", "no sign stands between 'u' and 'v'"),
    "another template": ("template: explicit\nS -> C*v", 2, "v", "undefined nonterminal or unknown variable 'v'"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_show_line_and_column(name):
    text, line, at, message = BAD[name]
    with pytest.raises(GrammarError) as caught:
        read_grammar(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, text.splitlines()[line - 1].index(at) + 1)


def test_v_and_w_are_free_names_in_other_grammars():
    assert read_grammar("S -> v + w\nv -> C*u\nw -> C\ntemplate: explicit").nonterminals == ("S", "v", "w")
    with pytest.raises(GrammarError, match="'w' is a word of the vocabulary"):
        read_grammar("S -> w\nw -> C\ntemplate: system")
