import numpy as np
import pytest
from benchmarks.problems import problems

from lgf.data import Knowledge, Observation, Problem, check
from lgf.equation.system import System
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve

RNG = np.random.default_rng(3)
T = np.linspace(0, 20, 201)
NOISE = RNG.standard_normal(len(T))
CLEAN = np.sin(T)


def _said(*observations, severity=None, **knowledge):
    findings = check(Problem(observations, Knowledge(**knowledge)))
    return " ".join(f.sentence for f in findings if severity in (None, f.severity))


def test_good_data_get_no_warning():
    said = check(Problem((Observation(T, CLEAN + 0.05 * NOISE * CLEAN.std()),)))
    assert [f.severity for f in said] == ["note"]
    assert "% of its variation" in said[0].sentence


@pytest.mark.parametrize(("observation", "severity", "says"), [
    (Observation(T, np.full(len(T), 5.0)), "error", "constant (5)"),
    (Observation(T[:4], CLEAN[:4]), "error", "4 samples"),
    (Observation(T[:15], CLEAN[:15]), "warning", "only 15 samples"),
    (Observation(T, np.sin(20 * T)), "warning", "per oscillation"),
    (Observation(T, NOISE), "warning", "noise alone"),
    (Observation(T, 100 + np.cumsum(NOISE)), "warning", "random walk"),
    (Observation(T, CLEAN + 0.3 * NOISE), "warning", "% of its variation; average"),
    (Observation(np.delete(T, np.s_[50:90]), np.delete(CLEAN, np.s_[50:90])), "warning", "gap from t = 4.9 to 9"),
    (Observation(T, np.where(np.arange(201) == 77, 9.0, CLEAN + 0.01 * NOISE)), "warning", "largest at t = 7.7"),
    (Observation(T, np.where(np.arange(201) % 50 > 47, -999.0, CLEAN)), "warning", "u is -999 at 8 of 201 samples"),
    (Observation(T, np.where(np.arange(201) == 77, 9999.0, CLEAN)), "warning", "u is 9999 at 1 of 201 samples"),
    (Observation(T, np.exp(-5 * T) + 1e-3 * NOISE), "warning", "at rest"),
    (Observation(T, np.round(CLEAN)), "warning", "different values"),
    (Observation(T, CLEAN * 1e9), "note", "unit"),
    (Observation(T, np.minimum(CLEAN + 0.01 * NOISE, 0.5)), "warning", "u is 0.5, its largest value, at"),
    (Observation(T, np.where(np.arange(201) == 77, np.nan, CLEAN)), "note", "1 of 201 samples of u is missing"),
    (Observation(T**1.5, CLEAN), "note", "not equally spaced"),
    (Observation(T, CLEAN, "u''"), "note", "initial state"),
    (Observation(T, CLEAN, inputs={"F": Forcing.from_samples(T[:100], CLEAN[:100])}), "error", "does not cover"),
    (Observation(T, CLEAN, inputs={"F": Forcing.from_formula("1/t")}), "error", "not finite at t = 0"),
    (Observation(T, CLEAN, inputs={"F": Forcing.from_formula("3")}), "warning", "forcing F is constant"),
])  # fmt: skip
def test_each_fault_is_named(observation, severity, says):
    assert says in _said(observation, severity=severity)


def test_findings_name_the_state_and_the_input_they_are_about():
    values = np.column_stack([CLEAN + 0.01 * NOISE, np.full(len(T), 5.0)])
    drives = {"food": Forcing.from_formula("3"), "hunters": Forcing.from_samples(T[:100], CLEAN[:100])}
    said = _said(Observation(T, values, ("prey", "predator"), inputs=drives))
    assert "The measured predator is constant (5)" in said
    assert "The noise of prey is about" in said
    assert "forcing food is constant" in said
    assert "The forcing hunters (100 samples" in said
    rates = Observation(T, np.column_stack([CLEAN, CLEAN]), ("prey", "predator'"), initial={"prey": 0.0})
    assert "initial state" in _said(rates, severity="note")
    known = Observation(T, np.column_stack([CLEAN, CLEAN]), ("prey", "predator'"), initial={"predator": 0.0})
    assert "initial state" not in _said(known)


def test_the_effect_of_a_random_input_is_no_random_walk():
    t = np.arange(0.0, 40.0, 0.2)
    switch = Forcing.from_samples(t, np.random.default_rng(2).choice([0.0, 1.0], len(t)))
    u = solve(System.read("u' = -0.3*u + F"), (0.5,), t, switch).u
    assert "random walk" in _said(Observation(t, u), severity="warning")
    driven = Observation(t, u, inputs={"F": switch})
    assert _said(driven, severity="warning") == ""


