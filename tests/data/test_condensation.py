"""Long records: means where the noise allows it, every k-th sample where it does not, all where neither would do."""

import numpy as np
import pytest

from lgf.data import Knowledge, Observation, Problem
from lgf.data.condensation import condensation_sentence, condensed, condensed_observation
from lgf.solver.forcing import Forcing

T = np.linspace(0.0, 20.0, 20_000)


def noisy(signal, noise, seed=0):
    return signal + noise * np.random.default_rng(seed).standard_normal(signal.shape)


def test_short_records_are_the_same():
    problem = Problem((Observation(T[:2000], np.sin(T[:2000])),))
    assert condensed(problem) is problem
    assert condensation_sentence(problem) is None


def test_means_have_less_noise_and_no_bias_and_the_first_sample_stays():
    problem = Problem((Observation(T, noisy(np.sin(T), 0.05)),))
    (short,) = condensed(problem).observations
    assert 2000 <= len(short) <= 2002
    assert short.t[0] == T[0]
    assert short.values[0, 0] == problem.observations[0].values[0, 0]
    error = short.values[1:, 0] - np.sin(short.t[1:])
    assert np.std(error) == pytest.approx(0.05 / np.sqrt(10), rel=0.1)
    assert abs(np.mean(error)) < 4 * 0.05 / np.sqrt(len(T))
    assert short.weights[0, 0] / short.weights[1, 0] == pytest.approx(0.1)
    assert condensation_sentence(problem).startswith("The 20,000 samples were condensed to 2,001 as means")


def test_the_curvature_within_a_bin_is_taken_off_its_mean():
    def bias(curve):
        clean, noise = np.sin(14.0 * T), 0.003 * np.random.default_rng(1).standard_normal(T.shape)
        (short,) = condensed(Problem((Observation(T, curve(clean) + noise),))).observations
        assert len(short) < 3000
        error = short.values[3:-3, 0] - curve(np.sin(14.0 * short.t[3:-3]))
        along = np.sin(14.0 * short.t[3:-3])
        return float(error @ along / (along @ along)) / (0.003 / np.sqrt(10))  # in deviations of a mean

    assert abs(bias(lambda u: u)) < 0.1  # without it 0.9
    assert abs(bias(lambda u: 3.0 * u)) < 0.2


def test_samples_without_noise_are_thinned_because_means_would_be_biased():
    (short,) = condensed(Problem((Observation(T, np.sin(T)),))).observations
    assert len(short) == 2000
    np.testing.assert_array_equal(short.values[:, 0], np.sin(short.t))


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_fast_oscillations_stay_resolved(noise):
    t = np.linspace(0.0, 1000.0, 20_000)  # 20 samples an oscillation
    (short,) = condensed(Problem((Observation(t, noisy(np.sin(2 * np.pi * t), noise)),))).observations
    assert len(short) >= 8_000


def test_missing_samples_gaps_and_weights():
    values = noisy(np.column_stack([np.sin(T), np.cos(T)]), 0.05)
    values[::2, 1] = np.nan
    weights = np.ones_like(values)
    weights[10_000:, 0] = 0.25
    t = np.where(T > 10.0, T + 5.0, T)  # no samples from 10 to 15
    short = condensed_observation(Observation(t, values, ("x", "y"), weights=weights), 10)
    assert not np.any((short.t > 10.01) & (short.t < 14.99))
    inner = short.t[5:-5]
    rates = [short.weights[5:-5, j][part].mean() for j in (0, 1) for part in (inner < 9, inner > 16)]
    assert rates[1] / rates[0] == pytest.approx(0.25, rel=0.05)
    assert rates[2] / rates[0] == pytest.approx(0.5, rel=0.05)
    before = short.t < 10
    np.testing.assert_allclose(short.values[before][1:, 1], np.cos(short.t[before][1:]), atol=0.15)


def test_sampled_inputs_are_condensed_too():
    drive = Forcing.from_samples(T, np.sin(3 * T))
    record = Observation(T, noisy(np.sin(T), 0.05), inputs={"F": drive})
    short = condensed(Problem((record,), Knowledge(inputs={"G": drive})))
    for forcing in (short.observations[0].inputs["F"], short.knowledge.inputs["G"]):
        assert len(forcing.samples) < 2100
        assert forcing.samples[-1, 0] == T[-1]
        np.testing.assert_allclose(forcing.values(T), np.sin(3 * T), atol=0.01)


def test_the_number_of_samples_that_are_searched_may_be_smaller():
    problem = Problem((Observation(T, noisy(np.sin(T), 0.05)),))
    short = condensed(problem, 500)
    assert len(short.observations[0]) == pytest.approx(500, abs=3)
