"""Constants that the user ties: one name in several equations, shared coefficients, and the start of their fit."""

import numpy as np
import pytest

from lgf import LatentGrammarFlow, LgfError
from lgf.equation.system import System
from lgf.solver.solve import solve


def batch(mu, half, growth_yield, substrate, cells, n, noise, rng):
    """A batch culture after Monod: times, and cells and substrate with noise."""
    end = 1.6 * np.log(1 + substrate * growth_yield / cells) / mu * (1 + half / substrate)
    t = np.linspace(0.0, end, n)
    text = f"X' = {mu}*S*X/({half} + S); S' = -{mu / growth_yield}*S*X/({half} + S)"
    values = solve(System.read(text), {"X": cells, "S": substrate}, t).values[:, :2]
    return t, values + noise * values.std(axis=0) * rng.normal(size=values.shape)


def drawn(seed):
    """A culture with parameters over decades."""
    rng = np.random.default_rng(seed)
    mu, half, growth_yield = 10 ** rng.uniform(-1, 0.3), 10 ** rng.uniform(-2, 1.5), 10 ** rng.uniform(-1, 0.3)
    substrate = 10 ** rng.uniform(0, 2)
    cells = substrate * growth_yield * 10 ** rng.uniform(-3, -0.5)
    return batch(mu, half, growth_yield, substrate, cells, int(rng.integers(12, 60)), 0.02, rng)


@pytest.fixture(scope="module")
def culture():
    return batch(0.5, 2.0, 0.4, 10.0, 0.2, 60, 0.01, np.random.default_rng(0))


@pytest.mark.parametrize(("substrate", "n"), [
    ("-C2*S*X/(C1 + S)", 3), ("-2.5*C0*S*X/(C1 + S)", 2), ("-C2*C0*S*X/(C1 + S)", 3), ("-C0*C2*S*X/(C1 + S)", 3),
])  # fmt: skip
def test_a_name_in_two_known_rows_is_one_constant(culture, substrate, n):
    model = LatentGrammarFlow(known={"X": "C0*S*X/(C1 + S)", "S": substrate}).fit(*culture, states=["X", "S"])
    assert model.run_.best.skeleton.n_constants == n
    assert model.run_.best.loss < 1e-4
    assert "+ S)" in str(model.equation_).splitlines()[0]


@pytest.mark.parametrize("seed", [3, 19, 22])
def test_a_quotient_with_one_constant_in_two_rows_is_fitted(seed):
    known = {"X": "C0*S*X/(C1 + S)", "S": "-C2*C0*S*X/(C1 + S)"}
    model = LatentGrammarFlow(known=known).fit(*drawn(seed), states=["X", "S"])
    assert model.run_.best.loss < 0.03**2


@pytest.mark.parametrize(("statements", "n"), [
    ({"known": {"X": "C0*S*X/(C1 + S)"}, "initial_equations": ["S' = -C2*S*X/(C1 + S)"]}, 3),
    ({
        "shared": "S: S*X/(C + S) = -2.5 X: S*X/(C + S)",
        "initial_equations": ["X' = C*S*X/(C + S); S' = C*S*X/(C + S)"],
    }, 2),
])  # fmt: skip
def test_what_is_stated_ties_the_constants_of_ones_own_equation(culture, statements, n):
    model = LatentGrammarFlow(max_evaluations=1, **statements).fit(*culture, states=["X", "S"])
    given = next(c for c in model.run_.discovery.population if c.proposal.origin == "given")
    assert given.skeleton.n_constants == n
    assert given.loss < 1e-4


@pytest.mark.parametrize("term", ["exp(sin(X))", "S^7*X^8"])
def test_a_shared_constant_of_a_term_that_no_equation_has_is_a_sentence(culture, term):
    with pytest.raises(LgfError, match="says nothing: no equation of S that is searched has the term"):
        LatentGrammarFlow(shared=f"S: {term} = -X: S*X").fit(*culture, states=["X", "S"])
