"""Predictions, refutation and the prediction front; constants that vary by experiment; noise that is not white."""

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.made import CASES, record

from lgf import LatentGrammarFlow
from lgf.data import Knowledge, Observation, Problem
from lgf.data.noise import correlation_time
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.fit.jacobian import solve_with_jacobian
from lgf.fit.random_effects import distribution, random_length
from lgf.fit.settings import FitSettings, make_fitting
from lgf.fit.target_assembly import make_target
from lgf.search.candidate import Noise, Prediction, Proposal
from lgf.search.common_factor import with_common_factor
from lgf.search.decision import Tools, best_predictors, decide, outpredicted, prediction_front, simplicity
from lgf.search.evaluate import Evaluator, unknowns_at
from lgf.search.loop import joblib_map
from lgf.search.noise_growth import growth_about, reweighted, smoothed_curves
from lgf.search.noise_model import residuals_of, with_noise_model
from lgf.search.prediction import PredictionSettings, continues, with_prediction
from lgf.search.sensitivity import solved_columns
from lgf.search.varying import estimated_lengths, vary_one
from lgf.search.verdict import Reason, Trust, is_tested, verdict_on
from lgf.smoothing.complete import complete
from lgf.solver.kernels.correlated_noise import whiten
from lgf.solver.solve import solve

T = np.linspace(0.0, 10.0, 120)
LOGISTIC = "u' = 0.9*u - 0.09*u^2"
PATIENT = FitSettings(tolerance=1e-6, rtol=1e-6, iterations=60)


def clean(text=LOGISTIC, start=(0.5,), t=T):
    return solve(System.read(text), start, t).u


