"""A common cold on an island: the people who can still catch it were not counted, but their number follows.

Susceptible people are S = N - infected - recovered. With S eliminated, S' = -b*S*infected says that the coefficients of
infected^2 and infected*recovered are one constant, and whoever stops being infected has recovered. An infection does
not know the date, so time is left out.
"""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("cold").observations[0]
model = LatentGrammarFlow(
    autonomous=True,
    known={"recovered": "C*infected"},
    required=["infected: infected^2", "infected: infected*recovered"],
    shared=["infected: infected^2 = infected: infected*recovered"],
    bounds={"recovered": {"infected": "positive"}},
)
model.fit(record.t, record.values, states=["infected", "recovered"])
print(model.equation_)
infection, recovery = -model.equation_.values[1], model.equation_.values[-1]
print(f"infection rate b = {infection:.4f}, recovery rate {recovery:.3f} a day")
print(f"people who could catch it: N = {(model.equation_.values[0] + recovery) / infection:.0f}")
