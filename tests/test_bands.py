"""Bands: against textbook formulas and against the full matrix of all unknowns."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from tests.given_equations import fitted

from lgf.data.noise import correlation_time
from lgf.errors import LgfError
from lgf.fit.sharing import Sharing, Varying
from lgf.runs.bands import Bands, quantiles
from lgf.runs.folder import read_run, write_run
from lgf.runs.posterior import make_posterior


@pytest.fixture(scope="module")
def line():
    rng = np.random.default_rng(3)
    t = np.linspace(0.0, 5.0, 40)
    u = 2.0 + 0.7 * t + 0.1 * rng.standard_normal(40)
    return fitted(["u' = C"], t, u), t, u


def test_the_band_of_a_line_is_that_of_linear_regression(line):
    model, t, u = line
    ahead = np.linspace(0.0, 8.0, 9)
    found = model.predict(ahead, interval=0.9)
    design, rows = np.column_stack([np.ones(40), t]), np.column_stack([np.ones(9), ahead])
    coefficients = np.linalg.lstsq(design, u, rcond=None)[0]
    variance = np.sum((u - design @ coefficients) ** 2) / 38
    spread = np.sqrt(variance * (1 + np.einsum("ij,jk,ik->i", rows, np.linalg.inv(design.T @ design), rows)))
    np.testing.assert_allclose(found.values, rows @ coefficients, rtol=1e-3)
    np.testing.assert_allclose(found.upper - found.lower, 2 * student.ppf(0.95, 38) * spread, rtol=5e-3)
    np.testing.assert_allclose(found.values, model.predict(ahead))


def test_a_wider_probability_has_a_wider_band_and_a_run_read_back_the_same(line, tmp_path):
    model, t, _ = line
    wide, narrow = model.predict(t, interval=0.99), model.predict(t, interval=0.5)
    assert np.all(wide.upper - wide.lower > 2 * (narrow.upper - narrow.lower))
    write_run(model.run_, tmp_path / "run")
    again = Bands(read_run(tmp_path / "run")).of_experiment(0, t, 0.99)
    np.testing.assert_allclose(again.upper.u, wide.upper, rtol=1e-9)


@pytest.mark.parametrize("interval", [0, 1, 1.5, -0.1, True, "0.9", float("nan")])
def test_an_interval_that_is_no_probability_is_refused(line, interval):
    with pytest.raises(LgfError, match="between 0 and 1"):
        line[0].predict([1.0], interval=interval)
    with pytest.raises(LgfError, match="between 0 and 1"):
        line[0].simulate([0.0, 1.0], [1.0], interval=interval)


def test_several_experiments_give_the_matrix_of_all_unknowns():
    rng = np.random.default_rng(2)
    t = np.linspace(0.0, 3.0, 25)
    starts, rate = (1.0, 2.0, 4.0), 0.6
    data = [a * np.exp(-rate * t) + 0.02 * rng.standard_normal(25) for a in starts]
    run = fitted(["u' = C*u"], [t] * 3, data).run_
    posterior = make_posterior(run, run.best)
    (k,), a = run.best.fit.values, run.best.fit.initial[:, 0]
    # unknowns: the rate, then the three starts
    J = np.zeros((75, 4))
    for e in range(3):
        rows = slice(25 * e, 25 * e + 25)
        J[rows, 0], J[rows, 1 + e] = a[e] * t * np.exp(k * t), np.exp(k * t)
    residual = np.concatenate([u - b * np.exp(k * t) for u, b in zip(data, a, strict=True)])
    covariance = np.linalg.inv(J.T @ J) * np.sum(residual**2) / 71 * posterior.correlation
    ahead = np.array([0.0, 2.0, 5.0])
    for e in range(3):
        row = np.zeros((3, 4))
        row[:, 0], row[:, 1 + e] = a[e] * ahead * np.exp(k * ahead), np.exp(k * ahead)
        _, variance = posterior.of_experiment(e, ahead)
        np.testing.assert_allclose(variance[:, 0], np.einsum("ij,jk,ik->i", row, covariance, row), rtol=2e-3)
    _, variance = posterior.of_simulation(np.array([0.0, 5.0]), np.array([3.0]), {})
    exact = (3.0 * 5.0 * np.exp(k * 5.0)) ** 2 * covariance[0, 0]
    np.testing.assert_allclose(variance[:, 0], [0.0, exact], rtol=2e-3, atol=1e-15)


def test_a_constant_that_varies_widens_the_band_of_a_new_experiment_only():
    rng = np.random.default_rng(3)
    t = np.linspace(0.0, 3.0, 25)
    data = [2.0 * np.exp(-k * t) + 0.01 * rng.standard_normal(25) for k in (0.5, 0.6, 0.7)]
    run = fitted(["u' = C*u"], [t] * 3, data, initial=[[2.0]] * 3).run_
    own = np.array([[-0.5], [-0.6], [-0.7]])
    sharing = Sharing(varying=(Varying(0, -0.6, 0.1),))
    varying = replace(run.best, fit=replace(run.best.fit, by_experiment=own, values=(-0.6,), sharing=sharing))
    posterior = make_posterior(run, varying)
    np.testing.assert_allclose(posterior.deviation, 0.1)
    assert posterior.noise[run.frame.columns[0]] < 0.015
    _, inside = posterior.of_experiment(0, np.array([1.0]))
    _, new = posterior.of_simulation(np.array([0.0, 1.0]), np.array([2.0]), {})
    assert np.sqrt(inside[0, 0]) < 0.01
    _, known = posterior.of_simulation(np.array([0.0, 1.0]), np.array([2.0]), {}, experiment=0)
    np.testing.assert_allclose(known[1, 0], inside[0, 0], rtol=1e-3)
    np.testing.assert_allclose(np.sqrt(new[1, 0]), 2.0 * np.exp(-0.6) * 0.1 * np.sqrt(4 / 3), rtol=1e-2)


def test_a_system_has_a_band_for_each_state_and_none_for_a_known_start():
    rng = np.random.default_rng(4)
    t = np.linspace(0.0, 6.0, 60)
    values = np.column_stack([np.sin(t), np.cos(t)]) + 0.05 * rng.standard_normal((60, 2))
    model = fitted(["x' = C*y; y' = C*x"], t, values, states=["x", "y"], initial={"x": 0.0, "y": 1.0})
    found = model.predict(t, interval=0.9)
    assert found.lower.shape == (60, 2)
    inside = (values >= found.lower) & (values <= found.upper)
    assert 0.8 < inside.mean() < 0.98
    band = model.simulate(t, {"x": 1.0, "y": 0.0}, interval=0.9)
    half = (band.upper["x"] - band.lower["x"])[0] / 2
    assert 0.06 < half < 0.11  # the noise alone: 1.65 times 0.05
    assert np.all((band.upper["x'"] - band.lower["x'"])[1:] > 0)


def test_equations_that_cannot_be_told_apart_share_the_band():
    rng = np.random.default_rng(5)
    t = np.linspace(0.0, 1.0, 30)
    u = np.exp(-0.3 * t) + 0.02 * rng.standard_normal(30)
    model = fitted(["u' = C*u", "u' = C*u^2"], t, u)
    assert len(model.run_.indistinguishable) == 2
    ahead = np.array([0.5, 6.0])
    bands = Bands(model.run_)
    weights = bands.mixture.weights
    assert weights[0] >= weights[1] > 0
    assert weights.sum() == pytest.approx(1.0)
    alone = Bands(replace(model.run_, indistinguishable=()))
    together, single = (b.of_experiment(0, ahead, 0.9) for b in (bands, alone))
    widths = (together.upper.u - together.lower.u) / (single.upper.u - single.lower.u)
    assert widths[0] == pytest.approx(1.0, abs=0.05)
    assert widths[1] > 1.2


def test_quantiles_of_a_mixture_are_those_of_its_distribution():
    means, deviations, weights = np.array([[0.0], [3.0]]), np.array([[1.0], [0.5]]), np.array([0.7, 0.3])
    low, high = quantiles(means, deviations, weights, 10_000_000, 0.9)
    for end, probability in ((low, 0.05), (high, 0.95)):
        below = 0.7 * norm.cdf(end[0]) + 0.3 * norm.cdf((end[0] - 3.0) / 0.5)
        assert below == pytest.approx(probability, abs=1e-6)
    means[1] = np.nan
    low, high = quantiles(means, deviations, weights, 10_000_000, 0.9)
    assert high[0] == pytest.approx(norm.ppf(0.95), abs=1e-4)
    assert np.isnan(quantiles(np.full((2, 1), np.nan), deviations, weights, 5, 0.9)[0][0])


def test_correlated_residuals_count_for_less():
    rng = np.random.default_rng(6)
    white = rng.standard_normal(400)
    slow = np.convolve(rng.standard_normal(409), np.ones(10) / 10, "valid")
    assert correlation_time([white]) == pytest.approx(1.0, abs=0.3)
    assert correlation_time([slow]) > 5


def test_noise_that_grows_with_the_signal_widens_the_band_there():
    rng = np.random.default_rng(9)
    t = np.linspace(0.0, 4.0, 400)
    clean = 5.0 * np.exp(-0.8 * t)
    u = clean + 0.02 * np.sqrt(1 + (2.0 * clean / np.sqrt(np.mean(clean**2))) ** 2) * rng.standard_normal(400)
    run = fitted(["u' = C*u"], t, u).run_
    growing, constant = (Bands(replace(run, growth=g)).of_experiment(0, t, 0.9) for g in (2.0, None))
    widths = growing.upper.u - growing.lower.u
    assert widths[0] > 3 * widths[-1]
    for half in (slice(0, 200), slice(200, 400)):
        inside = (u[half] >= growing.lower.u[half]) & (u[half] <= growing.upper.u[half])
        assert 0.84 < inside.mean() < 0.96
    late = (u[200:] >= constant.lower.u[200:]) & (u[200:] <= constant.upper.u[200:])
    assert late.mean() > 0.97
