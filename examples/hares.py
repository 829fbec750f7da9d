"""Hares and lynxes, 1900 to 1920: two measured populations, and what is known about populations."""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("hares").observations[0]
model = LatentGrammarFlow(
    autonomous=True,
    functions=(),
    populations=("hare", "lynx"),  # no hares without hares
    warm_start=["hare' = C*hare + C*hare*lynx; lynx' = C*lynx + C*hare*lynx"],  # tried first, then the search goes on
    max_evaluations=300,
)
model.fit(record.t, record.values, states=["hare", "lynx"])
print(model.equation_)
print(f"R2 of the trajectories: {model.score(record.t, record.values):.3f}")
print("Systems that the data cannot tell apart:")
for equation in model.indistinguishable_.equation[:3]:
    print("  " + equation.replace("\n", "; "))

ahead = model.simulate([1920, 1925, 1930], initial={"hare": 24.7, "lynx": 8.1})
print(f"lynxes in 1930: {ahead['lynx'][-1]:.1f} thousand furs")
