"""A pendulum from a video: angles in rad at 30 frames a second, with frames in which it was hidden."""

import numpy as np
from scipy.integrate import solve_ivp

from lgf import LatentGrammarFlow

t = np.arange(0, 8, 1 / 30)
swing = solve_ivp(lambda t, y: [y[1], -9.81 / 0.6 * np.sin(y[0]) - 0.15 * y[1]], (0, 8), [2.9, 0], t_eval=t, rtol=1e-9)
angle = swing.y[0] + 0.01 * np.random.default_rng(0).normal(size=t.size)
angle[70:82] = np.nan  # a hand before the camera
model = LatentGrammarFlow(order=2, stable=True, autonomous=True, units={"t": "s", "u": "rad"}, max_evaluations=300)
model.fit(t, angle)
print(model.equation_)
print("The pendulum is 60 cm long, so g/l is", round(9.81 / 0.6, 2))
FIGURE = model.plot_phase
