"""The same search on a local Dask cluster: for a system, and with a worker that dies in the middle."""

import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest

from lgf import LatentGrammarFlow
from lgf.data import Knowledge, Observation, Problem
from lgf.equation.system import System
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.language.language import make_language
from lgf.search.evaluate import Evaluator
from lgf.search.loop import joblib_map
from lgf.search.proposers.basic import EnumerationProposer
from lgf.smoothing.complete import complete
from lgf.solver.solve import solve
from lgf.threads import Spread

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("client")
def test_the_search_for_a_system_gives_the_same_answer():
    t = np.linspace(0, 8, 60)
    truth = System.read("x' = 1.5*x - x*y; y' = x*y - 2*y")
    clean = solve(truth, {"x": 3.0, "y": 1.0}, t).values[:, :2]
    noisy = clean * (1.0 + 0.03 * np.random.default_rng(0).standard_normal(clean.shape))

    def answer(jobs):
        model = LatentGrammarFlow(max_evaluations=60, n_jobs=jobs).fit(t, noisy, states=["x", "y"])
        ranked = [model.run_.best, *model.run_.front, *model.run_.indistinguishable]
        return model.equation_, [(str(c.skeleton), c.fit.values, c.objective) for c in ranked]

    alone = answer(1)
    with joblib.parallel_config("dask"):
        assert answer(2) == alone


@pytest.mark.filterwarnings("default")
def test_a_killed_worker_does_not_change_the_result(client):
    t = np.linspace(0, 5, 60)
    truth = solve(System.read("u' = 2.1*u - 0.5*u^2"), (0.13,), t).u
    noisy = truth + 0.05 * truth.std() * np.random.default_rng(0).standard_normal(len(t))
    problem = Problem((Observation(t, noisy, initial=(0.13,)),), Knowledge(order=1))
    (frame,) = problem.frames
    target = make_target(problem, frame, [complete(problem.observations[0], frame)])
    evaluator = Evaluator({frame: target}, problem.knowledge)
    proposals = EnumerationProposer([make_language(load_grammar("standard"), problem, frame, target.ranges)]).ask(160)
    alone = joblib_map()(evaluator, proposals)
    victim = next(iter(client.run(os.getpid).values()))

    def kill():
        time.sleep(0.5)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with joblib.parallel_config("dask"):
        together = joblib_map(Spread(2))(evaluator, proposals)
    killer.join()
    assert [(str(c.skeleton), c.fit.values, c.objective) for c in together] == [
        (str(c.skeleton), c.fit.values, c.objective) for c in alone
    ]
