"""A common cold on Tristan da Cunha: nobody counted the people who could still catch it; they are a hidden state.

What is known does the work. Whoever recovers was infected. Without infected people there are no infections, and without
susceptible ones S does not change.
"""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("cold").observations[0]
model = LatentGrammarFlow(
    hidden="S",
    autonomous=True,
    conserved=["S + infected + recovered"],  # nobody came or left
    known={"recovered": "C*infected"},
    populations=["S", "infected"],
)
model.fit(record.t, record.values, states=["infected", "recovered"])
print(model.equation_)
S = model.predict(record.t)[:, 2]
print(f"S fell from {S[0]:.0f} to {S[-1]:.0f} people")
print(model.verdict_)
FIGURE = model.plot
