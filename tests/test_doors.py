"""No door lets an input do harm: a short fuzz of all of them, and proof that the fuzzer would tell."""

import json
import os
import shutil
import signal
from importlib.resources import files
from pathlib import Path
from random import Random

import pytest
from benchmarks.fuzz_doors import Tally, examine, fuzz
from benchmarks.fuzzing.doors import Door, make_doors
from benchmarks.fuzzing.watching import Watch

from lgf.errors import LgfError
from lgf.expression.parse import ReadingError, read_equations
from lgf.grammar import Grammar, GrammarError, Rule, read_grammar
from lgf.grammar.tables import NEVER, tables
from lgf.language.sentences import NoEquation, grammar_frame, skeleton_of
from lgf.paper.bundle import load_bundle
from lgf.paper.training.recipe import load_recipe
from lgf.runs.folder import _checked


def test_no_input_of_a_short_run_does_harm():
    tallies = fuzz(2_500, seed=0)
    assert {name: tally.faults for name, tally in tallies.items() if tally.faults} == {}
    for name, tally in tallies.items():
        assert tally.accepted + tally.refused == tally.inputs, name
        assert tally.refused > 0, name
    for name in ("equation", "knowledge", "forcing", "grammar", "table", "recipe", "run"):
        assert tallies[name].accepted > 0, name  # else nothing behind the door is tried


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def watch(scratch):
    folder = scratch / "inside"
    folder.mkdir()
    return Watch(folder)


def slow(text, folder):
    while True:
        pass


def refuse(error):
    def enter(text, folder):
        raise error

    return enter


PLANTED = {
    "another error": (refuse(KeyError("x")), "KeyError"),
    "an error of a class above": (refuse(ValueError("wrong.")), "ValueError"),
    "an error of a class below": (refuse(type("Odd", (LgfError,), {})("wrong.")), "Odd"),
    "two lines": (refuse(LgfError("one\ntwo")), "message of 2 lines"),
    "no line": (refuse(LgfError("")), "message of 0 lines"),
    "escape sequences": (refuse(LgfError("\x1b[2J")), "message not printable"),
    "code from text": (lambda text, folder: eval("1 + 1"), "forbidden: compile"),  # noqa: S307
    "code behind a handler": (lambda text, folder: swallow(lambda: exec("1")), "forbidden: compile"),  # noqa: S102
    "a command": (lambda text, folder: os.system(f"touch {folder.parent}/harm"), "forbidden: os.system"),
    "a file outside": (lambda text, folder: (folder.parent / "harm").write_text("x"), "forbidden: open"),
    "a file by a way out": (lambda text, folder: (folder / ".." / "harm").write_text("x"), "forbidden: open"),
    "a folder outside": (lambda text, folder: (folder.parent / "harm").mkdir(), "forbidden: os.mkdir"),
    "a removal": (lambda text, folder: shutil.rmtree(folder.parent), "forbidden: shutil.rmtree"),
    "no end": (slow, "OutOfTime"),
}


def swallow(call):
    try:
        call()
    except BaseException:  # noqa: BLE001
        return


def through(enter, watch, limit=0.2) -> Tally:
    door = Door("planted", 1.0, limit, lambda rng: rng.random(), enter, (LgfError,), ())
    return examine(door, 0, 0, 3, watch)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_told(name, watch, scratch):
    enter, kind = PLANTED[name]
    tally = through(enter, watch)
    assert (tally.inputs, tally.accepted, tally.refused) == (3, 0, 0)
    ((told, fault),) = tally.faults.items()
    assert told.startswith(kind), told
    assert fault["count"] == 3
    assert fault["input"] == 0
    assert not (scratch / "harm").exists()
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_an_import_is_not_the_fault_of_the_input_that_comes_first(watch):
    def enter(text, folder):
        if not seen:
            seen.append(text)
            slow(text, folder)

    seen = []
    tally = through(enter, watch)
    assert (tally.accepted, tally.faults) == (3, {})
    assert seen


def test_what_is_allowed_is_no_fault(watch):
    assert through(lambda text, folder: (folder / "own").write_text("x"), watch).accepted == 3
    assert through(lambda text, folder: Path(__file__).read_text(), watch).accepted == 3
    assert through(refuse(LgfError("a plain sentence.")), watch).refused == 3


