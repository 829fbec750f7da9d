"""Two measured populations, 1900 to 1920: the user's own equations are fitted and compared."""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("hares").observations[0]
model = LatentGrammarFlow(
    populations=("hare", "lynx"),
    warm_start=[
        "hare' = C*hare + C*hare*lynx; lynx' = C*lynx + C*hare*lynx",
        "hare' = C*hare + C*hare^2 + C*hare*lynx; lynx' = C*lynx + C*hare*lynx",
    ],
)
model.fit(record.t, record.values, states=["hare", "lynx"])
print(model.equation_)
print(f"R2 of the trajectories: {model.score(record.t, record.values):.3f}")

ahead = model.simulate([1920, 1925, 1930], initial={"hare": 24.7, "lynx": 8.1})
print(f"lynxes in 1930: {ahead['lynx'][-1]:.1f} thousand furs")
