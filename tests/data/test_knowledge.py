import copy
import math

import numpy as np

from lgf.data import Knowledge, Observation, Problem
from lgf.expression.frame import Frame
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
        inputs={"F": Forcing.from_formula("cos(2*t)")},
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
    problem = Problem((Observation(T, values), Observation(T, gap, "u'")))
    assert problem.n_samples == 19
    assert problem.states == ("u",)
    assert problem.inputs == ()
    assert problem.frames == (Frame((("u", 1),)), Frame((("u", 2),)))
    assert problem.forced is None
    assert Problem(Observation(T, values, "u''")).frames == (Frame((("u", 2),)),)
    assert Problem((Observation(T, values),), Knowledge(order=3)).frames == (Frame((("u", 3),)),)


def test_an_experiment_has_its_own_forcing_or_the_common_one():
    own, common = Forcing.from_formula("t"), Forcing.from_formula("2*t")
    problem = Problem((Observation(T, T, inputs={"F": own}), Observation(T, T)), Knowledge(inputs={"F": common}))
    assert problem.signals(0) == {"F": own}
    assert problem.signals(1) == {"F": common}
    assert problem.forced is True
    assert problem.formulas == ()  # the two differ
    assert Problem((Observation(T, T),), Knowledge(inputs={"F": common})).formulas == (("F", common.formula),)


def test_a_problem_of_two_states_has_one_frame():
    values = np.stack([np.sin(T), np.cos(T)], 1)
    one, two = Observation(T, values, ("prey", "predator")), Observation(T, values, ("predator", "prey'"))
    assert Problem((one,)).frames == (Frame((("prey", 1), ("predator", 1))),)
    drive = Forcing.from_formula("t")
    problem = Problem((one, two), Knowledge(order={"predator": 2}, inputs={"food": drive}, variables=("prey",)))
    assert problem.states == ("prey", "predator")
    assert problem.frames == (Frame((("prey", 1), ("predator", 2)), ("food",)),)
    assert problem.n_samples == 40
    assert problem.forced is True
    assert "The equation of predator is of order 2." in problem.knowledge.describe()
    assert Problem((one,), Knowledge(order=2)).frames == (Frame((("prey", 2), ("predator", 2))),)


def test_inputs_of_experiments_add_up():
    a, b = Forcing.from_formula("t"), Forcing.from_samples(T, T**2)
    problem = Problem(
        (Observation(T, T, inputs={"b": b}), Observation(T, T, inputs={"b": a})), Knowledge(inputs={"a": a})
    )
    assert problem.inputs == ("a", "b")
    assert problem.signals(0) == {"a": a, "b": b}
    assert problem.formulas == (("a", a.formula),)
    assert problem.frames[-1] == Frame((("u", 2),), ("a", "b"))
