"""Two experiments with gaps share one equation, chosen on held-out data; the user's own guess is tried first."""

import numpy as np

from lgf import LatentGrammarFlow

rng = np.random.default_rng(1)


def logistic(t, start):
    """Noisy logistic growth from this start."""
    return 1 / (1 + (1 / start - 1) * np.exp(-1.5 * t)) + 0.005 * rng.normal(size=t.size)


t1, t2 = np.linspace(0, 6, 60), np.linspace(0, 4, 50)
u1, u2 = logistic(t1, 0.05), logistic(t2, 0.3)
u2[20:25] = np.nan

model = LatentGrammarFlow(order=1, initial_equations=["u' = u - u^2"], max_evaluations=40).fit([t1, t2], [u1, u2])
print(model.equation_)
print(model.front_[["equation", "loss", "prediction", "chosen"]].to_string(index=False))
