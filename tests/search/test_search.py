"""The outer loop and everything around it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.problems import frame_of, problem_named

from lgf import LatentGrammarFlow
from lgf.data import Knowledge, Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.equation.terms import term_of, terms_of
from lgf.expression.frame import Frame
from lgf.expression.parse import read_expression
from lgf.fit.constants import fit_constants
from lgf.fit.likelihood import undisturbed_length
from lgf.fit.segments import reweighed
from lgf.fit.target_assembly import make_target
from lgf.grammar import bits, load_grammar
from lgf.language.cheapest_derivation import encoding
from lgf.language.language import explicit_form, linear_form, make_language
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.discover import discover
from lgf.search.evaluate import Evaluator, bounds_of
from lgf.search.loop import SearchSettings, joblib_map, search
from lgf.search.objective import Criterion, description_length, paper_objective
from lgf.search.proposers.basic import EnumerationProposer, EvolutionProposer, MonteCarloProposer, priced, propose
from lgf.search.proposers.missing_terms import MissingTermProposer
from lgf.search.round_constants import without_phases
from lgf.search.select import (
    SelectionSettings,
    choose,
    confirmed,
    finalists,
    penalty_of,
    steady,
    without_undetermined,
)
from lgf.search.settings import PAPER, DiscoverySettings
from lgf.search.verdict import Trust
from lgf.smoothing.complete import complete
from lgf.solver.solve import solve
from lgf.stopping import StopToken
from lgf.threads import on_threads

T = np.linspace(0, 5, 60)
STANDARD = load_grammar("standard")


def logistic(**known):
    truth = solve(System.read("u' = 2.1*u - 0.5*u^2"), (0.13,), T).u
    noisy = truth + 0.05 * truth.std() * np.random.default_rng(0).standard_normal(len(T))
    return Problem((Observation(T, noisy, initial=(0.13,)),), Knowledge(**{"order": 1, **known}))


@pytest.fixture(scope="module")
def stage():
    given = logistic()
    (frame,) = given.frames
    target = make_target(given, frame, [complete(given.observations[0], frame)])
    return target, language_of(given, target), Evaluator({frame: target}, given.knowledge)


def language_of(given, target):
    return make_language(STANDARD, given, target.frame, target.ranges)


def test_objectives():
    bits = 2 * math.log(2) * 8
    assert description_length(-460.0, 100, 1, 2, 8.0) == pytest.approx(-460.0 + 2 * math.log(100) * 100 / 96 + bits)
    assert description_length(-460.0, 100, 1, 2, 8.0, 3, 5.0, 7.0) == pytest.approx(
        -460.0 + (2 * math.log(100) + 5.0) * 100 / 93 + 7.0 + bits
    )
    assert description_length(-460.0, 100, 2, 2, 8.0) < description_length(-460.0, 100, 1, 2, 8.0)
    assert description_length(-60.0, 6, 1, 2, 8.0, 2) == math.inf, "six samples do not judge four fitted numbers"
    assert description_length(math.inf, 100, 1, 2, 8.0) == math.inf
    assert paper_objective(0.01, 1.0, 100, 15) == pytest.approx(0.1 * 15 + 0.9 * 100 * 0.01)
    assert paper_objective(math.inf, 3.0, 100, 15) == pytest.approx(0.1 * 15 + 0.9 * 100 * 3)
    assert paper_objective(math.inf, 3.0, 100, 15, gate=200.0) == pytest.approx(0.1 * 15 + 0.9 * 100 * 200)
    assert paper_objective(math.inf, math.nan, 100, 15) == math.inf


def test_lengths_of_fits_with_other_weights_compare(stage):
    target, _, _ = stage
    losses = np.where(np.arange(len(target.frame.columns)) == 0, 0.01 * target.column_powers, 0.0)
    own = undisturbed_length(target, losses)
    assert own == pytest.approx(target.n_samples * (math.log(0.01) + 1.0))
    other = reweighed(target, (3.0 * float(target.noise[0]),))
    assert undisturbed_length(other, losses / target.column_powers[0] * other.column_powers[0]) == pytest.approx(own)
    below, at = (undisturbed_length(target, losses * factor) for factor in (1e-30, 1e-29))
    assert below == at, "no loss is believed below the accuracy of the solver and of the file"


def test_a_fitted_initial_value_costs_as_much_as_a_constant():
    t = np.linspace(0, 5, 80)
    values = 2 + 3 * np.exp(-0.8 * t) + 0.02 * np.random.default_rng(0).standard_normal(len(t))
    given = Problem((Observation(t, values),))
    targets = {f: make_target(given, f, [complete(given.observations[0], f)]) for f in given.frames}
    assert [frame.orders for frame in targets] == [(1,), (2,)]
    # The second is the first, differentiated: a constant less and an initial value more.
    fits = [Evaluator(targets)(Proposal(Skeleton.read(text), 5.0)) for text in ("u' = C*u + C", "u'' = C*u'")]
    assert fits[0].loss == pytest.approx(fits[1].loss, rel=1e-3)
    assert fits[0].objective == pytest.approx(fits[1].objective, abs=0.1)


@pytest.mark.parametrize(
    ("text", "explicit"),
    [
        ("C*u'' + C*u' + C*u = F", "u'' = C*u' + C*u + C*F"),
        ("u''*u' + C/t^3 = 0", "u'' = C/(t^3*u')"),
        ("C*u'' + C*u^2*u'' + C*u = F", "u'' = (C*u + C*F)/(C*u^2 + 1)"),
        ("u''^2 = C*u^2", "u''^2 = C*u^2"),
    ],
)
def test_explicit_and_linear_form_keep_the_structure(text, explicit):
    skeleton = Skeleton.read(text)
    form = linear_form(explicit_form(skeleton))
    assert form.structure == skeleton.structure == Skeleton.read(explicit).structure
    assert form.n_constants == Skeleton.read(explicit).n_constants


def test_an_operator_stays_as_written_where_constants_start_at_1():
    assert PAPER.as_written
    assert not DiscoverySettings().as_written
    problem = problem_named("b3/pendulum")
    data, grammar = problem.observe(seed=100), load_grammar("b3")
    frame = frame_of(data, 2)
    target = make_target(data, frame, [complete(data.observations[0], frame)], all_modes=True)
    derivation = encoding(grammar, problem.true_equation(), True).derivation
    losses = []
    for written, text in ((True, "C*u'' + C*u' + C*u = F"), (False, "u'' = C*u' + C*u + C*F")):
        skeleton = make_language(grammar, data, frame, target.ranges, written).skeleton(derivation)
        assert str(skeleton) == text
        losses.append(fit_constants(skeleton, target, PAPER.fit).loss)
    assert losses[0] < 0.3 < 100 < losses[1]
    judge = Evaluator({frame: target}, data.knowledge, PAPER.fit, PAPER.objective)
    admitted = {
        text: judge.admit(Proposal(Skeleton.read(text), 0.0)) is not None
        for text in ("C*u'' + C*u = F", "C*u''/t + C*u = F", "C*t*u'' + C*u' = F", "C*u*u'' + C*u' = F")
    }
    assert list(admitted.values()) == [True, False, False, False], "u = 0 and t = 0 at the start"


def test_languages_leave_out_what_is_known_to_be_wrong(stage):
    target, _, _ = stage
    rng = np.random.default_rng(0)
    from lgf.grammar import sample, spell

    autonomous = language_of(logistic(autonomous=True), target)
    assert all("t" not in spell(STANDARD, d).replace("sqrt", "").replace("tanh", "")
               for d in sample(STANDARD, rng, 300, autonomous.allowed))  # fmt: skip
    plain = language_of(logistic(functions=("exp",)), target)
    assert all(f not in spell(STANDARD, d) for d in sample(STANDARD, rng, 300, plain.allowed) for f in ("sin", "log"))
    # t = 0 belongs to the record: 1/t has no value there
    assert all("/t" not in spell(STANDARD, d).replace(" ", "") for d in sample(STANDARD, rng, 500, plain.allowed))


def test_no_division_by_a_derivative_that_changes_sign():
    given = Problem((Observation(T, np.cos(T) + 2 * T),), Knowledge(order=3))
    (frame,) = given.frames
    target = make_target(given, frame, [complete(given.observations[0], frame)])
    language = make_language(STANDARD, given, frame, target.ranges)
    usable = {"".join(STANDARD.rules[r].body) for r in np.flatnonzero(language.allowed)}
    assert "u''^2/u'" in usable  # u' = 2 - sin(t)
    assert "/u'" in usable
    assert "/u''" not in usable


def test_required_terms_are_required(stage):
    target, _, _ = stage
    language = language_of(logistic(required=("u^2",)), target)
    for proposal in MonteCarloProposer([language]).ask(200):
        assert Skeleton.read("u' = C*u^2").right.args[1] in terms_of(proposal.skeleton)


def test_a_required_term_that_no_sentence_has_is_in_every_equation_at_once(stage):
    target, _, _ = stage
    text = "*".join(["sin(u)"] * 9)
    language = language_of(logistic(required=(f"u: {text}", "exp(C*u)")), target)
    (first,) = EnumerationProposer([language]).ask(1)
    assert {language_term(text), language_term("exp(C*u)")} <= set(terms_of(first.skeleton))


def language_term(text):
    return term_of(read_expression(text, Frame((("u", 1),))))


def test_bounds_hold_where_the_noise_is_correlated_too():
    t = np.linspace(0, 5, 80)
    u = 3 * np.exp(-0.5 * t) + 0.03 * np.cos(0.9 * t)
    run = LatentGrammarFlow(bounds={"u": (-0.3, -0.2)}, order=1, max_evaluations=12).fit(t, u).run_
    (plain,) = [c for c in run.prediction_front if str(c.skeleton) == "u' = C*u"]
    assert plain.noise is not None
    assert -0.3 <= plain.fit.values[0] <= -0.2


def test_bounds_go_to_the_constants_of_their_terms():
    knowledge = Knowledge(bounds={"u^2": "negative", "u": (0, 3)})
    bounds = bounds_of(Skeleton.read("u' = C*u + C*u^2 + C"), knowledge)
    np.testing.assert_array_equal(bounds, [[0, 3], [-np.inf, 0], [-np.inf, np.inf]])


def test_population_keeps_each_structure_once_and_its_front(stage):
    _, _, evaluator = stage
    texts = ["u' = C*u", "u' = C*u + C*u^2", "u' = C*u^2 + C*u", "u' = C", "u' = C*u + C*u^2 + C*u^3"]
    population = Population([evaluator(Proposal(Skeleton.read(t), 5.0)) for t in texts])
    assert len(population) == 4
    assert not population.claim(Skeleton.read("u' = C").structure)
    assert population.claim("something new")
    losses = [c.loss for c in population.front()]
    sizes = [c.complexity for c in population.front()]
    assert losses == sorted(losses, reverse=True)
    assert sizes == sorted(sizes)
    assert population.best(1)[0].skeleton.structure == Skeleton.read("u' = C*u + C*u^2").structure


@pytest.mark.parametrize("make", [MonteCarloProposer, EvolutionProposer])
def test_proposers_repeat_themselves_by_seed(stage, make):
    _target, language, evaluator = stage
    population = Population([evaluator(p) for p in EnumerationProposer([language]).ask(20)])

    def ask(seed):
        proposer = make([language], seed)
        proposer.tell(population)
        return [str(p.skeleton) for p in proposer.ask(40)]

    assert ask(1) == ask(1)
    assert ask(1) != ask(2)


def test_enumeration_goes_from_cheap_to_dear(stage):
    _, language, _ = stage
    costs = [bits(STANDARD, p.derivation, language.allowed) for p in EnumerationProposer([language]).ask(100)]
    assert np.all(np.diff(costs) >= -1e-9)


def test_the_price_of_an_equation_does_not_depend_on_who_proposed_it_first(stage):
    target, language, evaluator = stage
    drawn = MonteCarloProposer([language], seed=1).ask(1500)
    own = {}
    for p in drawn:
        own.setdefault(p.skeleton.structure, set()).add(round(bits(STANDARD, p.derivation, language.allowed), 6))
    several = {structure for structure, costs in own.items() if len(costs) > 1}
    assert len(several) > 10, "many equations have several derivations"
    listed = EnumerationProposer([language]).ask(200)
    changes = MissingTermProposer([language], {target.frame: target})
    changes.tell(Population([evaluator(propose(language, listed[3].derivation, ""))]))
    given = [priced(Proposal(p.skeleton, 24.0), language) for p in drawn[:100]]
    prices = {}
    for p in [*drawn, *listed, *changes.ask(30), *given]:
        prices.setdefault(p.skeleton.structure, []).append(p.bits)
    for structure, bits_of_all in prices.items():
        assert bits_of_all == pytest.approx([bits_of_all[0]] * len(bits_of_all)), structure
        assert bits_of_all[0] <= min(own.get(structure, [math.inf])) + 1e-6, structure


def test_same_result_with_one_and_two_workers(stage):
    _, language, evaluator = stage
    settings = SearchSettings(first=30, iterations=3)

    def run(n_jobs):
        proposers = [(EnumerationProposer([language]), 1), (EvolutionProposer([language], 0), 1)]
        with on_threads(n_jobs) as spread:
            population, history = search(evaluator, proposers, settings, mapper=joblib_map(spread))
        return [(str(c.skeleton), c.fit.values, c.objective) for c in population.best(20)], history[-1].evaluations

    assert run(1) == run(2)


def test_the_budget_of_evaluations_is_kept(stage):
    _, language, evaluator = stage
    population, history = search(
        evaluator, [(EnumerationProposer([language]), 1)], SearchSettings(first=20, max_evaluations=50, patience=None)
    )
    assert history[-1].evaluations == 50 == len(population)


def test_logistic_growth_is_discovered():
    settings = DiscoverySettings(
        search=SearchSettings(first=40, iterations=3), selection=SelectionSettings(n_finalists=4)
    )
    found = discover(logistic(), STANDARD, settings)
    assert found.best.skeleton.structure == Skeleton.read("u' = C*u + C*u^2").structure
    np.testing.assert_allclose(found.system.values, [2.1, -0.5], rtol=0.1)
    assert found.best in found.indistinguishable
    assert isinstance(found.front[0], Candidate)


def test_held_out_experiments_have_their_say():
    experiments = []
    for i, start in enumerate((0.13, 1.0, 6.0)):
        truth = solve(System.read("u' = 2.1*u - 0.5*u^2"), (start,), T).u
        noisy = truth + 0.05 * truth.std() * np.random.default_rng(i).standard_normal(len(T))
        experiments.append(Observation(T, noisy, name=str(i)))
    settings = DiscoverySettings(
        search=SearchSettings(first=40, iterations=2), selection=SelectionSettings(n_finalists=4)
    )
    found = discover(Problem(tuple(experiments), Knowledge(order=1)), STANDARD, settings)
    assert found.best.prediction is not None
    assert found.best.prediction.left_out < 0.15
    assert found.best.skeleton.structure == Skeleton.read("u' = C*u + C*u^2").structure


def test_a_search_without_time_still_has_its_first_iteration(stage):
    _, language, evaluator = stage
    stop = StopToken()
    stop.limit(-1.0)
    proposers = [(EnumerationProposer([language]), 1)]
    population, history = search(evaluator, proposers, SearchSettings(first=5), stop=stop)
    assert len(history) == 1
    assert len(population) == 5


def test_a_search_that_is_asked_to_stop_ends_with_what_it_has(stage):
    _, language, evaluator = stage
    stop, proposers = StopToken(), [(EnumerationProposer([language]), 1)]
    population, history = search(
        evaluator, proposers, SearchSettings(first=5), progress=lambda iteration, _: stop.ask(), stop=stop
    )
    assert len(history) == 1
    assert len(population) == 5
    _, history = search(evaluator, proposers, SearchSettings(first=5), population, stop=stop)
    assert not history


@pytest.mark.parametrize(("patience", "iterations"), [(60, 3), (None, 8)])
def test_a_search_that_finds_nothing_better_ends_when_its_patience_does(stage, patience, iterations):
    _, language, evaluator = stage
    settings = SearchSettings(first=30, growth=0.0, iterations=8, patience=patience, unique_tolerance=0.0)
    _, history = search(evaluator, [(EnumerationProposer([language]), 1)], settings)
    best = [iteration.best for iteration in history]
    assert best[0] == best[-1], "the logistic equation is among the first thirty"
    assert len(history) == iterations
    assert [i.settled == 1.0 for i in history] == [False] * (iterations - 1) + [patience is not None]


def test_a_search_whose_best_equation_is_doubtful_goes_on(stage):
    _, language, evaluator = stage
    settings = SearchSettings(first=20, growth=0.0, patience=20, persistence=0.0, doubt=3.0, unique_tolerance=0.0)
    asked = []

    def doubtful(candidate):
        asked.append(candidate)
        return True

    def end(doubt):
        _, history = search(evaluator, [(EnumerationProposer([language]), 1)], settings, doubtful=doubt)
        return history[-1].evaluations

    assert end(lambda candidate: False) == 40
    assert end(doubtful) == 80
    assert len(asked) == 1, "the answer about the same equation is remembered"


def test_no_candidate_is_better_than_its_bound_which_clean_data_reach():
    given = Problem((Observation(T, solve(System.read("u' = -0.7*u"), (2.0,), T).u),), Knowledge(order=1))
    (frame,) = given.frames
    target = make_target(given, frame, [complete(given.observations[0], frame)])
    evaluator = Evaluator({frame: target})
    for proposal in MonteCarloProposer([language_of(given, target)], seed=3).ask(60):
        assert evaluator(proposal).objective >= evaluator.least_objective(proposal)
    truth = Proposal(Skeleton.read("u' = C*u"), 3.0)
    assert evaluator(truth).objective == pytest.approx(evaluator.least_objective(truth), abs=1e-6)


def test_without_noise_only_simpler_equations_are_fitted_after_one_that_fits():
    given = Problem((Observation(T, solve(System.read("u' = -0.7*u"), (2.0,), T).u),), Knowledge(order=1))
    (frame,) = given.frames
    target = make_target(given, frame, [complete(given.observations[0], frame)])
    evaluator = Evaluator({frame: target})
    population = Population([evaluator(Proposal(Skeleton.read("u' = C*u"), 3.0))])
    proposer = EnumerationProposer([language_of(given, target)])
    searched, history = search(evaluator, [(proposer, 1)], SearchSettings(patience=200), population)
    assert history[-1].settled == 1.0
    assert len(searched) < 60
    assert searched.best()[0].skeleton.structure == Skeleton.read("u' = C*u").structure


def test_what_was_found_late_is_followed_by_a_longer_search():
    settings = SearchSettings(patience=50, persistence=2.0, doubt=4.0)
    assert settings.settled(60, 10, doubtful=False) == 1.0
    assert settings.settled(160, 100, doubtful=False) == pytest.approx(0.3)
    assert settings.settled(60, 10, doubtful=True) == pytest.approx(0.25)


def test_iterations_grow_with_the_search(stage):
    _, language, evaluator = stage
    settings = SearchSettings(first=4, growth=0.5, population=10, max_evaluations=40, patience=None)
    _, history = search(evaluator, [(EnumerationProposer([language]), 1)], settings)
    assert [i.new for i in history] == [4, 4, 4, 6, 9, 10, 3]


def test_finalists_lose_what_is_negligible(stage):
    _target, language, evaluator = stage
    said = encoding(STANDARD, Skeleton.read("u' = C*u + C*u^2 + C*sin(C*t)"), False)
    bloated = evaluator(propose(language, said.derivation, "test"))
    fit = replace(bloated.fit, values=(*bloated.fit.values[:2], 1e-5, bloated.fit.values[3]))
    population = Population([replace(bloated, fit=fit, objective=-1e9)])
    found = finalists(population, evaluator, joblib_map(), SelectionSettings(n_finalists=1), [language])
    assert Skeleton.read("u' = C*u + C*u^2").structure in {c.skeleton.structure for c in found}


@pytest.mark.parametrize(("text", "least"), [
    ("u' = C*u + C*u^2 + C*sin(C*t)", "u' = C*u + C*u^2"), ("u' = C*u + C*u^2 + C*u^3", "u' = C*u + C*u^2"),
])  # fmt: skip
def test_finalists_lose_what_the_data_do_not_determine(stage, text, least):
    _target, language, evaluator = stage
    skeleton = Skeleton.read(text)
    bloated = evaluator(Proposal(skeleton, language.price(skeleton)))
    found = finalists(Population([bloated]), evaluator, joblib_map(), SelectionSettings(n_finalists=1), [language])
    assert Skeleton.read(least).structure == found[0].skeleton.structure
    assert all(abs(v) > e for v, e in zip(found[0].fit.values, found[0].fit.errors, strict=True))
    assert found[0].objective < bloated.objective


def test_the_rest_goes_on_from_the_constants_of_the_winner(stage):
    target, language, evaluator = stage
    skeleton = Skeleton.read("u' = C*u + C*u^2 + C*u^3")
    bloated = evaluator(Proposal(skeleton, language.price(skeleton)))
    (rest,) = without_undetermined(bloated, target, language)
    assert rest.skeleton.n_constants == len(rest.start) == 2
    refitted = evaluator.patient(rest)
    np.testing.assert_allclose(rest.start, refitted.fit.values, rtol=0.05)  # the others moved with what was left out


def test_an_equation_that_only_the_kernels_can_solve_is_not_chosen(stage):
    _target, language, evaluator = stage
    good, better = (evaluator(p) for p in EnumerationProposer([language]).ask(2))
    better = replace(better, objective=good.objective - 5)
    assert choose([good, better], lambda c: True) is better
    assert choose([good, better], lambda c: c is good) is good
    assert choose([good, better], lambda c: False) is better


def test_what_was_not_taken_can_be_proposed_again(stage):
    _target, language, evaluator = stage

    class Generous:
        def ask(self, n):
            return EnumerationProposer([language]).ask(n + 5)

        def tell(self, population):
            pass

    settings = SearchSettings(first=4, growth=0.0, iterations=3, unique_tolerance=0.0, patience=None)
    population, history = search(evaluator, [(Generous(), 1)], settings)
    assert [iteration.new for iteration in history] == [4, 4, 1]
    assert len(population) == 9


def test_a_penalty_is_what_a_candidate_must_be_better_by(stage):
    _target, language, evaluator = stage
    good, better = (evaluator(p) for p in EnumerationProposer([language]).ask(2))
    better = replace(better, objective=good.objective - 5)
    for units, wanted in ((4, better), (6, good)):
        assert choose([good, better], lambda c: True, lambda c, u=units: u * (c is better)) is wanted
    assert choose([good, better], lambda c: c is better, lambda c: 6 * (c is better)) is better


def test_time_in_an_equation_must_be_worth_more_than_a_bare_mention(stage):
    target, language, evaluator = stage
    said = [encoding(STANDARD, Skeleton.read(text), False).derivation for text in ("u' = C*u", "u' = C*t")]
    without, with_t = (evaluator(propose(language, d, "test")) for d in said)
    units = Criterion.DESCRIPTION_LENGTH
    assert penalty_of(without, logistic(), target, units) == 0.0
    assert penalty_of(with_t, logistic(), target, units) == SelectionSettings().bare_mention
    assert penalty_of(with_t, logistic(), target, Criterion.PAPER) == 0.0


@pytest.mark.parametrize("known", [True, False])
def test_an_equation_that_needs_its_start_too_finely_is_not_steady(known):
    problem = logistic()
    (observation,) = problem.observations
    problem = replace(problem, observations=(replace(observation, initial=(0.13,) if known else {}),))
    (frame,) = problem.frames
    target = make_target(problem, frame, [complete(problem.observations[0], frame)])
    sound = Evaluator({frame: target}, problem.knowledge)(Proposal(Skeleton.read("u' = C*u + C*u^2"), 5.0))
    assert steady(sound, problem, target)
    # A rest state just below the start: from a little lower the solution falls without end.
    rest = float(sound.fit.initial[0, 0]) - 0.2 * float(target.noise[0])
    falling = Skeleton.read("u' = C*u + C*u^2 + C")
    values = (2.1, -0.5, 0.5 * rest**2 - 2.1 * rest)
    fit = replace(sound.fit, skeleton=falling, values=values, covariance=np.eye(3), by_experiment=np.array([values]))
    moved = replace(sound, fit=fit)
    assert steady(moved, problem, target) is known
    penalty = SelectionSettings().indistinguishable
    assert penalty_of(moved, problem, target, Criterion.DESCRIPTION_LENGTH) == (0.0 if known else penalty)


def test_an_independent_solver_confirms_a_sound_fit_and_not_a_false_one(stage):
    target, _, evaluator = stage
    sound = evaluator(Proposal(Skeleton.read("u' = C*u + C*u^2"), 5.0))
    assert confirmed(sound, logistic(), target)
    exploding = replace(sound, fit=replace(sound.fit, values=(3.0, 2.0)))
    assert not confirmed(exploding, logistic(), target)


def test_a_slow_function_of_time_is_written_as_a_constant():
    t = np.linspace(0.0, 10.0, 200)
    noisy = solve(System.read("u'' = -0.2*u' - 4*u + 3"), (0.0, 0.0), t).u
    noisy = noisy + 0.02 * np.random.default_rng(0).standard_normal(len(t))
    problem = Problem((Observation(t, noisy),), Knowledge(order=2))
    (frame,) = problem.frames
    target = make_target(problem, frame, [complete(problem.observations[0], frame)])
    evaluator = Evaluator({frame: target})
    dear = evaluator(Proposal(Skeleton.read("u'' = C*u' + C*u + C*exp(C*t)"), 14.0))
    best = finalists(Population([dear]), evaluator, joblib_map(), languages=[language_of(problem, target)])
    assert best[0].skeleton.structure == Skeleton.read("u'' = C*u' + C*u + C").structure
    assert {c.skeleton.structure for c in best} >= {
        dear.skeleton.structure, Skeleton.read("u'' = C*u' + C*u + C*t + C").structure
    }  # fmt: skip


def test_a_search_whose_best_equation_leaves_more_than_the_noise_goes_on():
    """No autonomous equation of first order follows sin(t)."""
    t = np.linspace(0.0, 12.0, 100)
    u = np.sin(t) + 0.02 * np.random.default_rng(0).standard_normal(100)
    problem = Problem((Observation(t, u),), Knowledge(order=1, autonomous=True, functions=()))
    settings = DiscoverySettings(search=SearchSettings(patience=10))
    found = discover(problem, load_grammar("standard"), settings)
    assert found.verdict.trust is Trust.NO_LAW
    assert found.evaluations >= 30


@pytest.mark.parametrize(
    ("text", "phase", "simpler"),
    [
        ("u' = C*u*sin(C*t + C)", 4.7, "u' = C*u*cos(C*t)"),
        ("u' = C*sin(C*t + C) + C", 3.1, "u' = C*sin(C*t) + C"),
        ("u' = C*cos(C*t + C)", -1.5, "u' = C*sin(C*t)"),
        ("u' = C*cos(C*t + C)", 0.7, None),
    ],
)
def test_phases_near_quarter_turns_are_left_out(stage, text, phase, simpler):
    _, _, evaluator = stage
    candidate = evaluator(Proposal(Skeleton.read(text), 5.0))
    skeleton = candidate.skeleton
    sines = [node for node in skeleton.right.nodes() if node.head in ("sin", "cos")]
    (index,) = (a.args[0] for a in sines[0].args[0].args if a.head == "constant")
    values = tuple(phase if i == index else 2.0 for i in range(skeleton.n_constants))
    found = without_phases(replace(candidate, fit=replace(candidate.fit, values=values)))
    assert (None if found is None else found.structure) == (
        None if simpler is None else Skeleton.read(simpler).structure
    )
