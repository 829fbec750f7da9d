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


@pytest.mark.parametrize(
    ("text", "expected", "why"),
    [
        ("x' = -x + 4*y; y' = -4*x - y", Verdict.STABLE, "equilibrium x = 0, y = 0 "),  # a focus
        ("x' = y; y' = x", Verdict.UNSTABLE, "(x = 0, y = 0: 1)"),  # a saddle
        ("x' = 2*y; y' = -2*x", Verdict.STABLE, "stayed bounded"),  # a centre
        ("x' = x + 4*y; y' = -4*x + y", Verdict.UNSTABLE, "x = 0, y = 0: 1"),
        ("x' = -x; y' = 0.1*y", Verdict.UNSTABLE, "x = 0, y = 0: 0.1"),  # the second state runs away
        ("x'' = -4*x - 0.5*x' + y; y' = -y", Verdict.STABLE, "largest -0.25"),
        ("x'' = -4*x + 0.5*x' + y; y' = -y", Verdict.UNSTABLE, "0.25"),
        ("x' = 1 - x*y; y' = x - y", Verdict.STABLE, "equilibrium x = 1, y = 1 "),
        ("x' = -x + F; y' = -y + x", Verdict.STABLE, "x = 0, y = 0"),  # inputs do not count
        ("x' = y + 1; y' = 1", Verdict.UNSTABLE, "no equilibrium"),
        ("x' = -t*x; y' = -t*y", Verdict.STABLE, "time appears"),
        ("x' = -x; y' = t*y", Verdict.UNSTABLE, "time appears"),
    ],
)
def test_verdicts_on_two_states(text, expected, why):
    answer = verdict(text)
    assert answer.verdict is expected, answer.reason
    assert why in answer.reason


def test_the_verdict_on_one_equation_is_that_on_its_first_order_form():
    for text, form in (
        ("u'' = -u' - 4*u", "x' = y; y' = -y - 4*x"),
        ("u'' = 5*u'*(1 - u^2) - u", "x' = y; y' = 5*y*(1 - x^2) - x"),
        ("u'' = u - u^3 - 0.2*u'", "x' = y; y' = x - x^3 - 0.2*y"),
    ):
        assert verdict(text).verdict is verdict(form).verdict


def test_sizes_of_variables_set_the_reach():
    # the only stable equilibrium is far out in y
    text = "x' = -x; y' = y*(1 - y/500)"
    assert verdict(text).verdict is Verdict.UNSTABLE
    assert verdict(text, (1.0, 100.0)).verdict is Verdict.STABLE


def test_populations_start_within_the_data():
    cycle = System.read("prey' = 1.8*prey - 0.9*prey*predator; predator' = 0.5*prey*predator - 1.5*predator")
    assert assess(cycle, (4.0, 2.0), (0.0, 20.0), box=[(1.0, 7.0), (0.5, 4.0)]).verdict is Verdict.STABLE
    growing = System.read("prey' = 0.5*prey + 0.1*t; predator' = 0.5*predator")
    assert assess(growing, (4.0, 2.0), (0.0, 20.0), box=[(1.0, 7.0), (0.5, 4.0)]).verdict is Verdict.UNSTABLE
