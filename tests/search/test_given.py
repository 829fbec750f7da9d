"""What is said of the user's own equations."""

from dataclasses import replace

import numpy as np
import pytest
from tests.given_equations import fitted

from lgf import LatentGrammarFlow
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.report.sentences import sentences
from lgf.search.candidate import GIVEN, Population
from lgf.search.notes import NoteKind
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve

T = np.linspace(0.0, 8.0, 60)


def logistic():
    u = 10.0 / (1.0 + 9.0 * np.exp(-T))
    return u + 0.05 * np.random.default_rng(0).standard_normal(len(T))


@pytest.mark.parametrize(("text", "says"), [
    ("u' = -3*u", "The equation given, fitted as u' = "),
    ("u' = u - 0.1*u^2", "The equation chosen has the form of one that was given"),
    ("u' = 1/(u - 5)^2", "The equation given, "),
])  # fmt: skip
def test_the_user_is_told_how_a_given_equation_did(text, says):
    model = LatentGrammarFlow(order=1, initial_equations=[text], max_evaluations=60).fit(T, logistic())
    (note,) = (n for n in model.run_.notes if n.kind is NoteKind.GIVEN)
    assert any(sentence.startswith(says) for sentence in sentences(model.run_))
    if "chosen_error" in note.values:
        assert note.values["error"] > note.values["chosen_error"]


def test_a_given_equation_stays_given_when_it_is_fitted_again():
    model = LatentGrammarFlow(order=1, initial_equations=["u' = u - 0.1*u^2"], max_evaluations=20).fit(T, logistic())
    population = Population(model.run_.discovery.population)
    given = next(c for c in population if c.proposal.origin == GIVEN)
    better = replace(given, proposal=replace(given.proposal, origin="enumeration"), objective=given.objective - 1.0)
    population.add(better)
    kept = population.get(given.skeleton.structure)
    assert kept.proposal.origin == GIVEN
    assert kept.objective == better.objective


def test_without_an_equation_of_ones_own_nothing_is_said_of_one():
    model = LatentGrammarFlow(order=1, max_evaluations=20).fit(T, logistic())
    assert not [n for n in model.run_.notes if n.kind is NoteKind.GIVEN]


def test_a_duffing_oscillator_on_a_shaker_keeps_no_term_that_is_not_determined():
    t, drive = np.linspace(0.0, 20.0, 300), "0.8*cos(1.2*t) + 0.5*sin(0.7*t)"
    signal = Forcing.from_formula(drive)
    law = System.read("u'' = -0.3*u' - u - 0.5*u^3 + F", inputs={"F": drive})
    u = solve(law, (0.0, 0.0), t, {"F": signal})["u"]
    u = u + 0.01 * u.std() * np.random.default_rng(0).standard_normal(len(t))
    model = fitted(["u'' = C*u' + C*u + C*u^3 + C*F + C*t^3*sin(C*t)"], t, u, forcing=signal.values(t))
    best = model.run_.best
    assert best.skeleton.structure == Skeleton.read("u'' = C*u' + C*u + C*u^3 + C*F").structure
    assert all(abs(value) > error for value, error in zip(best.fit.values, best.fit.errors, strict=True))
