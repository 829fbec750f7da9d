"""Records in units in which their numbers are large or small: the equation is that of the same record near 1."""

import numpy as np
import pytest

from lgf import LatentGrammarFlow

T = np.linspace(0.0, 10.0, 100)
NOISE = np.random.default_rng(0).standard_normal((100, 2))


def answer(t, u, **knowledge):
    return LatentGrammarFlow(max_evaluations=60, **knowledge).fit(t, u).equation_


@pytest.fixture(scope="module")
def logistic():
    u = 10 / (1 + 99 * np.exp(-0.8 * T)) * (1 + 0.01 * NOISE[:, 0])
    return u, answer(T, u, order=1)


@pytest.mark.parametrize(("size", "tick"), [(1e9, 1.0), (1e9, 3600.0), (1e-12, 1.0), (1.0, 1e-6), (1e-9, 1e-6)])
def test_constants_and_their_errors_have_the_unit_of_the_record(logistic, size, tick):
    u, near_one = logistic
    equation = answer(tick * T, size * u, order=1)
    assert str(equation.skeleton) == str(near_one.skeleton) == "u' = C*u + C*u^2"
    units = np.array([1.0, 1.0 / size]) / tick
    np.testing.assert_allclose(equation.values, near_one.values * units, rtol=1e-3)
    np.testing.assert_allclose(equation.errors, near_one.errors * units, rtol=0.05)


@pytest.mark.parametrize("frequency", [3e3, 4e4])
def test_an_oscillation_is_found_at_any_frequency(frequency):
    u = np.exp(-0.3 * T) * np.cos(2 * np.pi * T) + 0.02 * NOISE[:, 0]
    equation = answer(T / frequency, u)
    assert str(equation.skeleton) == "u'' = C*u' + C*u"
    np.testing.assert_allclose(equation.values, [-0.6 * frequency, -39.57 * frequency**2], rtol=0.1)


@pytest.mark.parametrize("sizes", [(2e5, 3e-5), (1e5, 1e-5), (1e8, 1e-4)])
def test_states_of_very_different_size(sizes):
    states = np.column_stack([np.cos(T), np.sin(T)]) + 0.01 * np.random.default_rng(1).standard_normal((100, 2))
    equation, (first, second) = answer(T, states * sizes), sizes
    assert str(equation.skeleton) == "x0' = C*x1\nx1' = C*x0"
    np.testing.assert_allclose(equation.values, [-first / second, second / first], rtol=0.02)
