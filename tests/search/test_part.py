"""A plate of many wells is searched on a few of them, many oscillations on the first, and answered for all."""

import numpy as np
import pytest

from lgf import LatentGrammarFlow, System
from lgf.data import Observation, Problem
from lgf.data.representatives import part_of, representatives
from lgf.runs.journal import Journal
from lgf.runs.request import execute
from lgf.search.part import turning_points
from lgf.solver.solve import solve

T = np.linspace(0.0, 10.0, 20)
STARTS = np.random.default_rng(3).permutation(np.geomspace(0.1, 3.0, 24))


def wells(n):
    noise = np.random.default_rng(0).standard_normal((n, len(T)))
    return [5.0 / (1.0 + (5.0 / s - 1.0) * np.exp(-0.8 * T)) + 0.05 * e for s, e in zip(STARTS[:n], noise, strict=True)]


def test_representatives_are_spread_over_the_mean_values():
    problem = Problem([Observation(T, u) for u in wells(24)])
    chosen = representatives(problem, 8)
    ranks = np.argsort(np.argsort([u.mean() for u in wells(24)]))[chosen]
    assert sorted(ranks) == [0, 3, 7, 10, 13, 16, 20, 23]
    assert len(part_of(problem, chosen).observations) == 8
    assert representatives(problem, 24) == list(range(24))
    mixed = Problem([*problem.observations, Observation(T, wells(1)[0], "u'")])
    assert len(representatives(mixed, 8)) == 25, "experiments that measure other columns are not left out"


@pytest.fixture
def sizes(monkeypatch):
    """The numbers of experiments to which proposals were fitted, and whether as finalists."""
    seen = set()
    call = Journal.__call__

    def watched(self, evaluator, proposals):
        seen.update((t.n_experiments, evaluator.refining) for t in evaluator.targets.values())
        return call(self, evaluator, proposals)

    monkeypatch.setattr(Journal, "__call__", watched)
    return seen


def test_many_experiments_are_searched_on_a_few_and_the_finalists_fitted_to_all(sizes):
    model = LatentGrammarFlow(order=1, max_evaluations=40).fit([T] * 24, wells(24))
    assert sizes == {(8, False), (24, True)}
    assert str(model.equation_.skeleton) == "u' = C*u + C*u^2"
    assert model.run_.best.fit.values == pytest.approx([0.8, -0.16], rel=0.03)
    assert model.run_.best.fit.initial.shape == (24, 1)
    again = execute(model.run_.request, lines=model.run_.journal)
    assert again.journal == model.run_.journal, "the journal tells fits to a few experiments from fits to all"
    assert again.best.fit.values == model.run_.best.fit.values


def test_few_experiments_are_searched_as_they_are(sizes):
    LatentGrammarFlow(order=1, max_evaluations=16).fit([T] * 4, wells(4))
    assert sizes == {(4, False), (4, True)}


def test_a_long_chaotic_record_is_searched_on_its_first_oscillations():
    t = np.linspace(0.0, 25.0, 1200)
    truth = System.read("x' = 10*y - 10*x; y' = 28*x - y - x*z; z' = x*y - 2.667*z")
    clean = solve(truth, {"x": 1.0, "y": 1.0, "z": 20.0}, t, rtol=1e-10).values[:, :3]
    noisy = clean + 0.02 * clean.std(axis=0) * np.random.default_rng(1).standard_normal(clean.shape)
    lengths = set()
    call = Journal.__call__

    def watched(self, evaluator, proposals):
        lengths.update((len(target.t), evaluator.refining) for target in evaluator.targets.values())
        return call(self, evaluator, proposals)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "__call__", watched)
        model = LatentGrammarFlow(max_evaluations=40).fit(t, noisy, states=["x", "y", "z"])
    ((short, _),) = (pair for pair in lengths if not pair[1])
    assert 600 < short < 900
    assert (1200, True) in lengths
    assert str(model.equation_.skeleton).splitlines()[1:] == ["y' = C*x + C*y + C*x*z", "z' = C*z + C*x*y"]
    values = dict(zip(("x", "y", "xz"), model.run_.best.fit.values[-5:-2], strict=True))
    assert values == pytest.approx({"x": 28.0, "y": -1.0, "xz": -1.0}, rel=0.05)


def test_turning_points_are_those_of_large_swings():
    t = np.linspace(0.0, 20.0 * np.pi, 2000)
    assert len(turning_points(np.sin(t) + 0.05 * np.sin(40.0 * t), 0.3)) == 20
    assert turning_points(np.exp(-t), 0.1) == []