def test_inputs_are_the_same_every_time(scratch):
    first, again = (make_doors(scratch) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        made = [one.input(7, k) for k in range(12)]
        assert made == [other.input(7, k) for k in range(12)]
        assert made != [one.input(8, k) for k in range(12)]


# What the fuzzer has found.


def test_lengths_do_not_overflow():
    # 4096 * 2^20 is 0 in 32 bits: the rule looked short, and drawing a sentence wrote past the end of its stack
    doubling = [Rule(f"A{i}", (f"A{i + 1}", "*", f"A{i + 1}")) for i in range(20)]
    rules = (Rule("S", ("A0",) * 4096), *doubling, Rule("A20", ("C",)))
    assert tables(Grammar("large", "explicit", rules, 40)).needs[0] == NEVER


@pytest.mark.parametrize("inner", ["exp(1+{})", "u*exp(t+{})", "(1+{})^3", "(t+{})*(1+t)", "1/(t+{})", "sqrt(t+{})"])
def test_what_the_canonical_form_cannot_do_in_time_is_not_read(inner):
    text = "u"
    for _ in range(20):
        text = inner.format(text)
    with pytest.raises(ReadingError, match="deep"):
        read_equations(f"u' = {text}")
    with pytest.raises(NoEquation) as caught:
        skeleton_of("explicit", text, grammar_frame(1, False))
    assert caught.value.reason == "unreadable"


def test_blanks_in_a_setting_take_no_time():
    assert read_grammar(f"name: a{' ' * 200_000}b\ntemplate: explicit\nS -> u").name.endswith("b")


def test_a_separator_of_units_before_a_weight_is_a_blank():
    assert read_grammar("template: explicit\nS -> u [\x1f0.5] | C").rules[0].weight == 0.5


def test_a_grammar_is_shown_in_plain_characters():
    with pytest.raises(GrammarError) as caught:
        read_grammar("template: explicit\nS -> \x1b]0;title\x07 u" + " " * 10_000)
    assert str(caught.value).replace("\n", "").isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x = " + b"[" * 5_000, b"seed = " + b"9" * 5_000, b"\0"])
def test_a_recipe_that_is_none_gives_a_sentence(content, tmp_path):
    (tmp_path / "recipe.toml").write_bytes(content)
    with pytest.raises(LgfError, match="is not TOML"):
        load_recipe(tmp_path / "recipe.toml")


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts["denoiser"].update(width=10**7),  # 400 terabytes
        lambda facts: facts["denoiser"].update(width=-1),
        lambda facts: facts["denoiser"].update(heads=65),
        lambda facts: next(iter(facts["predictors"].values())).update(width=10**9),
        lambda facts: facts["extent"].update(summands=0.5),
        lambda facts: facts.update(predictors=[]),
        lambda facts: facts.update(grammar=True),
        lambda facts: facts["weights"].update(bytes="a\nb"),
    ],
)
def test_a_bundle_of_odd_sizes_gives_a_sentence(change, tmp_path):
    with_weights = files("lgf").joinpath("models", "b2")
    facts = json.loads(with_weights.joinpath("model.json").read_text(encoding="utf-8"))
    change(facts)
    (tmp_path / "model.json").write_text(json.dumps(facts))
    (tmp_path / "weights.safetensors").write_bytes(with_weights.joinpath("weights.safetensors").read_bytes())
    with pytest.raises(LgfError) as caught:
        load_bundle(tmp_path)
    assert "\n" not in str(caught.value)


def test_nested_json_gives_a_sentence(tmp_path):
    (tmp_path / "model.json").write_text("[" * 100_000)
    (tmp_path / "weights.safetensors").write_bytes(b"")
    with pytest.raises(LgfError, match="does not describe a model"):
        load_bundle(tmp_path)


def test_a_separator_after_an_unknown_symbol_does_not_hide_it():
    # Python strips it off a rule as white space, the reader of words does not take it for a blank
    with pytest.raises(GrammarError, match="undefined nonterminal") as caught:
        read_grammar("template: explicit\nmax_length: 9\nS -> C*nowhere\x1f\n")
    assert "line 3, column 8" in str(caught.value)


def test_an_unprintable_key_is_not_repeated(tmp_path):
    def knowledge():
        raise TypeError("an unexpected keyword argument '\U0010ffff'")

    with pytest.raises(LgfError, match=r"argument '\?'"):
        _checked(tmp_path, "run.json", knowledge)


def test_a_random_generator_decides_everything():
    from benchmarks.fuzzing.mutating import mutated_json

    facts = {"a": [1, [], {"b": "text"}], "c": {}}
    assert [mutated_json(Random(k), facts) for k in range(200)] == [mutated_json(Random(k), facts) for k in range(200)]
