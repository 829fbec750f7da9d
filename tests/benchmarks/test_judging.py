import io
import json

import numpy as np
import pytest
from benchmarks.floor import WITHIN, counts, fit_truth, summarise
from benchmarks.judging import judged
from benchmarks.peers import exchange
from benchmarks.peers.asking import ask, names, task_for
from benchmarks.problems import problem_named
from benchmarks.scipy_path import fit_by_scipy
from benchmarks.speed_fit import target_of

from lgf.equation.system import System
from lgf.fit.constants import fit_constants


def test_the_truth_is_exact_and_generalises():
    problem = problem_named("b1/03")
    facts = judged(problem, problem.true_equation())
    assert facts["exact"]
    assert max(facts["errors"]) < 1e-6
    assert facts["other_start"]["r2"] == pytest.approx(1.0)


def test_a_wrong_equation_is_told_from_the_truth():
    problem = problem_named("b1/03")
    facts = judged(problem, System.read("u' = 0.2*u"))
    assert not facts["exact"]
    assert facts["errors"][0] == 1.0
    assert facts["other_start"]["r2"] == -1.0


def test_an_operator_counts_as_its_explicit_form():
    problem = problem_named("b3/duffing")
    explicit = System.read("u'' = 0.2*F - 0.2*u' - 1.4*u - 5*u^3", problem.formulas)
    facts = judged(problem, explicit)
    assert facts["exact"]
    assert max(facts["errors"]) < 1e-6


def test_a_square_counts_as_its_branch_whichever_way_it_is_written():
    problem = problem_named("b2/nlode4")
    for text in ("u'' = -9*u", "u''^2 - 81*u^2 = 0"):
        assert judged(problem, System.read(text))["exact"], text
    assert not judged(problem, System.read("u'' = -9*u - 0.1"))["exact"]


def test_inconsistent_published_starts_are_scored_beside():
    problem = problem_named("b2/ode4")
    facts = judged(problem, problem.true_equation())
    assert facts["errors_published_start"][0] > 0.2 > 1e-6 > facts["errors"][0]


def test_the_fitted_truth_comes_near_the_floor():
    problem = problem_named("b1/05")
    summary = summarise(problem, [fit_truth(problem, seed) for seed in range(2)])
    assert summary["ratio"] < 3.0
    assert summary["worst_u"] >= summary["errors"][0]
    assert counts([summary]) == {key: (int(summary["ratio"] <= WITHIN), 1) for key in ("b1-b3", "all")}


def test_the_slow_twin_reaches_the_same_loss():
    problem = problem_named("b1/02")
    data = problem.observe()
    skeleton = problem.true_equation().skeleton
    slow, fast = fit_by_scipy(skeleton, data), fit_constants(skeleton, target_of(data, 1))
    assert slow.loss == pytest.approx(fast.loss, rel=0.2)
    assert fast.loss <= slow.loss * 1.001


def test_a_peer_reads_the_task_that_was_written(monkeypatch, capsys):
    problem = problem_named("b3/duffing")
    data = problem.observe()
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(task_for(data, 2, seed=4))))
    seen = []

    def solve(task):
        seen.append(task)
        return "2.0*x1 + X3^2 - x0", 7.0

    exchange.answer(solve)
    (task,) = seen
    assert task.names == ("t", "u", "u'", "F")
    assert np.array_equal(task.values, data.observations[0].values[:, 0])
    assert np.allclose(task.X[:, 3], np.cos(2 * task.X[:, 0]))
    assert (task.measured, task.order, task.seed, task.initial) == (2, 2, 4, problem.initial)
    answer = json.loads(capsys.readouterr().out)
    assert answer["objective"] == 7.0
    assert System.read(answer["equation"], problem.formulas).text == System.read("u'' = 2*u + F^2 - t").text


def test_every_peer_has_a_module_and_pinned_requirements():
    assert set(names()) == {"eggp", "gplearn", "pyoperon", "pysindy"}


def test_a_peer_that_fails_answers_nothing_and_says_why(monkeypatch, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr("benchmarks.peers.asking.interpreter", lambda name: broken)
    problem = problem_named("b1/02")
    answer = ask("gplearn", problem.observe(), 1)
    assert answer["failure"] == "it is broken"
    assert answer["equation"] == "u' = 0"
    assert problem.score(System.read(answer["equation"])).u > 0.1
