import copy
import math

import numpy as np

from lgf.data import Knowledge, Observation, Problem
from lgf.solver.forcing import Forcing

T = np.linspace(0, 1, 10)


def test_nothing_known_says_nothing():
    knowledge = Knowledge()
    assert knowledge.describe() == ()
    assert knowledge.forced is None


def test_everything_known_is_said_in_plain_words():
    knowledge = Knowledge(
        order=2,
        stable=True,
        autonomous=True,
        forcing=Forcing.from_formula("cos(2*t)"),
        functions=("sin",),
        variables=("u", "u'"),
        bounds={"u^3": "positive", "u'": (0, 2)},
        constants="negative",
        required="u^3",
    )
    assert knowledge.forced is True
    assert knowledge.bounds == {"u^3": (0, math.inf), "u'": (0, 2)}
    assert knowledge.required == ("u^3",)
    said = knowledge.describe()
    assert len(said) == 10
    assert all(sentence.endswith(".") for sentence in said)
    assert "The coefficient of u^3 is positive." in said
    assert "The coefficient of u' lies between 0 and 2." in said
    assert "F = cos(2*t)" in " ".join(said)
    assert copy.deepcopy(knowledge).describe() == said


def test_unforced_is_not_unknown():
    assert Knowledge(forced=False).describe() == ("No input drives the system.",)


def test_a_problem_adds_up_its_experiments():
    values = np.sin(T)
    gap = values.copy()
    gap[2] = np.nan
    problem = Problem((Observation(T, values), Observation(T, gap, (1,))))
    assert problem.n_samples == 19
    assert problem.measured == (0, 1)
    assert problem.orders == (1, 2)
    assert problem.forced is None
    assert Problem(Observation(T, values, (2,))).orders == (2,)
    assert Problem((Observation(T, values),), Knowledge(order=3)).orders == (3,)


def test_an_experiment_has_its_own_forcing_or_the_common_one():
    own, common = Forcing.from_formula("t"), Forcing.from_formula("2*t")
    problem = Problem((Observation(T, T, forcing=own), Observation(T, T)), Knowledge(forcing=common))
    assert problem.forcing(0) is own
    assert problem.forcing(1) is common
    assert problem.forced is True
