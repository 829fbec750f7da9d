"""Systems of several states: their constants fitted, and the linear response of each equation to an added term."""

from dataclasses import replace

import numpy as np
import pytest

from lgf import LatentGrammarFlow
from lgf.data import Knowledge, Observation, Problem
from lgf.equation.complexity import node_count
from lgf.equation.skeleton import Skeleton
from lgf.equation.system import System
from lgf.expression.frame import Frame, Variable
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitMethod, FitSettings
from lgf.fit.target_assembly import make_target
from lgf.search.candidate import Proposal
from lgf.search.evaluate import Evaluator, bounds_of
from lgf.search.select import confirmed, steady
from lgf.search.sensitivity import in_blocks, linearise
from lgf.smoothing.complete import complete
from lgf.solver.forcing import Forcing
from lgf.solver.reference import solve_by_reference
from lgf.solver.solve import solve
from lgf.solver.trajectory import SolveStatus

T = np.linspace(0, 30, 151)
HARES = System.read("hare' = 1.1*hare - 0.4*hare*lynx; lynx' = 0.1*hare*lynx - 0.4*lynx")
PAIR = System.read(
    "x'' = -4*x - 0.3*x' + 1.5*y + 0.8*a; y'' = 1.2*x - 5*y - 0.4*y'", frame=Frame((("x", 2), ("y", 2)), ("a",))
)
PAIR_START = {"x": 1.0, "x'": 0.0, "y": -0.5, "y'": 0.2}
FORMULA = Forcing.from_formula("cos(1.3*t)")
SAMPLES = Forcing.from_samples(T / 2, np.cos(0.65 * T) + 0.5 * np.sin(1.5 * T))
PRECISE = FitSettings(iterations=60, tolerance=1e-8, rtol=1e-8, steps_per_solve=4000, steps_per_fit=40_000)


def observed(system, start, t, columns, inputs=None, given=None, seed=0, noise=0.05):
    truth = solve(system, start, t, inputs, rtol=1e-10)
    clean = np.column_stack([truth[column] for column in columns])
    values = clean + noise * clean.std(axis=0) * np.random.default_rng(seed).standard_normal(clean.shape)
    return Observation(t, values, columns, initial=given, inputs=inputs or {})


def problem_of(*observations, **known):
    return Problem(observations, Knowledge(**known))


def target_of(problem):
    (frame,) = problem.frames
    completions = [complete(o, frame, "auto", problem.signals(e)) for e, o in enumerate(problem.observations)]
    return make_target(problem, frame, completions)


def near(fit, system, times=4.0):
    """Whether every constant is within so many of its standard errors of the truth, and these are small."""
    errors = np.array(fit.errors)
    assert np.all(errors < 0.1 * np.abs(fit.values))
    return bool(np.all(np.abs(np.array(fit.values) - system.values) < times * errors))


@pytest.fixture(scope="module")
def hares():
    return target_of(problem_of(observed(HARES, {"hare": 10, "lynx": 5}, T, ("hare", "lynx"))))


def test_constants_and_start_of_two_states_are_fitted(hares):
    fit = fit_constants(HARES.skeleton, hares)
    assert fit.status is SolveStatus.OK
    assert near(fit, HARES)
    assert hares.n_unknown == 2
    np.testing.assert_allclose(fit.initial, [[10, 5]], rtol=0.03)
    assert fit.loss < 1.2 * hares.noise_loss


def test_the_loss_has_a_part_for_every_measured_column(hares):
    fit = fit_constants(HARES.skeleton, hares, PRECISE)
    solved = solve(fit.system(hares), fit.initial[0], T, rtol=1e-9)
    error = (solved.values - hares.record.data) ** 2 * hares.record.weight
    np.testing.assert_allclose(fit.losses, error.sum(axis=0), rtol=1e-3)
    assert np.all(fit.losses[:2] > 0.3 * hares.noise_loss)
    assert np.all(fit.losses[2:] == 0.0)
    assert fit.loss == pytest.approx(fit.losses.sum(), rel=1e-3)  # what is left is the pull of the fitted start
    assert fit.loss >= fit.losses.sum()


