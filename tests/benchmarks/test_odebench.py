"""The benchmark of systems: its truth, its scores."""

import numpy as np
import pytest
from benchmarks.odebench import all_systems, r2, structure_of, systems
from benchmarks.odebench_page import published, share_table
from benchmarks.odebench_protocol import judged, observe, true_states

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


def test_the_protocol_has_63_systems_multiplicative_noise_and_dropped_samples():
    assert [s.number for s in all_systems()] == list(range(1, 64))
    volterra = next(s for s in all_systems() if s.number == 27)
    clean = true_states(volterra)[0]
    assert clean.shape == (512, 2)
    (whole,) = observe(volterra, 0.05, 0.0, 0).observations
    relative = whole.values / clean - 1.0
    np.testing.assert_allclose(relative.std(axis=0), 0.05, rtol=0.15)
    (half,) = observe(volterra, 0.05, 0.5, 0).observations
    assert len(half) == 256
    np.testing.assert_array_equal(half.values, whole.values[np.isin(whole.t, half.t)])


def test_the_truth_scores_one_and_is_exact():
    for number in (4, 27):
        system = next(s for s in all_systems() if s.number == number)
        scores = judged(system, system.system)
        assert scores["exact"]
        assert (scores["r2"], scores["r2_other_start"]) == (pytest.approx(1.0), pytest.approx(1.0))
        blown = judged(system, System.read("; ".join(f"{v}' = {v}^2 + 9" for v in system.system.frame.names)))
        assert (blown["exact"], blown["r2"]) == (False, -1.0)


def test_published_shares_are_those_of_the_figures():
    shares = published()
    assert shares["reconstruction", "PySR", 0.0, 0.05] == 63.5
    assert shares["generalization", "ODEFormer (opt)", 0.0, 0.05] == 36.5
    assert "**lgf**" in share_table({**shares, ("reconstruction", "lgf", 0.0, 0.0): 98.4}, "reconstruction", 0.0)
