"""A spring with a stiffening term, pushed by a force that is switched, with 2 % noise: nothing given."""

import numpy as np

from lgf import LatentGrammarFlow, System
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve


def test_the_equation_of_a_switched_system_is_found():
    t = np.arange(0.0, 20.0, 0.05)
    force = np.select([t < 1, t < 10], [0.0, 2.0], -1.0)
    truth = System.read("u'' = -0.8*u' - 3*u - 0.5*u^3 + F")
    clean = solve(truth, (0.0, 0.0), t, Forcing.from_samples(t, force)).u
    noisy = clean + 0.02 * clean.std() * np.random.default_rng(9).normal(size=len(t))
    model = LatentGrammarFlow(max_evaluations=150).fit(t, noisy, forcing=force)
    assert model.equation_.skeleton.structure == truth.skeleton.structure
    np.testing.assert_allclose(model.predict(t), clean, atol=0.02 * clean.std())
