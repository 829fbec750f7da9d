"""The linear answer of a record to an added term, and the ranking that it gives."""

import numpy as np
import pytest

from lgf.data import Knowledge, Observation, Problem, complete
from lgf.discovery.candidate import Population, Proposal
from lgf.discovery.evaluation import Evaluator
from lgf.discovery.language import make_language
from lgf.discovery.missing import MissingSettings, MissingTermProposer, Vocabulary, moves
from lgf.discovery.response import linearise
from lgf.discovery.target import make_target
from lgf.grammar import load_grammar
from lgf.ode.reading import read_expression
from lgf.ode.skeleton import Equation, Skeleton
from lgf.ode.solving import solve

T = np.linspace(0, 20, 201)


def problem(text, initial, measured=0, noise=0.05):
    truth = solve(Equation(Skeleton.read(text), ()), initial, T, rtol=1e-10)
    clean = truth.states[:, measured]
    values = clean + noise * clean.std() * np.random.default_rng(0).standard_normal(len(T))
    order = len(initial)
    return Problem((Observation(T, values, (measured,), initial=initial),), Knowledge(order=order, forced=False))


def prepared(text, initial, measured=0):
    given = problem(text, initial, measured)
    order = len(initial)
    target = make_target(given, order, [complete(given.observations[0], order)])
    return target, make_language(load_grammar("standard"), given, target), Evaluator({order: target}, given.knowledge)


@pytest.fixture(scope="module")
def duffing():
    return prepared("u'' + 0.2*u' + 2*u + 1.5*u^3 = 0", (1.0, 0.0), measured=2)


def test_the_answer_is_the_derivative_of_the_solution(duffing):
    target, _, evaluator = duffing
    candidate = evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u"), 5.0))
    line = linearise(candidate, target)
    added = line.states[0] ** 3
    step = 1e-4
    a, b = candidate.fit.values
    base, moved = (
        solve(Equation(Skeleton.read(f"u'' = C*u' + C*u + {c}*u^3"), (a, b)), (1.0, 0.0), T, rtol=1e-10).d2u
        for c in (0.0, step)
    )
    scale = np.sqrt(target.record.weight[:, 2] * target.power)
    expected = (moved - base) / step * scale
    answer = line.answers(added[None, :])[0]
    assert np.linalg.norm(answer - expected) < 0.03 * np.linalg.norm(expected)
    np.testing.assert_allclose(line.residual, (target.record.data[:, 2] - line.states[2]) * scale, rtol=1e-9)


def test_the_missing_term_comes_first(duffing):
    target, language, evaluator = duffing
    candidate = evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u"), 5.0))
    found = moves(candidate, target, Vocabulary(language, target), MissingSettings())
    cubic = read_expression("u^3")
    rank = next(i for i, m in enumerate(found) if m.kind == "add" and cubic in m.parts)
    assert rank < 5


def test_a_divisor_can_be_missing():
    target, language, evaluator = prepared("u'' + 0.3*u' + 4*u + 1.5*u^2*u'' = 0", (1.2, 0.0))
    candidate = evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u + C*u^3"), 5.0))
    found = moves(candidate, target, Vocabulary(language, target), MissingSettings())
    assert any(m.kind == "divide" for m in found[:5])


def test_proposals_are_new_changes_of_the_best_and_say_what_they_mean(duffing):
    target, language, evaluator = duffing
    population = Population([evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u"), 5.0))])
    proposer = MissingTermProposer([language], {2: target})
    proposer.tell(population)
    first, second = proposer.ask(10), proposer.ask(10)
    structures = [p.skeleton.structure for p in first + second]
    assert len(first) == 10
    assert len(set(structures)) == len(structures)
    assert any(p.skeleton.structure == Skeleton.read("u'' = C*u' + C*u + C*u^3").structure for p in first)
    for p in first:
        assert p.bits == pytest.approx(language.bits(p.derivation))
        assert language.skeleton(p.derivation).structure == p.skeleton.structure


def test_a_candidate_that_cannot_be_solved_has_no_changes(duffing):
    target, language, evaluator = duffing
    candidate = evaluator(Proposal(Skeleton.read("u''^2 = C*u"), 5.0))
    assert moves(candidate, target, Vocabulary(language, target), MissingSettings()) == []
