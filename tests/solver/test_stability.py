"""Stability of known systems."""

import pytest

from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.solver.stability import StabilityKind, assess

B3 = {
    "pendulum": ("2*u'' + u' + 5*u = F", 60.0),
    "duffing": ("5*u'' + u' + 7*u + 25*u^3 = F", 30.0),
    "van der pol": ("u'' + 5*u'*(1 - u^2) + u = F", 30.0),
    "nonlinear damping 1": ("3*u'' + 1.3*u' + 2.5*u'^2 + 4*u = F", 30.0),
    "nonlinear damping 2": ("2*u'' + 2.7*u' + 3*u'^3 + 2*u = F", 30.0),
    "damped oscillator": ("1.2*u'' + 2.2*u' + 0.8*t*u' + 3*u = F", 30.0),
    "exponential stiffness": ("u'' + 1.2*u' + 3*exp(0.25*t)*u = F", 20.0),
}


def assessed(text, size=1.0, end=20.0):
    return assess(System(Skeleton.read(text), ()), size, (0.0, end))


@pytest.mark.parametrize("name", B3)
def test_the_systems_of_benchmark_3_are_stable(name):
    text, end = B3[name]
    assert assessed(text, 1.0, end).kind is StabilityKind.STABLE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u'' - u = 0", StabilityKind.UNSTABLE),
        ("u'' - 5*u'*(1 - u^2) + u = 0", StabilityKind.BOUNDED),  # Van der Pol with the textbook sign: a limit cycle
        ("u' = u - u^2", StabilityKind.STABLE),  # the other equilibrium attracts
        ("u' = u", StabilityKind.UNSTABLE),
        ("u'' = -64*u", StabilityKind.STABLE),  # bounded, on the imaginary axis
        ("u' = u*t", StabilityKind.UNSTABLE),
        ("u' = -u*t", StabilityKind.STABLE),
        ("u'' = 0.05*u' - u", StabilityKind.UNSTABLE),  # grows slowly, but without end
        ("u''^2 = 81*u^2", StabilityKind.STABLE),
        ("u' = 1 + u^2", StabilityKind.UNSTABLE),
        ("u' = sqrt(-1 - u^2)", StabilityKind.UNKNOWN),
    ],
)
def test_kinds_of_stability(text, expected):
    answer = assessed(text)
    assert answer.kind is expected, answer.reason
    assert answer.reason.endswith(".")


def test_chaos_is_not_called_unstable():
    lorenz = System.read("x' = 10*y - 10*x; y' = 28*x - x*z - y; z' = x*y - 2.6667*z")
    answer = assess(lorenz, (8.0, 9.0, 25.0), (0.0, 12.0), box=[(-16.0, 18.0), (-20.0, 24.0), (5.0, 43.0)])
    assert answer.kind is StabilityKind.BOUNDED, answer.reason


def test_a_pole_is_no_equilibrium():
    assert assessed("u' = 1/(u - 0.35)").kind is not StabilityKind.STABLE


@pytest.mark.parametrize(
    ("text", "expected", "why"),
    [
        ("x' = -x + 4*y; y' = -4*x - y", StabilityKind.STABLE, "equilibrium x = 0, y = 0 "),  # a focus
        ("x' = y; y' = x", StabilityKind.UNSTABLE, "(x = 0, y = 0: 1)"),  # a saddle
        ("x' = 2*y; y' = -2*x", StabilityKind.STABLE, "stayed bounded"),  # a centre
        ("x' = x + 4*y; y' = -4*x + y", StabilityKind.UNSTABLE, "x = 0, y = 0: 1"),
        ("x' = -x; y' = 0.1*y", StabilityKind.UNSTABLE, "x = 0, y = 0: 0.1"),  # the second state runs away
        ("x'' = -4*x - 0.5*x' + y; y' = -y", StabilityKind.STABLE, "largest -0.25"),
        ("x'' = -4*x + 0.5*x' + y; y' = -y", StabilityKind.UNSTABLE, "0.25"),
        ("x' = 1 - x*y; y' = x - y", StabilityKind.STABLE, "equilibrium x = 1, y = 1 "),
        ("x' = -x + F; y' = -y + x", StabilityKind.STABLE, "x = 0, y = 0"),  # inputs do not count
        ("x' = y + 1; y' = 1", StabilityKind.UNSTABLE, "no equilibrium"),
        ("x' = 1 - 4*x + x^2*y; y' = 3*x - x^2*y", StabilityKind.BOUNDED, "stayed bounded"),  # the Brusselator
        ("x' = -t*x; y' = -t*y", StabilityKind.STABLE, "time appears"),
        ("x' = -x; y' = t*y", StabilityKind.UNSTABLE, "time appears"),
    ],
)
def test_kinds_of_stability_of_systems(text, expected, why):
    answer = assessed(text)
    assert answer.kind is expected, answer.reason
    assert why in answer.reason


def test_the_kind_of_one_equation_is_that_on_its_first_order_form():
    for text, form in (
        ("u'' = -u' - 4*u", "x' = y; y' = -y - 4*x"),
        ("u'' = 5*u'*(1 - u^2) - u", "x' = y; y' = 5*y*(1 - x^2) - x"),
        ("u'' = u - u^3 - 0.2*u'", "x' = y; y' = x - x^3 - 0.2*y"),
    ):
        assert assessed(text).kind is assessed(form).kind


def test_sizes_of_variables_set_the_reach():
    # the only stable equilibrium is far out in y
    text = "x' = -x; y' = y*(1 - y/500)"
    assert assessed(text).kind is StabilityKind.UNSTABLE
    assert assessed(text, (1.0, 100.0)).kind is StabilityKind.STABLE


def test_populations_start_within_the_data():
    cycle = System.read("prey' = 1.8*prey - 0.9*prey*predator; predator' = 0.5*prey*predator - 1.5*predator")
    assert assess(cycle, (4.0, 2.0), (0.0, 20.0), box=[(1.0, 7.0), (0.5, 4.0)]).kind is StabilityKind.STABLE
    growing = System.read("prey' = 0.5*prey + 0.1*t; predator' = 0.5*predator")
    assert assess(growing, (4.0, 2.0), (0.0, 20.0), box=[(1.0, 7.0), (0.5, 4.0)]).kind is StabilityKind.UNSTABLE
