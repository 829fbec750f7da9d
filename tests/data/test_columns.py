"""Which columns of a table are states, derivatives, inputs, experiments or nothing."""

import numpy as np
import pandas as pd
import pytest

from lgf.data import Knowledge, Observation, Problem, check, observations_from_arrays, read_observations
from lgf.data.column_variables import column_variables
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.fit.target_assembly import make_target
from lgf.smoothing.complete import complete

T = np.round(np.linspace(0, 6, 61), 3)
X, Y, Z = np.cos(T), np.sin(1.3 * T), np.exp(-0.3 * T)


def names(table, **roles):
    (observation,) = read_observations(table, **roles).observations
    return [str(v) for v in observation.columns], list(observation.inputs)


TABLES = {
    "two states": (("x", "y"), ["x", "y"], []),
    "three states": (("S", "I", "R"), ["S", "I", "R"], []),
    "a state and an input": (("u", "F"), ["u"], ["F"]),
    "two states and two inputs": (("x", "y", "force1", "force2"), ["x", "y"], ["force1", "force2"]),
    "a state and its derivative": (("x", "x'"), ["u", "u'"], []),
    "position and velocity": (("position", "velocity", "acceleration"), ["u", "u'", "u''"], []),
    "x, v and a": (("x", "v", "a"), ["u", "u'", "u''"], []),
    "a voltage and a recovery": (("v", "w"), ["v", "w"], []),
    "two species": (("a", "b"), ["a", "b"], []),
    "two states and a derivative": (("x1", "x2", "x2''"), ["x1", "x2", "x2''"], []),
    "an acceleration of mass 2": (("x1", "x2''"), ["x1", "x2''"], []),
    "derivatives in other spellings": (("x", "dx/dt", "y", "ydot"), ["x", "x'", "y", "y'"], []),
    "second derivatives": (("x", "d2x", "y", "y_tt"), ["x", "x''", "y", "y''"], []),
    "a voltage alone": (("v",), ["u"], []),
    "units": (("hare (1000)", "lynx [1000]"), ["hare", "lynx"], []),
    "a dose is no derivative": (("dose", "effect"), ["dose", "effect"], []),
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_taken_by_their_names(name):
    columns, states, inputs = TABLES[name]
    table = {"t": T} | {column: X + k * Y for k, column in enumerate(columns)}
    assert names(table) == (states, inputs)


def test_what_holds_no_state_is_left_out():
    table = pd.DataFrame({"index": np.arange(61), "t": T, "x": X, "remark": "ok", "y": Y, "run": 1.0, "empty": np.nan})
    reading = read_observations(table)
    assert [str(v) for v in reading.observations[0].columns] == ["x", "y"]
    assert [note for note in reading.notes if note.startswith("Not used")] == [
        "Not used: column 'index', which counts the rows.",
        "Not used: column 'run', which is called like the names of experiments.",
        "Not used: column 'empty', which is empty.",
        "Not used: column 'remark', which holds text.",
    ]


def test_a_table_without_header_numbers_its_states(tmp_path):
    file = tmp_path / "bare.csv"
    np.savetxt(file, np.column_stack([T, X, Y]), delimiter=",")
    (observation,) = read_observations(file).observations
    assert [str(v) for v in observation.columns] == ["x0", "x1"]


def test_a_derivative_is_named_by_its_column():
    table = {"t": T, "x1": X, "x2": Y}
    assert names(table, derivative={"x2": 2})[0] == ["x1", "x2''"]
    (observation,) = observations_from_arrays(T, np.column_stack([X, Y]), states=["x1", "x2"], derivative={"x2": 2})
    assert [str(v) for v in observation.columns] == ["x1", "x2''"]
    for call in (
        lambda: read_observations(table, derivative={"x3": 2}),
        lambda: observations_from_arrays(T, np.column_stack([X, Y]), states=["x1", "x2"], derivative={"x3": 2}),
    ):
        with pytest.raises(LgfError, match="the derivative of 'x3' is given"):
            call()
    assert [str(v) for v in column_variables(["theta", "omega"], {"omega": 1})] == ["theta", "omega'"]


def test_frames_and_mappings_have_names_and_may_differ_between_experiments():
    both, one = pd.DataFrame({"x": X, "y": Y}), {"y": Y[:30]}
    first, second = observations_from_arrays([T, T[:30]], [both, one])
    assert (first.states, second.states) == (("x", "y"), ("y",))
    first, second = observations_from_arrays(
        [T, T[:30]], [np.column_stack([X, Y]), Y[:30]], states=[["x", "y"], ["y"]], initial=[{"x": 1.0}, {"x": 0.5}]
    )
    assert (first.states, second.states) == (("x", "y"), ("y",))
    assert Problem((first, second)).states == ("x", "y")


def test_experiments_may_measure_different_states():
    table = pd.DataFrame({"t": np.r_[T, T], "x": np.r_[X, X], "y": np.r_[Y, np.nan * Y], "run": np.repeat([1, 2], 61)})
    observations = read_observations(table).observations
    assert [o.states for o in observations] == [("x", "y"), ("x",)]
    problem = Problem(observations)
    assert problem.part([1]).states == ("x", "y")
    frame = problem.frames[0]
    target = make_target(problem, frame, [complete(o, frame) for o in observations])
    assert np.isfinite(target.columns).all()
    assert target.complete.tolist() == [True] * 61 + [False] * 61
    assert np.count_nonzero(target.record.weight[61:, 1]) == 0
    assert target.n_unknown == 4


def test_a_column_that_is_the_rate_of_another_is_told():
    rng = np.random.default_rng(0)
    angle, rate = np.cos(2 * T) + 0.03 * rng.normal(size=61), -2 * np.sin(2 * T) + 0.06 * rng.normal(size=61)
    observation = Observation(T, np.column_stack([angle, rate]), ("theta", "omega"))
    said = [f.sentence for f in check(Problem((observation,)))]
    assert any("omega looks like the derivative of theta" in s and '--known "theta\' = omega"' in s for s in said)
    known = Problem((observation,), Knowledge(known={"theta": "omega"}))
    assert not any("looks like" in f.sentence for f in check(known))
    unrelated = Problem((Observation(T, np.column_stack([X, Y]), ("x", "y")),))
    assert not any("looks like the derivative" in f.sentence for f in check(unrelated))


def test_a_conserved_sum_that_changes_is_an_error():
    noise = 0.02 * np.random.default_rng(0).normal(size=(61, 2))
    kept = Observation(T, np.column_stack([Z, 1 - Z]) + noise, ("x", "y"))
    lost = Observation(T, np.column_stack([Z, 1 - 0.5 * Z]) + noise, ("x", "y"), name="lost")
    law = Knowledge(conserved="x + y")
    assert all(f.severity != "error" for f in check(Problem((kept,), law)))
    (error,) = [f for f in check(Problem((kept, lost), law)) if f.severity == "error"]
    assert error.sentence.startswith("x + y is said to be conserved but goes from ")
    assert "in lost" in error.sentence


def test_one_row_per_state_is_told():
    with pytest.raises(LgfError, match=r"shape \(2, 61\) but there are 61 times; .* transpose them"):
        observations_from_arrays(T, np.stack([X, Y]), states=["x", "y"])


def test_frame_of_mixed_orders():
    observation = Observation(T, np.column_stack([X, Y]), ("x", "y''"))
    assert Problem((observation,), Knowledge(order={"x": 1})).frames == (Frame((("x", 1), ("y", 2))),)


def test_the_speed_of_a_motor_is_no_rate_of_its_current():
    t = np.linspace(0.0, 8.0, 200)
    current, angle = np.exp(-t) * np.cos(3 * t), 5 * np.sin(t) + t
    speed = 5 * np.cos(t) + 1
    table = {"time": t, "current": current, "speed": speed}
    (observation,) = read_observations(table).observations
    assert [str(v) for v in observation.columns] == ["current", "speed"]
    (observation,) = observations_from_arrays(t, pd.DataFrame({"current": current, "speed": speed}))
    assert [str(v) for v in observation.columns] == ["current", "speed"]
    noise = np.random.default_rng(0).normal(size=(2, 200))
    rate = {"time": t, "shaft": np.degrees(angle) + 20 * noise[0], "speed": speed + 0.3 + noise[1]}  # in rad/s
    (observation,) = read_observations(rate).observations
    assert [str(v) for v in observation.columns] == ["u", "u'"]
    (observation,) = read_observations(table, derivative=[0, 1]).observations
    assert [str(v) for v in observation.columns] == ["u", "u'"]