def test_noise_alone_is_seen():
    assert "noise" in _said(Observation(T, NOISE), severity="warning") or "per oscillation" in _said(
        Observation(T, NOISE), severity="warning"
    )


def test_forced_without_a_forcing_stops():
    assert "no forcing is given" in _said(Observation(T, CLEAN), severity="error", forced=True)


def test_an_experiment_without_one_of_the_inputs_stops():
    a, b = Forcing.from_formula("cos(t)"), Forcing.from_samples(T, CLEAN)
    both, one = Observation(T, CLEAN, inputs={"a": a, "b": b}), Observation(T, CLEAN, inputs={"b": b}, name="second")
    assert "The forcing a is not given; give it in every experiment (second)." in _said(both, one, severity="error")
    assert "not given" not in _said(both, one, inputs={"a": a})


def test_many_experiments_are_summed_up_and_errors_come_first():
    observations = [Observation(T, CLEAN + 0.01 * NOISE, name=f"run {k}") for k in range(5)]
    findings = check(Problem((*observations, Observation(T, T * 0 + 1, name="dead"))))
    assert findings[0].severity == "error"
    assert "(dead)" in findings[0].sentence
    assert sum("run 0, run 1, run 2 and 2 more" in f.sentence for f in findings) == 1


def test_no_benchmark_problem_is_stopped_and_few_are_warned():
    warned = 0
    for problem in list(problems().values())[::2]:
        severities = [f.severity for f in check(problem.observe())]
        assert "error" not in severities
        warned += "warning" in severities
    assert warned <= 3


def test_what_differs_between_experiments_is_told_of_the_first():
    missing = [Observation(T, np.where(np.arange(201) < k, np.nan, CLEAN), name=f"run {k}") for k in (3, 4, 5)]
    sentences = [f.sentence for f in check(Problem(tuple(missing)))]
    assert "3 of 201 samples of u are missing (run 3; similar in run 4, run 5)." in sentences


def test_a_rounded_curve_that_comes_to_rest_is_not_clipped():
    assert "in a row" not in _said(Observation(T, np.round(5 / (1 + 9 * np.exp(-0.6 * T)), 3)))
    assert "in a row" in _said(Observation(T, np.minimum(20 + 5 * np.exp(-0.4 * T) + 0.02 * NOISE, 22.5)))


def test_an_initial_value_far_from_the_first_sample_is_told():
    samples = 20 + 5 * np.exp(-0.4 * T) + 0.02 * NOISE
    said = _said(Observation(T, samples, initial={"u": -1.0}), severity="warning")
    assert "u = -1, but its first sample is 25" in said
    assert _said(Observation(T, samples, initial={"u": 25.0}), severity="warning") == ""
    # with that much noise the first sample may be anywhere
    noisy = CLEAN + 0.3 * NOISE
    assert "first sample" not in _said(Observation(T, noisy, initial={"u": noisy[0] + 0.9}))


def test_a_blow_is_no_outlier_and_an_offset_of_the_sensor_is_noted():
    t = np.arange(800) / 20.0
    blow = np.where((t > 0.2) & (t < 0.6), np.sin((t - 0.2) / 0.4 * np.pi), 0.0)
    force = Forcing.from_samples(t, blow)
    solved = solve(System.read("2*u'' + 0.1*u' + 80*u = F"), (0, 0), t, force)["u''"]
    values = solved + solved.std() * 0.01 * np.random.default_rng(0).standard_normal(len(t))

    def said(values):
        return _said(Observation(t, values, "u''", inputs={"F": force}))

    assert "outliers" not in said(values)
    assert "outliers" in said(np.where(t == 20.0, 5 * values.max(), values))
    assert "offset" not in said(values)
    assert "offset of the sensor" in said(values + 0.1 * values.std())


def test_noise_that_grows_with_the_signal_is_no_outlier():
    """As of counts: most samples of an epidemic are near zero, and so is their noise."""
    t = np.arange(90.0)
    cases = np.random.default_rng(7).poisson(3000 / np.cosh((t - 30) / 6) ** 2).astype(float)
    assert _said(Observation(t, cases), severity="warning") == ""
    cases[30] *= 1.5
    assert "outliers, the largest at t = 30" in _said(Observation(t, cases), severity="warning")
