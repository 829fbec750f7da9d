"""Frames: the order of columns, and which names there may be."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.errors import LgfError
from lgf.expression.frame import HIGHEST_ORDER, MOST_STATES, Frame, Variable
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import SIGNAL, signal, symbol

MIXED = Frame((("x", 2), ("y", 1), ("theta", 3)), ("F", "voltage"))


def _spelled(variables):
    return [str(v) for v in variables]


def test_columns_are_the_state_vector_and_then_the_highest_derivatives():
    assert _spelled(MIXED.variables) == ["x", "x'", "y", "theta", "theta'", "theta''"]
    assert _spelled(MIXED.highest) == ["x''", "y'", "theta'''"]
    assert MIXED.columns == MIXED.variables + MIXED.highest
    assert MIXED.names == ("x", "y", "theta")
    assert MIXED.orders == (2, 1, 3)
    assert MIXED.dimension == 6
    assert MIXED.rates == (1, 2, 5)
    assert MIXED.input_symbols == (signal("F"), signal("voltage"))


NAMES = st.lists(st.from_regex(r"[a-z]_?[0-9]{1,2}", fullmatch=True), min_size=1, max_size=MOST_STATES, unique=True)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(NAMES, st.data())
def test_every_frame_is_laid_out_alike(names, data):
    orders = data.draw(st.lists(st.integers(1, HIGHEST_ORDER), min_size=len(names), max_size=len(names)))
    frame = Frame(tuple(zip(names, orders, strict=True)))
    assert frame.dimension == sum(orders)
    assert len(frame.columns) == frame.dimension + len(names) == len(set(frame.columns))
    assert [frame.positions[v] for v in frame.columns] == list(range(len(frame.columns)))
    for i, (name, order) in enumerate(frame.states):
        at = sum(orders[:i])
        assert [frame.columns[at + d] for d in range(order)] == [Variable(name, d) for d in range(order)]
        assert frame.columns[frame.dimension + i] == Variable(name, order)
        assert frame.rates[i] == at + order - 1
    assert all(frame.variable(str(v)) == v for v in frame.columns)
    assert pickle.loads(pickle.dumps(frame)) == frame  # noqa: S301 joblib does this
    assert hash(Frame(frame.states)) == hash(frame)


def test_a_variable_reads_what_it_spells():
    assert Variable.read(" theta'' ") == Variable("theta", 2)
    assert Variable("prey").symbol == symbol("prey")
    assert Variable("prey", 1).symbol == symbol("prey", 1)
    for text in ("", "'", "u v", "u''v", "2", "u-1", "é"):
        with pytest.raises(LgfError, match="does not name a state"):
            Variable.read(text)


def test_time_and_inputs_are_no_states():
    assert signal("F") != symbol("F")
    assert signal("t").args == ("t", SIGNAL)


def test_a_name_that_is_not_there_is_answered_by_those_that_are():
    with pytest.raises(LgfError, match=r"known here; the variables are x, x', y, theta, .*, x'', y', theta'''"):
        MIXED.variable("x'''")
    with pytest.raises(LgfError, match="'z' is not known here"):
        MIXED.variable("z")


def test_inputs_can_be_exchanged():
    assert MIXED.with_inputs(["a"]) == Frame(MIXED.states, ("a",))
    with pytest.raises(LgfError, match="two things"):
        MIXED.with_inputs(["y"])


@pytest.mark.parametrize("name", ["", "2x", "x'", "x y", "x-y", "é", "x.y"])
def test_names_must_be_words(name):
    for states, inputs in (((("u", 1), (name, 1)), ()), ((("u", 1),), (name,))):
        with pytest.raises(LgfError, match="cannot name a state or an input"):
            Frame(states, inputs)


@pytest.mark.parametrize("name", ["t", "C", "C0", "C12", "pi", "ln", "Abs", "diff", "Derivative", *FUNCTIONS])
def test_names_of_something_else_are_refused(name):
    for states, inputs in (((("u", 1), (name, 1)), ()), ((("u", 1),), (name,))):
        with pytest.raises(LgfError, match="means something else"):
            Frame(states, inputs)


@pytest.mark.parametrize(
    ("states", "inputs"),
    [((("x", 1), ("x", 2)), ()), ((("x", 1),), ("x",)), ((("x", 1),), ("F", "F"))],
)
def test_a_name_stands_for_one_thing(states, inputs):
    with pytest.raises(LgfError, match="stands for two things"):
        Frame(states, inputs)


def test_how_many_states_and_which_orders_there_may_be():
    assert Frame(tuple((f"x{k}", 1) for k in range(MOST_STATES))).dimension == MOST_STATES
    with pytest.raises(LgfError, match="there are 0 states"):
        Frame(())
    with pytest.raises(LgfError, match=f"there are {MOST_STATES + 1} states; from 1 to {MOST_STATES}"):
        Frame(tuple((f"x{k}", 1) for k in range(MOST_STATES + 1)))
    for order in (-1, 0, HIGHEST_ORDER + 1):
        with pytest.raises(LgfError, match=f"x has order {order}"):
            Frame((("x", order),))
