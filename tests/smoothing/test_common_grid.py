import numpy as np
import pytest

from lgf.smoothing.common_grid import TAU, on_grid, smooth_records


@pytest.mark.parametrize("even", [True, False])
def test_sine_and_its_derivatives(even):
    rng = np.random.default_rng(0)
    inner = np.linspace(0, 1, 120)[1:-1] if even else np.sort(rng.uniform(0, 1, 118))
    tau = np.concatenate([[0.0], inner, [1.0]])
    window, w = 5.0, 3.0
    y = np.sin(w * window * tau) + 0.01 * rng.standard_normal((4, 120))
    coefficients, noise = smooth_records(tau, y)
    grid = on_grid(tau, coefficients, 0, 2, np.full(4, window), np.zeros((4, 2)))
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
    grid = on_grid(tau, coefficients, 2, 2, np.array([window]), np.array([[0.5, -1.0]]))
    t = window * TAU
    assert np.allclose(grid[0, 1], -1 + 2 * t + 3 * t**2, atol=1e-5)
    assert np.allclose(grid[0, 0], 0.5 - t + t**2 + t**3, atol=1e-5)
