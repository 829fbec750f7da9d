"""The fit of the constants against closed forms and SciPy."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares, minimize

from lgf.data import Knowledge, Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitMethod, FitSettings
from lgf.fit.target_assembly import make_target
from lgf.smoothing.complete import complete
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve
from lgf.solver.trajectory import SolveStatus


def record(text, initial, t, measured=("u",), noise=0.05, seed=0, given=True, forcing=None, name=""):
    truth = solve(System.read(text), initial, t, forcing, rtol=1e-10)
    clean = np.column_stack([truth[column] for column in measured])
    values = clean + noise * clean.std(axis=0) * np.random.default_rng(seed).standard_normal(clean.shape)
    return Observation(t, values, measured, initial=initial if given else {}, name=name)


def target_of(*observations, order, inputs=None, method="auto"):
    inputs = {name: Forcing.from_formula(formula) for name, formula in (inputs or {}).items()}
    problem = Problem(observations, Knowledge(order=order, inputs=inputs))
    (frame,) = problem.frames
    completions = [complete(o, frame, method, problem.signals(e)) for e, o in enumerate(observations)]
    return make_target(problem, frame, completions)


T1 = np.linspace(0, 5, 60)


@pytest.fixture(scope="module")
def logistic():
    return target_of(record("u' = 2.1*u - 0.5*u^2", (0.13,), T1), order=1)


def test_agrees_with_scipy_least_squares(logistic):
    fit = fit_constants(Skeleton.read("u' = C*u + C*u^2"), logistic, FitSettings(tolerance=1e-8, rtol=1e-8))

    def residuals(c):
        solution = solve_ivp(
            lambda t, y: c[0] * y + c[1] * y**2, (0, 5), [0.13], t_eval=T1, rtol=1e-9, atol=1e-11, method="LSODA"
        )
        return (solution.y[0] - logistic.record.data[:, 0]) * np.sqrt(logistic.record.weight[:, 0])

    theirs = least_squares(residuals, [2.0, -0.4], xtol=1e-10, ftol=1e-10)
    np.testing.assert_allclose(fit.values, theirs.x, rtol=1e-3)
    assert fit.loss == pytest.approx(2 * theirs.cost, rel=1e-4)
    covariance = np.linalg.inv(theirs.jac.T @ theirs.jac) * 2 * theirs.cost / (len(T1) - 2)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=0.02)
    assert fit.status is SolveStatus.OK
    assert np.all(np.array(fit.errors) < np.abs(fit.values))


def test_errors_cover_the_truth_as_often_as_they_should():
    inside = []
    for seed in range(40):
        target = target_of(record("u' = -0.7*u + 0.3", (2.0,), T1, seed=seed), order=1, method="whittaker")
        fit = fit_constants(Skeleton.read("u' = C*u + C"), target)
        inside += [abs(v - truth) < 2 * e for v, truth, e in zip(fit.values, (-0.7, 0.3), fit.errors, strict=True)]
    assert np.mean(inside) > 0.85


@pytest.mark.parametrize("n", [60, 6000])
def test_more_samples_do_not_average_out_the_error_of_solutions(n):
    t = np.linspace(0.0, 4.0, n)
    target = target_of(Observation(t, 0.3 * np.exp(-0.5 * t)[:, None], ("u",), initial=[0.3]), order=1)
    fit = fit_constants(Skeleton.read("u' = C*u"), target)
    (error,) = fit.errors
    assert 1e-9 < error < 1e-8  # solutions are right to 3e-9
    assert abs(fit.values[0] + 0.5) < error


def test_the_error_of_solutions_grows_with_the_oscillations():
    t = np.linspace(0.0, 60.0, 60)
    pendulum = solve_ivp(lambda _, y: [y[1], -2 * np.sin(y[0])], (0, 60), [2, 0], "DOP853", t, rtol=1e-13, atol=1e-15)
    target = target_of(Observation(t, pendulum.y[:1].T, ("u",), initial=[2.0, 0.0]), order=2)
    fit = fit_constants(Skeleton.read("u'' = C*sin(u)"), target)
    assert fit.loss < 1e-14
    assert 1e-9 < abs(fit.values[0] + 2.0) < 2 * fit.errors[0] < 1e-7


def test_frequency_is_found_without_a_start():
    target = target_of(record("u' = 0.1137*u - 9.7*sin(1.32*t)", (12.3,), np.linspace(3.52, 21.87, 166)), order=1)
    fit = fit_constants(Skeleton.read("u' = C*u + C*sin(C*t)"), target)
    assert abs(fit.values[2]) == pytest.approx(1.32, abs=0.02)
    assert fit.loss < 1.3 * target.noise_loss


@pytest.mark.parametrize("measured", [("u''",), ("u'",), ("u", "u''")])
def test_duffing_from_other_measurements(measured):
    t = np.linspace(0, 30, 301)
    observation = record("5*u'' + u' + 7*u + 25*u^3 = F", (0, 1.5), t, measured, forcing="cos(2*t)")
    target = target_of(observation, order=2, inputs={"F": "cos(2*t)"})
    fit = fit_constants(Skeleton.read("u'' = C*u' + C*u + C*u^3 + C*F"), target)
    np.testing.assert_allclose(fit.values, [-0.2, -1.4, -5.0, 0.2], rtol=0.06)


def test_initial_state_is_fitted_when_it_is_not_given():
    observation = record("u'' + 0.4*u' + 4*u = 0", (1.0, 0.5), np.linspace(0, 10, 120), given=False)
    target = target_of(observation, order=2)
    fit = fit_constants(Skeleton.read("u'' = C*u' + C*u"), target)
    assert target.n_unknown == 2
    np.testing.assert_allclose(fit.initial[0], [1.0, 0.5], atol=0.05)
    np.testing.assert_allclose(fit.values, [-0.4, -4.0], rtol=0.05)


def test_experiments_share_constants_and_keep_their_own_starts_gaps_and_lengths():
    first = record("u' = 1.5*u - 0.3*u^2", (0.2,), np.linspace(0, 6, 50), given=False, name="a")
    t = np.sort(np.random.default_rng(1).uniform(0, 4, 30))
    second = record("u' = 1.5*u - 0.3*u^2", (8.0,), t, given=False, seed=1, name="b")
    holes = second.values.copy()
    holes[5:9] = np.nan
    second = Observation(second.t, holes, name="b")
    fit = fit_constants(Skeleton.read("u' = C*u + C*u^2"), target_of(first, second, order=1))
    np.testing.assert_allclose(fit.values, [1.5, -0.3], rtol=0.05)
    np.testing.assert_allclose(fit.initial[:, 0], [0.2, 8.0], rtol=0.2)


def test_bounds_are_respected(logistic):
    bounds = np.array([[0.0, 1.0], [-np.inf, np.inf]])
    fit = fit_constants(Skeleton.read("u' = C*u + C*u^2"), logistic, bounds=bounds)
    assert 0.0 <= fit.values[0] <= 1.0
    free = fit_constants(Skeleton.read("u' = C*u + C*u^2"), logistic)
    assert free.values[0] > 1.5
    assert free.loss < fit.loss


def test_constants_that_the_data_do_not_determine_have_large_errors(logistic):
    fit = fit_constants(Skeleton.read("u' = C*u + C*u^2 + C*u^2*exp(C*t)"), logistic)
    assert not np.all(np.array(fit.errors) < np.abs(fit.values))
    assert np.all(np.isfinite(fit.values))


def test_nelder_mead_equals_scipy_on_the_same_function(logistic):
    settings = FitSettings(method=FitMethod.NELDER_MEAD)
    ours = fit_constants(Skeleton.read("u' = C*u + C*u^2"), logistic, settings)

    def loss(c):
        equation = System(Skeleton.read("u' = C*u + C*u^2"), tuple(c))
        u = solve(equation, (0.13,), T1, rtol=settings.rtol, limit=logistic.record.limit, max_steps=1000).u
        error = np.where(np.isnan(u), np.inf, (u - logistic.record.data[:, 0]) ** 2)
        return float(np.sum(np.minimum(error, logistic.record.ceiling[0]) * logistic.record.weight[:, 0]))

    first = minimize(loss, [1.0, 1.0], method="Nelder-Mead", options={"maxiter": 50, "fatol": 0.1, "xatol": 0.5})
    second = minimize(loss, first.x, method="Nelder-Mead", options={"maxiter": 250, "fatol": 0.001, "xatol": 0.1})
    np.testing.assert_allclose(ours.values, second.x, rtol=1e-2, atol=1e-2)


def test_nelder_mead_goes_on_from_a_start(logistic):
    settings = FitSettings(method=FitMethod.NELDER_MEAD)
    skeleton = Skeleton.read("u' = C*u + C*u^2")
    anew = fit_constants(skeleton, logistic, settings)
    further = fit_constants(skeleton, logistic, settings, start=anew.values)
    assert further.loss <= anew.loss
    assert further.evaluations < anew.evaluations


def test_the_gate_of_the_paper_leaves_the_trajectory_unsolved(logistic):
    fit = fit_constants(Skeleton.read("u' = C"), logistic, FitSettings(gate=1e-6))
    assert fit.loss == np.inf
    assert fit.evaluations == 0


def test_same_input_same_output(logistic):
    skeleton = Skeleton.read("u' = C*u + C*sin(C*u)")
    assert fit_constants(skeleton, logistic).values == fit_constants(skeleton, logistic).values


HOSTILE = [
    "u' = C*exp(exp(C*u))", "u' = log(C - u)", "u' = C/(C - C*u)", "u' = C*u^C*exp(C*u)", "u' = C*exp(C*exp(C*t))",
    "u' = 1/(u - u)", "1/u' = C*u", "u'^2 = -1 - C^2", "sin(u') = 5", "u' = sqrt(-u)", "u' = C*1e300*u",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_skeletons_end_quietly(logistic, text):
    fit = fit_constants(Skeleton.read(text), logistic)
    assert not np.isnan(fit.loss)
    assert np.all(np.isfinite(fit.values))
    assert not np.isnan(fit.covariance).any()


def test_a_divisor_does_not_vanish_on_the_data():
    # The data are logistic; a pole between two samples would fit their noise better than any honest constant.
    skeleton = Skeleton.read("u' = C*u + C*u^2 + C*u/(C*u + 1)")
    for seed in range(6):
        target = target_of(record("u' = 0.91*u - 0.95*u^2", (0.13,), T1, seed=seed), order=1)
        fit = fit_constants(skeleton, target)
        assert np.all(1 + fit.values[3] * target.columns[0] >= 0.0199)


def test_a_common_divisor_of_a_linear_constant_does_not_vanish_either():
    target = target_of(record("u' = (0.5 - 0.4*u)/(0.3*u + 1)", (2.0,), T1), order=1)
    fit = fit_constants(Skeleton.read("u' = (C*u + C)/(C*u + 1)"), target)
    assert np.all(1 + fit.values[2] * target.columns[0] >= 0.0199)


def test_a_frequency_stays_below_what_the_samples_can_show():
    target = target_of(record("u' = -0.5*u", (1.0,), T1, noise=0.2), order=1)
    fit = fit_constants(Skeleton.read("u' = C*u + C*cos(C*t)"), target)
    assert abs(fit.values[2]) <= np.pi / 2 / (T1[1] - T1[0]) * (1 + 1e-12)


def test_the_users_bounds_win_over_those_of_the_data():
    target = target_of(record("u' = 0.91*u - 0.95*u^2", (0.13,), T1), order=1)
    bounds = np.array([[-9.0, 9.0], [-9.0, 9.0], [-9.0, 9.0], [-40.0, -30.0]])
    fit = fit_constants(Skeleton.read("u' = C*u + C*u^2 + C*u/(C*u + 1)"), target, bounds=bounds)
    assert -40.0 <= fit.values[3] <= -30.0


def test_a_frequency_is_not_lost_in_many_oscillations():
    t = np.arange(0, 160, 1 / 8)
    strike = Forcing.from_samples(t, np.where((t > 0.2) & (t < 0.7), np.sin((t - 0.2) / 0.5 * np.pi), 0.0))
    truth = solve(System.read("2*u'' + 0.05*u' + 80*u = F"), (0, 0), t, strike, rtol=1e-9)
    noise = np.random.default_rng(0).standard_normal(len(t))
    values = truth["u''"] + truth["u''"].std() * (0.03 * noise + 0.1)  # with the offset of a sensor
    target = target_of(Observation(t, values, "u''", inputs={"F": strike}), order=2)
    fit = fit_constants(Skeleton.read("u'' = C*u' + C*u + C*F"), target)
    np.testing.assert_allclose(fit.values, (-0.025, -40.0, 0.5), rtol=0.05)
    assert fit.values[1] == pytest.approx(-40.0, rel=2e-3)
