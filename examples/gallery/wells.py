"""Eight wells of a plate share one law of growth, but each has nutrients of its own; the data decide what varies."""

import numpy as np

from lgf import LatentGrammarFlow

rng = np.random.default_rng(0)
t = np.linspace(0, 12, 49)
capacity = 0.6 * (1 + 0.15 * rng.normal(size=8))  # in optical density
growth = [K / (1 + (K / 0.05 - 1) * np.exp(-0.9 * t)) for K in capacity]
wells = [u + 0.01 * rng.normal(size=t.size) for u in growth]
model = LatentGrammarFlow(order=1, autonomous=True, functions=(), units={"t": "h"}, max_evaluations=60)
model.fit([t] * 8, wells)
print(model.equation_)
print(model.constants_[["term", "value", "error", "spread"]].to_string(index=False))
print("capacity of each well:   ", np.round(capacity, 2))
print("where the equation leads:", np.round([model.predict([0, 50], well)[-1] for well in range(8)], 2))
FIGURE = model.plot
