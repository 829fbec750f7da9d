"""Six wells of a plate share one law of growth; the data decide whether a constant differs between wells."""

from lgf import LatentGrammarFlow
from lgf.data import load_record

wells = load_record("growth").observations[:6]
model = LatentGrammarFlow(
    order=1, autonomous=True, units={"t": "h"}, populations=("u",), vary="auto", max_evaluations=120
)  # fmt: skip
model.fit([well.t for well in wells], [well.values[:, 0] for well in wells])
print(model.equation_)
print(model.constants_[["term", "value", "error", "spread"]].to_string(index=False))
FIGURE = model.plot
