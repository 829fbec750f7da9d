"""Tables with one column an experiment."""

import numpy as np
import pytest

from lgf.data import read_observations
from lgf.errors import LgfError

T = np.linspace(0.0, 10.0, 30)


def growth(start):
    return 1.0 / (1.0 + (1.0 / start - 1.0) * np.exp(-T))


def test_every_column_of_a_wide_table_is_an_experiment():
    table = {"t [h]": T, "low [mM]": growth(0.05), "high [mM]": growth(0.2)}
    reading = read_observations(table, wide=True)
    assert [o.name for o in reading.observations] == ["low [mM]", "high [mM]"]
    assert all([str(v) for v in o.columns] == ["u"] for o in reading.observations)
    np.testing.assert_array_equal(reading.observations[1].values[:, 0], growth(0.2))
    np.testing.assert_array_equal(reading.observations[1].t, T)
    assert reading.units == {"t": "h", "u": "mM"}
    states = read_observations(table)
    assert states.observations[0].states == ("low", "high")


def test_inputs_weights_and_gaps_go_with_every_column():
    missing = growth(0.2)
    missing[3:6] = np.nan
    table = {"t": T, "force": np.cos(T), "weights": 1.0 + T, "a": growth(0.05), "b": missing}
    reading = read_observations(table, wide=True, derivative=1, value=["a", "b"])
    for observation in reading.observations:
        assert [str(v) for v in observation.columns] == ["u'"]
        np.testing.assert_array_equal(observation.weights[:, 0], 1.0 + T)
        np.testing.assert_allclose(observation.inputs["F"].values(T), np.cos(T), atol=1e-12)
    assert reading.observations[1].n_samples == 27


@pytest.mark.parametrize("names", [["rep1", "rep2"], ["Well 1", "Well 2", "Well 3"], [f"A{k}" for k in range(1, 9)]])
def test_columns_called_like_experiments_are_taken_for_them(names):
    reading = read_observations({"t": T} | {name: growth(0.02 * (k + 1)) for k, name in enumerate(names)})
    assert [o.name for o in reading.observations] == names
    assert any("are taken for experiments of one quantity, by their names" in note for note in reading.notes)
    named = {"value": names[:2]}
    assert (
        len(read_observations({"t": T, **{n: growth(0.1 + k) for k, n in enumerate(names[:2])}}, **named).observations)
        == 1
    )


def test_seven_unknown_columns_are_no_experiments():
    with pytest.raises(LgfError, match=r"at most 6 states; .*\(--wide\)"):
        read_observations({"t": T} | {f"x{k}": np.sin(T + k) for k in range(7)})
