"""The integrator against SciPy and closed forms."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.solver.forcing import Forcing
from lgf.solver.reference import solve_by_reference
from lgf.solver.solve import solve
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
    np.testing.assert_allclose(ours.inputs["F"], np.cos(2 * t))


def test_irregular_times_and_a_third_order_equation():
    t = np.sort(np.random.default_rng(0).uniform(0, 5, 60))
    ours = solve(equation("u''' = -u'' - 2*u' - u"), (1, 0, 0), t)
    theirs = solve_ivp(
        lambda t, y: [y[1], y[2], -y[2] - 2 * y[1] - y[0]], (t[0], t[-1]), [1, 0, 0], t_eval=t, rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(ours.values[:, :3], theirs.y.T, atol=1e-7)


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
    ours = solve(equation("x0' = 1.1*x0 - 0.4*x0*x1; x1' = 0.1*x0*x1 - 0.4*x1"), (10, 10), t)
    theirs = solve_ivp(
        lambda t, y: [1.1 * y[0] - 0.4 * y[0] * y[1], 0.1 * y[0] * y[1] - 0.4 * y[1]],
        (0, 15), [10, 10], t_eval=t, rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    assert ours.status is SolveStatus.OK
    np.testing.assert_allclose(ours.values[:, :2], theirs.y.T, rtol=1e-5)
    np.testing.assert_allclose(ours["x1'"], 0.1 * ours["x0"] * ours["x1"] - 0.4 * ours["x1"], rtol=1e-9)


OSCILLATORS = System.read(
    "x'' = -0.3*x' - 4*x + 1.5*y + F; y'' = 1.5*x - 0.2*y' - 3*y + 0.5*F*y",
)
START = {"y": 0.5, "x": 1.0, "y'": -1.0, "x'": 0.2}


def test_two_coupled_oscillators_under_a_sampled_input():
    t = np.linspace(0, 12, 121)
    sampled = Forcing.from_samples(np.linspace(0, 12, 601), np.cos(1.7 * np.linspace(0, 12, 601)))
    ours = solve(OSCILLATORS, START, t, sampled)

    def rhs(t, y):
        force = float(sampled.values(t))
        x, vx, z, vz = y
        return [vx, -0.3 * vx - 4 * x + 1.5 * z + force, vz, 1.5 * x - 0.2 * vz - 3 * z + 0.5 * force * z]

    theirs = solve_ivp(rhs, (0, 12), [1.0, 0.2, 0.5, -1.0], t_eval=t, rtol=1e-10, atol=1e-12, method="DOP853")
    assert ours.status is SolveStatus.OK
    assert [str(v) for v in ours.variables] == ["x", "x'", "y", "y'", "x''", "y''"]
    np.testing.assert_allclose(ours.values[:, :4], theirs.y.T, atol=1e-6)
    highest = np.array([rhs(*point) for point in zip(t, theirs.y.T, strict=True)])[:, [1, 3]]
    np.testing.assert_allclose(ours.values[:, 4:], highest, atol=1e-5)
    np.testing.assert_array_equal(ours.inputs["F"], sampled.values(t))
    judge = solve_by_reference(OSCILLATORS, START, t, {"F": sampled})
    assert judge.variables == ours.variables
    np.testing.assert_allclose(judge.values, ours.values, atol=1e-5)


def test_the_order_of_the_equations_in_the_text_does_not_matter():
    t = np.linspace(0, 4, 41)
    turned = System.read("\n".join(reversed(OSCILLATORS.text.splitlines())), frame=OSCILLATORS.frame)
    assert turned == OSCILLATORS
    free = System.read("\n".join(reversed(OSCILLATORS.text.splitlines())))
    ours, other = (solve(s, START, t, "sin(t)") for s in (OSCILLATORS, free))
    assert free.frame.names == ("y", "x")
    np.testing.assert_allclose(ours["x'"], other["x'"], atol=1e-6)
    np.testing.assert_allclose(ours["y''"], other["y''"], atol=1e-5)


def test_a_formula_and_samples_drive_two_inputs():
    t = np.linspace(0, 8, 81)
    frame = Frame((("prey", 1), ("predator", 1)), ("food", "hunters"))
    system = System.read(
        "prey' = -0.5*prey + 0.3*predator + food; predator' = -predator + prey*hunters", {"food": "2*sin(t)"}, frame
    )
    hunters = Forcing.from_samples(t, 0.4 + 0.2 * np.cos(t))
    ours = solve(system, (1, 2), t, {"hunters": hunters})
    theirs = solve_ivp(
        lambda t, y: [-0.5 * y[0] + 0.3 * y[1] + 2 * np.sin(t), -y[1] + y[0] * (0.4 + 0.2 * np.cos(t))],
        (0, 8), [1, 2], t_eval=t, rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(ours.values[:, :2], theirs.y.T, atol=1e-5)
    np.testing.assert_allclose(ours.inputs["food"], 2 * np.sin(t))
    np.testing.assert_allclose(ours.inputs["hunters"], hunters.values(t))
    judge = solve_by_reference(system, (1, 2), t, {"hunters": hunters})
    np.testing.assert_allclose(judge.values, ours.values, atol=1e-6)
    # a given input replaces the formula that the system has
    both = solve(system, (1, 2), t, {"hunters": hunters, "food": "2*cos(t)"})
    np.testing.assert_allclose(both.inputs["food"], 2 * np.cos(t))
    assert np.abs(both["prey"] - ours["prey"]).max() > 0.1


def test_a_blow_up_of_the_second_state_only_is_noticed():
    t = np.linspace(0, 5, 51)
    system = equation("x'' = -x; y' = y^2")
    ours = solve(system, (1.0, 0.0, 0.5), t)
    assert ours.status is SolveStatus.BLEW_UP
    reached = ~np.isnan(ours["y"])
    assert t[reached][-1] == pytest.approx(2.0, abs=0.11)
    np.testing.assert_array_equal(np.isnan(ours["x"]), ~reached)
    np.testing.assert_allclose(ours["x"][reached], np.cos(t[reached]), atol=1e-6)
    np.testing.assert_allclose(ours["y"][t < 1.9], 1 / (2 - t[t < 1.9]), rtol=1e-5)
    assert solve_by_reference(system, (1.0, 0.0, 0.5), t).status is not SolveStatus.OK
    # each variable has a limit of its own
    growing = equation("x'' = -x; y' = y")
    assert solve(growing, (1.0, 0.0, 0.5), t, limit=(1.1, 1.1, 10.0)).status is SolveStatus.BLEW_UP
    assert solve(growing, (1.0, 0.0, 0.5), t, limit=(1.1, 1.1, 100.0)).status is SolveStatus.OK


def test_a_small_state_beside_a_large_one_is_as_exact():
    t = np.linspace(0, 5, 101)
    ours = solve(equation("x' = 0.001*x; y'' = -400*y"), (1e6, 1e-3, 0), t)
    np.testing.assert_allclose(ours["y"], 1e-3 * np.cos(20 * t), atol=1e-8)
    np.testing.assert_allclose(ours["x"], 1e6 * np.exp(0.001 * t), rtol=1e-7)


def test_derivatives_of_one_state_drive_another():
    t = np.linspace(0, 3, 61)
    ours = solve(System.read("x' = -x + 2*y''; y''' = -y'"), {"x": 0, "y": 0, "y'": 1, "y''": 0}, t)
    # y = sin t, so x' + x = -2 sin t
    np.testing.assert_allclose(ours["y"], np.sin(t), atol=1e-7)
    np.testing.assert_allclose(ours["x"], np.cos(t) - np.sin(t) - np.exp(-t), atol=1e-7)


TWO_INPUTS = System.read("x' = -x + a; y' = -y + b", frame=Frame((("x", 1), ("y", 1)), ("a", "b")))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: solve(equation("u'' = -u"), (1,), [0, 1]), "1 values but the system has 2; give u, u'"),
        (lambda: solve(equation("x' = y; y' = -x"), {"x": 1}, [0, 1]), "gives x; give x, y"),
        (lambda: solve(equation("x' = y; y' = -x"), {"x": 1, "z": 1}, [0, 1]), "'z' is not known here"),
        (lambda: solve(equation("x' = y; y' = -x"), {"x": 1, "y'": 1}, [0, 1]), "give x, y"),
        (lambda: solve(equation("u' = -u + F"), (1,), [0, 1]), "'F' but it was not given"),
        (lambda: solve(TWO_INPUTS, (1, 1), [0, 1], "cos(t)"), "a, b; say which one"),
        (lambda: solve(TWO_INPUTS, (1, 1), [0, 1], {"a": "cos(t)"}), "'b' but it was not given"),
        (lambda: solve(equation("u' = -u"), (1,), [0, 0]), "increasing"),
    ],
)
def test_wrong_calls_say_what_to_do(call, sentence):
    with pytest.raises(LgfError, match=sentence):
        call()


def test_a_pulse_of_a_sampled_input_is_not_missed_from_rest():
    t = np.linspace(0, 100, 401)
    pulse = Forcing.from_samples(t, np.where((t > 50) & (t < 50.6), 1.0, 0.0))
    ours = solve(equation("u'' + 0.1*u' + u = F"), (0, 0), t, pulse)
    theirs = solve_by_reference(equation("u'' + 0.1*u' + u = F"), (0, 0), t, pulse)
    assert np.max(np.abs(ours["u"])) > 0.4
    np.testing.assert_allclose(ours["u"], theirs["u"], atol=1e-5)


def test_the_reference_follows_a_rough_input():
    t = np.linspace(0, 100, 1000)
    noise = Forcing.from_samples(t, np.random.default_rng(0).standard_normal(1000))
    theirs = solve_by_reference(equation("0.04*u'' + 0.02*u' + u = F"), (0, 0), t, noise)
    assert theirs.status is SolveStatus.OK
    np.testing.assert_allclose(
        solve(equation("0.04*u'' + 0.02*u' + u = F"), (0, 0), t, noise)["u"], theirs["u"], atol=1e-5
    )


@pytest.mark.parametrize("size", [1e16, 1e-16])
def test_a_solution_of_any_size_is_solved(size):
    t = np.linspace(0.0, 4.0, 5)
    system = System.read("u' = -0.5*u")
    for trajectory in (solve(system, (size,), t), solve_by_reference(system, (size,), t)):
        assert trajectory.status is SolveStatus.OK
        if size > 1:  # the absolute tolerance of the reference is 1e-11
            np.testing.assert_allclose(trajectory.u, size * np.exp(-0.5 * t), rtol=1e-6)
