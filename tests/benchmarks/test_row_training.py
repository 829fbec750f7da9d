"""Simulated systems, and what is learned on them about right-hand sides."""

import numpy as np
import pytest
from benchmarks.row_training import RowExamples, RowRecipe, RowSettings, fit_ranking, train_rows
from benchmarks.simulated_systems import simulate_system

from benchmarks import row_training
from lgf.errors import LgfError
from lgf.grammar import load_grammar
from lgf.search.systems.row_evidence import N_FEATURES
from lgf.settings.toml_tables import described, read_table
from lgf.solver.solve import solve


def test_a_simulated_system_depends_on_its_generator_only_and_solves():
    grammar = load_grammar("systems")
    one, again = (simulate_system(grammar, np.random.default_rng(5)) for _ in range(2))
    assert one.system == again.system
    (observation,) = one.problem.observations
    values = np.array(observation.values)
    assert np.array_equal(values, again.problem.observations[0].values)
    clean = solve(one.system, values[0].tolist(), observation.t).values[:, : values.shape[1]]
    assert np.all(np.isfinite(values))
    assert clean.shape == values.shape
    assert len(one.rows) == values.shape[1] >= 2


def test_weights_of_made_choices_are_found():
    rng = np.random.default_rng(0)
    weights = np.zeros(N_FEATURES)
    weights[[1, 4, 9]] = 2.0, -1.5, 1.0
    sizes = rng.integers(5, 30, 600)
    features = rng.normal(size=(sizes.sum(), N_FEATURES))
    places = []
    for own in np.split(features, np.cumsum(sizes)[:-1]):
        chances = np.exp(own @ weights)
        places.append(rng.choice(len(own), p=chances / chances.sum()))
    ranking = fit_ranking(RowExamples(features, features[:, 0], sizes, np.array(places)))
    assert np.abs(ranking.weights / ranking.deviation - weights).max() < 0.3


def test_a_training_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(row_training, "_CHUNK", 1)
    monkeypatch.setattr(row_training, "_HELD_OUT", 0.4)
    recipe = RowRecipe("tiny", "systems", rows=RowSettings(systems=3))
    train_rows(recipe, tmp_path / "whole")

    def interrupt(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_rows(recipe, tmp_path / "parts", progress=interrupt)
    train_rows(recipe, tmp_path / "parts", resume=True)
    whole, parts = ((tmp_path / name / "rows.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts
    assert {p.name for p in (tmp_path / "parts").iterdir()} == {"rows.safetensors", "times.json"}


def test_a_grammar_of_one_state_is_refused(tmp_path):
    with pytest.raises(LgfError, match="is not one of systems"):
        train_rows(RowRecipe("x", "standard"), tmp_path / "out")


def test_the_recipe_of_the_package_is_sound(pytestconfig):
    file = pytestconfig.rootpath / "recipes" / "systems.toml"
    assert described(RowRecipe, read_table(file), file.name).rows.systems >= 100
