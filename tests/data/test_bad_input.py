"""Every bad input gives one clear sentence, and nothing is written."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.problems import problem_named
from tests.spoiling import NAN, T, U, changed

from lgf.data import (
    Knowledge,
    Observation,
    Problem,
    load_record,
    make_forcing,
    observations_from_arrays,
    read_observations,
    read_table,
)
from lgf.errors import LgfError
from lgf.expression.frame import Frame, Variable
from lgf.smoothing.complete import complete
from lgf.solver.forcing import Forcing

FIRST = Frame((("u", 1),))
BOTH = np.stack([U, U], 1)
FORCED = {"F": Forcing.from_formula("t")}

ARRAYS = {
    "fewer values than times": (lambda: Observation(T, U[:-1]), "9 values but 10 times"),
    "values in three dimensions": (lambda: Observation(T, np.zeros((10, 1, 1))), "shape"),
    "times in two dimensions": (lambda: Observation(T[:, None], U), "one time per sample"),
    "strings for numbers": (lambda: Observation(T, ["a"] * 10), "array of numbers"),
    "ragged values": (lambda: Observation(T, [[1, 2], [3]]), "array of numbers"),
    "complex values": (lambda: Observation(T, U + 1j), "complex"),
    "time goes back": (lambda: Observation(T[::-1], U), "sort the rows"),
    "time stands twice": (lambda: Observation(changed(T, 3, T[4]), U), "stands twice"),
    "time is NaN": (lambda: Observation(changed(T, 3, NAN), U), "finite time"),
    "time is infinite": (lambda: Observation(changed(T, 9, np.inf), U), "finite time"),
    "all values missing": (lambda: Observation(T, U * NAN), "not missing"),
    "a value is infinite": (lambda: Observation(T, changed(U, 2, np.inf)), "infinite"),
    "a value is absurd": (lambda: Observation(T, changed(U, 2, 1e200)), "1e150"),
    "one sample": (lambda: Observation(T[:1], U[:1]), "1 sample;"),
    "no sample": (lambda: Observation([], []), "0 samples"),
    "derivative -1": (lambda: Observation(T, U, Variable("u", -1)), "measured derivative is -1"),
    "derivative 9": (lambda: Observation(T, U, "u" + 9 * "'"), "measured derivative is 9"),
    "derivative -1 of an array": (lambda: observations_from_arrays(T, U, derivative=-1), "measured derivative is -1"),
    "derivative 9 of an array": (lambda: observations_from_arrays(T, U, derivative=9), "measured derivative is 9"),
    "derivative as text": (lambda: observations_from_arrays(T, U, derivative="two"), "measured derivative is 'two'"),
    "derivative 1.5": (lambda: observations_from_arrays(T, U, derivative=1.5), "measured derivative is 1.5"),
    "derivative True": (lambda: observations_from_arrays(T, U, derivative=True), "measured derivative is True"),
    "a column that is a number": (lambda: Observation(T, U, (2,)), "'2' does not name a state"),
    "a column of a reserved name": (lambda: Observation(T, U, "t"), "means something else"),
    "a column of a name that cannot be": (lambda: Observation(T, U, "u-v"), "does not name a state"),
    "two names for one column": (lambda: Observation(T, U, ("u", "u'")), "name each column"),
    "two derivatives for one column": (lambda: observations_from_arrays(T, U, derivative=(0, 1)), "name one for each"),
    "the same derivative twice": (lambda: Observation(T, BOTH, ("u'", "u'")), "repeat"),
    "the same state twice": (lambda: observations_from_arrays(T, BOTH, states=("x", "x")), "repeat"),
    "one state for two columns": (lambda: observations_from_arrays(T, BOTH, states=("x",)), "have 2 columns"),
    "states as one text": (lambda: observations_from_arrays(T, BOTH, states="xy"), "name one for each"),
    "negative weights": (lambda: Observation(T, U, weights=-np.ones(10)), "not negative"),
    "weights of another length": (lambda: Observation(T, U, weights=np.ones(9)), "weights have shape"),
    "weights all zero": (lambda: Observation(T, U, weights=np.zeros(10)), "all weights are zero"),
    "weights NaN": (lambda: Observation(T, U, weights=changed(np.ones(10), 0, NAN)), "finite"),
    "initial state NaN": (lambda: Observation(T, U, initial=(NAN,)), "not finite"),
    "initial state as text": (lambda: Observation(T, U, initial=("zero",)), "initial state"),
    "initial state empty": (lambda: Observation(T, U, initial=()), "initial state"),
    "initial state of another name": (
        lambda: Problem((Observation(T, U, initial={"prey": 1.0}),)), "the states are u"),
    "initial states of two states, three given": (
        lambda: Observation(T, BOTH, ("x", "y"), initial=(1, 2, 3)), "one number for each of x, y"),
    "forcing that is no Forcing": (lambda: Observation(T, U, inputs={"F": "sin(t)"}), "make it a Forcing"),
    "an input of a reserved name": (
        lambda: Observation(T, U, inputs={"sin": Forcing.from_formula("t")}), "means something else"),
    "an input of the state's name": (
        lambda: Problem(Observation(T, U, inputs={"u": Forcing.from_formula("t")})), "stands for two things"),
    "no experiment": (lambda: Problem(()), "no experiment"),
    "more measured than the order": (lambda: Problem((Observation(T, U, "u''"),), Knowledge(order=1)), "at least 2"),
    "order of a state that is not there": (
        lambda: Problem((Observation(T, U),), Knowledge(order={"prey": 1})), "the states are u"),
    "more states than are supported": (
        lambda: Problem(observations_from_arrays(T, np.stack([U] * 7, 1))), "7 states"),
    "initial state beyond the order": (
        lambda: Problem((Observation(T, U, initial=(1, 2)),), Knowledge(order=1)), "takes 1"),
    "forced and unforced": (lambda: Problem((Observation(T, U, inputs=FORCED),), Knowledge(forced=False)), "unforced"),
    "several times, one record": (lambda: observations_from_arrays([T, T], U), "several experiments"),
    "two times, three records": (lambda: observations_from_arrays([T, T], [U, U, U]), "2 times but 3 experiments"),
    "one record of several is bad": (lambda: observations_from_arrays(T, [U, U[:4]]), "experiment 2: "),
    "two initial states, three records": (
        lambda: observations_from_arrays(T, [U, U, U], initial=[(0,), (1,)]), "2 initial states"),
    "forcing of another length": (lambda: make_forcing(np.ones(7), T), "7 samples but t has 10"),
    "forcing that raises": (lambda: make_forcing(lambda t: 1 / 0, T), "ZeroDivisionError"),
    "forcing that is not finite": (lambda: make_forcing(lambda t: NAN, T), "not finite"),
    "forcing formula in u": (lambda: make_forcing("cos(u)", T), "depends on t only"),
    "forcing formula unreadable": (lambda: make_forcing("cos(", T), "cannot be read"),
    "forcing infinite": (lambda: make_forcing(changed(U, 1, np.inf), T), "infinite"),
    "forcing all missing": (lambda: make_forcing(U * NAN, T), "0 usable samples"),
    "smoothing method unknown": (lambda: complete(Observation(T, U), FIRST, "magic"), "choose from"),
    "derivatives up to -1": (lambda: complete(Observation(T, U), Frame((("u", -1),))), "whole number"),
    "no such problem": (lambda: problem_named("b9/none"), "no problem named"),
    "no such record": (lambda: load_record("none"), "no record named"),
}  # fmt: skip

KNOWLEDGE = {
    "order 0": ({"order": 0}, "order is 0"),
    "order 2.5": ({"order": 2.5}, "order is 2.5"),
    "order as text": ({"order": "2"}, "order is '2'"),
    "order True": ({"order": True}, "order is True"),
    "stable as text": ({"stable": "yes"}, "stable is 'yes'"),
    "unknown function": ({"functions": ("sinus",)}, "'sinus' is not known"),
    "function as number": ({"functions": 3}, "given as text"),
    "unknown variable": ({"variables": ("z",)}, "'z' is not known"),
    "no variable": ({"variables": ()}, "at least one"),
    "bounds the wrong way round": ({"bounds": {"u": (2, 1)}}, "low one"),
    "bounds of three": ({"bounds": {"u": (1, 2, 3)}}, "(low, high)"),
    "a sign that is none": ({"bounds": {"u": "big"}}, "positive"),
    "bounds of nonsense": ({"bounds": {"u^^3": "positive"}}, "cannot be read"),
    "bounds as a list": ({"bounds": [1, 2]}, "bounds map"),
    "constants NaN": ({"constants": (NAN, 1)}, "low one"),
    "required term unreadable": ({"required": "u +* 2"}, "cannot be read"),
    "required term empty": ({"required": ("",)}, "given as text"),
    "required term of another state": ({"required": "prey^2"}, "known are t, u, C"),
    "variable beyond the order": ({"order": 1, "variables": "u''"}, "choose from t, u, u'."),
    "order by state, 0": ({"order": {"u": 0}}, "order is 0"),
    "forcing as text": ({"inputs": {"F": "sin(t)"}}, "make it a Forcing"),
    "forcing of a reserved name": ({"inputs": {"pi": Forcing.from_formula("t")}}, "means something else"),
    "forcing and unforced": ({"inputs": {"F": Forcing.from_formula("t")}, "forced": False}, "unforced"),
}

ROWS = "".join(f"{t:.3f},{u:.5f}\n" for t, u in zip(T, U, strict=True))
FILES = {
    "empty file": (b"", "is empty"),
    "comments only": (b"# nothing\n\n# here\n", "is empty"),
    "header only": (b"t,u\n", "no rows"),
    "one column": (b"u\n1\n2\n3\n4\n", "one column"),
    "a row too short": (b"t,u\n0,1\n1\n2,3\n", "line 3"),
    "a row too long": (b"t,u\n0,1\n1,2,3\n2,3\n", "3 cells"),
    "text among the numbers": (b"t,u\n0,1\n1,abc\n2,3\n", "'abc' (line 3)"),
    "not UTF-8": (b"t,u\n0,\x81\n", "UTF-8"),
    "binary": (b"PK\x03\x04\0\0\0\0" * 20, "binary"),
    "no column rises": (b"p,q\n3,1\n1,3\n2,2\n", "looks like time"),
    "an open quotation mark": (b't,u\n0,"1\n1,2\n2,3\n', "quot"),
    "a header as long as a file": (b",".join(b"c%d" % k for k in range(50_000)) + b"\n1,2\n", "characters"),
    "too many columns": (b",".join(b"c%d" % k for k in range(1500)) + b"\n" + b",".join([b"1"] * 1500), "columns"),
    "unsorted time": (b"t,u\n0,1\n2,2\n1,3\n3,4\n", "sort the rows"),
    "duplicate time": (b"t,u\n0,1\n0,2\n1,2\n1,3\n3,4\n", "stand more than once"),
    "a missing time": (b"t,u\n0,1\n,2\n1,3\n3,4\n", "finite time"),
    "two columns of one name": (b"t,t\n0,1\n1,2\n2,3\n", "columns named 't'"),
    "infinite value": (b"t,u\n0,1\n1,inf\n2,3\n3,4\n", "infinite"),
    "no number beside time": (b"t,u\n0,a\n1,b\n2,c\n", "not a number"),
    "every experiment too short": (b"t,u,run\n0,1,A\n1,1.5,A\n0,2,B\n", "experiment 'A'"),
}
OPTIONS = {
    "no such column": ({"value": "x"}, "no value column 'x'"),
    "no such position": ({"value": 7}, "no value column 7"),
    "negative position": ({"time": -1}, "no time column -1"),
    "one column, two roles": ({"time": "t", "value": "t"}, "named twice"),
    "derivative 7": ({"derivative": 7}, "measured derivative is 7"),
    "two derivatives, one column": ({"value": "u", "derivative": (0, 1)}, "name one for each"),
    "delimiter of two characters": ({"delimiter": "::"}, "one character"),
    "initial state not finite": ({"initial": (NAN, 1)}, "not finite"),
}


def _is_one_sentence(error):
    text = str(error)
    assert "\n" not in text
    assert text.endswith((".", "?"))
    assert 15 < len(text) < 400


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    make, says = ARRAYS[name]
    with pytest.raises(LgfError) as caught:
        make()
    assert says in str(caught.value)
    _is_one_sentence(caught.value)


@pytest.mark.parametrize("name", KNOWLEDGE)
def test_knowledge(name):
    facts, says = KNOWLEDGE[name]
    with pytest.raises(LgfError) as caught:
        Problem((Observation(T, U),), Knowledge(**facts))
    assert says in str(caught.value)
    _is_one_sentence(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_files(name, tmp_path):
    content, says = FILES[name]
    file = tmp_path / "record.csv"
    file.write_bytes(content)
    with pytest.raises(LgfError) as caught:
        read_observations(file, time="t" if name == "two columns of one name" else None)
    assert says in str(caught.value)
    _is_one_sentence(caught.value)
    assert [f.name for f in tmp_path.iterdir()] == ["record.csv"]
    assert file.read_bytes() == content


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name, tmp_path):
    options, says = OPTIONS[name]
    file = tmp_path / "record.csv"
    file.write_text("t,u\n" + ROWS)
    with pytest.raises(LgfError) as caught:
        read_observations(file, **options)
    assert says in str(caught.value)
    _is_one_sentence(caught.value)


def test_paths(tmp_path):
    huge = tmp_path / "huge.csv"
    with huge.open("wb") as file:
        file.truncate(2_100_000_000)  # sparse: takes no room
    for path, says in [(tmp_path, "directory"), (tmp_path / "none.csv", "no file"), (huge, "more than the 200,000"),
                       ("/dev/zero", "regular file"), ("a\0b", "cannot be opened")]:  # fmt: skip
        with pytest.raises(LgfError) as caught:
            read_observations(path)
        assert says in str(caught.value)
        _is_one_sentence(caught.value)


def test_tables_that_are_not_files():
    twice = pd.DataFrame([[0, 1], [1, 2]], columns=["t", "t"])
    for source, says in [(np.zeros(3), "rows and columns"), (twice, "same name"), ({}, "empty"),
                         ({"t": [0, 1], "u": [1]}, "different lengths"), (pd.DataFrame(), "empty")]:  # fmt: skip
        with pytest.raises(LgfError) as caught:
            read_table(source)
        assert says in str(caught.value)
        _is_one_sentence(caught.value)
