"""Any table is read back as it was: from a file of any dialect, and from its rows in any order."""

import csv
import io
from dataclasses import dataclass

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lgf.data import Knowledge, Problem, observations_from_arrays, read_observations

examples = settings(
    max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

UNITS = {"": None, " [m]": "m", " (kg)": "kg", " [1/s]": "1/s"}


def _in_range(x):
    """0.0 for numbers so small that a record of them is refused."""
    return x if abs(x) > 1e-100 else 0.0


NUMBERS = st.floats(-1e9, 1e9).map(_in_range) | st.floats(-1e-6, 1e-6).map(_in_range)


@dataclass(frozen=True)
class Made:
    """Several experiments of several states, with names, units in the headers and missing values."""

    names: tuple[str, ...]
    headers: tuple[str, ...]
    labels: tuple[str, ...]
    times: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]  # [N, K] of each experiment

    @property
    def frame(self) -> pd.DataFrame:
        parts = [
            pd.DataFrame({"time (s)": t, **dict(zip(self.headers, v.T, strict=True)), "tube": label})
            for label, t, v in zip(self.labels, self.times, self.values, strict=True)
        ]
        return pd.concat(parts, ignore_index=True)


@st.composite
def tables(draw) -> Made:
    n_states, n_experiments = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    plain = st.from_regex(r"[a-z]{2,6}_[a-z0-9]{1,4}", fullmatch=True)
    names = draw(st.lists(plain, min_size=n_states, max_size=n_states, unique=True))
    units = draw(st.lists(st.sampled_from(sorted(UNITS)), min_size=n_states, max_size=n_states))
    label = st.from_regex(r"[A-H][0-9]{1,3}( [a-z]+)?", fullmatch=True)
    labels = draw(st.lists(label, min_size=n_experiments, max_size=n_experiments, unique=True))
    times, values = [], []
    for _ in labels:
        steps = draw(arrays(float, st.integers(5, 9), elements=st.floats(1e-3, 1e3)))
        begin = draw(st.floats(-1e3, 1e3))
        own = draw(arrays(float, (len(steps), n_states), elements=NUMBERS))
        own[0] = np.where(own[0] == 0.0, 1.0, own[0])  # so that no column vanishes
        for column in range(n_states):  # three values of every column are there
            gaps = draw(st.sets(st.integers(1, len(steps) - 1), max_size=len(steps) - 3))
            own[list(gaps), column] = np.nan
        times.append(begin + np.cumsum(steps))
        values.append(own)
    headers = tuple(name + unit for name, unit in zip(names, units, strict=True))
    return Made(tuple(names), headers, tuple(labels), tuple(times), tuple(values))


def read(source, made: Made) -> Problem:
    reading = read_observations(
        source, time="time (s)", value=list(made.headers), experiment="tube", derivative=[0] * len(made.headers)
        if len(made.headers) == 1 else dict.fromkeys(made.names, 0),
    )  # fmt: skip
    return Problem(reading.observations, Knowledge(units=dict(reading.units)))


def from_arrays(made: Made) -> Problem:
    states = list(made.names) if len(made.names) > 1 else ["u"]
    measured = [~np.all(np.isnan(v), axis=0) for v in made.values]
    assert all(map(np.all, measured))
    units = {"t": "s"} | {
        state: unit for state, header, name in zip(states, made.headers, made.names, strict=True)
        if (unit := UNITS[header.removeprefix(name)]) is not None
    }  # fmt: skip
    return Problem(observations_from_arrays(list(made.times), list(made.values), states=states), Knowledge(units=units))


def assert_same(one: Problem, other: Problem, by_name=False) -> None:
    assert one.states == other.states
    assert one.knowledge.units == other.knowledge.units
    ours, theirs = list(one.observations), list(other.observations)
    if by_name:
        ours, theirs = (sorted(side, key=lambda o: o.name) for side in (ours, theirs))
        assert [o.name for o in ours] == [o.name for o in theirs]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.columns == b.columns
        np.testing.assert_array_equal(a.t, b.t)
        np.testing.assert_array_equal(a.values, b.values)


def written(made: Made, delimiter: str, comma: bool, missing: str) -> str:
    def cell(x: object) -> str:
        if not isinstance(x, float):
            return str(x)
        return missing if np.isnan(x) else repr(x).replace(".", "," if comma else ".")

    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(made.frame.columns)
    writer.writerows([[cell(x) for x in row] for row in made.frame.itertuples(index=False)])
    return text.getvalue()


@given(tables(), st.sampled_from(",;\t|"), st.booleans(), st.sampled_from(["", "nan", "NA", "-"]))
@examples
def test_a_table_is_read_back_from_a_file(tmp_path, made, delimiter, comma, missing):
    file = tmp_path / "table.csv"
    file.write_text(written(made, delimiter, comma, missing), encoding="utf-8")
    problem = read(file, made)
    assert_same(problem, from_arrays(made))
    assert [o.name for o in problem.observations] == list(made.labels)


@given(tables())
@examples
def test_a_table_in_memory_is_the_same_as_its_arrays(made):
    expected = from_arrays(made)
    assert_same(read(made.frame, made), expected)
    assert_same(read(made.frame.to_dict("list"), made), expected)
    assert_same(read(made.frame.to_dict("records"), made), expected)


@given(tables(), st.randoms(use_true_random=False))
@examples
def test_rows_in_any_order_are_the_same_table(made, random):
    """The rows of the experiments are mixed; those of one are newest first, or as they were."""
    frame, back = made.frame, random.random() < 0.5
    order = list(range(len(frame)))
    random.shuffle(order)
    place, rows = dict.fromkeys(made.labels, 0), []
    own = {label: list(np.flatnonzero(frame["tube"] == label)[:: -1 if back else 1]) for label in made.labels}
    for k in order:
        label = frame["tube"][k]
        rows.append(own[label][place[label]])
        place[label] += 1
    assert_same(read(frame.iloc[rows], made), read(frame, made), by_name=True)


@given(st.integers(0, 99), st.integers(2, 3))  # a shuffle in some thousands looks like runs below each other
@examples
def test_rows_of_a_long_table_in_no_order_are_sorted(seed, n_experiments):
    rng = np.random.default_rng(seed)
    times = tuple(np.cumsum(rng.uniform(0.1, 1.0, 40)) for _ in range(n_experiments))
    values = tuple(rng.standard_normal((40, 2)) for _ in times)
    made = Made(("xa", "xb"), ("xa", "xb"), ("A1", "A2", "A3")[:n_experiments], times, values)
    shuffled = made.frame.iloc[rng.permutation(len(made.frame))]
    assert_same(read(shuffled, made), read(made.frame, made), by_name=True)
