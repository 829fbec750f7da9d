"""Accelerations alone, a known input, and a run folder with a report."""

import tempfile

import numpy as np

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("duffing").observations[0]
model = LatentGrammarFlow(order=2, stable=True, max_evaluations=80)
model.fit(record.t, record.values[:, 0], derivative=2, initial=(0.0, 1.5), forcing="cos(2*t)")
print(model.equation_)
for name, value in model.equation_.constants.items():
    print(name, round(value, 3), "+-", round(model.equation_.errors[int(name[1:])], 3))

free = model.simulate(np.linspace(0, 20, 201), initial=(1.0, 0.0), forcing="0")
print(f"without the input, u(20) = {free.u[-1]:.3f}")

with tempfile.TemporaryDirectory() as folder:
    model.save(folder)
    print(LatentGrammarFlow.load(folder).equation_.latex())
