"""The shortest way from arrays to an equation."""

import numpy as np

from lgf import LatentGrammarFlow

t = np.linspace(0, 6, 80)
u = 2 * np.exp(-0.5 * t) + 0.01 * np.random.default_rng(0).normal(size=t.size)

model = LatentGrammarFlow(order=1, autonomous=True, max_evaluations=60).fit(t, u)
print(model.equation_)
print(f"R2 of the trajectory: {model.score(t, u):.4f}")
print(model.front_[["equation", "complexity", "loss"]].to_string(index=False))
