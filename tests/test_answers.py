"""The answers of version 0.1 on a fixed set: same equations, sets, fronts and evaluations; constants to five digits.

Kernels that sum in another order change the last digits of the constants, never more.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.problems import problem_named

from lgf.data import load_record
from lgf.equation.skeleton import Skeleton
from lgf.grammar import load_grammar
from lgf.runs.presets import proposers_for
from lgf.search.discover import discover
from lgf.search.settings import PRESETS

ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text())


def asked(name):
    """(problem, evaluations, preset, grammar) of an answer."""
    if name == "growth":
        return load_record("growth"), 40, "default", "standard"
    if name == "duffing paper":
        return load_record("duffing"), 60, "paper", "b3"
    problem = problem_named(name.split()[0]).observe(0.05, 0)
    if name.endswith("open"):
        observations = (replace(problem.observations[0], initial={}),)
        return (
            replace(problem, observations=observations, knowledge=replace(problem.knowledge, order=None)),
            120,
            "default",
            "standard",
        )
    return problem, 200, "default", "standard"


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_the_same(name):
    problem, evaluations, preset, grammar_name = asked(name)
    settings, grammar = PRESETS[preset], load_grammar(grammar_name)
    settings = replace(settings, search=replace(settings.search, max_evaluations=evaluations))
    found = discover(problem, grammar, settings, proposers=proposers_for(grammar), seed=0)
    expected = ANSWERS[name]
    assert found.evaluations == expected["evaluations"]
    assert found.best.skeleton.structure == Skeleton.read(expected["skeleton"]).structure
    np.testing.assert_allclose(found.system.values, expected["values"], rtol=1e-5)
    assert sorted(c.skeleton.structure for c in found.indistinguishable) == expected["set"]
    assert [str(c.skeleton) for c in found.front] == expected["front"]
