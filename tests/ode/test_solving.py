"""The integrator against SciPy and closed forms."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.parse import read_expression
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve, solve_system
from lgf.solver.trajectory import SolveStatus


def equation(text):
    return System(Skeleton.read(text), ())


def test_duffing_agrees_with_scipy():
    t = np.linspace(0, 30, 301)
    ours = solve(equation("5*u'' + u' + 7*u + 25*u^3 = F"), (0, 1.5), t, "cos(2*t)")
    theirs = solve_ivp(
        lambda t, y: [y[1], (np.cos(2 * t) - y[1] - 7 * y[0] - 25 * y[0] ** 3) / 5],
        (0, 30), [0, 1.5], t_eval=t, rtol=1e-11, atol=1e-13, method="DOP853",
    )  # fmt: skip
    np.testing.assert_allclose(ours.u, theirs.y[0], atol=1e-6)
    np.testing.assert_allclose(ours.du, theirs.y[1], atol=1e-6)
    np.testing.assert_allclose(ours.forcing, np.cos(2 * t))


def test_irregular_times_and_a_third_order_equation():
    t = np.sort(np.random.default_rng(0).uniform(0, 5, 60))
    ours = solve(equation("u''' = -u'' - 2*u' - u"), (1, 0, 0), t)
    theirs = solve_ivp(
        lambda t, y: [y[1], y[2], -y[2] - 2 * y[1] - y[0]], (t[0], t[-1]), [1, 0, 0], t_eval=t, rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(ours.states[:, :3], theirs.y.T, atol=1e-7)


def test_sampled_forcing_agrees_with_its_formula():
    t = np.linspace(0, 20, 401)
    samples = Forcing.from_samples(t, np.cos(2 * t))
    by_table = solve(equation("u'' + 0.5*u' + 3*u = F"), (1, 0), t, samples)
    by_formula = solve(equation("u'' + 0.5*u' + 3*u = F"), (1, 0), t, "cos(2*t)")
    np.testing.assert_allclose(by_table.u, by_formula.u, atol=1e-5)


def test_two_branches_are_followed_through_every_zero():
    t = np.linspace(0, 2 * np.pi, 189)
    for tolerance, bound in ((1e-8, 1e-5), (1e-5, 1e-3)):
        solution = solve(equation("u''^2 - 81*u^2 = 0"), (0, 3), t, rtol=tolerance)
        assert solution.status is SolveStatus.OK
        np.testing.assert_allclose(solution.u, np.sin(3 * t), atol=bound)
        np.testing.assert_allclose(solution.d2u, -9 * np.sin(3 * t), atol=10 * bound)


def test_the_other_branch_can_be_asked_for():
    t = np.linspace(0, 1, 21)
    solution = solve(equation("u''^2 - 81*u^2 = 0"), (0, 3), t, branch=(0.0, 27.0))
    np.testing.assert_allclose(solution.u, np.sinh(3 * t), rtol=1e-6, atol=1e-8)


def test_an_equation_that_is_no_polynomial_in_its_highest_derivative():
    t = np.linspace(0, 2, 41)
    # u' + exp(u') = u + 1 + t has the slope of Newton's root at every point; SciPy's fsolve is the twin.
    from scipy.optimize import brentq

    ours = solve(equation("u' + exp(u') = u + 1 + t"), (0.5,), t)
    theirs = solve_ivp(
        lambda t, y: [brentq(lambda w: w + np.exp(w) - y[0] - 1 - t, -50, 50)],
        (0, 2), [0.5], t_eval=t, rtol=1e-9, atol=1e-11,
    )  # fmt: skip
    np.testing.assert_allclose(ours.u, theirs.y[0], rtol=1e-6)


def test_a_start_at_zero_over_zero_is_left():
    t = np.linspace(0, 2.5, 126)
    solution = solve(equation("u''*u' - 2.1*u - 9.84*t^3 = 0"), (0, 0), t)
    assert solution.status is SolveStatus.OK
    np.testing.assert_allclose(solution.u, 0.8 * t**3, atol=0.01)


@pytest.mark.parametrize(
    ("text", "initial", "status"),
    [
        ("u' = u^2", (1.0,), SolveStatus.BLEW_UP),
        ("u' = -1/u", (1.0,), SolveStatus.SINGULAR),
        ("u' = -1 - sqrt(u)", (1.0,), SolveStatus.OUTSIDE_DOMAIN),
        ("u'' = -1e12*u", (1.0, 0.0), SolveStatus.OUT_OF_STEPS),
    ],
)
def test_failures_have_names(text, initial, status):
    solution = solve(equation(text), initial, np.linspace(0, 5, 51), max_steps=5000)
    assert solution.status is status
    assert np.isnan(solution.u[-1])
    assert solution.u[0] == initial[0]


def test_a_system_of_two_states():
    t = np.linspace(0, 15, 151)
    states, status = solve_system([read_expression("1.1*x0 - 0.4*x0*x1"), read_expression("0.1*x0*x1 - 0.4*x1")],
                                  (10, 10), t)  # fmt: skip
    theirs = solve_ivp(
        lambda t, y: [1.1 * y[0] - 0.4 * y[0] * y[1], 0.1 * y[0] * y[1] - 0.4 * y[1]],
        (0, 15), [10, 10], t_eval=t, rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    assert status is SolveStatus.OK
    np.testing.assert_allclose(states, theirs.y.T, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: solve(equation("u'' = -u"), (1,), [0, 1]), "order 2"),
        (lambda: solve(equation("u' = -u + F"), (1,), [0, 1]), "none was given"),
        (lambda: solve(equation("u' = -u"), (1,), [0, 0]), "increasing"),
    ],
)
def test_wrong_calls_say_what_to_do(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
