"""Whether the part of time in an equation can be foreseen beyond the window."""

import pytest

from lgf.equation.system import System
from lgf.equation.time_dependence import foreseeable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u' = 0.9*u - 0.1*u^2", True),
        ("u' = -0.1*u + 3*exp(-1.5*t)", True),
        ("u' = -0.1*u + 3*exp(-0.01*t)", False),
        ("u' = -0.1*u + 3*exp(0.5*t)", False),
        ("u' = -0.1*u + 3*exp(-0.5*t^2)", False),
        ("u' = -0.1*u*sin(6.28*t)", True),
        ("u'' = -u + 0.2*cos(0.5*t)", False),
        ("u' = 0.2*t*u", False),
        ("u' = 0.2*exp(-2*t)*cos(0.1*t)", False),
        ("u' = -0.1*t*exp(-2*t)", False),
        ("u' = sin(u*t)", False),
    ],
)
def test_time_is_foreseeable_if_it_dies_out_or_repeats(text, expected):
    system = System.read(text)
    assert foreseeable(system.skeleton, system.values, (0.0, 10.0)) is expected
