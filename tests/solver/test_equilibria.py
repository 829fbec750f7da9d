"""Equilibria of known systems, with the eigenvalues and kinds of textbooks."""

import numpy as np
import pytest

from lgf.equation.system import System
from lgf.solver.equilibria import equilibria, rates_at

KINDS = {
    "predator and prey": ("x' = 1.8*x - 1.5*x*y; y' = x*y - 3*y", {(0, 0): "saddle", (3, 1.2): "centre"}),
    "damped oscillator": ("u'' = -4*u - u'", {(0, 0): "stable focus"}),
    "overdamped oscillator": ("u'' = -u - 5*u'", {(0, 0): "stable node"}),
    "van der Pol": ("x' = y; y' = 0.5*y - x^2*y - x", {(0, 0): "unstable focus"}),
    "logistic growth": ("u' = 2*u - u^2", {(0,): "unstable node", (2,): "stable node"}),
    "competition": ("x' = x*(1 - x - 0.5*y); y' = y*(1 - y - 0.5*x)", {
        (0, 0): "unstable node", (1, 0): "saddle", (0, 1): "saddle", (2 / 3, 2 / 3): "stable node"}),
    "Lorenz": ("x' = 10*y - 10*x; y' = 28*x - y - x*z; z' = x*y - 8*z/3", {
        (0, 0, 0): "saddle", (72**0.5, 72**0.5, 27): "saddle focus", (-(72**0.5), -(72**0.5), 27): "saddle focus"}),
    "time occurs": ("u' = -u + t", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_equilibria_have_the_kinds_of_textbooks(name):
    text, expected = KINDS[name]
    found = {e.state: e.kind for e in equilibria(System.read(text), 3.0)}
    assert len(found) == len(expected)
    for state, kind in expected.items():
        nearest = min(found, key=lambda s: np.abs(np.subtract(s, state)).max())
        np.testing.assert_allclose(nearest, state, atol=1e-6)
        assert found[nearest] == kind


def test_eigenvalues_are_those_of_the_jacobian():
    saddle, centre = equilibria(System.read("x' = 1.8*x - 1.5*x*y; y' = x*y - 3*y"), 3.0)
    assert saddle.eigenvalues == pytest.approx((1.8, -3.0))
    assert centre.eigenvalues[0].imag == pytest.approx((1.8 * 3.0) ** 0.5)
    assert (saddle.stable, centre.stable) == (False, None)
    assert str(centre) == "x = 3, y = 1.2"


def test_a_line_of_equilibria_is_degenerate():
    found = equilibria(System.read("S' = -S*I; I' = S*I - I"), 1.0)
    assert len(found) > 10
    assert all(e.kind == "degenerate" for e in found)


def test_rates_are_the_right_hand_sides_without_inputs():
    system = System.read("x' = y + 5*F; y' = -x", {"F": "1"})
    np.testing.assert_allclose(rates_at(system, np.array([[1.0, 2.0], [3.0, 4.0]])), [[3.0, 4.0], [-1.0, -2.0]])
