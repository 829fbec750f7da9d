import numpy as np
import pandas as pd
import pytest

from lgf.data import Observation, observations_from_arrays, read_observations, read_table
from lgf.errors import LgfError
from lgf.expression.frame import Variable
from lgf.solver.forcing import Forcing

STATE, SLOPE, BEND = (Variable("u", k) for k in range(3))
T = np.round(np.linspace(0, 2, 21), 3)
U = np.round(np.cos(T), 6)


def _same(observation, t=T, u=U):
    np.testing.assert_allclose(observation.t, t)
    np.testing.assert_allclose(observation.values[:, 0], u)


def _text(header, delimiter, decimal="."):
    lines = [f"{t}{delimiter}{u}" for t, u in zip(T, U, strict=True)]
    return "\n".join([*header, *(line.replace(".", decimal) for line in lines)]) + "\n"


FILES = {
    "plain": _text(["t,u"], ",").encode(),
    "no header": _text([], ",").encode(),
    "tabs": _text(["time\tu"], "\t").encode(),
    "semicolons and decimal commas": _text(["t;u"], ";", ",").encode(),
    "bars": _text(["t|u"], "|").encode(),
    "spaces": _text(["t u"], "   ").encode(),
    "the delimiter in a line of its own": b"sep=;\n" + _text(["t;u"], ";", ",").encode(),
    "lines of a logger": _text(["Logger 3", "Serial,12,a", "", "t,u"], ",").encode(),
    "lines of an oscilloscope": _text(["Model,TDS 2", "Interval,0.1", "t,u"], ",").encode(),
    "rows named by R": b'"t" "u"\n' + "\n".join(f'"{k}" {t} {U[k]}' for k, t in enumerate(T)).encode(),
    "a trailing delimiter below the header": b"t,u\n" + _text([], ",").replace("\n", ",\n").encode(),
    "one byte for a degree sign": _text(["t,u [\u00b0]"], ",").encode("cp1252"),
    "percent signs": b"t,u\n" + _text([], ",").replace("\n", " %\n").encode(),
    "exponents of Fortran": _text(["t,u"], ",").replace("\n", "D+00\n").replace("uD+00", "u").encode(),
    "a last column without cells": _text(["t,u,Comment"], ",").encode(),
    "the header again at the end": (_text(["t,u"], ",") + "t,u\n").encode(),
    "byte order mark": b"\xef\xbb\xbf" + _text(["t,u"], ",").encode(),
    "UTF-16": _text(["t,u"], ",").encode("utf-16"),
    "comments": _text(["# made by hand", "% really", "", "t,u"], ",").encode(),
    "header in a comment": _text(["# t u"], " ").encode(),
    "units": _text(["Time [s],Displacement (mm)"], ",").encode(),
    "units in a row of their own": _text(["t,u", "s,mm"], ",").encode(),
    "quoted": _text(['"t","u"'], ",").encode(),
    "trailing delimiter": _text(["t,u"], ",").replace("\n", ",\n").encode(),
    "carriage returns": _text(["t,u"], ",").replace("\n", "\r\n").encode(),
    "value first": b"u,t\n" + "".join(f"{u},{t}\n" for t, u in zip(T, U, strict=True)).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_every_dialect_gives_the_same_record(name, tmp_path):
    file = tmp_path / "record.txt"
    file.write_bytes(FILES[name])
    reading = read_observations(file)
    (observation,) = reading.observations
    _same(observation)
    assert observation.columns == (STATE,)
    assert any("guessed" in note for note in reading.notes)


def test_columns_by_name_and_position(tmp_path):
    file = tmp_path / "record.csv"
    file.write_text("a,b,c\n" + "".join(f"{u},{t},{7}\n" for t, u in zip(T, U, strict=True)))
    for time, value in [("b", "a"), (1, 0), ("2", "1"), ("B", "A")]:
        _same(read_observations(file, time=time, value=value, derivative=0).observations[0])


def test_names_say_what_was_measured_and_the_guess_is_reported():
    table = {"time": T, "velocity": U, "acceleration": -U, "force": np.sin(T), "remark": ["x"] * len(T)}
    reading = read_observations(table)
    (observation,) = reading.observations
    assert observation.columns == (SLOPE, BEND)
    np.testing.assert_allclose(observation.column(BEND), -U)
    assert observation.column(STATE) is None
    assert list(observation.inputs) == ["F"]
    np.testing.assert_allclose(observation.inputs["F"].values(T), np.sin(T), atol=1e-12)
    said = " ".join(reading.notes)
    for word in ("'time'", "'force'", "u'", "u''", "by its name", "'remark'"):
        assert word in said
    assert read_observations(table, value="acceleration", derivative=0).observations[0].columns == (STATE,)


@pytest.mark.parametrize(
    ("columns", "time"),
    [
        ({"S": -T, "min": T}, "min"),
        ({"T": -T, "t": T}, "t"),
        ({"h": -T, "t": T}, "t"),
        ({"x": T, "min": -T, "max": np.cos(T)}, "x"),
        ({"u": T, "day": [f"2026-01-{k + 1:02}" for k in range(len(T))]}, "day"),
        ({"u": -T, "h": np.concatenate([T[:5], T[: len(T) - 5]]), "run": [1] * 5 + [2] * (len(T) - 5)}, "h"),
    ],
)
def test_time_is_what_is_called_so_and_increases(columns, time):
    assert any(note.startswith(f"Time is column '{time}'") for note in read_observations(columns).notes)


def test_experiments_of_different_lengths_with_gaps():
    frame = pd.DataFrame({
        "time": [0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4],
        "od": [1, 2, None, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        "well": ["A2"] * 4 + ["A1"] * 3 + ["B"] * 5,
    })  # fmt: skip
    reading = read_observations(frame, initial=[(1,), (5,), (8,)])
    assert [o.name for o in reading.observations] == ["A2", "A1", "B"]
    assert [len(o) for o in reading.observations] == [4, 3, 5]
    assert [o.n_samples for o in reading.observations] == [3, 3, 5]
    assert [o.initial for o in reading.observations] == [{STATE: 1.0}, {STATE: 5.0}, {STATE: 8.0}]
    assert np.isnan(reading.observations[0].values[2, 0])


def test_experiments_may_interleave_and_be_numbered():
    reading = read_observations(np.array([[0, 1, 5.0], [0, 2, 7], [1, 1, 6], [1, 2, 8], [2, 1, 7], [2, 2, 9]]),
                                time=0, experiment=1, value=2)  # fmt: skip
    assert [o.name for o in reading.observations] == ["1", "2"]
    assert reading.observations[1].values[:, 0].tolist() == [7, 8, 9]


def plates(**columns):
    """Growth on the wells 1 and 2 of two plates, each with values of its own."""
    rows = [(plate, well, t) for plate in "AB" for well in (1, 2) for t in range(6)]
    table = {"plate": [p for p, _, _ in rows], "well": [w for _, w, _ in rows], "t": [t for *_, t in rows]}
    return table | {"od": [(1 + "AB".index(p) + 10 * w) * 1.3**t for p, w, t in rows]} | columns


@pytest.mark.parametrize("columns", [["plate", "well"], ("Plate", "2"), [0, 1]])
def test_experiments_are_the_combinations_of_several_columns(columns):
    reading = read_observations(plates(), experiment=columns)
    assert [o.name for o in reading.observations] == ["A/1", "A/2", "B/1", "B/2"]
    assert [o.values[0, 0] for o in reading.observations] == [11, 21, 12, 22]
    assert not any("Not used" in note for note in reading.notes)
    assert [o.name for o in read_observations(plates(), experiment=["well", "plate"]).observations][1] == "2/A"
    drawn = plates(draw=np.tile([0.0, 0, 0, 1, 1, 1], 4))
    assert read_observations(drawn, experiment=columns).observations[3].inputs["F"].samples[:, 1].sum() == 3


def test_two_columns_that_name_the_experiments_are_noticed_where_one_does_not():
    together = "Columns 'plate' and 'well' together tell the experiments apart (guessed)."
    reading = read_observations(plates())
    assert together in reading.notes
    assert [o.name for o in reading.observations] == ["A/1", "A/2", "B/1", "B/2"]
    table = plates()
    table = {"subject": table["well"], "trial": table["plate"], "t": table["t"], "x": table["od"]}
    assert [o.name for o in read_observations(table).observations] == ["1/A", "2/A", "1/B", "2/B"]
    unlike = plates(well=np.repeat([1, 2, 3, 4], 6))
    assert "Column 'well' tells the experiments apart (guessed)." in read_observations(unlike).notes
    twice = plates(plate=["A"] * 24)  # nothing tells the two apart
    with pytest.raises(
        LgfError, match=r"experiment '1': time goes back .* name the columns that tell experiments apart"
    ):
        read_observations(twice)


def test_long_numbers_of_experiments_stay_apart():
    table = plates(well=np.repeat([1234567, 1234568, 1234569, 0.25], 6))
    names = [o.name for o in read_observations(table, experiment="well").observations]
    assert names == ["1234567", "1234568", "1234569", "0.25"]


def test_dates_count_from_the_first_one(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("date,u\n2024-01-01 00:00:00,1\n2024-01-01 00:00:30,2\n2024-01-01 00:01:00,3\n")
    assert read_observations(file).observations[0].t.tolist() == [0, 30, 60]
    frame = pd.DataFrame({"date": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]), "u": [1, 2, 4]})
    assert read_observations(frame).observations[0].t.tolist() == [0, 1, 2]


def test_a_time_that_is_guessed_because_it_rises_is_called_so():
    reading = read_observations({"temperature": T, "pressure": U})
    assert "Time is column 'temperature' (guessed: it rises, and none is called like time)." in reading.notes
    assert "Time is column 'age' (guessed)." in read_observations({"age": T, "pressure": U}).notes


def test_a_row_of_units_below_the_header_gives_the_units(tmp_path):
    file = tmp_path / "logger.csv"
    file.write_text("time,level,valve [V],run\nmin,(cm),,elapsed\n0,1,0,1\n1,2,0.5,1\n2,4,0.2,1\n3,5,0.3,1\n")
    reading = read_observations(file, time="time", value="level", forcing="valve")
    assert reading.units == {"t": "min", "u": "cm", "F": "V"}
    assert "The second row was taken for the units of the columns." in reading.notes


def test_missing_cells_are_missing_values(tmp_path):
    file = tmp_path / "record.csv"
    file.write_text("t,u,w\n0,1,a\n1,,b\n2,NA,c\n3,nan,d\n4,-,e\n5,2,f\n6,3,g\n")
    (observation,) = read_observations(file).observations
    assert np.isnan(observation.values[:, 0]).tolist() == [False, True, True, True, True, False, False]
    assert observation.n_samples == 3


def test_a_table_is_read_once():
    table = read_table({"t": T, "u": U})
    assert read_table(table) is table
    assert table.position("U", "value") == 1


def test_arrays_and_lists_of_arrays():
    (one,) = observations_from_arrays(list(T), list(U), initial=(1.0, 0.0), forcing="sin(t)")
    _same(one)
    assert one.initial == {STATE: 1.0, SLOPE: 0.0}
    assert isinstance(one.inputs["F"], Forcing)
    several = observations_from_arrays([T, T[:9]], [U, U[:9]], derivative=2, forcing=[np.sin, "cos(t)"])
    assert [len(o) for o in several] == [21, 9]
    assert several[0].columns == (BEND,)
    np.testing.assert_allclose(several[0].inputs["F"].values(T), np.sin(T), atol=1e-9)
    shared = observations_from_arrays(T, [U, 2 * U], forcing=np.sin(T))
    _same(shared[1], u=2 * U)
    both = observations_from_arrays(T, np.column_stack([U, -U]), derivative=(0, 2))
    assert both[0].columns == (STATE, BEND)


def test_masked_arrays_hide_their_values():
    values = np.ma.masked_array(U, mask=np.arange(len(U)) % 5 == 0)
    assert Observation(T, values).n_samples == len(U) - 5


def test_an_observation_cannot_be_written_and_keeps_its_own_copy():
    mine = U.copy()
    observation = Observation(T, mine)
    mine[0] = 99
    assert observation.values[0, 0] == U[0]
    with pytest.raises(ValueError, match="read-only"):
        observation.values[0, 0] = 1.0


PAIR = np.column_stack([U, np.round(np.sin(T), 6)])
PREY, PREDATOR = Variable("prey"), Variable("predator")


def test_a_two_dimensional_array_has_one_state_a_column():
    (one,) = observations_from_arrays(T, PAIR, initial=(1.0, 0.0))
    assert one.columns == (Variable("x0"), Variable("x1"))
    assert one.states == ("x0", "x1")
    assert one.initial == {Variable("x0"): 1.0, Variable("x1"): 0.0}
    np.testing.assert_array_equal(one.column(Variable("x1")), PAIR[:, 1])
    (named,) = observations_from_arrays(
        T, PAIR, states=("prey", "predator"), initial={"predator": 0.0}, forcing={"food": "cos(t)", "hunters": np.sin}
    )
    assert named.columns == (PREY, PREDATOR)
    assert named.initial == {PREDATOR: 0.0}
    assert list(named.inputs) == ["food", "hunters"]
    np.testing.assert_allclose(named.inputs["hunters"].values(T), np.sin(T), atol=1e-9)
    (mixed,) = observations_from_arrays(T, PAIR, states=("prey", "prey"), derivative=(0, 1))
    assert mixed.columns == (PREY, Variable("prey", 1))
    (rates,) = observations_from_arrays(T, PAIR, states=("prey", "predator"), derivative=1)
    assert rates.columns == (Variable("prey", 1), Variable("predator", 1))
    assert observations_from_arrays(T, PAIR[:, :1])[0].columns == (STATE,)


def test_experiments_of_two_states_have_their_own_inputs_and_initial_states():
    drives = [{"food": "cos(t)"}, {"food": np.sin(T)}]
    several = observations_from_arrays(
        T, [PAIR, 2 * PAIR], states=("prey", "predator"), forcing=drives, initial=[(1, 0), {"prey": 2}]
    )
    assert [o.states for o in several] == [("prey", "predator")] * 2
    assert several[0].inputs["food"].formula is not None
    assert several[1].inputs["food"].samples is not None
    assert several[0].initial == {PREY: 1.0, PREDATOR: 0.0}
    assert several[1].initial == {PREY: 2.0}


SOURCES = ["mapping", "DataFrame", "CSV"]


@pytest.mark.parametrize("kind", SOURCES)
def test_states_are_named_by_their_columns(kind, tmp_path):
    table = {"time [d]": T, "prey": PAIR[:, 0], "predator": PAIR[:, 1], "food": 2 * T, "remark": ["x"] * len(T)}
    source = {"mapping": table, "DataFrame": pd.DataFrame(table), "CSV": tmp_path / "record.csv"}[kind]
    if kind == "CSV":
        pd.DataFrame(table).to_csv(source, index=False)
    reading = read_observations(source, value=["prey", "predator"], initial={"prey": 1.0})
    (observation,) = reading.observations
    assert observation.columns == (PREY, PREDATOR)
    np.testing.assert_allclose(observation.t, T)
    np.testing.assert_allclose(observation.values, PAIR)
    assert observation.initial == {PREY: 1.0}
    assert observation.inputs == {}
    assert any("time [d]" in note for note in reading.notes)
    turned = read_observations(source, value=["predator", "prey"]).observations[0]
    assert turned.columns == (PREDATOR, PREY)
    np.testing.assert_allclose(turned.values, PAIR[:, ::-1])


def test_several_inputs_are_named_by_their_columns_and_one_is_f():
    table = {"t": T, "x [m]": PAIR[:, 0], "y (m)": PAIR[:, 1], "torque [Nm]": np.sin(T), "sun light": np.cos(T)}
    both = read_observations(table, value=["x [m]", "y (m)"], forcing=["torque [Nm]", "sun light"]).observations[0]
    assert both.columns == (Variable("x"), Variable("y"))
    assert list(both.inputs) == ["torque", "sun_light"]
    np.testing.assert_allclose(both.inputs["sun_light"].values(T), np.cos(T), atol=1e-12)
    one = read_observations(table, value="x [m]", forcing="torque [Nm]").observations[0]
    assert one.columns == (STATE,)
    assert list(one.inputs) == ["F"]


def test_experiments_of_two_states_share_a_table():
    table = pd.DataFrame({
        "t": np.r_[T, T], "prey": np.r_[U, 2 * U], "predator": np.r_[-U, U], "w": 1.0, "run": ["A"] * 21 + ["B"] * 21,
    })  # fmt: skip
    table.loc[3, "predator"] = np.nan
    reading = read_observations(table, value=["prey", "predator"], experiment="run", weight="w", initial=[(1, 2), {}])
    one, other = reading.observations
    assert (one.name, other.name) == ("A", "B")
    assert (one.n_samples, other.n_samples) == (41, 42)
    assert one.weights.shape == (21, 2)
    assert one.initial == {PREY: 1.0, PREDATOR: 2.0}
    assert other.initial == {}
    np.testing.assert_allclose(other.values, np.column_stack([2 * U, U]))


def test_two_columns_that_measure_one_state_stay_one_state():
    table = {"t": T, "position": U, "velocity": -np.sin(T)}
    assert read_observations(table, value=["position", "velocity"]).observations[0].columns == (STATE, SLOPE)
    by_hand = read_observations(table, value=["position", "velocity"], derivative=(0, 0)).observations[0]
    assert by_hand.columns == (Variable("position"), Variable("velocity"))


def test_two_columns_of_one_name_are_not_two_things():
    table = {"t": T, "x [m]": U, "x [mm]": 1e3 * U, "F [N]": U, "F [kN]": U}
    with pytest.raises(LgfError, match="two columns would be the input 'F'; rename"):
        read_observations(table, value="x [m]", forcing=["F [N]", "F [kN]"])
    with pytest.raises(LgfError, match="x, x repeat"):
        read_observations(table, value=["x [m]", "x [mm]"])


@pytest.mark.parametrize("name", ["t", "2nd", "C1", "C", "sin (m)"])
def test_columns_named_like_something_else_in_an_equation_get_another_name(name):
    reading = read_observations({"time": T, name: U, "prey": U}, time="time", value=[name, "prey"])
    state = "x_" + name.split()[0]
    assert reading.observations[0].states == (state, "prey")
    assert f"Column {name!r} is called {state}." in reading.notes
    inputs = read_observations({"time": T, name: U, "F": U, "prey": U}, time="time", value="prey", forcing=[name, "F"])
    assert list(inputs.observations[0].inputs) == [state, "F"]


@pytest.mark.parametrize(("name", "called"), [("Ö (cm)", "O"), ("---", "x1")])
def test_columns_that_cannot_name_a_state_get_another_name(name, called):
    reading = read_observations({"time": T, name: U, "prey": U})
    assert [str(v) for v in reading.observations[0].columns] == [called, "prey"]
    assert f"Column '{name}' is called {called}." in reading.notes


def test_experiments_below_each_other_are_told_apart():
    """As in tables of R: rows are numbered through, the label has any name, and subjects have a weight."""
    tree = np.repeat([1, 2, 3], [5, 5, 2])
    table = {
        "rownames": np.arange(1, 13), "Tree": tree, "age": [10, 20, 30, 40, 50] * 2 + [10, 20],
        "girth": [30, 58, 87, 115, 120, 33, 69, 111, 156, 172, 30, 51], "dose": tree * 0.5,
    }  # fmt: skip
    reading = read_observations(table)
    assert [o.t.tolist() for o in reading.observations] == [[10, 20, 30, 40, 50]] * 2
    assert [str(v) for v in reading.observations[0].columns] == ["u"]
    assert "Column 'Tree' tells the experiments apart (guessed)." in reading.notes
    assert "Not used: column 'dose', which does not change within an experiment." in reading.notes
    assert "Left out: experiment '3', which has 2 samples." in reading.notes


def test_times_of_a_clock_and_cycle_numbers_of_a_plate_reader():
    table = {"Cycle Nr.": [1, 2, 3, 4, 5] * 2, "Well": ["A1"] * 5 + ["A2"] * 5, "OD": [0.1, 0.2, 0.4, 0.7, 0.9] * 2}
    table["Time"] = ["0:00:00", "0:30:00", "1:00:30.5", "23:59:59", "24:00:00"] * 2
    reading = read_observations(table, experiment="Well")
    assert reading.observations[1].t.tolist() == pytest.approx([0.0, 30.0, 3630.5 / 60, 86399 / 60, 1440.0])
    assert reading.units == {"t": "minute"}
    assert reading.observations[0].states == ("u",)
    assert "Not used: column 'Cycle Nr.', which counts the rows." in reading.notes
    table["Time"][7] = "~End"
    with pytest.raises(LgfError, match=r"holds '~End' \(row 8\), which is not a time such as 0:00:00"):
        read_observations(table, experiment="Well")


def test_what_is_guessed_from_a_name_is_told_with_a_way_out():
    t = np.arange(8.0)
    reading = read_observations({"t": t, "size": t**2, "f": np.cos(t)})
    assert any(note.startswith("Column 'f' is a known input, guessed from its name; if") for note in reading.notes)
    assert "Column 'size' is called u." in reading.notes
    assert read_observations({"t": t, "size": t**2, "f": np.cos(t)}, value=["size", "f"]).observations[0].inputs == {}
    reading = read_observations({"rownames": t, "a": -t, "b": np.cos(t)})
    assert "Time is column 'rownames' (guessed), which counts the rows: no other looks like time." in reading.notes


def test_dates_out_of_order_are_told_as_dates():
    table = {"date": ["2001-11-01", "1975-07-01", "1976-01-01", "1980-01-01", "1981-01-01"], "u": [1.0, 2, 3, 4, 5]}
    with pytest.raises(LgfError, match=r"goes back from 2001-11-01 to 1975-07-01 \(row 2\); sort the rows by time"):
        read_observations(table)


def test_a_title_above_the_header_is_told(tmp_path):
    file = tmp_path / "plate.txt"
    file.write_text("BLOCKS= 1\t\t\t\nPlate1\t\tx\ty\nTime\tA1\tA2\tA3\n" + "a\t1\t2\t3\n" * 9)
    with pytest.raises(LgfError, match=r"names 1 of 4 columns; delete the lines above the line that names"):
        read_observations(file)


def test_a_column_of_noise_beside_others_is_left_out():
    t = np.linspace(0.0, 10.0, 60)
    random = np.random.default_rng(0).normal(30.0, 0.1, 60)
    table = {"t": t, "temperature": random, "od": 1 / (1 + 9 * np.exp(-t)), "fast": np.sin(8.4 * t)}
    reading = read_observations(table)
    assert [str(v) for v in reading.observations[0].columns] == ["od", "fast"]
    assert any("'temperature', which looks like noise alone" in note for note in reading.notes)
    (named,) = read_observations(table, value="temperature").observations
    np.testing.assert_array_equal(named.values[:, 0], random)


def _level(values):
    return np.repeat(values, 10).astype(float)


INPUTS = {
    "a switch": _level([0, 1, 0, 1, 1, 0]),
    "a switch in words": ["off"] * 25 + ["on"] * 35,
    "a step": _level([0, 1, 1, 1, 1, 1]),
    "levels of a pump": _level([3.0, 1.2, 2.5, 0.4, 3.3, 1.9]),
    "a random binary signal": np.random.default_rng(0).integers(0, 2, 60) * 12.0 - 6.0,
}
STATES = {
    "a curve": np.exp(-np.linspace(0, 3, 60)),
    "a rounded curve": np.round(8 * np.exp(-np.linspace(0, 3, 60))),
    "counts": np.random.default_rng(1).poisson(40.0 * np.exp(-np.linspace(0, 3, 60))).astype(float),
}


@pytest.mark.parametrize("column", INPUTS.values(), ids=INPUTS.keys())
def test_a_column_that_jumps_between_levels_is_an_input(column):
    t = np.linspace(0.0, 10.0, 60)
    reading = read_observations({"t": t, "pump": column, "y": np.sin(t)})
    (observation,) = reading.observations
    assert observation.states == ("u",)
    assert list(observation.inputs) == ["F"]
    assert any(note.startswith("Column 'pump' is a known input, guessed from its jumps") for note in reading.notes)
    assert "Column 'pump' is called F." in reading.notes
    named = read_observations({"t": t, "pump": column, "y": np.sin(t)}, value=["pump", "y"])
    assert named.observations[0].states == ("pump", "y")


@pytest.mark.parametrize("name", ["T_outside", "Ambient temperature", "tamb", "outdoor.temp", "setpoint 2"])
def test_what_the_system_does_not_change_is_an_input_beside_a_switch(name):
    t = np.linspace(0.0, 10.0, 60)
    columns = {"t": t, "room": np.cos(t), name: np.sin(t), "heater": (t % 2.0 > 1.0) * 1.0}
    reading = read_observations(columns)
    (observation,) = reading.observations
    assert observation.states == ("u",)
    assert len(observation.inputs) == 2
    assert any(note.startswith(f"Column {name!r} is a known input, guessed from its name;") for note in reading.notes)
    assert any(note.startswith("Column 'heater' is a known input, guessed from its jumps") for note in reading.notes)
    alone = read_observations({"t": t, name: np.sin(t), "site": ["a"] * 60})
    assert alone.observations[0].states == ("u",)
    assert not alone.observations[0].inputs


@pytest.mark.parametrize("column", STATES.values(), ids=STATES.keys())
def test_a_column_that_does_not_jump_between_levels_is_a_state(column):
    t = np.linspace(0.0, 10.0, 60)
    assert read_observations({"t": t, "x": column, "y": np.sin(t)}).observations[0].states == ("x", "y")


def test_columns_that_jump_are_measured_if_there_is_no_other():
    t = np.linspace(0.0, 10.0, 60)
    (observation,) = read_observations({"t": t, "x": INPUTS["a switch"], "y": INPUTS["levels of a pump"]}).observations
    assert observation.states == ("x", "y")


def test_inputs_that_jump_are_found_in_every_experiment():
    t, level = np.tile(np.linspace(0.0, 10.0, 30), 2), np.r_[_level([0, 2, 1]), np.zeros(30)]
    table = {"run": np.repeat([1, 2], 30), "t": t, "valve": level, "y": np.sin(t)}
    assert [list(o.inputs) for o in read_observations(table).observations] == [["F"], ["F"]]


def test_a_column_that_does_not_change_is_not_used():
    reading = read_observations({"t": T, "setpoint": np.full(21, 20.0), "y": U})
    assert reading.observations[0].states == ("u",)
    assert "Not used: column 'setpoint', which does not change." in reading.notes


def test_commas_of_thousands_are_read(tmp_path):
    (tmp_path / "counts.csv").write_text('t,n,m\n0,"998","1,234.5"\n1,"1,002","12,345,678"\n2,"1,050","1,000.0"\n')
    table = read_table(tmp_path / "counts.csv")
    assert table.columns[1].tolist() == [998.0, 1002.0, 1050.0]
    assert table.columns[2].tolist() == [1234.5, 12345678.0, 1000.0]
    (tmp_path / "decimals.csv").write_text("t;n;m\n0;0,998;1.234,5\n1;1,002;1.000,0\n")
    assert [column.tolist() for column in read_table(tmp_path / "decimals.csv").columns[1:]] == [
        [0.998, 1.002], [1234.5, 1000.0],
    ]  # fmt: skip


def test_other_marks_of_thousands_and_of_minus_are_read(tmp_path):
    cells = ["12'345.5;\u22121,5", "12\u00a0345,5;-1.5", "12 345,5;\u22121.5", "12\u202f345,5;-1,5"]
    (tmp_path / "numbers.csv").write_text("n;m\n" + "\n".join(cells), encoding="utf-8")
    assert [column.tolist() for column in read_table(tmp_path / "numbers.csv").columns] == [[12345.5] * 4, [-1.5] * 4]


def test_units_behind_the_numbers_are_those_of_the_column(tmp_path):
    rows = "\n".join(f"{t} s,{u:.3f} \u00b0C,{k} a" for k, (t, u) in enumerate(zip(T, U, strict=True)))
    (tmp_path / "logger.csv").write_text(f"t,u,group [x]\n{rows}\n", encoding="utf-8")
    reading = read_observations(tmp_path / "logger.csv", value="u")
    assert reading.units == {"t": "s", "u": "\u00b0C"}
    np.testing.assert_allclose(reading.observations[0].values[:, 0], U, atol=1e-3)


def test_errors_of_spreadsheets_are_missing_values(tmp_path):
    (tmp_path / "sheet.csv").write_text("t,u\n0,1\n1,#N/A\n2,#DIV/0!\n3,4\n4,---\n5,1.#QNAN\n6,7\n")
    (observation,) = read_observations(tmp_path / "sheet.csv").observations
    assert observation.n_samples == 3


@pytest.mark.parametrize("name", [
    "Elapsed Time (s)", "Time elapsed [min]", "Date/Time", "Time Stamp", "t/s", "t_s", "elapsed", "Scan Time", "time.s",
    "Zeit in s", "Time, s", "LogTime", "Uhrzeit", "Relative Time [s]", "#Time", "unix_time",
])  # fmt: skip
def test_a_name_with_a_word_for_time_is_that_of_the_times(name):
    (observation,) = read_observations({"count": T**2 + 1, name: T, "u": U}).observations
    assert observation.t.tolist() == T.tolist()


def test_a_temperature_is_no_time_and_words_do_not_make_one():
    assert read_observations({"hours": T, "T": 100 * U[::-1] - 50 * T}).observations[0].t.tolist() == T.tolist()
    table = {"waiting time": U * np.cos(9 * T), "count": T, "time zone": ["CET"] * 21}
    assert read_observations(table).observations[0].t.tolist() == T.tolist()


def test_days_that_stand_twice_are_the_time_before_the_numbers_of_rows_are():
    days = np.where(T[5] == T, T[4], T)
    reading = read_observations({"rownames": np.arange(1, 22), "Days": days, "Weight": 100 * U - 50 * T})
    assert "Time is column 'Days' (guessed)." in reading.notes
    assert "Measured: column 'Weight' (guessed)." in reading.notes


def test_a_column_is_found_without_its_unit_and_its_number_is_told_as_it_was_typed():
    table = {"Time [s]": T, "Temp (C)": U}
    assert read_observations(table, time="time", value="Temp").observations[0].values[:, 0].tolist() == U.tolist()
    with pytest.raises(LgfError, match="has no value column '7'; its columns are"):
        read_observations(table, value="7")


def test_names_of_rows_are_no_state_even_if_rows_were_sorted():
    table = {"rownames": np.r_[1:22:2, 2:21:2], "height": U, "age": T}
    assert read_observations(table).observations[0].states == ("u",)


RECORDS = {
    "a list of records": lambda frame: frame.to_dict("records"),
    "a record array": lambda frame: frame.to_records(index=False),
    "a structured array": lambda frame: np.array(list(frame.itertuples(index=False)), [("t", float), ("x", float)]),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_are_a_table(name):
    rows = RECORDS[name](pd.DataFrame({"t": T, "x": U}))
    _same(read_observations(rows).observations[0])
    (observation,) = observations_from_arrays(T, rows)
    _same(observation)
    assert observation.columns == (STATE,)  # the column of the times is none of the values


def test_records_may_lack_a_value_and_hold_several_states():
    rows = [{"x": u, "y": -u} for u in U[:-1]] + [{"x": U[-1]}]
    (observation,) = observations_from_arrays([{"t": t} for t in T], rows)
    assert [str(v) for v in observation.columns] == ["x", "y"]
    assert np.isnan(observation.values[-1, 1])


def test_a_column_of_the_times_is_no_state():
    frame = pd.DataFrame({"hours": T, "x": U, "y": -U})
    for values in (frame, dict(frame)):
        (observation,) = observations_from_arrays(frame.hours, values)
        assert [str(v) for v in observation.columns] == ["x", "y"]
    for t in (T, [T, T]):
        several = observations_from_arrays(t, [frame, frame])
        assert [[str(v) for v in o.columns] for o in several] == [["x", "y"]] * 2
    assert observations_from_arrays(T, frame[["hours"]])[0].columns == (STATE,)  # nothing else was measured


def test_numbers_as_text_are_read():
    _same(observations_from_arrays([str(t) for t in T], [str(u) for u in U])[0])
    with pytest.raises(LgfError, match="the measured values cannot be read as an array of numbers"):
        observations_from_arrays(T, ["a"] * len(T))


def test_the_home_folder_may_be_written_as_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "record.csv").write_text(_text(["t,u"], ","))
    _same(read_observations("~/record.csv").observations[0])
