import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.errors import LgfError
from lgf.grammar import Grammar, GrammarError, Rule, grammar_names, load_grammar, read_grammar

QUIET = settings(deadline=None, derandomize=True, max_examples=150)

SMALL = """\
# A small grammar
#
# of two lines.
template: explicit   # u^(n) = S
max_length: 12
summand: T

S -> T [0.7] | T + S [.3]   # sums
T -> C*u
   | C*u' [2e0] {order 2}
   | C*F {forced} | sin(C*t) {order 1, free}
"""


def test_reads_what_is_written():
    grammar = read_grammar(SMALL, name="small")
    assert grammar == Grammar(
        "small",
        "explicit",
        (
            Rule("S", ("T",), 0.7),
            Rule("S", ("T", "+", "S"), 0.3),
            Rule("T", ("C", "*", "u")),
            Rule("T", ("C", "*", "u'"), 2.0, 2),
            Rule("T", ("C", "*", "F"), 1.0, None, True),
            Rule("T", ("sin", "(", "C", "*", "t", ")"), 1.0, 1, False),
        ),
        12,
        ("T",),
        "A small grammar\n\nof two lines.",
    )
    assert grammar.start == "S"
    assert grammar.nonterminals == ("S", "T")
    assert "sin" in grammar.terminals


def test_a_line_may_end_in_a_bar_or_an_arrow():
    assert read_grammar("template: explicit\nS ->\n u |\n t").rules == (Rule("S", ("u",)), Rule("S", ("t",)))


@pytest.mark.parametrize("name", grammar_names())
def test_text_round_trip(name):
    grammar = load_grammar(name)
    again = read_grammar(grammar.text)
    assert again == grammar
    assert again.text == grammar.text
    assert again.fingerprint == grammar.fingerprint


def test_fingerprint_names_the_content_only():
    grammar = read_grammar(SMALL)
    renamed = read_grammar(SMALL.replace("small", "SMALL").replace("# sums", ""), name="other")
    assert renamed.fingerprint == grammar.fingerprint == "311b5b0b74b143ba"
    assert renamed != grammar
    for old, new in [
        ("0.7", "0.8"),
        ("order 2", "order 3"),
        ("12", "13"),
        ("explicit", "own forcing"),
        ("{forced}", ""),
    ]:
        assert read_grammar(SMALL.replace(old, new, 1)).fingerprint != grammar.fingerprint


@pytest.mark.parametrize(
    ("name", "rules", "length", "template"),
    [
        ("b1", 28, 40, "explicit"),
        ("b2", 24, 70, "own forcing"),
        ("b3", 22, 65, "given forcing"),
    ],
)
def test_grammars_of_the_paper(name, rules, length, template):
    grammar = load_grammar(name)
    assert (grammar.n_rules + 1, grammar.max_length, grammar.template) == (rules, length, template)


def test_loads_from_a_path(tmp_path):
    path = tmp_path / "mine.grammar"
    path.write_text(SMALL, encoding="utf-8")
    assert load_grammar(path) == load_grammar(str(path)) == read_grammar(SMALL, name="mine")
    path.write_text("template: explicit\nS -> w", encoding="utf-8")
    with pytest.raises(GrammarError, match=r"^mine\.grammar, line 2"):
        load_grammar(path)
    with pytest.raises(LgfError, match=r"'nowhere'.*b1, .*standard"):
        load_grammar("nowhere")