def test_a_spoiled_column_shows_in_its_part_alone(hares):
    """A lynx of another size: the hare is explained as before, only the lynx is not."""
    fit = fit_constants(HARES.skeleton, hares, PRECISE)
    data = hares.record.data.copy()
    data[:, 1] *= np.where(np.arange(len(T)) % 2, 0.5, 1.5)
    record = hares.record._replace(data=data, initial=fit.initial)
    rough = replace(hares, record=record, cache={})
    again = fit_constants(HARES.skeleton, rough, replace(PRECISE, iterations=0), start=fit.values)
    assert again.losses[0] == pytest.approx(fit.losses[0], rel=1e-3)
    assert again.losses[1] > 20 * fit.losses[1]


def test_a_fit_agrees_with_the_independent_solver(hares):
    fit = fit_constants(HARES.skeleton, hares)
    theirs = solve_by_reference(fit.system(hares), fit.initial[0], T)
    np.testing.assert_allclose(solve(fit.system(hares), fit.initial[0], T).values, theirs.values, rtol=1e-5, atol=1e-6)


def test_the_search_of_the_paper_fits_two_states_too(hares):
    exact = observed(HARES, {"hare": 10, "lynx": 5}, T[:60], ("hare", "lynx"), given={"hare": 10, "lynx": 5})
    target = target_of(problem_of(exact))
    text = "hare' = C*hare - 0.4*hare*lynx; lynx' = 0.1*hare*lynx - C*lynx"
    fit = fit_constants(Skeleton.read(text), target, FitSettings(method=FitMethod.NELDER_MEAD))
    np.testing.assert_allclose(fit.values, [1.1, 0.4], rtol=0.05)
    assert np.count_nonzero(fit.losses) == 2


@pytest.mark.parametrize("signal", [FORMULA, SAMPLES], ids=["formula", "samples"])
@pytest.mark.parametrize("columns", [("x", "y"), ("x", "y'"), ("x''", "y''")])
def test_two_oscillators_with_one_input(columns, signal):
    given = PAIR_START if columns == ("x''", "y''") else None  # accelerations alone do not tell the level
    observation = observed(PAIR, PAIR_START, np.linspace(0, 15, 201), columns, {"a": signal}, given)
    target = target_of(problem_of(observation, order=2))
    assert target.frame == PAIR.frame
    assert target.formulas == (() if signal.formula is None else (("a", signal.formula),))
    fit = fit_constants(PAIR.skeleton, target)
    assert near(fit, PAIR)
    assert fit.loss < 1.2 * target.noise_loss
    np.testing.assert_allclose(fit.initial[0], list(PAIR_START.values()), atol=0.08)
    measured = [PAIR.frame.positions[Variable.read(column)] for column in columns]
    assert np.flatnonzero(fit.losses).tolist() == sorted(measured)


@pytest.mark.parametrize("given", [{"lynx": 5.0}, None])
def test_only_the_derivative_of_one_state_is_measured(given):
    observation = observed(HARES, {"hare": 10, "lynx": 5}, T, ("hare", "lynx'"), given=given)
    target = target_of(problem_of(observation))
    assert target.with_highest
    assert target.n_unknown == (1 if given else 2)
    fit = fit_constants(HARES.skeleton, target)
    assert near(fit, HARES)
    np.testing.assert_allclose(fit.initial[0], [10, 5], rtol=0.03)
    assert np.flatnonzero(fit.losses).tolist() == [0, 3]


