"""A chaotic circuit: voltages x, y and current z of Chua's circuit with a cubic resistor, 0.5 % noise."""

import numpy as np
from scipy.integrate import solve_ivp

from lgf import LatentGrammarFlow

t = np.linspace(0, 20, 500)


def chua(t, y):
    """The circuit in its usual dimensionless form."""
    return [10 * (y[1] - (y[0] ** 3 - y[0]) / 6), y[0] - y[1] + y[2], -16 * y[1]]


clean = solve_ivp(chua, (0, 20), [0.5, 0.1, -0.2], t_eval=t, rtol=1e-9, atol=1e-9).y.T
noisy = clean + 0.005 * clean.std(axis=0) * np.random.default_rng(0).normal(size=clean.shape)
model = LatentGrammarFlow(autonomous=True, functions=(), max_evaluations=250)
model.fit(t, noisy, states=["x", "y", "z"])
print(model.equation_)
print("The data were simulated with x' = 10 y + 1.667 x - 1.667 x^3; y' = x - y + z; z' = -16 y.")
FIGURE = model.plot_phase