HEAD = "template: explicit\n"
BAD = {
    "undefined nonterminal": (HEAD + "S -> T + E\nT -> u", 2, "E", "undefined nonterminal or unknown variable 'E'"),
    "suggestion": (HEAD + "S -> C*tern\nterm -> u", 2, "tern", "did you mean 'term'?"),
    "unreachable": (HEAD + "S -> u\nT -> t | C", 3, "t |", "unreachable rule: 'S' never leads to 'T'"),
    "never terminates": (HEAD + "S -> u | T\nT -> u + T", 2, "T", "this rule can never terminate: give 'T'"),
    "nothing terminates": (HEAD + "S -> u + S", 2, "u", "can never terminate: give 'S' an alternative that ends"),
    "negative weight": (HEAD + "S -> u [-1]", 2, "[", "bad weight '-1'"),
    "nan weight": (HEAD + "S -> u [nan]", 2, "[", "bad weight 'nan'"),
    "infinite weight": (HEAD + "S -> u [1e999]", 2, "[", "bad weight '1e999'"),
    "word as weight": (HEAD + "S -> u [much]", 2, "[", "bad weight 'much'"),
    "empty weight": (HEAD + "S -> u []", 2, "[", "bad weight ''"),
    "all weights zero": (HEAD + "S -> u [0] | t [0]", 2, "S", "those of 'S' add up to 0.0"),
    "weights overflow": (HEAD + "S -> u [1e308] | t [1e308]", 2, "S", "those of 'S' add up to inf"),
    "unknown function": (HEAD + "S -> u + sinh(u)", 2, "sinh", "unknown function 'sinh': the functions are sin, cos"),
    "unknown variable": (HEAD + "S -> u + y'", 2, "y'", 'unknown variable "y\'"'),
    "missing template": ("S -> u", 1, "S", "missing template: write a line 'template: ' with one of explicit"),
    "unknown template": ("template: implicit\nS -> u", 1, "implicit", "did you mean 'explicit'?"),
    "duplicate rule": (HEAD + "S -> C*u | t | C * u", 2, "C * u", "duplicate rule"),
    "missing arrow": (HEAD + "S u", 2, "S", "missing arrow"),
    "second arrow": (HEAD + "S -> u -> t", 2, "-> t", "a second arrow"),
    "empty alternative": (HEAD + "S -> u | | t", 2, " | t", "empty alternative"),
    "empty body": (HEAD + "S -> [0.5] | t", 2, " [", "empty alternative"),
    "empty rule": (HEAD + "S -> T |\nT -> u", 2, "|", "empty alternative"),
    "empty at the end": (HEAD + "S ->", 2, ">", "empty alternative"),
    "continues nothing": (HEAD + "  | u", 2, "|", "no rule stands before it"),
    "no rule": ("template: explicit", 1, "t", "there is no rule"),
    "terminal as nonterminal": (HEAD + "S -> u\nx1 -> t", 3, "x1", "'x1' is a word of the vocabulary"),
    "bad name": (HEAD + "S -> u\n2T -> t", 3, "2T", "'2T' cannot be a nonterminal"),
    "unknown setting": (HEAD + "maxlength: 3\nS -> u", 2, "maxlength", "did you mean 'max_length'?"),
    "setting twice": (HEAD + "template: explicit\nS -> u", 2, "template", "set a second time"),
    "bad max_length": (HEAD + "max_length: 0\nS -> u", 2, "0", "bad max_length '0'"),
    "max_length too short": (HEAD + "max_length: 1\nS -> T\nT -> u", 2, "1", "the shortest sentence takes 2 rules"),
    "bad summand": (HEAD + "summand: X\nS -> u", 2, "X", "undefined nonterminal 'X' in summand"),
    "empty name": (HEAD + "name:\nS -> u", 2, "", "the name is empty"),
    "bad condition": (HEAD + "S -> u {order two}", 2, "{", "bad condition 'order two'"),
    "two orders": (HEAD + "S -> u {order 1, order 2}", 2, "{", "bad condition 'order 2'"),
    "free but forced": (HEAD + "S -> u | F {free}", 2, "{", "uses the forcing F"),
    "open bracket": (HEAD + "S -> u [0.5", 2, "[", "never closed"),
    "open brace": (HEAD + "S -> u {order 2", 2, "{", "never closed"),
    "two weights": (HEAD + "S -> u [1] [2]", 2, "[2", "a second weight"),
    "body behind weight": (HEAD + "S -> u [1] + t", 2, "+", "stand behind the body"),
    "strange character": (HEAD + "S -> u $ t", 2, "$", "'$' is not a character of equations"),
    "missing sign": (HEAD + "S -> 2 u", 2, "u", "no sign stands between '2' and 'u'"),
}


@pytest.mark.parametrize("case", BAD)
def test_complaint_shows_line_and_caret(case):
    text, number, marked, complaint = BAD[case]
    with pytest.raises(GrammarError) as caught:
        read_grammar(text)
    message, shown, caret = str(caught.value).split("\n")
    line = text.split("\n")[number - 1]
    assert complaint in message
    assert shown == "    " + line
    column = len(caret) - 1 - 4
    assert (caught.value.line, caught.value.column) == (number, column + 1)
    assert f"line {number}, column {column + 1}: " in message
    assert line[column:].startswith(marked)
    assert marked or column == len(line)


@QUIET
@given(st.text(alphabet=st.sampled_from("STuC'tF0.1e-> |+*()[]{}:#\n\tsinordermplax_,"), max_size=60))
def test_any_text_is_read_or_complained_of(text):
    try:
        grammar = read_grammar("template: explicit\nS -> u | T" + text)
    except GrammarError:
        return
    assert read_grammar(grammar.text) == grammar


@QUIET
@given(st.text(max_size=80))
def test_any_unicode_is_read_or_complained_of(text):
    try:
        read_grammar(text)
    except GrammarError:
        return
    assert "->" in text


@QUIET
@given(
    st.lists(st.floats(min_value=1e-6, max_value=1e6), min_size=1, max_size=5),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, True, False]),
)
def test_every_weight_and_condition_survives_the_text(weights, order, forced):
    rules = tuple(Rule("S", ("u", "^", str(i)), weight, order, forced) for i, weight in enumerate(weights))
    grammar = Grammar("g", "own forcing", rules, 5)
    assert read_grammar(grammar.text) == grammar
