"""Which states of a system need equations of second order."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgf.data import Knowledge, Problem, check, observations_from_arrays
from lgf.data.orders import of_second_order, with_likely_orders

NOISE = 0.03  # of the deviation


def _problem(right, start, stop, n, columns, known=None, noise=NOISE):
    t = np.linspace(0.0, stop, n)
    solution = solve_ivp(right, (0.0, stop), start, t_eval=t, rtol=1e-9, atol=1e-11).y[columns].T
    noisy = solution + noise * solution.std(axis=0) * np.random.default_rng(0).normal(size=solution.shape)
    return Problem(observations_from_arrays(t, noisy), known or Knowledge())


def _masses(stiffness, damping):
    stiffness = np.array(stiffness)
    n = len(stiffness)
    return lambda t, y: np.r_[y[n:], -stiffness @ y[:n] - damping * y[n:]]


TWO_MASSES = _masses([[6, -2], [-2, 2]], 0.1), [1, 0, 0, 0], 15.0, 300, [0, 1]
SECOND = {
    "two masses": TWO_MASSES,
    "three masses": (_masses([[2, -1, 0], [-1, 2, -1], [0, -1, 1]], 0.05), [1, 0, 0, 0, 0, 0], 30.0, 400, [0, 1, 2]),
    "stiffening springs": (
        lambda t, y: [
            y[2], y[3], -1.5 * y[0] - 2 * y[0] ** 3 + 0.5 * y[1] - 0.05 * y[2],
            -1.5 * y[1] - 2 * y[1] ** 3 + 0.5 * y[0] - 0.05 * y[3],
        ],
        [1, -0.3, 0, 0], 20.0, 400, [0, 1],
    ),
}  # fmt: skip
FIRST = {
    "predator and prey": (
        lambda t, y: [y[0] - 0.4 * y[0] * y[1], 0.2 * y[0] * y[1] - 0.8 * y[1]], [5, 1], 20.0, 200, [0, 1],
    ),
    "Lorenz": (
        lambda t, y: [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]],
        [1, 1, 20], 20.0, 2000, [0, 1, 2],
    ),
    "an angle beside its rate": (
        lambda t, y: [y[1], -9.81 * np.sin(y[0]) - 0.1 * y[1]], [2.8, 0], 10.0, 300, [0, 1],
    ),
    "driven by the seasons": (
        lambda t, y: [-0.3 * y[0] + np.cos(t), -0.2 * y[1] + 0.3 * np.sin(1.7 * t)], [1, 1], 30.0, 300, [0, 1],
    ),
    "two reactions": (lambda t, y: [-0.4 * y[0], 0.4 * y[0] - 0.15 * y[1]], [1, 0], 25.0, 60, [0, 1]),
}  # fmt: skip


@pytest.mark.parametrize("case", SECOND.values(), ids=SECOND.keys())
def test_positions_of_masses_need_second_order(case):
    problem = _problem(*case)
    assert of_second_order(problem) == problem.states
    likely = with_likely_orders(problem)
    assert likely.frames[0].orders == (2,) * len(problem.states)
    assert not any("order" in sentence for sentence in likely.knowledge.describe()), "nobody said so"


@pytest.mark.parametrize("case", FIRST.values(), ids=FIRST.keys())
def test_states_whose_rates_they_determine_do_not(case):
    problem = _problem(*case)
    assert of_second_order(problem) == ()
    assert with_likely_orders(problem) is problem


def test_known_orders_stay_and_contradictions_are_told():
    free = _problem(*TWO_MASSES)
    assert any("second-order equations are used for x0 and x1" in f.sentence for f in check(free))
    first = _problem(*TWO_MASSES, known=Knowledge(order=1))
    assert with_likely_orders(first) is first
    said = [f.sentence for f in check(first) if f.severity == "warning"]
    assert said == ["x0' and x1' are not determined by the states; leave the order open, or set it to 2 for x0 and x1."]
    one = with_likely_orders(_problem(*TWO_MASSES, known=Knowledge(order={"x0": 1})))
    assert one.frames[0].orders == (1, 2)


def test_noise_is_not_taken_for_order():
    values = np.random.default_rng(0).normal(size=(200, 2))
    assert of_second_order(Problem(observations_from_arrays(np.linspace(0, 10, 200), values))) == ()
