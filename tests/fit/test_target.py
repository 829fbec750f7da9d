"""Weights of a target."""

import numpy as np

from lgf.data import load_record
from lgf.fit.target_assembly import make_target
from lgf.smoothing.complete import complete


def test_no_column_outweighs_another_by_the_guess_of_a_smoother():
    # 21 years at two samples a rise: the smoother takes every number of the lynxes for exact
    problem = load_record("hares")
    frame, observation = problem.frames[0], problem.observations[0]
    completion = complete(observation, frame)
    guesses = np.array([completion.noise[v] for v in observation.columns]) / observation.values.std(axis=0)
    assert guesses.min() < guesses.max() / 100
    target = make_target(problem, frame, [completion])
    shares = target.noise[:2] / observation.values.std(axis=0)
    assert shares.min() > 0.19 * shares.max()
