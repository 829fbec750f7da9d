import numpy as np
import pytest
from scipy.interpolate import BSpline

from lgf.smoothing.b_spline import b_splines
from lgf.smoothing.common_grid import TAU, grid_basis, on_grid, smooth_records


@pytest.mark.parametrize("even", [True, False])
def test_sine_and_its_derivatives(even):
    rng = np.random.default_rng(0)
    inner = np.linspace(0, 1, 120)[1:-1] if even else np.sort(rng.uniform(0, 1, 118))
    tau = np.concatenate([[0.0], inner, [1.0]])
    window, w = 5.0, 3.0
    y = np.sin(w * window * tau) + 0.01 * rng.standard_normal((4, 120))
    coefficients, noise = smooth_records(tau, y)
    grid = on_grid(tau, coefficients, 0, 2, np.full(4, window), np.zeros((4, 2)), noise)
    t = window * TAU
    inside = slice(16, -16)
    assert np.abs(grid[:, 0] - np.sin(w * t)).max() < 0.03
    assert np.abs(grid[:, 1] - w * np.cos(w * t))[:, inside].max() < 0.15
    assert np.abs(grid[:, 2] + w**2 * np.sin(w * t))[:, inside].max() < 2.5
    assert np.all((noise > 0.007) & (noise < 0.013))


def test_acceleration_is_integrated_from_the_initial_values():
    tau, window = np.linspace(0, 1, 200), 4.0
    t = window * tau
    coefficients, _ = smooth_records(tau, (2.0 + 6.0 * t)[None])
    grid = on_grid(tau, coefficients, 2, 2, np.array([window]), np.array([[0.5, -1.0]]), np.zeros(1))
    t = window * TAU
    assert np.allclose(grid[0, 1], -1 + 2 * t + 3 * t**2, atol=1e-5)
    assert np.allclose(grid[0, 0], 0.5 - t + t**2 + t**3, atol=1e-5)


@pytest.mark.parametrize("derivative", [-2, -1, 0, 1, 2, 3])
def test_b_splines_are_those_of_scipy(derivative):
    degree, sites = 5, np.linspace(0, 1, 9) ** 1.5
    knots = np.concatenate([np.zeros(degree), sites, np.ones(degree)])
    spline = BSpline(knots, np.eye(len(knots) - degree - 1), degree)
    x = np.linspace(0, 1, 57)
    expected = spline.antiderivative(-derivative)(x) if derivative < 0 else spline(x, derivative)
    np.testing.assert_allclose(b_splines(x, knots, degree, derivative), expected, atol=1e-9 * np.abs(expected).max())


def test_penalties_do_not_drown_in_rounding_on_short_records():
    few, many = (grid_basis(np.linspace(0, 1, n)).penalties for n in (40, 400))
    assert few[2] < 1.0  # parabolas are free
    np.testing.assert_allclose(few[3:8], many[3:8], rtol=0.5)


def test_the_noise_of_an_acceleration_does_not_drift_away():
    """Twice integrated, 5 % of noise would be several times as large as the state."""
    rng = np.random.default_rng(2)
    tau, window = np.linspace(0, 1, 601), 60.0
    t = window * tau
    y = -4.0 * np.sin(2.0 * t)
    coefficients, noise = smooth_records(tau, y + 0.05 * y.std() * rng.standard_normal((20, 601)))
    initial = np.broadcast_to([0.0, 2.0], (20, 2))
    window_of = np.full(20, window)
    drifting = on_grid(tau, coefficients, 2, 2, window_of, initial, np.zeros(20))
    steady = on_grid(tau, coefficients, 2, 2, window_of, initial, noise)
    truth = np.sin(2.0 * window * TAU)
    errors = [np.sqrt(np.mean((x[:, 0] - truth) ** 2)) / truth.std() for x in (drifting, steady)]
    assert errors[0] > 2.0
    assert errors[1] < 0.25
    assert np.sqrt(np.mean((steady[:, 1] - 2.0 * np.cos(2.0 * window * TAU)) ** 2)) < 0.1
    assert np.array_equal(steady[:, 2], drifting[:, 2])
