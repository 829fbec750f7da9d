"""The Kalman filter against exact filters, particles and the usual fit; its climb against the truth."""

import math

import numpy as np
import pytest
from scipy.linalg import expm

from lgf.data import Knowledge, Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.fit.constants import fit_constants
from lgf.fit.likelihood import can_be_disturbed, likeliest, undisturbed_length
from lgf.fit.settings import FitSettings, make_fitting, patient
from lgf.fit.target_assembly import make_target
from lgf.smoothing.complete import complete
from lgf.solver.kernels.integrator import OK
from lgf.solver.kernels.kalman import filter_record
from lgf.solver.solve import solve

PATIENT = patient(FitSettings())


def target_of(t, values, order=1, columns=("u",), **knowledge):
    problem = Problem(Observation(t, values, columns, **knowledge), Knowledge(order=order))
    (frame,) = problem.frames
    return make_target(problem, frame, [complete(problem.observations[0], frame, signals=problem.signals(0))])


def filtered(target, text, constants, start, sigma, noise, proportional=False, lead=0.0, neighbours=1):
    """(innovations [N, column], variances) of the first group; every group has the same parameters."""
    fitting = make_fitting(Skeleton.read(text, target.frame), target, FitSettings())
    columns, N = len(target.frame.columns), len(target.t)
    groups, states = neighbours, len(target.frame.states)
    v, s = np.zeros((groups, N, columns)), np.zeros((groups, N, columns))
    scale = np.zeros((groups, columns))
    scale[:, list(target.measured)] = noise / target.noise[list(target.measured)] / math.sqrt(target.power)
    status = filter_record(
        fitting.compiled.flow, target.record, 0, N, np.tile(np.array(constants, float), (groups, 1)),
        np.tile(np.array(start, float), (groups, 1)), np.full((groups, states), float(sigma)),
        np.full(states, proportional),
        np.array([target.frame.positions[Variable(name)] for name in target.frame.names]), scale, target.sizes, lead,
        1e-8, 4000, v, s,
    )  # fmt: skip
    assert status == OK
    np.testing.assert_array_equal(v[0], v[-1])
    return v[0], s[0]


def exact(t, y, A, D, start, noise, H, lead=0.0):
    """(innovations, variances) of the linear system dx = A x dt + dW with intensity D, observed through H."""
    n = len(A)

    def step(h):
        block = expm(np.block([[-A, D], [np.zeros((n, n)), A.T]]) * h)  # Van Loan
        transition = block[n:, n:].T
        return transition, transition @ block[:n, n:]

    m, P = np.array(start, float), step(lead)[1]
    innovations, variances = [], []
    for i in range(len(t)):
        if i:
            transition, Q = step(t[i] - t[i - 1])
            m, P = transition @ m, transition @ P @ transition.T + Q
        if np.isnan(y[i]):
            innovations.append(0.0)
            variances.append(0.0)
            continue
        S = float(H @ P @ H) + noise**2
        v, K = y[i] - float(H @ m), P @ H / S
        m, P = m + K * v, P - np.outer(K, H @ P)
        innovations.append(v)
        variances.append(S)
    return np.array(innovations), np.array(variances)


@pytest.mark.parametrize("neighbours", [1, 4])
def test_a_linear_equation_is_filtered_exactly(neighbours):
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0.0, 10.0, 80))
    y = np.exp(-0.3 * t) + 0.2 * rng.standard_normal(80)
    y[10:14] = np.nan
    v, s = filtered(target_of(t, y), "u' = C*u", [-0.7], [2.0], 0.5, 0.1, lead=0.2, neighbours=neighbours)
    expected = exact(t, y, np.array([[-0.7]]), np.array([[0.25]]), [2.0], 0.1, np.array([1.0]), lead=0.2)
    np.testing.assert_allclose(v[:, 0], expected[0], atol=2e-5)
    np.testing.assert_allclose(s[:, 0], expected[1], rtol=2e-5)
    assert not s[:, 1].any()


def test_an_oscillator_is_filtered_exactly_by_its_accelerations_too():
    rng = np.random.default_rng(1)
    t = np.linspace(0.0, 6.0, 90)
    y = np.column_stack([np.cos(3 * t), -9 * np.cos(3 * t)]) + 0.1 * rng.standard_normal((90, 2))
    A, D = np.array([[0.0, 1.0], [-9.0, -0.4]]), np.diag([0.0, 0.3**2])
    for columns, values, H in (("u",), y[:, 0], np.array([1.0, 0.0])), (("u''",), y[:, 1], A[1]):
        target = target_of(t, values, 2, tuple(Variable.read(c) for c in columns))
        v, s = filtered(target, "u'' = C*u + C*u'", [-9.0, -0.4], [1.0, 0.0], 0.3, 0.2)
        expected = exact(t, values, A, D, [1.0, 0.0], 0.2, H)
        (column,) = target.measured
        np.testing.assert_allclose(v[:, column], expected[0], atol=1e-4)
        np.testing.assert_allclose(s[:, column], expected[1], rtol=1e-4)


def test_growth_in_proportion_has_its_first_two_moments():
    """With dx = m x dt + s x dW the variance grows by 2 m P + s^2 (x^2 + P): exactly, until a sample is taken."""
    t = np.linspace(0.0, 1.0, 200)
    y = np.full(200, np.nan)
    y[[0, 1, 2, -1]] = 1.0
    target = target_of(t, y)
    _, s = filtered(target, "u' = C*u", [0.5], [1.0], 0.4, 1e6, proportional=True)  # such noise says nothing
    moments = math.exp((2 * 0.5 + 0.4**2) * 1.0) - math.exp(2 * 0.5 * 1.0)
    assert s[-1, 0] - 1e12 == pytest.approx(moments, rel=2e-3)


