from importlib.resources import files

import numpy as np
import pytest
from benchmarks.problems import problems

from lgf.data import check, load_record, records
from lgf.expression.frame import Frame
from lgf.smoothing.complete import complete


@pytest.mark.parametrize("name", records())
def test_every_record_loads_and_passes_the_check(name):
    problem = load_record(name)
    assert all(f.severity != "error" for f in check(problem))
    folder = files("lgf.data").joinpath("records")
    if name != "duffing":
        for words in ("Permission is hereby granted", "BSD 3-Clause License"):
            assert words in folder.joinpath("LICENCES.md").read_text()
        licence = folder.joinpath(f"{name}.csv").read_text().splitlines()[0]
        assert any(words in licence for words in ("MIT", "BSD-3-Clause"))
    assert f"`{name}.csv`" in folder.joinpath("LICENCES.md").read_text()


def test_the_synthetic_record_is_the_problem_it_names():
    record, problem = load_record("duffing"), problems()["b3/duffing"].observe(0.05, 0)
    np.testing.assert_allclose(record.observations[0].values, problem.observations[0].values, rtol=1e-8)
    assert record.knowledge.describe() == problem.knowledge.describe()


def test_growth_is_logistic_in_every_well():
    rates = []
    for observation in load_record("growth").observations:
        trajectory = complete(observation, Frame((("u", 1),)), "whittaker").trajectory
        base, top = trajectory.u.min(), trajectory.u.max()
        share = (trajectory.u - base) / (top - base)
        inside = (share > 0.1) & (share < 0.9)
        rates.append(np.median(trajectory.du[inside] / (trajectory.u[inside] - base) / (1 - share[inside])))
    assert len(rates) == 12
    assert np.std(rates) < 0.3 * np.mean(rates)


def test_the_structure_rings_at_212_hertz():
    trajectory = complete(load_record("impact").observations[0], Frame((("u", 2),)), "gp").trajectory
    inner = slice(10, -10)
    columns = np.column_stack([trajectory.u, trajectory.du, np.ones_like(trajectory.u)])[inner]
    stiffness = -np.linalg.lstsq(columns, trajectory.d2u[inner], rcond=None)[0][0]
    assert np.sqrt(stiffness) / (2 * np.pi) == pytest.approx(212, rel=0.02)


def test_the_records_of_several_states_name_their_columns():
    hares, cold = load_record("hares"), load_record("cold")
    assert hares.states == ("hare", "lynx")
    assert hares.observations[0].window == (1900.0, 1920.0)
    assert cold.states == ("infected", "recovered")
    assert cold.observations[0].values[-1].tolist() == [0.0, 37.0]
