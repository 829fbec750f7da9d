"""Which role a column gets by its name and its values."""

import numpy as np
import pytest

from lgf.data import read_observations

T = np.linspace(0.0, 5.0, 60)
GROWTH, DECAY = 80.0 / (1.0 + 15.0 * np.exp(-1.2 * T)), 10.0 * np.exp(-0.5 * T)


def states(table, **columns):
    """The names of the measured variables of the first experiment, and all notes."""
    reading = read_observations(table, **columns)
    return [str(v) for v in reading.observations[0].columns], " ".join(reading.notes)


@pytest.mark.parametrize("name", ["weight", "weight [kg]", "Weight", "weights [kg]"])
def test_the_weight_of_a_body_is_measured(name):
    reading = read_observations({"day": T, name: GROWTH, "height": DECAY})
    (observation,) = reading.observations
    assert len(observation.columns) == 2
    assert observation.weights is None
    assert not any("is the weight" in note for note in reading.notes)


def test_weights_of_samples_are_guessed_by_an_unmistakable_name_and_never_negative():
    for name in ("weights", "sample_weight", "Sample_Weights"):
        reading = read_observations({"t": T, "u": GROWTH, name: 1.0 + T})
        assert reading.observations[0].weights is not None
        assert f"Column '{name}' is the weight (guessed)." in reading.notes
    assert states({"t": T, "u": GROWTH, "weights": DECAY - 5.0})[0] == ["u", "weights"]
    (named,) = read_observations({"t": T, "u": GROWTH, "weight": 1 + T}, weight="weight").observations
    assert named.weights is not None


@pytest.mark.parametrize("names", [("control", "test"), ("sin", "exp"), ("group", "series")])
@pytest.mark.parametrize("digits", [6, 1])
def test_measured_numbers_in_a_column_called_like_experiments_are_a_state(names, digits):
    table = dict(zip(("day", *names), (T, np.round(np.cos(T), 6), np.round(GROWTH, digits)), strict=True))
    found, said = states(table)
    assert len(found) == 2
    assert "Not used" not in said


def test_labels_of_experiments_are_no_state_and_the_note_says_why():
    runs = np.repeat([1.0, 2.0, 3.0], 20)
    for label in (runs, runs + 0.5, np.arange(60.0)):
        found, said = states({"t": T, "u": GROWTH, "run": label, "remark": ["x"] * 60, "note": ["y"] * 60})
        assert found == ["u"]
        assert "Not used: column 'run', which is called like the names of experiments." in said
        assert "Not used: column 'remark', 'note', each of which holds text." in said


def test_years_in_no_order_are_the_time_rather_than_the_numbers_of_the_rows():
    year = np.concatenate([np.arange(1990.0, 2020.0), np.arange(1995.0, 1960.0, -1.0)])
    rows = np.arange(1.0, 1.0 + len(year))
    reading = read_observations({"rownames": rows, "year": year, "co2": 300.0 + 1.5 * (year - 1960.0)})
    (observation,) = reading.observations
    assert observation.t.tolist() == list(range(1961, 2020))
    np.testing.assert_allclose(observation.values[:, 0], 300.0 + 1.5 * (observation.t - 1960.0))
    assert "Time is column 'year' (guessed)." in reading.notes
    assert any("sorted by time" in note for note in reading.notes)


@pytest.mark.parametrize("name", ["month", "min"])
def test_months_of_several_years_and_minima_are_not_the_time(name):
    column = np.tile(np.arange(1.0, 13.0), 5) if name == "month" else np.cos(T)
    reading = read_observations({"rownames": np.arange(1.0, 61.0), name: column, "u": DECAY})
    assert any("'rownames' (guessed), which counts the rows" in note for note in reading.notes)


@pytest.mark.parametrize("name", ["when", "observed_at", "Messung"])
@pytest.mark.parametrize("form", ["2026-01-{:02}", "2026-01-{:02}T08:00:00Z", "{:02}.01.2026 08:00"])
def test_dates_are_the_time_whatever_their_column_is_called(name, form):
    days = [form.format(k) for k in range(1, 21)]
    reading = read_observations({"level": GROWTH[:20], "day": np.cos(T[:20]), name: days, "batch": ["2026-01-01"] * 20})
    assert f"Time is column '{name}' (guessed)." in reading.notes
    assert reading.observations[0].t.tolist() == list(range(20))
    assert reading.units["t"] == "day"
