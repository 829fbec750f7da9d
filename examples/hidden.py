"""A common cold on an island: nobody counted the people who could still catch it, so they are a hidden state.

What is known does the work. Nobody came or left, so S + infected + recovered does not change. Whoever recovers was
infected. Without infected people there are no infections, and without susceptible ones S does not change.
"""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("cold").observations[0]
model = LatentGrammarFlow(
    hidden="S",
    autonomous=True,
    conserved=["S + infected + recovered"],
    known={"recovered": "C*infected"},
    populations=["S", "infected"],
)
model.fit(record.t, record.values, states=["infected", "recovered"])
print(model.equation_)
S = model.predict(record.t)[:, 2]
print(f"S fell from {S[0]:.0f} to {S[-1]:.0f} people")
for sentence in model.run_.hidden.sentences:
    print(sentence)
