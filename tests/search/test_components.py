"""The search for systems: selection of terms in integral form, segments, and whole discoveries."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lgf import LatentGrammarFlow
from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.data.row_knowledge import row_knowledge
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.equation.terms import rows_of, term_of
from lgf.expression.frame import Variable
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.tree import ONE
from lgf.fit.constants import fit_constants
from lgf.fit.segments import Shooting, reweighed, segmented
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.language.system_language import make_system_language
from lgf.runs.journal import Journal
from lgf.search.candidate import Proposal
from lgf.search.discover import discover
from lgf.search.evaluate import Evaluator
from lgf.search.proposers.components import ComponentProposer
from lgf.search.systems.component import Component, cancelled
from lgf.search.systems.integral_form import (
    Needed,
    integrals_of,
    make_grid,
    measured_rows,
    whitened,
    whitening,
)
from lgf.search.systems.language import system_language
from lgf.search.systems.nested import simplest_nested
from lgf.search.systems.row_fits import RowFits
from lgf.search.systems.term_grid import make_term_grid
from lgf.smoothing.complete import complete
from lgf.solver.forcing import Forcing
from lgf.solver.kernels.beam import BeamOptions, Choices, shortest_sets
from lgf.solver.solve import solve
from lgf.threads import on_threads

GRAMMAR = load_grammar("systems")


def observed(text, start, t, noise, seed, columns=None, **known):
    """A problem with noisy columns of the system, and the system."""
    system = System.read(text)
    solved = solve(system, start, t, rtol=1e-10)
    columns = tuple(Variable.read(c) for c in columns or system.frame.names)
    clean = np.column_stack([solved[str(c)] for c in columns])
    values = clean + noise * clean.std(axis=0) * np.random.default_rng(seed).standard_normal(clean.shape)
    return Problem((Observation(t, values, columns),), Knowledge(**known)), system


def target_of(problem):
    frame = problem.frames[0]
    return make_target(problem, frame, [complete(o, frame) for o in problem.observations])


HARES = "hare' = 1.1*hare - 0.4*hare*lynx; lynx' = 0.1*hare*lynx - 0.4*lynx"


@pytest.fixture(scope="module")
def hares():
    return observed(HARES, (10.0, 5.0), np.linspace(0, 20, 100), 0.05, 0)


# Integral form


def test_integrals_of_terms_follow_the_trajectory():
    t = np.sort(np.random.default_rng(0).uniform(0, 3, 60))
    problem, _ = observed("x' = -0.3*x; y' = 0.2*x - y", (2.0, 1.0), t, 0.0, 0)
    target = target_of(problem)
    language = system_language(GRAMMAR, problem, target.frame, target)
    terms = make_term_grid(language, target, 20)
    exact = solve(System.read("x' = -0.3*x; y' = 0.2*x - y"), (2.0, 1.0), t, rtol=1e-10).values.T
    grid, every = make_grid(target, np.ascontiguousarray(exact)), Needed(np.arange(2), np.arange(len(t)))
    integrals, largest = integrals_of(terms.programs, terms.owner, terms.values, grid, every)
    x = next(i for i, e in enumerate(terms.terms) if e == Variable("x").symbol)
    column = int(np.flatnonzero(terms.owner == x)[0])
    np.testing.assert_allclose(integrals[column, 1], (exact[0, 0] - exact[0]) / 0.3, atol=1e-8)
    np.testing.assert_allclose(integrals[column, 0], exact[0], atol=1e-12)
    some = Needed(np.array([1]), np.array([3, 50]))
    fewer, same = integrals_of(terms.programs, terms.owner, terms.values, grid, some)
    np.testing.assert_array_equal(fewer[:, 0], integrals[:, 1, [3, 50]])
    np.testing.assert_array_equal(same, largest)


def test_the_filter_whitens_white_noise_plus_a_random_walk():
    t = np.linspace(0, 5, 40)
    problem, _ = observed("x' = -0.3*x; y' = 0.2*x - y", (2.0, 1.0), t, 0.05, 0)
    target = target_of(problem)
    rows = measured_rows(target, 1000)[0]
    kappa = 30.0
    filtered, log_determinant = whitening(target, rows, kappa)
    s = (t - t[0]) / (t[-1] - t[0])
    covariance = np.eye(len(t)) + kappa * np.minimum.outer(s, s)
    factor = np.linalg.cholesky(covariance)
    y = np.random.default_rng(1).standard_normal(len(t))
    integrals = np.zeros((1, 2, len(t)))
    integrals[0, 1] = y
    plain = np.linalg.solve(factor, y)
    one = np.linalg.solve(factor, np.ones(len(t)))
    projected = plain - one * (one @ plain) / (one @ one)
    np.testing.assert_allclose(whitened(integrals, filtered)[0], projected, atol=1e-10)
    assert log_determinant == pytest.approx(np.linalg.slogdet(covariance)[1])


def test_a_state_of_second_order_loses_its_start_and_slope():
    t = np.linspace(0, 6, 50)
    problem, _ = observed("x'' = -x; y' = -y + x", (1.0, 0.0, 0.0), t, 0.01, 0, order={"x": 2, "y": 1})
    target = target_of(problem)
    filtered, _ = whitening(target, measured_rows(target, 1000)[0], 10.0)
    line = np.zeros((1, 3, len(t)))
    line[0, 2] = 3.0 - 2.0 * t
    assert np.abs(whitened(line, filtered)).max() < 1e-9


# The beam


def slow_length(columns, y, chosen, cost, count_cost, floor):
    """The description length of a set of columns by plain least squares."""
    A = columns[list(chosen)].T
    rss = float(np.sum((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2))
    n = len(y)
    return n * math.log(max(rss, floor) / n) + sum(cost[list(chosen)]) + count_cost[len(chosen)]


@pytest.mark.parametrize("seed", range(3))
def test_the_beam_scores_sets_as_least_squares_does_and_finds_the_best(seed):
    rng = np.random.default_rng(seed)
    n_rows, n_columns, depth = 60, 14, 3
    columns = rng.standard_normal((n_columns, n_rows))
    columns /= np.linalg.norm(columns, axis=1)[:, None]
    y = columns[[1, 5, 7]].T @ np.array([3.0, -2.0, 1.0]) + 0.05 * rng.standard_normal(n_rows)
    term = np.arange(n_columns) // 2  # two columns a term
    cost, count_cost = rng.uniform(3, 9, n_columns // 2), np.array([0.0, 3.0, 1.0, 2.0])
    floor = 1e-9
    choices = Choices(
        columns[None], y, term, cost[None], count_cost[None],
        rng.integers(1, 2**63, n_columns // 2, dtype=np.uint64),
    )  # fmt: skip
    found = shortest_sets(choices, BeamOptions(50, depth, 7, 5, 5, 1e9, floor, 1, 4096))
    count = int(found.count[0])
    assert np.all(np.diff(found.length[0, :count]) >= 0)
    for place in range(count):
        chosen = found.columns[0, place, : found.size[0, place]]
        assert len(set(term[chosen])) == len(chosen)
        slow = slow_length(columns, y, chosen, cost[term], count_cost, floor)
        assert found.length[0, place] == pytest.approx(slow, abs=1e-6)
    assert set(found.columns[0, 0, :3]) == {1, 5, 7}
    two = Choices(
        np.stack([columns[::-1], columns]), y, term, np.stack([cost, cost]), np.stack([count_cost, count_cost]),
        choices.key,
    )  # fmt: skip
    fewer = shortest_sets(two, BeamOptions(50, depth, 7, 5, 5, 1e9, floor, 2, 5))
    assert fewer.size.min() == 2
    of_two = found.size[0, :count] >= 2
    np.testing.assert_array_equal(fewer.columns[1], found.columns[0, :count][of_two][:5])


# Fits of rows


def test_sums_of_terms_are_fitted_as_least_squares_does(hares):
    problem, _ = hares
    target = target_of(problem)
    language = system_language(GRAMMAR, problem, target.frame, target)
    terms = make_term_grid(language, target, 60)
    fits = RowFits(language, target, terms, target.columns)
    hare, product, square = (
        terms.middle[terms.position[read_expression(text, target.frame)]] for text in ("hare", "hare*lynx", "hare^2")
    )
    filtered, _, log_determinant = fits.filtered(0, 10.0)
    every = integrals_of(terms.programs, terms.owner, terms.values, fits.grid, Needed(np.arange(2), np.arange(100)))[0]
    rows, y = whitened(every, filtered), fits.explained(0, 10.0)
    found = fits.fitted(0, 10.0, [[product, hare], [square]])
    for (length, component), chosen in zip(found, ([hare, product], [square]), strict=True):
        values, squares, _, _ = np.linalg.lstsq(rows[chosen].T, y, rcond=None)
        np.testing.assert_allclose(component.coefficients, values, rtol=1e-7)
        bits = language.bits(0, component.terms)
        slow = len(y) * math.log(squares[0] / len(y)) + len(chosen) * math.log(len(y)) + 2 * math.log(2) * bits
        assert length == pytest.approx(slow + log_determinant)
        assert fits.lengths(0, 10.0, [component]) == pytest.approx([length])
    inner = int(np.flatnonzero((terms.n_inner[terms.owner] == 1) & (fits.largest[: len(terms.owner)] < np.inf))[0])
    ((_, bent),) = fits.fitted(0, 10.0, [[hare, inner]])
    place = next(i for i, values in enumerate(bent.inner) if values)

    def squared(value):
        column = integrals_of(
            terms.programs, terms.owner[[inner]], np.array([[value, 0.0]])[:, : terms.values.shape[1]], fits.grid,
            Needed(np.arange(2), np.arange(100)),
        )[0]  # fmt: skip
        return np.linalg.lstsq(np.stack([rows[hare], whitened(column, filtered)[0]]).T, y, rcond=None)[1][0]

    best = squared(bent.inner[place][0])
    assert best <= squared(terms.values[inner, 0]) * (1 + 1e-9)
    assert all(best < squared(bent.inner[place][0] * factor) * 1.002 for factor in (0.9, 1.1))


# Segments


def test_segments_of_one_experiment_are_the_plain_fit(hares):
    problem, system = hares
    target = target_of(problem)
    skeleton = system.skeleton
    plain = fit_constants(skeleton, target, start=system.values)
    whole = fit_constants(skeleton, target, start=system.values, shooting=Shooting((1,)))
    np.testing.assert_allclose(whole.values, plain.values, rtol=1e-2)
    assert whole.loss <= plain.loss * 1.001
    rough = tuple(1.3 * v for v in system.values)
    short = fit_constants(skeleton, target, start=rough, shooting=Shooting((8,)))
    assert short.segments == 8
    assert short.segment_states.shape == (8, 2)
    assert short.initial.shape == (1, 2)
    assert short.loss < plain.loss
    descended = fit_constants(skeleton, target, start=rough, shooting=Shooting((8, 2, 1)))
    assert descended.segments == 1
    np.testing.assert_allclose(descended.values, whole.values, rtol=1e-2)


def test_a_segment_is_an_experiment_with_a_start_of_its_own(hares):
    problem, _ = hares
    target = target_of(problem)
    cut = segmented(target, 4)
    assert cut.n_experiments == 4
    assert cut.record.first.tolist() == [0, 25, 50, 75, 100]
    assert cut.n_unknown == 8
    assert cut.experiment.tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(cut.record.initial[2], target.columns[:2, 50])


def test_other_weights_change_the_weights_alone(hares):
    problem, _ = hares
    target = target_of(problem)
    noise = tuple(2.0 * target.noise[list(target.measured)] * np.array([1.0, 3.0]))
    other = reweighed(target, noise)
    ratio = other.record.weight[0, 0] / other.record.weight[0, 1]
    assert ratio == pytest.approx(9.0 * target.record.weight[0, 0] / target.record.weight[0, 1])
    assert np.sum(other.record.weight * other.record.data**2) == pytest.approx(1.0)


# Whole discoveries

SYSTEMS = {
    "predator and prey": (HARES, (10.0, 5.0), 20.0),
    "pendulum": ("theta' = omega; omega' = -2*sin(theta) - 0.2*omega", (2.0, 0.0), 10.0),
    "epidemic": ("S' = -0.4*S*I; I' = 0.4*S*I - 0.3*I", (7.0, 0.1), 10.0),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_is_found_with_nothing_given(name):
    text, start, end = SYSTEMS[name]
    problem, system = observed(text, start, np.linspace(0, end, 120), 0.03, 1)
    found = discover(problem, GRAMMAR)
    structures = {c.skeleton.structure for c in (found.best, *found.indistinguishable)}
    assert system.skeleton.structure in structures
    assert found.best.fit.segments == 1


def _record(text, start, columns, seed=0, gaps=(), inputs=None, name=""):
    t = np.linspace(0, 15, 120)
    solved = solve(System.read(text), start, t, inputs, rtol=1e-10)
    clean = np.column_stack([solved[c] for c in columns])
    values = clean + 0.02 * clean.std(axis=0) * np.random.default_rng(seed).standard_normal(clean.shape)
    for column, begin, end in gaps:
        values[begin:end, column] = np.nan
    return Observation(t, values, tuple(map(Variable.read, columns)), inputs=inputs or {}, name=name)


DRIVEN = "x' = y; y' = -2*x - 0.3*y + 1.5*F"
PAIR = "x'' = -3*x + 1*y; y'' = 1*x - 2*y"
MODES = {
    "gaps by column": (HARES, [((10.0, 5.0), ("hare", "lynx"), {"gaps": ((0, 20, 35), (1, 60, 75))})], None),
    "other columns in other experiments": (
        HARES,
        [((10.0, 5.0), ("hare", "lynx"), {"name": "a"}), ((4.0, 2.0), ("lynx",), {"seed": 1, "name": "b"})],
        None,
    ),
    "a derivative in place of the state": (HARES, [((10.0, 5.0), ("hare'", "lynx"), {})], 1),
    "a known input": (DRIVEN, [((1.0, 0.0), ("x", "y"), {"inputs": {"F": Forcing.from_formula("cos(1.3*t)")}})], None),
    "an acceleration": (PAIR, [((1.0, 0.0, 0.0, 0.5), ("x", "y''"), {})], 2),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_kind_of_record_is_searched(mode):
    text, experiments, order = MODES[mode]
    records = tuple(_record(text, start, columns, **rest) for start, columns, rest in experiments)
    problem = Problem(records, Knowledge(order=order))
    found = discover(problem, GRAMMAR)
    structures = {c.skeleton.structure for c in (found.best, *found.indistinguishable)}
    wanted = System.read(text, frame=problem.frames[0]).skeleton.structure
    assert wanted in structures


def test_two_coupled_oscillators_of_second_order():
    text = "x'' = -3*x + 1*y; y'' = 1*x - 2*y - 0.1*y'"
    problem, system = observed(text, (1.0, 0.0, 0.0, 0.5), np.linspace(0, 12, 150), 0.02, 0, order=2)
    found = discover(problem, GRAMMAR)
    structures = {c.skeleton.structure for c in (found.best, *found.indistinguishable)}
    assert system.skeleton.structure in structures


def test_of_nested_systems_the_simpler_one_is_chosen_within_the_margin(hares):
    problem, system = hares
    target = target_of(problem)
    larger = Skeleton.read("hare' = C*hare + C*hare*lynx + C*hare^2; lynx' = C*hare*lynx + C*lynx", target.frame)
    other = Skeleton.read("hare' = C*hare + C*lynx; lynx' = C*hare*lynx + C*lynx", target.frame)
    proposals = [Proposal(s, 20.0, shooting=Shooting((1,))) for s in (system.skeleton, larger, other)]
    small, large, foreign = map(Evaluator({target.frame: target}), proposals)
    small, large, foreign = (replace(c, objective=v) for c, v in ((small, 1.5), (large, 0.0), (foreign, 0.5)))
    assert simplest_nested([small, large, foreign], large, 2.0) is small
    assert simplest_nested([small, large, foreign], large, 1.0) is large
    assert simplest_nested([small, large, foreign], large, 2.0, lambda c: 6.0 if c is small else 0.0) is large


def test_a_divisor_of_every_term_is_cancelled(hares):
    problem, _ = hares
    target = target_of(problem)
    language = system_language(GRAMMAR, problem, target.frame, target)
    names = ("lynx", "lynx^2", "hare*lynx", "hare", "hare^2")
    lynx, square, product, hare, other = (read_expression(text, target.frame) for text in names)
    over = Component((product, square), (2.0, 3.0), ((), ()), lynx)
    plain = cancelled(over, language, 1)
    assert (plain.divisor, dict(zip(plain.terms, plain.coefficients, strict=True))) == (ONE, {hare: 2.0, lynx: 3.0})
    remaining = Component((hare, other), (2.0, 3.0), ((), ()), lynx)  # hare/lynx + hare^2/lynx would be longer
    assert cancelled(remaining, language, 1) is remaining


def answer(found):
    return (
        str(found.system),
        found.best.objective,
        found.evaluations,
        tuple(c.objective for c in found.indistinguishable),
    )


def test_the_number_of_workers_changes_nothing_and_a_journal_repeats_the_run(hares):
    problem, _ = hares
    journal = Journal()
    one = discover(problem, GRAMMAR, mapper=journal)
    with on_threads(2) as spread:
        two = discover(problem, GRAMMAR, spread=spread)
    assert answer(one) == answer(two)
    resumed = Journal(lines=journal.lines[: len(journal.lines) // 3])
    assert answer(discover(problem, GRAMMAR, mapper=resumed)) == answer(one)
    assert resumed.lines == journal.lines


def test_what_is_known_about_a_row_stays(hares):
    problem, _ = observed(
        "theta' = omega; omega' = -2*sin(theta) - 0.2*omega", (2.0, 0.0), np.linspace(0, 10, 100), 0.05, 2,
        known={"theta": "omega"}, forbidden=("omega: theta",),
    )  # fmt: skip
    found = discover(problem, GRAMMAR)
    first, second = (str(found.system)).splitlines()
    assert first == "theta' = omega"
    assert "sin(theta)" in second
    forbidden = Skeleton.read("theta' = omega; omega' = C*theta", problem.frames[0]).structure
    assert forbidden not in found.population


@pytest.mark.parametrize("known", [
    {"x": "C*x + C*x*y", "y": "C*x*y + C*y"},
    {"x": "x - 0.5*x*y", "y": "C*x*y - y"},
    {"x": "x - 0.5*x*y", "y": "0.5*x*y - y"},
])  # fmt: skip
def test_a_system_whose_right_hand_sides_are_all_known_is_only_fitted(known):
    t = np.linspace(0, 12, 80)
    states = solve(System.read("x' = x - 0.5*x*y; y' = 0.5*x*y - y"), {"x": 3, "y": 1}, t).values[:, :2]
    states = states + 0.02 * np.random.default_rng(0).standard_normal(states.shape)
    model = LatentGrammarFlow(known=known, max_evaluations=50).fit(t, states, states=["x", "y"])
    equation = model.equation_
    if known["x"].startswith("C"):
        np.testing.assert_allclose(sorted(equation.values), [-1.0, -0.5, 0.5, 1.0], rtol=0.05)
    assert model.run_.evaluations <= 10
    assert model.score(t, states) > 0.99


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("knowledge", [{}, {"known": {"hare": "C*hare - C*hare*lynx"}}, {"forbidden": "hare: lynx"}])
def test_linear_systems_and_mass_action_are_always_tried(hares, knowledge, listed, monkeypatch):
    problem = replace(hares[0], knowledge=Knowledge(**knowledge))
    target, known = target_of(problem), row_knowledge(problem.knowledge, problem.frames[0])
    language = make_system_language(GRAMMAR, problem, target.frame, target.ranges)
    proposer = ComponentProposer(language, target, known)
    if not listed:
        monkeypatch.setattr(proposer, "_first_lists", lambda selection: {0: [], 1: []})
    first, second = proposer.ask(10)[:2]
    linear, action = (Skeleton.read(text, target.frame) for text in (
        "hare' = C*hare + C*lynx + C; lynx' = C*hare + C*lynx + C",
        "hare' = C*hare + C*lynx + C*hare^2 + C*hare*lynx + C*lynx^2; "
        "lynx' = C*hare + C*lynx + C*hare^2 + C*hare*lynx + C*lynx^2",
    ))  # fmt: skip
    for proposal, expected in ((first, linear), (second, action)):
        assert proposal.skeleton.structure.split("; ")[1] == expected.structure.split("; ")[1]
        assert (proposal.skeleton.structure == expected.structure) is not bool(knowledge)
        assert math.isfinite(proposal.bits)
        assert Evaluator({target.frame: target}, problem.knowledge)(proposal).loss < 1.0


def test_two_accelerometers_on_a_moving_base():
    rng = np.random.default_rng(2)
    t = np.linspace(0.0, 30.0, 600)
    base = " + ".join(
        f"{size:.4f}*sin({w:.4f}*t + {phase:.4f})"
        for w, phase, size in zip(
            rng.uniform(0.5, 12, 12), rng.uniform(0, 6.28, 12), rng.normal(size=12) / 3, strict=True
        )
    )
    text = "p'' = -9*p - 0.3*p' + 30*(q - p) + 0.1*(q' - p') - a; q'' = -42.857142*(q - p) - 0.142857*(q' - p') - a"
    system = System.read(text, inputs={"a": base})
    signal = Forcing.from_formula(base)
    solved = solve(system, {"p": 0, "p'": 0, "q": 0, "q'": 0}, t, {"a": signal}, rtol=1e-9)
    clean = np.column_stack([solved["p''"], solved["q''"]])
    values = clean + 0.05 * clean.std(axis=0) * rng.standard_normal(clean.shape)
    observation = Observation(
        t, values, (Variable("p", 2), Variable("q", 2)), inputs={"a": Forcing.from_samples(t, signal.values(t))}
    )
    found = discover(Problem((observation,)), GRAMMAR)
    assert found.best.loss < 0.052**2
    terms = [{term_of(s) for row, s in rows_of(found.best.skeleton) if row == at} for at in (0, 1)]
    symbols = [{plain(n) for term in own for n in term.nodes() if n.head == "symbol"} for own in terms]
    assert symbols == [{"p", "p'", "q", "q'", "a"}] * 2
    assert found.best.skeleton.n_constants == 8
