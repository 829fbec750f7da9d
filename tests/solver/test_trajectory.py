import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf.errors import LgfError
from lgf.expression.frame import Frame, Variable
from lgf.solver.forcing import Forcing, input_table
from lgf.solver.trajectory import SolveStatus, Trajectory, relative_l2


def test_a_trajectory_names_its_columns_and_cannot_be_written():
    frame = Frame((("u", 2),), ("F",))
    trajectory = Trajectory(np.arange(3.0), np.arange(9.0).reshape(3, 3), frame.columns, {"F": np.zeros(3)})
    assert trajectory.u.tolist() == [0, 3, 6]
    assert trajectory.du.tolist() == [1, 4, 7]
    assert trajectory.d2u.tolist() == [2, 5, 8]
    assert trajectory.status is SolveStatus.OK
    with pytest.raises(ValueError, match="read-only"):
        trajectory.values[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        trajectory.inputs["F"][0] = 1.0
    with pytest.raises(LgfError, match=r"u''.* is not in this trajectory; it holds u, u'\."):
        Trajectory(np.arange(3.0), np.zeros((3, 2)), (Variable("u"), Variable("u", 1))).d2u  # noqa: B018


def test_columns_of_several_states_are_found_by_name():
    frame = Frame((("x", 2), ("y", 1)))
    trajectory = Trajectory(np.arange(2.0), np.arange(10.0).reshape(2, 5), frame.columns)
    by_name = {str(v): trajectory[v].tolist() for v in frame.columns}
    assert by_name == {"x": [0, 5], "x'": [1, 6], "y": [2, 7], "x''": [3, 8], "y'": [4, 9]}
    assert trajectory["x'"].tolist() == trajectory.du.tolist() == [1, 6]
    assert trajectory["y'"].tolist() == trajectory[Variable("y", 1)].tolist()
    with pytest.raises(LgfError, match="holds x, x', y, x'', y'"):
        trajectory["z"]


@pytest.mark.parametrize(("t", "states", "forcing"), [
    (np.zeros((2, 2)), np.zeros((2, 1)), None),
    (np.zeros(3), np.zeros((2, 1)), None),
    (np.zeros(3), np.zeros(3), None),
    (np.zeros(3), np.zeros((3, 2)), None),
    (np.zeros(3), np.zeros((3, 1)), np.zeros(2)),
])  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(t, states, forcing):
    with pytest.raises(ValueError, match="shape"):
        Trajectory(t, states, (Variable("u"),), {} if forcing is None else {"F": forcing})


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.floats(-3, 3))
@settings(deadline=None, derandomize=True)
def test_relative_l2_scales_with_the_error(values, factor):
    y = np.array(values)
    expected = abs(factor) if np.linalg.norm(y) > 0 else 0.0
    assert relative_l2(y, y + factor * y) == pytest.approx(expected, abs=1e-9)


def test_relative_l2_of_what_is_not_finite_or_not_there():
    assert relative_l2([1, 2], [1, math.nan]) == math.inf
    assert relative_l2([0, 0], [0, 1]) == math.inf
    assert relative_l2([0, 0], [0, 0]) == 0


def test_a_formula_takes_its_values():
    forcing = Forcing.from_formula("2*sin(0.5*t)")
    t = np.linspace(-3, 9, 50)
    np.testing.assert_allclose(forcing.values(t), 2 * np.sin(0.5 * t), rtol=1e-14, atol=1e-14)
    assert forcing.covers(-1e9, 1e9)
    assert Forcing.from_formula("3").values(t).shape == t.shape


@pytest.mark.parametrize("formula", ["u + t", "u'", "C*t", "F"])
def test_a_forcing_depends_on_time_only(formula):
    with pytest.raises(ValueError, match="forcing formula"):
        Forcing.from_formula(formula)


def test_the_table_is_the_interpolant_that_values_uses():
    t = np.linspace(2, 8, 61)
    forcing = Forcing.from_samples(t, np.cos(2 * t))
    # the second of three inputs: the others are compiled in or do not occur
    table = input_table([None, forcing, None])
    t0, rate, first, number = table[1]
    assert (first, number) == (4, len(t) - 1)
    for other in (0, 2):  # they are 0 throughout
        assert table[other, 3] == 1
        assert not table[int(table[other, 2])].any()
    coefficients = table[int(first) : int(first + number)]
    x = np.linspace(2, 7.999, 333)
    i = ((x - t0) * rate).astype(int)
    s = (x - t0) * rate - i
    by_hand = sum(coefficients[i, k] * s**k for k in range(4))
    np.testing.assert_allclose(forcing.values(x), by_hand, atol=1e-13)
    np.testing.assert_allclose(forcing.values(x), np.cos(2 * x), atol=1e-4)
    np.testing.assert_allclose(forcing.values(t), np.cos(2 * t), atol=1e-12)


def test_irregular_samples_and_gaps_are_interpolated():
    t = np.sort(np.random.default_rng(0).uniform(0, 10, 400))
    values = np.sin(t)
    values[100:103] = np.nan
    forcing = Forcing.from_samples(t, values)
    x = np.linspace(0.1, 9.9, 500)
    np.testing.assert_allclose(forcing.values(x), np.sin(x), atol=1e-3)
    table = input_table([forcing])
    assert table.shape[1] == 4
    assert len(table) == 1 + table[0, 3]


def test_ends_are_held_outside_the_samples():
    forcing = Forcing.from_samples([0, 1, 2, 3], [0, 1, 4, 9])
    assert forcing.values([-5.0, 50.0]) == pytest.approx([0, 9], abs=1e-12)
    assert not forcing.covers(0, 4)
    assert forcing.covers(0, 3)
    assert Forcing.from_samples([0, 2], [1, 3]).values([1.0]) == pytest.approx([2.0])


def test_a_function_is_sampled_and_survives_a_trip_to_a_worker():
    forcing = Forcing.from_function(lambda t: math.exp(-t) * math.sin(5 * t), 0, 4)
    there_and_back = pickle.loads(pickle.dumps(forcing))  # noqa: S301 joblib does this
    x = np.linspace(0, 4, 999)
    np.testing.assert_allclose(there_and_back.values(x), np.exp(-x) * np.sin(5 * x), atol=1e-9)


def test_a_formula_can_be_sampled():
    formula = Forcing.from_formula("cos(3*t)")
    sampled = formula.sampled(0, 5)
    x = np.linspace(0, 5, 77)
    np.testing.assert_allclose(sampled.values(x), formula.values(x), atol=1e-9)
    with pytest.raises(AssertionError, match="no table"):
        input_table([formula])


def test_tables_of_several_inputs_lie_one_after_the_other():
    t = np.linspace(0, 3, 31)
    one, two = Forcing.from_samples(t, np.cos(t)), Forcing.from_samples(t[::2] + 1, np.sin(t[::2]))
    both = input_table([one, two])
    alone = [input_table([forcing])[1:] for forcing in (one, two)]
    np.testing.assert_array_equal(both[2:], np.concatenate(alone))
    assert both[:2].tolist() == [[0, pytest.approx(10), 2, 30], [1, pytest.approx(5), 32, 15]]
    assert input_table([]).shape == (0, 4)
