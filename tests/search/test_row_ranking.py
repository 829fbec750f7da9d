"""The trained ranking of right-hand sides: its features are free of units, its ranks add up to those of systems."""

import numpy as np
import pytest

from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.expression.monomials import n_constants
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.language.system_language import unrestricted
from lgf.search.candidate import Population
from lgf.search.evaluate import Evaluator
from lgf.search.proposers.components import ComponentProposer, ComponentSettings
from lgf.search.systems.combinations import by_rank, ranked_as
from lgf.search.systems.component import Component
from lgf.search.systems.component_lists import ComponentSelection
from lgf.search.systems.language import system_language
from lgf.search.systems.row_evidence import N_FEATURES, TermValues
from lgf.search.systems.row_ranking import load_row_ranking
from lgf.search.systems.term_grid import make_term_grid
from lgf.smoothing.complete import complete
from lgf.solver.solve import solve

GRAMMAR = load_grammar("systems")
HARES = System.read("hare' = 1.1*hare - 0.4*hare*lynx; lynx' = 0.1*hare*lynx - 0.4*lynx")


def record_of(scale=1.0, duration=1.0, **known):
    """The problem and target of the hares, with states in other units, and of time."""
    t = np.linspace(0, 20, 100)
    clean = solve(HARES, (10.0, 5.0), t).values[:, :2]
    values = clean + 0.05 * clean.std(axis=0) * np.random.default_rng(0).standard_normal(clean.shape)
    columns = Variable("hare"), Variable("lynx")
    problem = Problem((Observation(t * duration, values * scale, columns),), Knowledge(**known))
    frame = problem.frames[0]
    return problem, make_target(problem, frame, [complete(o, frame) for o in problem.observations])


def evidence_of(scale=1.0, duration=1.0, **known):
    """The evidence of both rows, with states in other units, and of time."""
    problem, target = record_of(scale, duration, **known)
    language = system_language(GRAMMAR, problem, target.frame, target)
    terms = make_term_grid(language, target)
    return ComponentSelection(language, target, terms, target.columns).evidence(range(2))


@pytest.fixture(scope="module")
def hares():
    return record_of()[1]


@pytest.fixture(scope="module")
def evidence():
    return evidence_of()


def test_the_truth_is_probable(evidence):
    ranking = load_row_ranking()
    for row, terms in ((0, {"hare", "hare*lynx"}), (1, {"hare*lynx", "lynx"})):
        features = evidence[row].features
        assert features.shape == (len(evidence[row].components), N_FEATURES)
        assert np.isclose(np.exp(ranking.log_probabilities(features)).sum(), 1.0)
        first = ranking.ranked(evidence[row])[:3]
        assert terms in [{plain(t) for t in component.terms} for component in first]
        assert [c.rank for c in first] == sorted(c.rank for c in first)


def test_features_are_free_of_units(evidence):
    other = evidence_of(scale=1000.0, duration=1 / 60)
    for row in range(2):
        mine = {c.key: f for c, f in zip(evidence[row].components, evidence[row].features, strict=True)}
        scaled = {c.key: f for c, f in zip(other[row].components, other[row].features, strict=True)}
        polynomial = [key for key in mine if key in scaled and not n_constants(*key[0], key[1])]
        assert len(polynomial) > 20
        differences = [np.abs(mine[key] - scaled[key]).max() for key in polynomial]
        assert np.median(differences) < 0.05


def test_a_known_row_is_certain():
    known = evidence_of(known={"lynx": "0.1*hare*lynx - 0.4*lynx"})[1]
    (component,) = load_row_ranking().ranked(known)
    assert component.known is not None
    assert component.rank == 0.0


def test_shares_are_the_sizes_of_terms_beside_the_slope(hares):
    x, y = (hares.known_values[name, 0] for name in ("hare", "lynx"))
    slope = hares.columns[2]
    product = read_expression("hare*lynx", hares.frame), Variable("hare").symbol
    plainly = Component(product, (-0.4, 1.1), ((), ()))
    over = Component(product, (-0.4, 1.1), ((), ()), read_expression("1 + C*hare", hares.frame), (0.2,))
    terms = make_term_grid(unrestricted(GRAMMAR, hares.frame), hares, 20)
    shares = TermValues(hares, terms).shares(0, [plainly, over])
    for row, divisor in zip(shares, (1.0, 1 + 0.2 * x), strict=True):
        a, b = -0.4 * x * y / divisor, 1.1 * x / divisor
        size, other = np.sqrt(np.mean(a**2)), np.sqrt(np.mean(b**2))
        beside = [
            np.sqrt(np.mean((u - v * (u @ v) / (v @ v)) ** 2)) for u, v in ((a, b), (b, a))
        ]  # what the other term cannot say
        wanted = np.array([max(size, other), min(size, other), min(beside), max(beside)])
        slow = [
            *(wanted / np.sqrt(np.mean(slope**2)) + 1e-6),
            np.sqrt(np.mean((a + b - slope) ** 2) / np.mean(slope**2)) + 1e-4,
        ]
        np.testing.assert_allclose(row, np.log10(slow), atol=1e-6)


def test_exchanges_of_all_rows_are_in_one_order_and_the_cheapest_take_the_ranks_of_the_lists():
    def component(text, rank):
        return Component((read_expression(text, HARES.frame),), (1.0,), ((),), rank=rank)

    likely, unlikely, other = component("hare", 1.0), component("lynx", 9.0), component("lynx", 4.0)
    lists = {0: [likely, unlikely], 1: [other]}
    assert by_rank(lists) == [(0, likely), (1, other), (0, unlikely)]
    cheapest = {0: [component("hare^2", 2.0), component("hare", 3.0)], 1: [component("lynx", 0.0)]}
    ranked = by_rank(ranked_as(lists, cheapest))
    assert [(row, plain(c.terms[0]), c.rank) for row, c in ranked] == [
        (0, "hare", 1.0),
        (1, "lynx", 4.0),
        (0, "hare^2", np.inf),
    ]


@pytest.mark.parametrize("ranked", [True, False])
def test_the_cheapest_right_hand_sides_are_tried_in_every_row(ranked):
    problem, target = record_of()
    language = system_language(GRAMMAR, problem, target.frame, target)
    settings = ComponentSettings(ranked=ranked, combinations=2, swept=2, cheap=12, together=5, sweeps=1)
    proposer = ComponentProposer(language, target, RowKnowledge(target.frame), settings)
    evaluator, population, batches = Evaluator({target.frame: target}, problem.knowledge), Population(), []
    while (batch := proposer.ask(100)) and "longer" not in batch[0].origin:
        batches.append(batch)
        for proposal in batch:
            population.add(evaluator(proposal))
        proposer.tell(population)
    cheap = [batch for batch in batches if batch[0].origin == "components: cheap"]
    assert sum(map(len, cheap)) > 15  # of two rows, twelve each
    assert not ranked or max(map(len, cheap)) == settings.together
