"""A common cold on an island: the people who can still catch it were not counted, but their number follows.

Susceptible people are S = N - infected - recovered. With S eliminated, S' = -b*S*infected says that the coefficients of
infected^2 and infected*recovered are one constant. Whoever stops being infected has recovered.
"""

from lgf import LatentGrammarFlow
from lgf.data import load_record

record = load_record("cold").observations[0]
model = LatentGrammarFlow(
    autonomous=True,
    functions=(),
    populations=("infected",),
    known={"recovered": "C*infected"},
    shared=["infected: infected^2 = infected: infected*recovered"],
    max_evaluations=300,
)
model.fit(record.t, record.values, states=["infected", "recovered"])
print(model.equation_)

quicker = model.simulate(range(1, 22), initial={"infected": 5, "recovered": 0})
print(f"from five cases at once, {quicker['recovered'][9]:.0f} people have recovered on day 10")
print(f"in the record it was {record.values[9, 1]:.0f}")
