"""Constants that vary by experiment."""

import numpy as np
import pytest

from lgf.data import Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.fit.constants import fit_constants
from lgf.fit.sharing import Sharing, Varying, layout_of
from lgf.fit.target_assembly import make_target
from lgf.smoothing.complete import complete

RATES = (0.4, 0.7, 1.1)


def _target(observations, frame):
    problem = Problem(observations)
    return make_target(problem, frame, [complete(o, frame) for o in observations])


def _decays(noise=0.002):
    rng = np.random.default_rng(5)
    t = np.linspace(0.0, 3.0, 40)
    return tuple(
        Observation(t, 2.0 * np.exp(-k * t) + 1.5 + noise * rng.standard_normal(len(t)), name=f"{k}") for k in RATES
    )


def test_a_constant_that_varies_is_found_for_each_experiment():
    skeleton = Skeleton.read("u' = C*u + C")
    target = _target(_decays(), skeleton.frame)
    # u' = -k (u - 1.5): the constant term differs too, so both vary
    common = fit_constants(skeleton, target)
    fit = fit_constants(skeleton, target, sharing=Sharing((Varying(0), Varying(1))))
    assert fit.loss < 0.05 * common.loss
    assert fit.by_experiment[:, 0] == pytest.approx([-k for k in RATES], rel=0.02)
    assert fit.by_experiment[:, 1] == pytest.approx([1.5 * k for k in RATES], rel=0.02)
    assert fit.values[0] == pytest.approx(-np.mean(RATES), rel=0.02)
    assert np.all(common.by_experiment == common.values)


def test_a_prior_draws_a_constant_to_its_mean():
    skeleton = Skeleton.read("u' = C*u + C")
    target = _target(_decays(0.05), skeleton.frame)
    free = fit_constants(skeleton, target, sharing=Sharing((Varying(1),)))
    drawn = fit_constants(skeleton, target, start=free.values, sharing=Sharing((Varying(1, 1.1, 1e-4),)))
    assert np.ptp(drawn.by_experiment[:, 1]) < 0.01 * np.ptp(free.by_experiment[:, 1])
    assert drawn.by_experiment[:, 1] == pytest.approx([1.1] * 3, abs=1e-3)


def test_the_layout_counts_each_free_constant_once():
    layout = layout_of(3, 3, Sharing((Varying(2),)))
    assert layout.n_free == 5
    assert layout.owner.tolist() == [0, 1, 2, 2, 2]
    assert layout.source.tolist() == [[0, 1, 2], [0, 1, 3], [0, 1, 4]]
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert layout.by_experiment(x)[:, 2].tolist() == [3.0, 4.0, 5.0]
    assert (layout.mean @ x).tolist() == pytest.approx([1.0, 2.0, 4.0])