def test_the_filter_agrees_with_particles():
    rng, n = np.random.default_rng(5), 40_000
    t = np.linspace(0.0, 4.0, 41)
    y = np.tanh(t - 1.0) + 0.05 * rng.standard_normal(41)
    sigma, noise, parts = 0.3, 0.05, 10
    v, s = filtered(target_of(t, y), "u' = C*u + C*u^3", [1.0, -1.0], [y[0]], sigma, noise)
    by_filter = -0.5 * float(np.sum(np.log(2 * np.pi * s[:, 0]) + v[:, 0] ** 2 / s[:, 0]))
    x, total = np.full(n, y[0]), 0.0
    for i in range(len(t)):
        for _ in range(parts if i else 0):
            h = (t[i] - t[i - 1]) / parts
            x = x + (x - x**3) * h + sigma * math.sqrt(h) * rng.standard_normal(n)
        weights = np.exp(-0.5 * ((y[i] - x) / noise) ** 2) / (noise * math.sqrt(2 * np.pi))
        total += math.log(weights.mean())
        x = rng.choice(x, n, p=weights / weights.sum())
    assert by_filter == pytest.approx(total, abs=0.02 * len(t)), "it is exact for linear equations only"


def test_without_disturbances_it_is_the_usual_fit():
    rng = np.random.default_rng(2)
    t = np.linspace(0.0, 10.0, 60)
    u = solve(System.read("u' = 0.9*u - 0.09*u^2"), (0.5,), t).u + 0.1 * rng.standard_normal(60)
    target, skeleton = target_of(t, u), Skeleton.read("u' = C*u + C*u^2")
    fit = fit_constants(skeleton, target, PATIENT)
    noise = float(target.noise[0]) * math.sqrt(fit.loss * target.power / 60)
    v, s = filtered(target, str(skeleton), fit.values, fit.initial[0], 1e-9, noise)
    length = float(np.sum(np.log(s[:, 0] / target.signals_squared[0]) + v[:, 0] ** 2 / s[:, 0]))
    assert length == pytest.approx(undisturbed_length(target, fit.losses), abs=1e-3)
    fitting = make_fitting(skeleton, target, PATIENT)
    climbed = likeliest(fitting, [np.concatenate([fit.values, fit.initial[0]])], proportional=False)
    assert climbed.length == pytest.approx(undisturbed_length(target, fit.losses), abs=0.5)
    assert climbed.disturbances[0].deviation < 0.1
    np.testing.assert_allclose(climbed.x[:2], fit.values, rtol=0.02)


def walk_of(drift, spread, start, t, rng, parts=20):
    x, values = start, [start]
    for h in np.diff(t):
        for _ in range(parts):
            x += drift(x) * h / parts + spread(x) * math.sqrt(h / parts) * rng.standard_normal()
        values.append(x)
    return np.array(values)


@pytest.mark.parametrize(
    ("proportional", "drift", "spread", "text"),
    [
        (False, lambda x: -x, lambda x: 0.5, "u' = C*u"),
        (True, lambda x: x - 0.2 * x * x, lambda x: 0.2 * x, "u' = C*u + C*u^2"),
    ],
)
def test_drift_and_disturbances_are_recovered(proportional, drift, spread, text):
    t, found = np.linspace(0.0, 50.0, 400), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        u = walk_of(drift, spread, 1.0, t, rng) + 0.01 * rng.standard_normal(400)
        target = target_of(t, u)
        fitting = make_fitting(Skeleton.read(text), target, PATIENT)
        start = fitting.unknown_starts(np.zeros((1, fitting.layout.n_free)))[0]
        results = [likeliest(fitting, [start], kind) for kind in (False, True)]
        own, other = results[proportional], results[not proportional]
        assert own.length < other.length, "the right kind of disturbance is the likelier one"
        unit = own.innovations[own.variances > 0] / np.sqrt(own.variances[own.variances > 0])
        assert np.mean(unit**2) == pytest.approx(1.0, abs=0.02)
        assert abs(np.corrcoef(unit[1:], unit[:-1])[0, 1]) < 0.15
        found.append((own.x[0], own.disturbances[0].deviation, own.disturbances[0].error))
    rates, deviations, errors = np.array(found).T
    assert np.mean(rates) == pytest.approx(drift(1e-6) / 1e-6, rel=0.35)
    assert np.mean(deviations) == pytest.approx(spread(1.0), rel=0.1)
    assert np.all(np.abs(deviations - spread(1.0)) < 4 * errors)


def test_what_ends_early_or_is_implicit_has_no_likelihood():
    t = np.linspace(0.0, 4.0, 30)
    target = target_of(t, np.linspace(1.0, 2.0, 30))
    fitting = make_fitting(Skeleton.read("u' = C*u^2"), target, FitSettings())
    assert likeliest(fitting, [np.array([50.0, 1.0])], proportional=False) is None, "it blows up"
    implicit = make_fitting(Skeleton.read("u'^3 + u' = C*u"), target, FitSettings())
    assert not can_be_disturbed(implicit)
    assert can_be_disturbed(fitting)
