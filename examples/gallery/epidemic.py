"""A common cold on Tristan da Cunha, 1967: people who could still catch it were not counted.

Susceptible people are S = N - infected - recovered. With S eliminated, S' = -b*S*infected says that the coefficients of
infected^2 and infected*recovered are one constant, and whoever stops being infected has recovered.
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
    max_evaluations=120,
)
model.fit(record.t, record.values, states=["infected", "recovered"])
print(model.equation_)
infection, recovery = -model.equation_.values[1], model.equation_.values[-1]
print(f"people who could catch it: {(model.equation_.values[0] + recovery) / infection:.0f}")
FIGURE = model.plot
