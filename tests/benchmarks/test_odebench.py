"""The benchmark of systems: its truth, its scores."""

import numpy as np
import pytest
from benchmarks.odebench import r2, structure_of, systems

from lgf.equation.system import System


def test_forty_systems_of_two_to_four_states_solve_from_both_starts():
    assert len(systems()) == 40
    assert {len(s.rhs) for s in systems()} == {2, 3, 4}
    volterra = next(s for s in systems() if s.number == 27)
    assert [states.shape for states in volterra.truth] == [(150, 2), (150, 2)]
    np.testing.assert_array_equal(volterra.truth[1][0], volterra.starts[1])


def test_noise_is_relative_to_each_state_and_differs_by_seed():
    volterra = next(s for s in systems() if s.number == 27)
    (one,), (other,) = (volterra.observe(0.05, seed).observations for seed in (0, 1))
    spread = (one.values - volterra.truth[0]).std(axis=0) / volterra.truth[0].std(axis=0)
    np.testing.assert_allclose(spread, 0.05, rtol=0.3)
    assert not np.array_equal(one.values, other.values)


def test_terms_are_compared_after_expansion():
    found = System.read("x0' = 9.9*(x1 - x0); x1' = 28*x0 - x1 - 1.01*x0*x2; x2' = x0*x1 - 2.6*x2")
    lorenz = next(s for s in systems() if s.number == 56)
    assert structure_of(found) in lorenz.structures
    assert structure_of(System.read("x0' = x1; x1' = x0; x2' = x0")) not in lorenz.structures


def test_r2_weighs_the_states_by_their_variance():
    truth = np.column_stack([10 * np.sin(np.arange(50.0)), np.cos(np.arange(50.0))])
    assert r2(truth, truth) == 1.0
    assert r2(truth, None) == -1.0
    wrong = truth.copy()
    wrong[:, 1] = 0.0
    assert r2(truth, wrong) == pytest.approx(1 - np.sum(truth[:, 1] ** 2) / np.sum((truth - truth.mean(0)) ** 2))
