"""Growth of bacteria in one well of a plate: optical densities over 12 hours."""

from lgf import LatentGrammarFlow
from lgf.data import load_record

well = load_record("growth").observations[0]
model = LatentGrammarFlow(order=1, autonomous=True, functions=(), units={"t": "h"})
model.fit(well.t, well.values[:, 0])
print(model.equation_)
print(model.verdict_)
FIGURE = model.plot
