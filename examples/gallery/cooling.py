"""A cup of tea cools down: Newton's law with the temperature of the room, from a thermometer that reads to 0.1 °C."""

import numpy as np

from lgf import LatentGrammarFlow

t = np.linspace(0, 60, 61)
tea = np.round(21 + 64 * np.exp(-0.045 * t) + 0.1 * np.random.default_rng(0).normal(size=t.size), 1)
model = LatentGrammarFlow(order=1, autonomous=True, units={"t": "min", "u": "degC"}, max_evaluations=120)
model.fit(t, tea)
print(model.equation_)
rate, heating = model.equation_.values
print(f"the room has {-heating / rate:.1f} °C")
FIGURE = model.plot
