"""Stability of known systems."""

import pytest

from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.solver.stability import Verdict, assess

B3 = {
    "pendulum": ("2*u'' + u' + 5*u = F", 60.0),
    "duffing": ("5*u'' + u' + 7*u + 25*u^3 = F", 30.0),
    "van der pol": ("u'' + 5*u'*(1 - u^2) + u = F", 30.0),
    "nonlinear damping 1": ("3*u'' + 1.3*u' + 2.5*u'^2 + 4*u = F", 30.0),
    "nonlinear damping 2": ("2*u'' + 2.7*u' + 3*u'^3 + 2*u = F", 30.0),
    "damped oscillator": ("1.2*u'' + 2.2*u' + 0.8*t*u' + 3*u = F", 30.0),
    "exponential stiffness": ("u'' + 1.2*u' + 3*exp(0.25*t)*u = F", 20.0),
}


def verdict(text, size=1.0, end=20.0):
    return assess(System(Skeleton.read(text), ()), size, (0.0, end))


@pytest.mark.parametrize("name", B3)
def test_the_systems_of_benchmark_3_are_stable(name):
    text, end = B3[name]
    assert verdict(text, 1.0, end).verdict is Verdict.STABLE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u'' - u = 0", Verdict.UNSTABLE),
        ("u'' - 5*u'*(1 - u^2) + u = 0", Verdict.UNSTABLE),  # Van der Pol with the textbook sign
        ("u' = u - u^2", Verdict.STABLE),  # the other equilibrium attracts
        ("u' = u", Verdict.UNSTABLE),
        ("u'' = -64*u", Verdict.STABLE),  # bounded, on the imaginary axis
        ("u' = u*t", Verdict.UNSTABLE),
        ("u' = -u*t", Verdict.STABLE),
        ("u''^2 = 81*u^2", Verdict.STABLE),
        ("u' = 1 + u^2", Verdict.UNSTABLE),
        ("u' = sqrt(-1 - u^2)", Verdict.UNKNOWN),
    ],
)
def test_verdicts(text, expected):
    answer = verdict(text)
    assert answer.verdict is expected, answer.reason
    assert answer.reason.endswith(".")


def test_a_pole_is_no_equilibrium():
    assert verdict("u' = 1/(u - 0.35)").verdict is not Verdict.STABLE
