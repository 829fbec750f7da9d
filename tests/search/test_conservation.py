"""Conservation laws, shared constants and common denominators in the search for systems."""

import numpy as np
import pytest

from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.data.row_knowledge import row_knowledge
from lgf.equation.system import System
from lgf.equation.terms import term_of
from lgf.errors import LgfError
from lgf.expression.frame import Frame, Variable
from lgf.expression.parse import read_expression
from lgf.fit.segments import Shooting, segmented
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.language.system_language import make_system_language
from lgf.search.discover import discover
from lgf.search.evaluate import Evaluator
from lgf.search.systems.component import Component, fitted_components, propose_components
from lgf.search.systems.conservation import closures, directions
from lgf.search.systems.language import system_language
from lgf.search.systems.repair import moves
from lgf.search.systems.term_grid import make_term_grid
from lgf.smoothing.complete import complete
from lgf.solver.solve import solve

GRAMMAR = load_grammar("systems")
SIR = "S' = -0.0022*S*I; I' = 0.0022*S*I - 0.44*I; R' = 0.44*I"
SEIR = "S' = -0.5*S*I; E' = 0.5*S*I - 0.4*E; I' = 0.4*E - 0.1*I; R' = 0.1*I"


def observed(text, start, t, noise=0.05, **known):
    system = System.read(text)
    solved = solve(system, start, t, rtol=1e-10)
    clean = np.column_stack([solved[name] for name in system.frame.names])
    values = clean + noise * clean.std(axis=0) * np.random.default_rng(0).standard_normal(clean.shape)
    columns = tuple(map(Variable, system.frame.names))
    return Problem((Observation(t, values, columns),), Knowledge(**known)), system


@pytest.fixture(scope="module")
def outbreak():
    """A record of SIR under its law: (problem, target, language, knowledge of the rows, terms)."""
    problem, _ = observed(SIR, (760.0, 3.0, 0.0), np.linspace(0, 15, 60), conserved=["S + I + R"])
    frame = problem.frames[0]
    target = make_target(problem, frame, [complete(o, frame) for o in problem.observations])
    language = system_language(GRAMMAR, problem, frame, target)
    known = row_knowledge(problem.knowledge, frame)
    return problem, target, language, known, make_term_grid(language, target, 40)


def term(text, frame):
    return term_of(read_expression(text, frame))


def component(frame, **coefficients):
    terms = [term(text, frame) for text in coefficients]
    return Component(tuple(terms), tuple(coefficients.values()), ((),) * len(terms))


def test_a_row_is_rebuilt_so_that_the_sum_is_conserved():
    frame = Frame((("S", 1), ("I", 1), ("R", 1)))
    problem = Problem((Observation(np.arange(9.0), np.ones((9, 3)), tuple(map(Variable, "SIR"))),))
    language = make_system_language(GRAMMAR, problem, frame)
    known = row_knowledge(Knowledge(conserved=["S + I + 2*R"]), frame)
    rows = (
        component(frame, **{"S*I": -0.5}),
        component(frame, **{"S*I": 0.48, "I": -0.2}),
        component(frame, **{"S": 1.0}),
    )
    closed = closures(rows, known, language, changed=0)
    rights = [{language.rows[2].rank[t]: c for t, c in zip(x[2].terms, x[2].coefficients, strict=True)} for x in closed]
    infected = language.rows[2].rank[term("I", frame)]
    assert {infected: 0.1} in rights  # S*I cancels, I enters with half of its coefficient
    assert all(x[0] == rows[0] for x in closed)
    assert closures(rows, row_knowledge(Knowledge(), frame), language, changed=0) == [rows]


def test_a_shared_coefficient_brings_its_partner():
    frame = Frame((("x", 1), ("y", 1)))
    problem = Problem((Observation(np.arange(9.0), np.ones((9, 2)), tuple(map(Variable, "xy"))),))
    language = make_system_language(GRAMMAR, problem, frame)
    known = row_knowledge(Knowledge(shared=["x: x*y = -y: x*y"]), frame)
    rows = (component(frame, **{"x*y": -0.5}), component(frame, y=1.0))
    (closed,) = closures(rows, known, language, changed=0)
    partner = dict(zip(closed[1].terms, closed[1].coefficients, strict=True))
    assert partner[term("x*y", frame)] == pytest.approx(0.5)


def test_terms_are_added_to_the_rows_of_a_law_together(outbreak):
    _, _, _, known, terms = outbreak
    ways = directions(known, terms)
    assert sorted(way.rows for way in ways) == [(0, 1), (0, 2), (1, 2)]
    assert all(way.weights == pytest.approx((1.0, -1.0)) for way in ways)


def test_repair_finds_the_missing_flow_between_two_rows(outbreak):
    problem, target, language, known, terms = outbreak
    frame = target.frame
    start = (
        component(frame, **{"S*I": -0.002}),
        component(frame, **{"S*I": 0.002, "S": 0.01}),
        component(frame, **{"S": -0.01}),
    )
    proposal = propose_components(language, known, start, Shooting((8,)), "")
    candidate = Evaluator({frame: target}, problem.knowledge)(proposal)
    components = fitted_components(start, candidate)
    changed = moves(candidate, components, segmented(target, 8), language, known, terms)
    recovery, infection = term("I", frame), term("S*I", frame)
    swaps = [m.components for m in changed if m.kind == "swap"]
    true = [{infection}, {infection, recovery}, {recovery}]
    assert any([set(c.terms) for c in system] == true for system in swaps)
    added = [m.components for m in changed if m.kind == "add"]
    assert any(propose_components(language, known, system, Shooting((8,)), "") for system in added)


def test_four_rows_are_found_under_their_law():
    problem, system = observed(
        SEIR, (0.99, 0.0, 0.01, 0.0), np.linspace(0, 60, 100), conserved=["S + E + I + R"]
    )  # fmt: skip
    found = discover(problem, GRAMMAR)
    assert System.read(str(found.system)).skeleton.structure == system.skeleton.structure
    assert found.best.skeleton.n_constants == 3


def test_knowledge_that_nothing_fulfils_is_a_sentence():
    problem, _ = observed(
        SIR, (760.0, 3.0, 0.0), np.linspace(0, 15, 60),
        conserved=["S + I + R"], known={"S": "-0.1*S"}, populations=["I", "R"],
    )  # fmt: skip
    with pytest.raises(LgfError, match="state less"):
        discover(problem, GRAMMAR)


def test_a_common_denominator_is_proposed():
    text = "x' = (1.5*x - 1.2*x*y)/(1 + 0.8*x); y' = -0.7*y + 0.9*x*y"
    problem, _ = observed(text, (1.5, 0.5), np.linspace(0, 20, 150))
    found = discover(problem, GRAMMAR)
    structures = {c.skeleton.structure for c in found.indistinguishable}
    frame = problem.frames[0]
    assert System.read(text, frame=frame).skeleton.structure in structures
    assert found.best.skeleton.structure in structures
