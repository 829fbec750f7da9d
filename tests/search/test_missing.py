"""The linear answer of a record to an added term, and the ranking that it gives."""

import numpy as np
import pytest

from lgf.data import Knowledge, Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.parse import read_expression
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.language.language import make_language
from lgf.search.candidate import Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.proposers.missing_terms import Comparison, MissingTermProposer, moves
from lgf.search.sensitivity import in_blocks, linearise, run
from lgf.search.term_columns import TermColumns
from lgf.smoothing.complete import complete
from lgf.solver.kernels.machine import LARGEST_VALUE
from lgf.solver.solve import solve

T = np.linspace(0, 20, 201)


def problem(text, initial, measured="u", noise=0.05):
    truth = solve(System.read(text), initial, T, rtol=1e-10)
    clean = truth[measured]
    values = clean + noise * clean.std() * np.random.default_rng(0).standard_normal(len(T))
    order = len(initial)
    return Problem((Observation(T, values, (measured,), initial=initial),), Knowledge(order=order, forced=False))


def prepared(text, initial, measured="u"):
    given = problem(text, initial, measured)
    (frame,) = given.frames
    target = make_target(given, frame, [complete(given.observations[0], frame)])
    language = make_language(load_grammar("standard"), given, frame, target.ranges)
    return target, language, Evaluator({frame: target}, given.knowledge)


@pytest.fixture(scope="module")
def duffing():
    return prepared("u'' + 0.2*u' + 2*u + 1.5*u^3 = 0", (1.0, 0.0), measured="u''")


def test_the_answer_is_the_derivative_of_the_solution(duffing):
    target, _, evaluator = duffing
    candidate = evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u"), 5.0))
    line = linearise(candidate, target)
    added = line.columns[0] ** 3
    step = 1e-4
    a, b = candidate.fit.values
    base, moved = (
        solve(System(Skeleton.read(f"u'' = C*u' + C*u + {c}*u^3"), (a, b)), (1.0, 0.0), T, rtol=1e-10).d2u
        for c in (0.0, step)
    )
    scale = np.sqrt(target.record.weight[:, 2] * target.power)
    expected = (moved - base) / step * scale
    answer = line.responses(in_blocks(added[None, :]))[0, :, 0]
    assert np.linalg.norm(answer - expected) < 0.03 * np.linalg.norm(expected)
    np.testing.assert_allclose(line.residual, (target.record.data[:, 2] - line.columns[2]) * scale, rtol=1e-9)


def _each_term(terms, line):
    """The columns [c, N] of all terms and divisors along the trajectory, one program after the other."""
    compiled = [*terms.terms, *(term for _, term in terms.divisors)]
    rows = [run(c.program, v, line.t, line.columns, line.inputs)[0] for c in compiled for v in c.values]
    return np.array([row if np.all(np.abs(row) < LARGEST_VALUE) else 0.0 * line.t for row in rows])


def test_all_terms_at_once_are_each_term_on_its_own(duffing):
    target, language, evaluator = duffing
    line = linearise(evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u"), 5.0)), target)
    terms = TermColumns(language, target)
    columns = _each_term(terms, line)
    assert np.any(np.all(columns == 0.0, axis=1))  # some are undefined
    answers = line.responses(in_blocks(columns)).swapaxes(1, 2).reshape(-1, len(line.residual))[: len(terms.owner)]
    vectors = np.concatenate([line.own, line.residual[None]])
    squares, products = line.products(terms.programs, terms.owner, terms.values, vectors)
    np.testing.assert_allclose(squares, (answers**2).sum(axis=1), rtol=1e-9)
    sizes = np.where(squares > 0, np.sqrt(squares), 1.0)[:, None]
    np.testing.assert_allclose(products / sizes, answers @ vectors.T / sizes, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("taken", [None, 0, 1])
def test_what_a_term_explains_is_what_a_projection_leaves(duffing, taken):
    target, language, evaluator = duffing
    candidate = evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u + C*u^2"), 5.0))
    line = linearise(candidate, target)
    terms = TermColumns(language, target)
    owner, n = terms.owner, len(terms.terms) + len(terms.divisors)
    rows, value = [0, 1, 2], 0.0
    residual = line.residual
    if taken is not None:
        rows.remove(taken)
        value = candidate.fit.values[taken]
        residual = residual + value * line.own[taken]
    left, share = Comparison(line, terms).explained(rows, value, taken or 0)
    basis = np.linalg.qr(line.own[rows].T)[0]
    rest = residual - basis @ (basis.T @ residual)
    assert left == pytest.approx(rest @ rest, rel=1e-9)
    answers = line.responses(in_blocks(_each_term(terms, line)))
    answers = answers.swapaxes(1, 2).reshape(-1, len(residual))[: len(owner)]
    compared = 0
    for k in range(0, n, 5):
        beside = answers[owner == k] - (answers[owner == k] @ basis) @ basis.T
        free = (beside**2).sum(1) / np.maximum((answers[owner == k] ** 2).sum(1), 1e-300)
        if np.all(free > 1e-4):  # below, a term is nearly among the own ones and rounding decides
            best = max((beside @ rest) ** 2 / (beside**2).sum(1))
            assert share[k] == pytest.approx(best / left, rel=1e-6)
            compared += 1
    assert compared > 20


def test_the_missing_term_is_in_the_first_batch(duffing):
    target, language, evaluator = duffing
    candidate = evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u"), 5.0))
    found = moves(candidate, target, TermColumns(language, target))
    cubic = read_expression("u^3")
    rank = next(i for i, m in enumerate(found) if m.kind == "add" and cubic in m.parts)
    assert rank < 8  # behind saturations that are u^3 for small u


def test_a_divisor_can_be_missing():
    target, language, evaluator = prepared("u'' + 0.3*u' + 4*u + 1.5*u^2*u'' = 0", (1.2, 0.0))
    candidate = evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u + C*u^3"), 5.0))
    found = moves(candidate, target, TermColumns(language, target))
    assert any(m.kind == "divide" for m in found[:5])


def test_proposals_are_new_changes_of_the_best_and_say_what_they_mean(duffing):
    target, language, evaluator = duffing
    population = Population([evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u"), 5.0))])
    proposer = MissingTermProposer([language], {target.frame: target})
    proposer.tell(population)
    first, second = proposer.ask(10), proposer.ask(10)
    structures = [p.skeleton.structure for p in first + second]
    assert len(first) == 10
    assert len(set(structures)) == len(structures)
    assert any(p.skeleton.structure == Skeleton.read("u'' = C*u' + C*u + C*u^3").structure for p in first)
    for p in first:
        assert p.bits == pytest.approx(language.price(p.skeleton))
        assert language.skeleton(p.derivation).structure == p.skeleton.structure


def test_a_candidate_that_cannot_be_solved_has_no_changes(duffing):
    target, language, evaluator = duffing
    candidate = evaluator(Proposal(Skeleton.read("u''^2 = C*u"), 5.0))
    assert moves(candidate, target, TermColumns(language, target)) == []


def test_terms_of_an_operator_grammar_have_no_higher_derivative_than_the_equation(duffing):
    target, _, _ = duffing
    given = problem("u'' + 0.2*u' + 2*u = 0", (1.0, 0.0))
    language = make_language(load_grammar("b3"), given, target.frame, target.ranges)
    terms = {term.expression for term in TermColumns(language, target).terms}
    assert {read_expression("u*u'"), read_expression("u*u''")} <= terms
    assert not any("u'''" in str(term) for term in terms)
