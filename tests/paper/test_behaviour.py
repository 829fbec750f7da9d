"""Vector-field moments against a plain evaluation."""

import numpy as np
import pytest

from lgf.equation.skeleton import Skeleton
from lgf.expression.numeric import evaluate
from lgf.paper.behavioural_distance import BehaviourGrid, behaviour, behavioural_distance

GRID = BehaviourGrid(t=(0.1, 10.0, 3), u=(0.1, 100.0, 4), du=(0.1, 500.0, 4))


def test_moments_agree_with_numpy():
    skeleton = Skeleton.read("C*u'' + C*sin(C*t)*u' + C*u^2 = F")
    t, states = GRID.points
    environment = {"t": t, "F": np.zeros_like(t), "u": states[0], ("u", 1): states[1], ("u", 2): states[2]}
    values = np.array([evaluate(skeleton.residuals[0], environment, row[:4]) for row in GRID.draws])
    mean, deviation = behaviour(skeleton, GRID)
    np.testing.assert_allclose(mean, values.mean(axis=0), rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(deviation, values.std(axis=0), rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("text", ["C*u' + log(C*t)*u = F", "C*u'/u = F", "C*u'' + exp(C*u)*u = F", "u' = C*u^C"])
def test_everything_is_finite_and_cut(text):
    mean, deviation = behaviour(Skeleton.read(text), GRID)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(deviation))
    assert np.abs(mean).max() <= 1e10
    assert deviation.max() <= 1e10


def test_distance_is_zero_to_itself_and_symmetric():
    one = behaviour(Skeleton.read("C*u'' + C*u = F"), GRID)
    near = behaviour(Skeleton.read("C*u'' + C*u + C*u' = F"), GRID)
    far = behaviour(Skeleton.read("C*u'' + C*u^5 = F"), GRID)
    assert behavioural_distance(one, one) == 0.0
    assert behavioural_distance(one, near) == behavioural_distance(near, one)
    assert 0 < behavioural_distance(one, near) < behavioural_distance(one, far)
