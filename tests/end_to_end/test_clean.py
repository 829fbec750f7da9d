"""Textbook systems without noise, nothing given: the right terms and no others."""

import numpy as np
import pytest
from benchmarks.clean import problems, record

from lgf import LatentGrammarFlow, System
from lgf.data.noise import rounding_error

PROBLEMS = {problem["name"]: problem for problem in problems()}


@pytest.mark.parametrize(
    ("name", "digits", "evaluations"),
    [("decay", None, 60), ("harmonic", None, 60), ("harmonic", 4, 60), ("logistic", 3, 60), ("duffing", None, 150)],
)
def test_the_right_terms_are_found_without_noise(name, digits, evaluations):
    problem = PROBLEMS[name]
    model = LatentGrammarFlow(max_evaluations=evaluations).fit(*record(problem, digits))
    truth = System.read(problem["equation"])
    assert model.equation_.skeleton.structure == truth.skeleton.structure
    assert sorted(model.equation_.values) == pytest.approx(sorted(truth.values), rel=1e-5 if digits is None else 1e-2)


def test_constants_of_clean_data_are_not_more_certain_than_the_solver():
    t, u = record(PROBLEMS["decay"])
    model = LatentGrammarFlow(order=1, max_evaluations=20).fit(t, u)
    (value,), (error,) = model.equation_.values, model.equation_.errors
    assert abs(value + 1) < 3 * error < 1e-4


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
def test_rounding_is_seen(scale):
    y = np.random.default_rng(0).uniform(1.0, 9.0, 200)
    assert rounding_error(scale * y) == 0.0
    digits = np.array([float(f"{v:.3g}") for v in scale * y])
    assert rounding_error(digits) == pytest.approx(0.01 * scale / np.sqrt(12), rel=1e-6)
    spread = np.concatenate([np.round(y, 2), np.round(y / 100, 2)])  # fixed decimals
    assert rounding_error(spread) == pytest.approx(0.01 / np.sqrt(12), rel=1e-6)
    assert rounding_error(np.zeros(3)) == 0.0
