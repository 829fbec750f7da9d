"""Forecasts after the last sample: what is left of correlated residuals."""

import numpy as np
import pytest
from tests.given_equations import fitted

from lgf.runs.forecast import Process, Series, forecast, process_of
from lgf.search.verdict import Reason, Trust

T = np.linspace(0.0, 10.0, 110)
SEEN = T <= 7.5


def drift(t, memory, rng):
    x = np.empty(len(t))
    x[0] = rng.standard_normal()
    for i, step in enumerate(np.diff(t), start=1):
        rho = np.exp(-step / memory)
        x[i] = rho * x[i - 1] + np.sqrt(1 - rho**2) * rng.standard_normal()
    return x


def covariance(a, b, process):
    return process.variance * np.exp(-np.abs(a[:, None] - b[None, :]) / process.correlation_time)


def test_the_level_is_the_conditional_mean_of_the_process():
    rng, t = np.random.default_rng(0), np.sort(np.random.default_rng(1).uniform(0.0, 9.0, 40))
    process, residuals = Process(3.0, 1.7), rng.standard_normal(40)
    inverse = np.linalg.solve(covariance(t, t, process) + np.eye(40), residuals)
    assert process.level(t, residuals) == pytest.approx(float((covariance(t[-1:], t, process) @ inverse)[0]))


def test_a_process_is_seen_in_correlated_residuals_only():
    rng = np.random.default_rng(3)
    white = [Series(T, rng.standard_normal(len(T))) for _ in range(8)]
    assert process_of(white) is None
    drifting = [Series(T, 3.0 * drift(T, 1.0, rng) + w.residuals) for w in white]
    process = process_of(drifting)
    assert process.variance == pytest.approx(9.0, rel=0.6)
    assert process.correlation_time == pytest.approx(1.0, rel=0.6)
    assert process_of([Series(np.zeros(0), np.zeros(0))]) is None


@pytest.fixture(scope="module")
def drifting():
    """A decay whose sensor drifts, fitted with the true equation: (model, samples)."""
    rng = np.random.default_rng(8)
    u = 5.0 * np.exp(-0.3 * T) + 0.5 * drift(T, 4.0, rng) + 0.02 * rng.standard_normal(len(T))
    return fitted(["u' = C*u"], T[SEEN], u[SEEN]), u


def test_a_forecast_continues_from_the_last_samples(drifting):
    model, u = drifting
    ahead = T[~SEEN]
    solution, predicted = model.run_.trajectory(0, ahead).u, model.predict(ahead)
    residual = u[SEEN][-1] - model.run_.trajectory().u[-1]
    assert predicted[0] - solution[0] == pytest.approx(residual, rel=0.3)
    assert np.all(np.diff(np.abs(predicted - solution)) < 0)
    np.testing.assert_array_equal(model.predict(T[SEEN]), model.run_.trajectory().u)
    band = model.predict(ahead, interval=0.9)
    np.testing.assert_allclose(band.values, predicted)
    assert np.all((band.lower < predicted) & (predicted < band.upper))


def test_a_new_experiment_is_continued_in_the_same_way(drifting):
    model, u = drifting
    ahead, early = T[T > 2.0], T <= 2.0
    shifted = u[early] + np.where(T[early] > 1.0, 0.8, 0.0)  # an offset that no initial value explains
    new = model.predict_new(ahead, T[early], shifted)
    far = model.predict_new(np.array([200.0]), T[early], shifted)
    assert abs(far[0]) < 1e-3
    started = forecast(model.run_, 0, ahead).u
    assert new[0] - started[0] > 0.2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_predictions_within_large_residuals_confirm_nothing():
    rng = np.random.default_rng(5)
    model = fitted(["u'' = C*u + C"], T, 20.0 + np.sin(2.0 * T) + 0.6 * rng.standard_normal(len(T)))
    assert model.run_.verdict.trust is Trust.INCONCLUSIVE
    assert "of the record's variation unexplained" in model.verdict_
    clear = fitted(["u'' = C*u + C"], T, 20.0 + np.sin(2.0 * T) + 0.1 * rng.standard_normal(len(T)))
    assert clear.verdict_.startswith("Confirmed")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_large_residuals_with_a_pattern_confirm_nothing():
    noise = np.random.default_rng(5).standard_normal(len(T))
    patterned = fitted(["u'' = C*u"], T, np.sin(2.0 * T) + 0.35 * np.sin(17.0 * T) + 0.02 * noise)
    assert patterned.run_.verdict.trust is Trust.INCONCLUSIVE
    assert "it has a pattern" in patterned.verdict_
    noisy = fitted(["u'' = C*u"], T, np.sin(2.0 * T) + 0.25 * noise)
    assert noisy.verdict_.startswith("Confirmed")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_random_walk_confirms_nothing():
    walk = 100.0 + np.cumsum(np.random.default_rng(2).standard_normal(150))
    model = fitted(["u' = C", "u' = C*u + C"], np.arange(150.0), walk)
    assert model.run_.verdict.trust is Trust.NO_LAW
    assert model.verdict_.startswith("No law found")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_long_random_walk_confirms_nothing_though_it_is_condensed():
    """Means of neighbours are no random walk any more, so the record is examined as it was measured."""
    for seed in range(3):
        walk = 100.0 + np.cumsum(np.random.default_rng(seed).standard_normal(4000))
        model = fitted(["u' = C", "u' = C*u + C"], np.arange(4000.0), walk)
        assert len(model.discovery_.problem.observations[0]) < 4000
        assert model.run_.verdict.trust is not Trust.CONFIRMED
        assert model.run_.verdict.reason in (Reason.NAIVE, Reason.MISSES)