def noise(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def setting(*records, order=1):
    """(problem, completions, evaluator) of records (t, u)."""
    problem = Problem(tuple(Observation(t, u, name=str(i)) for i, (t, u) in enumerate(records)), Knowledge(order=order))
    (frame,) = problem.frames
    completions = [complete(o, frame) for o in problem.observations]
    return problem, completions, Evaluator({frame: make_target(problem, frame, completions)}, fit=PATIENT)


def fitted(evaluator, text, bits=6.0):
    return evaluator(Proposal(Skeleton.read(text), bits))


def test_slopes_with_respect_to_the_unknowns_agree_with_differences_of_solutions():
    _, _, evaluator = setting((T, clean() + 0.1 * noise(len(T))))
    candidate = fitted(evaluator, "u' = C*u + C*u^2")
    (target,) = evaluator.targets.values()
    fitting = make_fitting(candidate.skeleton, target, PATIENT)
    x = unknowns_at(candidate.fit, fitting)
    solved = solve_with_jacobian(fitting, x, rtol=1e-9)
    for j, step in enumerate((1e-4, 1e-5, 1e-4)):
        moved = x.copy()
        moved[j] += step
        other = solve_with_jacobian(fitting, moved, rtol=1e-9)
        difference = (other.values - solved.values) / step
        np.testing.assert_allclose(solved.jacobian[j], difference, rtol=0.02, atol=2e-3 * np.abs(difference).max())


def test_the_true_equation_is_confirmed_and_a_wrong_one_refuted():
    problem, completions, evaluator = setting((T, clean() + 0.1 * noise(len(T))))
    true = with_prediction(fitted(evaluator, "u' = C*u + C*u^2"), problem, completions, evaluator)
    wrong = with_prediction(fitted(evaluator, "u' = C*u"), problem, completions, evaluator)
    assert true.prediction.left_out is None
    assert 0.3 < true.prediction.surprise < 3.0
    assert true.prediction.forecast < 0.03
    assert verdict_on(true, problem)[:2] == (Trust.CONFIRMED, Reason.PREDICTS)
    assert verdict_on(wrong, problem)[:2] == (Trust.REFUTED, Reason.MISSES)
    assert verdict_on(replace(true, prediction=None), problem)[:2] == (Trust.INCONCLUSIVE, Reason.NOT_TESTED)


def test_surprise_is_about_one_over_many_draws():
    surprises = []
    for seed in range(12):
        problem, completions, evaluator = setting((T, clean() + 0.1 * noise(len(T), seed)))
        true = with_prediction(fitted(evaluator, "u' = C*u + C*u^2"), problem, completions, evaluator)
        surprises.append(true.prediction.surprise)
    assert 0.8 < np.mean(surprises) < 2.0  # the largest of three, so above 1
    assert max(surprises) < 5.0


def test_a_left_out_experiment_is_predicted_from_its_first_samples():
    starts = (0.3, 1.0, 4.0, 15.0)
    records = [(T, clean(start=(s,)) + 0.1 * noise(len(T), i)) for i, s in enumerate(starts)]
    problem, completions, evaluator = setting(*records)
    true = with_prediction(fitted(evaluator, "u' = C*u + C*u^2"), problem, completions, evaluator)
    wrong = with_prediction(fitted(evaluator, "u' = C*u + C"), problem, completions, evaluator)
    assert true.prediction.left_out < 0.05
    assert true.prediction.error == pytest.approx(math.sqrt(true.prediction.left_out * true.prediction.forecast))
    assert wrong.prediction.left_out > 3 * true.prediction.left_out
    assert verdict_on(true, problem).trust is Trust.CONFIRMED
    assert verdict_on(wrong, problem).trust is Trust.REFUTED
    assert set(verdict_on(true, problem).values) == {"error", "forecast", "left_out", "unexplained"}


@pytest.mark.parametrize("seed", [3, 4])
def test_a_blow_up_that_the_first_samples_leave_open_refutes_nothing(seed):
    t = np.linspace(0.8, 9.2, 152)
    u = clean("u' = 0.1*u + 0.04*u^3 - 0.001*u^5", start=(0.94,), t=t)  # the last term shows when the growth ends
    problem, completions, evaluator = setting((t, u + 0.05 * u.std() * noise(152, seed)))
    candidate = with_prediction(fitted(evaluator, "u' = C*u + C*u^3 + C*u^5"), problem, completions, evaluator)
    assert candidate.prediction.forecast > 1.0
    assert candidate.prediction.surprise < 5.0


def test_few_samples_are_not_forecast():
    t = np.linspace(0.0, 5.0, 7)
    problem, completions, evaluator = setting((t, clean(t=t) + 0.05 * noise(7)))
    candidate = with_prediction(fitted(evaluator, "u' = C*u + C*u^2"), problem, completions, evaluator)
    assert candidate.prediction.error is None
    assert verdict_on(candidate, problem)[:2] == (Trust.INCONCLUSIVE, Reason.FEW_SAMPLES)


@pytest.fixture(scope="module")
def candidates():
    _, _, evaluator = setting((T, clean() + 0.1 * noise(len(T))))
    texts = ("u' = C", "u' = C*u", "u' = C*u + C*u^2", "u' = C*u + C*u^2 + C*sin(u)")
    return [fitted(evaluator, text, bits) for text, bits in zip(texts, (3.0, 3.0, 5.0, 12.0), strict=True)]


def predicted(candidate, error, surprise):
    return replace(candidate, prediction=Prediction(error, None, surprise))


def test_the_description_length_chooses_unless_it_is_refuted(candidates):
    constant, growth, logistic, long = candidates
    tools = Tools(list, list, lambda c: True, (0.0, 10.0), 0.5)
    confirmed = predicted(logistic, 0.02, 1.0)
    decision = decide(confirmed, [confirmed, predicted(long, 0.015, 1.0)], [predicted(growth, 0.3, 90.0)], tools)
    assert decision.best is confirmed
    better = decide(confirmed, [confirmed, predicted(long, 0.001, 1.0)], [], tools)
    assert better.best is confirmed, "that another one predicts better is no reason by itself"
    worthless = predicted(logistic, 0.6, 1.0)
    assert not is_tested(decide(worthless, [worthless], [], tools).best, variation=0.5)
    assert decide(worthless, [worthless, predicted(long, 0.1, 1.0)], [], tools).best is worthless
    refuted = predicted(long, 0.5, 40.0)
    pool = [predicted(constant, 0.4, 90.0), predicted(growth, 0.105, 8.0), predicted(logistic, 0.1, 4.0)]
    decision = decide(refuted, [refuted], pool, tools)
    assert decision.best.skeleton == growth.skeleton, "the simplest within a tenth of the best prediction"
    assert {c.skeleton for c in decision.indistinguishable} == {growth.skeleton, logistic.skeleton}
    rejecting = tools._replace(accept=lambda c: c.skeleton != growth.skeleton)
    assert decide(refuted, [refuted], pool, rejecting).best.skeleton == logistic.skeleton


def test_an_equation_that_predicts_nothing_is_not_among_the_best_predictors(candidates):
    _, growth, logistic, long = candidates
    tools = Tools(list, list, lambda c: True, (0.0, 10.0), 0.5)
    like_chaos = replace(long, prediction=Prediction(None, None, math.nan, 20.0))
    tested = predicted(logistic, 0.1, 1.0)
    assert long.loss**0.5 < 0.1, "its fit is closer than the predictions of the other"
    assert best_predictors([like_chaos, tested], tools, PredictionSettings()) == [tested]
    assert best_predictors([like_chaos], tools, PredictionSettings()) == [like_chaos]
    refuted = predicted(growth, 0.3, 90.0)
    assert decide(refuted, [refuted, like_chaos, tested], [], tools).best is tested


def test_an_equation_that_blows_up_after_the_record_is_not_chosen(candidates):
    _, growth, logistic, long = candidates
    tools = Tools(lambda c: c, list, lambda c: True, (0.0, 10.0), 0.5, continues=lambda c: c.fit is not long.fit)
    best, others = predicted(long, 0.02, math.nan), [predicted(logistic, 0.03, 1.0), predicted(growth, 0.2, 1.0)]
    assert decide(best, [best], others, tools).best is others[0]
    much_worse = [predicted(logistic, 0.05, 1.0)]
    assert decide(best, [best], much_worse, tools).best is best, "it may be the truth"
    confirmed = predicted(long, 0.02, 1.0)
    assert decide(confirmed, [confirmed], others, tools).best is confirmed


def test_a_solution_continues_or_blows_up_after_the_last_sample():
    t = np.linspace(0.0, 1.5, 60)
    problem, _, evaluator = setting((t, clean("u' = u^2", (0.5,), t) + 0.01 * noise(len(t))))
    (target,) = evaluator.targets.values()
    assert not continues(fitted(evaluator, "u' = C*u^2"), problem, target), "1/(2 - t) is infinite at t = 2"
    assert continues(fitted(evaluator, "u' = C*u"), problem, target)


def test_a_simpler_equation_that_predicts_much_better_is_chosen_if_residuals_have_a_pattern(candidates):
    _, growth, logistic, long = candidates
    tools = Tools(list, list, lambda c: True, (0.0, 10.0), 0.5, leaves_pattern=lambda c: True)
    best, simpler = predicted(long, 0.3, 1.0), predicted(logistic, 0.15, 1.0)
    assert logistic.loss < 1.25**2 * long.loss < growth.loss
    decision = decide(best, [best, simpler], [predicted(growth, 0.1, 1.0)], tools)
    assert decision.best is simpler
    assert simpler in decision.prediction_front
    assert decide(best, [best, predicted(logistic, 0.25, 1.0)], [], tools).best is best
    noise_alone = tools._replace(leaves_pattern=lambda c: False)
    assert decide(best, [best, simpler], [], noise_alone).best is best
    worse_than_mean = predicted(long, 0.7, 1.0)
    assert decide(worse_than_mean, [worse_than_mean, simpler], [], noise_alone).best is simpler
    many_times_better = predicted(logistic, 0.05, 1.0)
    assert decide(best, [best, many_times_better], [], noise_alone).best is many_times_better


def test_the_prediction_front_has_the_simplest_equation_of_each_level(candidates):
    constant, growth, logistic, long = candidates
    steps = [predicted(c, e, 1.0) for c, e in zip(candidates, (0.4, 0.39, 0.02, 0.03), strict=True)]
    assert [c.skeleton for c in prediction_front(steps, steps[2])] == [constant.skeleton, logistic.skeleton]
    assert [c.skeleton for c in prediction_front(steps, steps[3])] == [
        constant.skeleton,
        logistic.skeleton,
        long.skeleton,
    ]
    assert simplicity(constant) < simplicity(logistic) < simplicity(long)
    assert simplicity(growth) == 3.0 + 3.0 + 3.0


def test_the_distribution_of_a_varying_constant():
    rng = np.random.default_rng(3)
    errors = np.full(200, 0.1)
    values = 2.0 + 0.5 * rng.standard_normal(200) + errors * rng.standard_normal(200)
    mean, deviation = distribution(values, errors)
    assert mean == pytest.approx(2.0, abs=0.1)
    assert deviation == pytest.approx(0.5, abs=0.07)
    _, none = distribution(2.0 + errors * rng.standard_normal(200), errors)
    assert none < 0.05
    assert random_length(values, errors, mean, 0.0) == 0.0
    assert random_length(values, errors, mean, deviation) == pytest.approx(
        np.sum((values - mean) ** 2) / deviation**2 + 200 * np.log(1 + deviation**2 / 0.01)
    )
    assert distribution(np.array([1.5]), np.array([0.1])) == (1.5, 0.0)
    free = random_length(values, np.full(200, 1e-6), mean, deviation, np.full(200, 25))
    assert free == pytest.approx(200 * np.log(25), rel=1e-6)  # no more than values that are free in each experiment


def wells(spread, n=8, seed=1):
    rng, t = np.random.default_rng(seed), np.linspace(0.0, 10.0, 25)
    capacities = 10.0 * np.exp(spread * rng.standard_normal(n))
    return capacities, [
        (t, k / (1 + (k / 0.5 - 1) * np.exp(-0.9 * t)) + 0.2 * rng.standard_normal(len(t))) for k in capacities
    ]


def test_values_that_count_as_exact_have_a_distribution():
    mean, deviation = distribution(np.array([-1e8, 0.0, 1e8]), np.full(3, 1e-150))
    assert mean == pytest.approx(0.0, abs=1.0)
    assert deviation > 0


def test_the_constant_that_varies_is_found():
    capacities, records = wells(0.15)
    problem, completions, evaluator = setting(*records)
    common = fitted(evaluator, "u' = C*u + C*u^2")
    (target,) = evaluator.targets.values()
    estimated = estimated_lengths(common, target)
    assert int(np.argmin(estimated)) == 1
    varied = vary_one([common], evaluator, joblib_map())
    best = varied[0]
    assert [v.constant for v in best.fit.sharing.varying] == [1]
    assert best.objective < common.objective - 50
    # the estimate by one Gauss-Newton step only orders the fits
    assert best.objective == pytest.approx(estimated[1], abs=0.2 * (common.objective - best.objective))
    np.testing.assert_allclose(-best.fit.values[0] / best.fit.by_experiment[:, 1], capacities, rtol=0.05)
    assert with_prediction(best, problem, completions, evaluator).prediction.surprise < 5.0


def test_a_rate_that_varies_is_a_factor_of_all_terms():
    rng, t = np.random.default_rng(1), np.linspace(0.0, 10.0, 25)
    rates = 0.9 * (1.0 + 0.15 * rng.standard_normal(8))
    records = [(t, 10.0 / (1 + 19.0 * np.exp(-r * t)) + 0.1 * rng.standard_normal(len(t))) for r in rates]
    _, _, evaluator = setting(*records)
    common = fitted(evaluator, "u' = C*u + C*u^2")
    factored = with_common_factor(common)
    assert str(factored.skeleton) == "u' = C*(u + C*u^2)"
    assert factored.skeleton.structure == common.skeleton.structure
    assert factored.fit.values == pytest.approx((common.fit.values[0], common.fit.values[1] / common.fit.values[0]))
    best = vary_one([common], evaluator, joblib_map())[0]
    assert str(best.skeleton) == "u' = C*(u + C*u^2)"
    assert best.fit.by_experiment[:, 0] == pytest.approx(rates, rel=0.03)
    assert with_common_factor(fitted(evaluator, "u' = C*u")) is None


def test_with_several_experiments_a_much_better_prediction_counts(candidates):
    _, _, logistic, long = candidates
    settings = PredictionSettings()
    one = [replace(c, prediction=Prediction(e, None, 1.0)) for c, e in ((long, 0.2), (logistic, 0.1))]
    several = [replace(c, prediction=Prediction(e, e, 1.0)) for c, e in ((long, 0.2), (logistic, 0.1))]
    tools = Tools(list, list, lambda c: True, (0.0, 10.0), 0.5)
    assert not outpredicted(one[0], one, tools)
    assert outpredicted(several[0], several, tools)
    assert not outpredicted(several[1], several, tools)
    _, _, evaluator = setting((T, clean() + 0.1 * noise(len(T))))
    growing = replace(fitted(evaluator, "u' = C*u + C*t"), prediction=Prediction(0.6, None, 1.0))
    assert outpredicted(growing, [*one, growing], tools), "time that cannot be foreseen, worse than the mean"
    assert not outpredicted(replace(growing, prediction=Prediction(0.4, None, 1.0)), one, tools)
    driven = replace(fitted(evaluator, "u' = C*u + C*t"), prediction=Prediction(0.09, 0.09, 1.0))
    assert best_predictors([*several, driven], tools, settings) == [several[1]]
    much_better = replace(driven, prediction=Prediction(0.04, 0.04, 1.0))
    assert best_predictors([*several, much_better], tools, settings) == [much_better]


def test_a_flat_smoothed_curve_does_not_limit_the_slopes_of_a_left_out_experiment():
    rng, t = np.random.default_rng(4), np.array([0.0, 0.25, 0.5, 1.0, 2.0, 3.5, 5.0, 7.0, 9.0, 12.0, 24.0])
    curve = np.exp(-0.08 * t) - np.exp(-1.4 * t)
    records = [(t, a * curve + 0.3 * rng.standard_normal(len(t))) for a in (9.0, 10.0, 11.0, 12.0)]
    problem, completions, evaluator = setting(*records, order=2)
    flat = completions[1].trajectory
    completions[1] = replace(completions[1], trajectory=replace(flat, values=flat.values * [1.0, 0.0, 0.0]))
    candidate = fitted(evaluator, "u'' = C*u' + C*u")
    assert with_prediction(candidate, problem, completions, evaluator).prediction.left_out < 0.2


def test_nothing_varies_where_the_experiments_agree():
    _, records = wells(0.0)
    _, _, evaluator = setting(*records)
    assert vary_one([fitted(evaluator, "u' = C*u + C*u^2")], evaluator, joblib_map()) == []


def test_terms_that_vary_can_be_given():
    _, records = wells(0.15)
    _, _, evaluator = setting(*records)
    given = replace(evaluator, knowledge=Knowledge(order=1, vary=["u^2"]))
    candidate = fitted(given, "u' = C*u + C*u^2")
    assert [v.constant for v in candidate.fit.sharing.varying] == [1]
    assert not fitted(given, "u' = C*u").fit.sharing.varying


def drifting(seed, size=0.05, length=1.0):
    rng, u = np.random.default_rng(seed), clean()
    decay, drift = math.exp(-(T[1] - T[0]) / length), np.zeros(len(T))
    drift[0] = rng.standard_normal()
    for i in range(1, len(T)):
        drift[i] = decay * drift[i - 1] + math.sqrt(1 - decay**2) * rng.standard_normal()
    return u + u.std() * (size * drift + 0.01 * rng.standard_normal(len(T)))


def test_whitening_agrees_with_the_covariance():
    rng = np.random.default_rng(0)
    t = np.concatenate([np.sort(rng.uniform(0, 5, 12)), np.sort(rng.uniform(0, 5, 9))])
    first, rows, share, length = np.array([0, 12, 21]), rng.standard_normal((3, 21)), 2.5, 0.8
    whitened, log_determinant = whiten(t, first, rows, share, length)
    covariance = np.eye(21)
    for begin, end in ((0, 12), (12, 21)):
        part = t[begin:end]
        covariance[begin:end, begin:end] += share * np.exp(-np.abs(part[:, None] - part) / length)
    np.testing.assert_allclose(whitened @ whitened.T, rows @ np.linalg.solve(covariance, rows.T), rtol=1e-9)
    assert log_determinant == pytest.approx(np.linalg.slogdet(covariance)[1])


def test_correlated_residuals_do_not_pay_for_spurious_terms():
    _, _, evaluator = setting((T, drifting(4)))
    (target,) = evaluator.targets.values()
    true, spurious = (
        fitted(evaluator, text, bits)
        for text, bits in (("u' = C*u + C*u^2", 5.0), ("u' = C*u + C*u^2 + C*sin(C*u) + C*cos(C*u)", 18.0))
    )
    assert spurious.objective < true.objective, "white noise pays for them"
    modelled = [with_noise_model(c, target) for c in (true, spurious)]
    assert modelled[0].objective < modelled[1].objective
    assert isinstance(modelled[0].noise, Noise)
    assert modelled[0].noise.share > 0.5
    assert modelled[0].fit.errors[0] > true.fit.errors[0], "correlated samples say less"


def growth_of(candidate, problem, target):
    return growth_about(problem, target.frame, solved_columns(candidate, target).T, smoothed=False)


def test_white_noise_stays_white():
    problem, _, evaluator = setting((T, clean() + 0.1 * noise(len(T))))
    (target,) = evaluator.targets.values()
    candidate = fitted(evaluator, "u' = C*u + C*u^2")
    fitting = make_fitting(candidate.skeleton, target, PATIENT)
    assert correlation_time(residuals_of(fitting, unknowns_at(candidate.fit, fitting)).series) < 2.0
    assert with_noise_model(candidate, target) is candidate
    assert growth_of(candidate, problem, target) is None


def test_noise_that_grows_with_the_signal_is_seen_and_weighted():
    problem, completions, evaluator = setting((T, clean() * (1 + 0.08 * noise(len(T)))))
    (frame,), (target,) = problem.frames, evaluator.targets.values()
    candidate = fitted(evaluator, "u' = C*u + C*u^2")
    growth, variances = growth_of(candidate, problem, target)
    assert growth > 2.0
    weighted = reweighted(problem, frame, variances)
    better = Evaluator({frame: make_target(weighted, frame, completions)}, fit=PATIENT)(candidate.proposal)
    assert better.fit.errors[0] < candidate.fit.errors[0], "small values are known better"
    assert better.fit.values == pytest.approx((0.9, -0.09), rel=0.05)


def test_a_start_is_as_uncertain_as_its_sample():
    """The first value of a decay has the largest error; the smoothed start, a prior, was taken for exact."""
    t = np.linspace(0.0, 4.0, 120)
    u = clean("u' = -0.8*u", (5.0,), t) * (1 + 0.06 * noise(120, 206))
    problem, completions, evaluator = setting((t, u))
    (frame,), (target,) = problem.frames, evaluator.targets.values()
    candidate = fitted(evaluator, "u' = C*u")
    _, variances = growth_of(candidate, problem, target)
    weighted = make_target(reweighted(problem, frame, variances), frame, completions)
    for own in (target, weighted):
        assert own.initial_error[0] == pytest.approx(5.0 / np.sqrt(own.record.weight[0, 0]))
    assert weighted.first_noise(0, 0) > 2.0 * target.first_noise(0, 0)
    better = Evaluator({frame: weighted}, fit=PATIENT)(candidate.proposal)
    assert better.fit.initial[0, 0] == pytest.approx(5.0, rel=0.03)


def test_a_drift_is_not_taken_for_noise_that_grows():
    (case,) = (c for c in CASES if c.name == "drift, logistic")
    times, values = record(case, 201)
    model = LatentGrammarFlow().fit(times, values)
    assert model.run_.growth is None
    assert model.run_.best.noise is not None
    assert model.run_.best.skeleton.structure == Skeleton.read("u' = C*u + C*u^2").structure


def test_errors_of_the_solver_are_not_taken_for_correlated_noise():
    problem, _, evaluator = setting((T, clean()))
    (target,) = evaluator.targets.values()
    imitation = fitted(evaluator, "u' = C*u + C*u/(C*u + 1)")
    assert imitation.loss < 1e-6
    assert with_noise_model(imitation, target) is imitation
    assert growth_of(imitation, problem, target) is None


def test_a_fit_that_the_slopes_only_promise_is_not_believed():
    t = np.linspace(0.0, 8.0, 160)
    rounded = np.array([float(f"{v:.3g}") for v in np.cos(2.0 * t)])
    # A stiff first-order equation driven by cos(C*t) imitates the oscillator; its linearised fit was taken for real.
    model = LatentGrammarFlow().fit(t, rounded)
    assert model.run_.best.skeleton.structure == Skeleton.read("u'' = C*u").structure


def test_errors_of_noise_count_in_full():
    """Smoothed noise is nearly 0; the largest error that a sample counts is taken from the data too."""
    t = np.linspace(0.0, 30.0, 300)
    _, _, evaluator = setting((t, noise(300)))
    assert fitted(evaluator, "u' = C*u").loss > 0.9


@pytest.mark.parametrize("relative", [True, False])
def test_noise_that_grows_with_the_states_of_a_system_is_seen_about_smoothed_columns(relative):
    t = np.linspace(0.0, 10.0, 300)
    truth = solve(System.read("x' = 1.8*x - 1.4*x*y; y' = -3*y + 1.6*x*y"), (4.0, 1.0), t).values[:, :2]
    size = truth if relative else truth.std(axis=0)
    values = truth + 0.05 * size * np.random.default_rng(0).standard_normal(truth.shape)
    problem = Problem((Observation(t, values, ("x", "y")),))
    (frame,) = problem.frames
    completions = [complete(problem.observations[0], frame)]
    grows = growth_about(problem, frame, smoothed_curves(completions, frame), smoothed=True)
    assert (grows is not None) is relative
    if grows is not None:
        growth, variances = grows
        expected = 1.0 + (growth * truth / np.sqrt(np.mean(truth**2, axis=0))) ** 2
        np.testing.assert_allclose(variances[:, :2], expected, rtol=0.3)
