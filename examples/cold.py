"""A common cold on an island: the people who can still catch it were not counted, but their number follows.

Susceptible people are S = N - infected - recovered. With S eliminated, S' = -b*S*infected says that the coefficients of
infected^2 and infected*recovered are one constant, and whoever stops being infected has recovered.
"""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("cold").observations[0]
model = LatentGrammarFlow(
    shared=["infected: infected^2 = infected: infected*recovered"],
    bounds={"recovered": {"infected": "positive"}},
    warm_start=[
        "infected' = C*infected + C*infected^2 + C*infected*recovered; recovered' = C*infected",
        "infected' = C*infected; recovered' = C*infected",
    ],
)
model.fit(record.t, record.values, states=["infected", "recovered"])
print(model.equation_)
growth, infection, _, recovery = model.equation_.values
print(f"infection rate b = {-infection:.4f}, recovery rate {recovery:.3f} a day")
print(f"people who could catch it: N = {(growth + recovery) / -infection:.0f}")
