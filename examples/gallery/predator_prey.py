"""Hares and lynxes: furs of the Hudson Bay Company, 1900 to 1920."""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("hares").observations[0]
model = LatentGrammarFlow(
    autonomous=True,
    functions=(),
    populations=("hare", "lynx"),  # no hares without hares
)
model.fit(record.t, record.values, states=["hare", "lynx"])
print(model.equation_)
print(model.verdict_)
ahead = model.simulate([1920, 1925, 1930], initial={"hare": 24.7, "lynx": 8.1})
print(f"lynxes in 1930, if that were the law: {ahead['lynx'][-1]:.1f} thousand furs")
FIGURE = model.plot_phase
