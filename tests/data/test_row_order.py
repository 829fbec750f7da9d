"""Tables whose rows are not in the order of time."""

import numpy as np
import pytest

from lgf.data import read_observations
from lgf.errors import LgfError

T = np.linspace(0.0, 3.0, 13)
U = np.exp(-T)


def only(table, **options):
    reading = read_observations(table, **options)
    (observation,) = reading.observations
    return observation, reading.notes


@pytest.mark.parametrize("order", ["newest first", "in no order"])
def test_rows_are_sorted_and_it_is_noted(order):
    rows = np.arange(13)[::-1] if order == "newest first" else np.random.default_rng(0).permutation(13)
    observation, notes = only({"t": T[rows], "u": U[rows], "valve": np.round(U)[rows]}, forcing="valve")
    assert observation.t.tolist() == T.tolist()
    assert observation.values[:, 0].tolist() == U.tolist()
    assert observation.inputs["F"].samples[:, 1].tolist() == np.round(U).tolist()
    assert f"The rows of the table were sorted by time; they stood {order}." in notes


def test_dates_newest_first_are_sorted():
    observation, _ = only({"date": ["2026-03-03", "2026-03-02", "2026-03-01"], "u": [3.0, 2.0, 1.0]})
    assert observation.t.tolist() == [0.0, 1.0, 2.0]


def test_runs_below_each_other_are_experiments():
    reading = read_observations({"t": np.tile(T, 3), "u": np.concatenate([U, 2 * U, 3 * U])})
    assert [o.name for o in reading.observations] == ["run 1", "run 2", "run 3"]
    assert reading.observations[2].values[0, 0] == 3.0
    assert (
        "Time starts again in row 14: the table is taken for 3 experiments below each other (guessed)." in reading.notes
    )


def test_a_header_between_runs_is_left_out(tmp_path):
    lines = [f"{t},{u}" for t, u in zip(T, U, strict=True)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["t,u", *lines, "t,u", *lines]), encoding="utf-8")
    assert [len(o) for o in read_observations(path).observations] == [13, 13]


def test_a_time_that_goes_back_into_the_middle_is_an_error():
    t = T.copy()
    t[6:] -= 1.0
    with pytest.raises(LgfError, match=r"time goes back from 1.25 to 0.5 \(row 7\); sort the rows by time"):
        read_observations({"t": t, "u": U})


def test_rows_that_stand_twice_are_left_out():
    rows = [0, 1, 2, 2, *range(3, 13)]
    observation, notes = only({"t": T[rows], "u": U[rows]})
    assert observation.values[:, 0].tolist() == U.tolist()
    assert "A row that stands twice was left out (the first in row 3 and row 4)." in notes


def test_samples_of_the_same_time_are_averaged_where_these_are_few():
    rows = [0, 1, 2, 2, *range(3, 13)]
    u = U[rows]
    u[3] += 0.5
    observation, notes = only({"t": T[rows], "u": u, "v": np.where(np.arange(14) == 3, np.nan, u)})
    assert len(observation) == 13
    assert observation.values[2].tolist() == [U[2] + 0.25, U[2]]
    assert "One time stands more than once (the first in row 3 and row 4); their samples were averaged." in notes


def test_experiments_without_enough_values_are_left_out():
    table = {"subject": np.repeat([1, 2, 3, 4, 5], 4), "t": np.tile(T[:4], 5), "u": np.tile(U[:4], 5)}
    table["u"][4:] = np.nan
    table["u"][5:7] = 1.0
    observation, notes = only(table)
    assert observation.name == "1"
    assert "Left out: 4 experiments of fewer than 3 samples ('2', '3', '4', ...)." in notes