def test_states_of_different_orders_and_of_experiments_with_their_own_inputs():
    system = System.read("x'' = -4*x - 0.5*x' + 2*z; z' = 1.5*a - z", frame=Frame((("x", 2), ("z", 1)), ("a",)))
    t = np.linspace(0, 12, 150)
    starts = [{"x": 1.0, "x'": 0.0, "z": 0.5}, {"x": 0.0, "x'": 1.0, "z": -1.0}]
    formulas = ["sin(2*t)", "cos(0.7*t)"]
    records = [
        observed(system, start, t, ("x", "z"), {"a": Forcing.from_formula(formula)}, seed=seed)
        for seed, (start, formula) in enumerate(zip(starts, formulas, strict=True))
    ]
    target = target_of(problem_of(*records, order={"x": 2}))
    assert target.frame == system.frame
    assert target.formulas == ()  # the formulas differ, so each experiment has its own table
    fit = fit_constants(system.skeleton, target)
    assert near(fit, system)
    np.testing.assert_allclose(fit.initial, [list(start.values()) for start in starts], atol=0.1)


def test_bounds_and_what_is_known_of_two_states(hares):
    knowledge = Knowledge(bounds={"hare*lynx": (-0.3, 0.05)})
    bounds = bounds_of(HARES.skeleton, knowledge)
    np.testing.assert_array_equal(bounds[[1, 3]], [[-0.3, 0.05]] * 2)  # the term stands in both equations
    fit = fit_constants(HARES.skeleton, hares, bounds=bounds)
    assert -0.3 <= fit.values[1] <= 0.05
    assert -0.3 <= fit.values[3] <= 0.05
    assert fit.loss > 5 * hares.noise_loss


@pytest.mark.parametrize(
    "text",
    [
        "hare' = C*exp(exp(C*hare)); lynx' = C*lynx", "hare' = C/(hare - hare); lynx' = C",
        "hare' = sqrt(-hare); lynx' = C*lynx^C", "hare' = C*hare*1e300; lynx' = C*hare", "hare' = 0; lynx' = 0",
        "hare' = C*hare^3; lynx' = C*exp(C*lynx*t)",
    ],
)  # fmt: skip
def test_hostile_systems_end_quietly(hares, text):
    fit = fit_constants(Skeleton.read(text, hares.frame), hares)
    assert not np.isnan(fit.loss)
    assert np.all(np.isfinite(fit.values))
    assert not np.isnan(fit.covariance).any()
    assert not np.isnan(fit.losses).any()


def test_the_same_equations_in_another_order_are_the_same_fit(hares):
    turned = Skeleton.read("lynx' = C*hare*lynx + C*lynx; hare' = C*hare*lynx + C*hare", hares.frame)
    assert turned.structure == HARES.skeleton.structure
    assert fit_constants(turned, hares).loss == pytest.approx(fit_constants(HARES.skeleton, hares).loss, rel=1e-3)


def test_a_candidate_of_two_states_is_judged(hares):
    problem = problem_of(observed(HARES, {"hare": 10, "lynx": 5}, T, ("hare", "lynx")), stable=False)
    sound = Evaluator({hares.frame: hares}, problem.knowledge)(Proposal(HARES.skeleton, 10.0))
    assert sound.stability is not None
    nodes = sum(node_count(left - right) for left, right in sound.fit.system(hares).sides)
    assert sound.complexity == nodes + hares.n_unknown
    assert confirmed(sound, problem, hares)
    assert steady(sound, problem, hares)
    exploding = replace(sound, fit=replace(sound.fit, values=(1.1, 0.4, -0.4, 0.1)))
    assert not confirmed(exploding, problem, hares)


@pytest.fixture(scope="module")
def linearised(hares):
    candidate = Evaluator({hares.frame: hares})(Proposal(HARES.skeleton, 10.0))
    return candidate, linearise(candidate, hares)


@pytest.mark.parametrize("equation", [0, 1])
@pytest.mark.parametrize("term", ["hare^2", "lynx", "sin(t)"])
def test_the_response_to_a_term_in_either_equation_is_the_derivative_of_the_solution(linearised, hares, equation, term):
    candidate, line = linearised
    fit, step = candidate.fit, 1e-5

    def solved(size):
        rows = str(HARES.skeleton).splitlines()
        rows[equation] += f" + {size}*{term}"
        system = System(Skeleton.read("\n".join(rows), hares.frame), fit.values)
        return solve(system, fit.initial[0], T, rtol=1e-11)

    scale = np.sqrt(hares.record.weight[:, :2] * hares.power)
    expected = ((solved(step).values - solved(-step).values)[:, :2] / (2 * step) * scale).T.ravel()
    hare, lynx = line.columns[:2]
    along = {"hare^2": hare**2, "lynx": lynx, "sin(t)": np.sin(T)}[term]
    response = line.responses(in_blocks(along[None]), equation)[0, :, 0]
    assert np.linalg.norm(response - expected) < 0.03 * np.linalg.norm(expected)


