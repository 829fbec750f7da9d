import csv
from pathlib import Path

import numpy as np
import pytest
from benchmarks.problems import problem_named, problems
from scipy.interpolate import CubicSpline

from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.solver.reference import solve_by_reference
from lgf.solver.trajectory import SolveStatus

ALL = problems()


def test_the_file_is_whole():
    counts = {bench: sum(name.startswith(bench) for name in ALL) for bench in ("b1", "b2", "b3", "b4")}
    assert counts == {"b1": 30, "b2": 10, "b3": 7, "b4": 10}
    assert [p.index for p in ALL.values()] == list(range(57))
    for problem in ALL.values():
        assert len(problem.initial) == problem.order
        assert len(problem.floor) == (2 if problem.order == 1 else 3)
        assert problem.true_equation().frame.orders == (problem.order,)


@pytest.mark.parametrize("name", ALL)
def test_the_true_equation_scores_zero(name):
    score = ALL[name].score(ALL[name].true_equation())
    assert score.complete
    assert max(score.u, score.du, score.d2u or 0.0) < 1e-7
    assert (score.d2u is None) == (ALL[name].order == 1)


def test_the_true_trajectory_satisfies_its_equation():
    truth = ALL["b4/inertial-beam"].truth()
    u, du, d2u, f = truth.u, truth.du, truth.d2u, truth.inputs["F"]
    left = d2u + 0.3 * du + 4 * u + 1.5 * u**2 * d2u + 1.5 * u * du**2
    np.testing.assert_allclose(left, f, atol=1e-9)
    np.testing.assert_allclose(CubicSpline(truth.t, u)(truth.t, 1), du, atol=0.02)


def test_noise_follows_the_protocol():
    problem = ALL["b3/duffing"]
    observed = problem.observe(noise=0.05, seed=3)
    clean = problem.truth().d2u
    draw = np.random.default_rng([problem.index, 3]).standard_normal(problem.samples)
    np.testing.assert_array_equal(observed.observations[0].values[:, 0], clean + 0.05 * clean.std() * draw)
    assert observed.observations[0].columns == (Variable("u", 2),)
    assert observed.observations[0].initial == {Variable("u"): 0.0, Variable("u", 1): 1.5}
    assert observed.knowledge.order == 2
    assert observed.knowledge.stable is True
    assert observed.forced is True
    assert ALL["b1/01"].observe().forced is None
    assert ALL["b2/ode5"].observe().knowledge.stable is False


def test_published_initial_states_spoil_even_the_truth():
    ode4, nlode2 = ALL["b2/ode4"], ALL["b2/nlode2"]
    assert ode4.score(ode4.true_equation(), ode4.published_initial).u == pytest.approx(0.25, abs=1e-4)
    failed = nlode2.score(nlode2.true_equation(), nlode2.published_initial)
    assert (failed.u, failed.du, failed.d2u, failed.complete) == (1.0, 1.0, 1.0, False)


def test_the_branch_of_the_data_is_followed():
    problem = ALL["b2/nlode4"]
    other = System.read("u'' = 9*u")
    assert problem.score(problem.true_equation()).u < 1e-7
    assert problem.score(other).u == 1.0


def test_scores_are_capped_and_wrong_orders_are_scored():
    problem = ALL["b1/02"]
    assert problem.score(System.read("u' = 5*u")).u == 1.0
    blown = problem.score(System.read("u' = u^3"))
    assert not blown.complete
    growth = problem.score(System.read("u'' = 0.23*u'"))
    assert growth.u < 1e-6
    swing = ALL["b2/ode5"].score(System.read("u' = 3*u + 2*exp(3*t)"))
    assert swing.u < 1e-6
    assert swing.d2u is not None
    assert swing.d2u < 1e-2


def test_published_figures_speak_of_these_problems():
    path = Path(__file__).parents[2] / "benchmarks" / "published.csv"
    with path.open() as file:
        rows = {(row["problem"], row["method"]): row for row in csv.DictReader(file)}
    assert {name for name, _ in rows} <= set(ALL)


@pytest.mark.parametrize(("text", "initial", "status"), [
    ("u' = u^2", (1.0,), SolveStatus.SINGULAR),
    ("u' = log(u) - 3", (0.5,), SolveStatus.SINGULAR),
    ("u' = 30*u", (1.0,), SolveStatus.BLEW_UP),
    ("u'' = u'/u", (0.0, 1.0), SolveStatus.SINGULAR),
])  # fmt: skip
def test_solves_that_end_early_have_a_status(text, initial, status):
    solved = solve_by_reference(System.read(text), initial, np.linspace(0, 3, 31))
    assert solved.status is not SolveStatus.OK
    assert np.isnan(solved.u[-1]) or solved.status is SolveStatus.BLEW_UP
    if status is SolveStatus.BLEW_UP:
        assert solved.status is status


def test_implicit_equations_are_solved_for_the_highest_derivative():
    t = np.linspace(0, 2, 41)
    solved = solve_by_reference(System.read("u' + sin(u') = u"), (1.0,), t, branch=(0.5, 0.0))
    assert solved.status is SolveStatus.OK
    np.testing.assert_allclose(solved.du + np.sin(solved.du), solved.u, atol=1e-9)
    np.testing.assert_allclose(CubicSpline(t, solved.u)(t, 1)[3:-3], solved.du[3:-3], rtol=1e-3)
    assert problem_named("b1/01") is ALL["b1/01"]
