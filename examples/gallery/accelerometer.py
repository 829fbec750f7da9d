"""An accelerometer and a known force: neither displacement nor velocity is measured."""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("duffing").observations[0]
model = LatentGrammarFlow(order=2, stable=True, max_evaluations=80)
model.fit(record.t, record.values[:, 0], derivative=2, initial=(0.0, 1.5), forcing="cos(2*t)")
print(model.equation_)
print("The record was simulated with 5 u'' + u' + 7 u + 25 u^3 = cos(2 t).")
FIGURE = model.plot