def test_what_is_linearised_is_the_fit_itself(linearised, hares):
    candidate, line = linearised
    scale = np.sqrt(hares.record.weight[:, :2] * hares.power)
    np.testing.assert_allclose(
        line.residual, ((hares.record.data - line.columns.T)[:, :2] * scale).T.ravel(), rtol=1e-9
    )
    assert sorted(line.constants) == [0, 1, 2, 3]
    fit = candidate.fit
    for row, constant in enumerate(line.constants):
        moved = []
        for sign in (-1, 1):
            values = np.array(fit.values)
            values[constant] += sign * 1e-6
            moved.append(solve(System(HARES.skeleton, tuple(values)), fit.initial[0], T, rtol=1e-11).values[:, :2])
        expected = ((moved[1] - moved[0]) / 2e-6 * scale).T.ravel()
        assert np.linalg.norm(line.own[row] - expected) < 0.03 * np.linalg.norm(expected)


def test_oscillators_are_linearised_with_the_derivatives_that_were_measured():
    observation = observed(PAIR, PAIR_START, np.linspace(0, 15, 301), ("x", "y''"), {"a": FORMULA}, PAIR_START)
    target = target_of(problem_of(observation, order=2))
    candidate = Evaluator({target.frame: target})(Proposal(PAIR.skeleton, 10.0))
    line = linearise(candidate, target)
    t, fit, step = observation.t, candidate.fit, 1e-5
    columns = [PAIR.frame.positions[Variable.read(c)] for c in ("x", "y''")]
    assert line.measured.tolist() == columns
    scale = np.sqrt(target.record.weight[:, columns] * target.power)
    along = line.columns[PAIR.frame.positions[Variable("x")]] ** 3
    for equation in (0, 1):
        moved = []
        for size in (-step, step):
            rows = str(PAIR.skeleton).splitlines()
            rows[equation] += f" + {size}*x^3"
            system = System(Skeleton.read("\n".join(rows), PAIR.frame), fit.values, formulas=target.formulas)
            moved.append(solve(system, fit.initial[0], t, rtol=1e-11).values[:, columns])
        expected = ((moved[1] - moved[0]) / (2 * step) * scale).T.ravel()
        response = line.responses(in_blocks(along[None]), equation)[0, :, 0]
        assert np.linalg.norm(response - expected) < 0.03 * np.linalg.norm(expected)


@pytest.mark.parametrize(("end", "samples", "noise"), [(8.0, 200, 0.02), (10.0, 1000, 0.0)])
def test_a_chaotic_system_is_not_refuted_by_errors_of_the_solver(end, samples, noise):
    """Solved to 1e-4 the true equations of a chaotic record miss its second half by more than the noise."""
    truth = System.read("x' = 10*y - 10*x; y' = 28*x - y - x*z; z' = x*y - 2.667*z")
    t = np.linspace(0.0, end, samples)
    clean = solve(truth, {"x": 1.0, "y": 1.0, "z": 20.0}, t, rtol=1e-12).values[:, :3]
    noisy = clean + noise * clean.std(axis=0) * np.random.default_rng(1).standard_normal(clean.shape)
    model = LatentGrammarFlow(max_evaluations=12).fit(t, noisy, states=["x", "y", "z"])
    assert model.verdict_.startswith("Confirmed")
    assert "as in chaos" in model.verdict_
    rows = "y' = C*x + C*y + C*x*z; z' = C*z + C*x*y"
    structures = {Skeleton.read(f"{x}; {rows}").structure for x in ("x' = C*x + C*y", "x' = C*(-x + y)")}
    assert model.run_.best.skeleton.structure in structures
