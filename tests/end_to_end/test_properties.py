"""Properties of every discovery: units, order and repetition of the data change its answer only as they must."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from tests.given_equations import fitted

from lgf import Knowledge, LatentGrammarFlow, System
from lgf.cli import main
from lgf.runs.folder import read_run
from lgf.solver.solve import solve

T = np.linspace(0.0, 10.0, 81)
POWERS = st.integers(-6, 6)  # of ten
PHASES = (Phase.explicit, Phase.generate)


def examples(n):
    """So many examples, always the same; a failing one is not made smaller, as each costs a search."""
    return settings(max_examples=n, deadline=None, derandomize=True, database=None, phases=PHASES)


@dataclass(frozen=True)
class Law:
    """A law with open constants, their values, a start, and the dimension (of the states, of time) of each constant."""

    form: str
    values: tuple[float, ...]
    start: tuple[float, ...]
    dimensions: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        return self.form.replace("C", "{}").format(*self.values)

    def record(self, start=None, seed=0, noise=0.04):
        """Samples at T, one column for each state."""
        truth = System.read(self.text)
        solved = solve(truth, self.start if start is None else start, T)
        states = np.column_stack([solved[name] for name in truth.frame.names])
        return states + noise * states.std(axis=0) * np.random.default_rng(seed).standard_normal(states.shape)

    def in_units(self, values, time, state):
        """The values of the constants where times and states are so many times as large."""
        return [v * state**u * time**t for v, (u, t) in zip(values, self.dimensions, strict=True)]


RATE = (0, -1)
LOGISTIC = Law("u' = C*u + C*u^2", (1.2, -0.4), (0.2,), (RATE, (-1, -1)))
OSCILLATOR = Law("u'' = C*u' + C*u", (-0.3, -2.0), (2.0, 0.0), (RATE, (0, -2)))
VAN_DER_POL = Law("u'' = C*u' + C*u^2*u' + C*u", (0.8, -0.8, -1.0), (0.5, 0.0), (RATE, (-2, -1), (0, -2)))
LOTKA_VOLTERRA = Law(
    "x0' = C*x0 + C*x0*x1; x1' = C*x1 + C*x0*x1", (1.2, -0.8, -1.5, 0.8), (1.5, 1.0),
    (RATE, (-1, -1), RATE, (-1, -1)),
)  # fmt: skip
BRUSSELATOR = Law(
    "x0' = C*x0 + C*x0^2*x1 + C; x1' = C*x0 + C*x0^2*x1", (-3.0, 1.0, 1.0, 2.0, -1.0), (1.0, 1.5),
    (RATE, (-2, -1), (1, -1), RATE, (-2, -1)),
)  # fmt: skip
ENZYME = Law("u' = C*u/(C*u + 1)", (-3.0, 0.8), (4.0,), (RATE, (-1, 0)))
SWITCH = Law("u' = C*u + C*u^2/(C*u^2 + 1)", (-0.5, 2.0, 0.7), (0.6,), (RATE, (-1, -1), (-2, 0)))
PENDULUM = Law("u'' = C*u' + C*sin(C*u)", (-0.2, -3.0, 1.1), (2.0, 0.0), (RATE, (1, -2), (-1, 0)))
FADING = Law("u' = C*u + C*u*exp(C*t)", (-0.1, 1.5, -0.9), (0.3,), (RATE, RATE, RATE))
GRAZING = Law(
    "x0' = C*x0 + C*x0^2 + C*x0*x1/(C*x0 + 1); x1' = C*x1 + C*x0*x1/(C*x0 + 1)",
    (1.0, -0.2, -1.0, 0.5, -0.5, 0.6, 0.5), (1.5, 1.0),
    (RATE, (-1, -1), (-1, -1), (-1, 0), RATE, (-1, -1), (-1, 0)),
)  # fmt: skip


def searched(t, values, **data):
    return LatentGrammarFlow(max_evaluations=40).fit(t, values, **data)


@cache
def discovered(law):
    return searched(T, law.record())


@cache
def fitted_once(law):
    return fitted([law.form], T, law.record())


def assert_only_units_differ(law, model, plain, time, state):
    """The model of the record in other units has the same equation, errors, predictions and bands."""
    one, other = plain.equation_, model.equation_
    assert one.skeleton.structure == other.skeleton.structure
    np.testing.assert_allclose(other.values, law.in_units(one.values, time, state), rtol=1e-3)
    np.testing.assert_allclose(other.errors, law.in_units(one.errors, time, state), rtol=2e-2)
    assert model.run_.verdict.trust is plain.run_.verdict.trust
    ahead = np.append(T[::10], 11.0)
    for ours, theirs in zip(plain.predict(ahead, interval=0.9), model.predict(ahead * time, interval=0.9), strict=True):
        np.testing.assert_allclose(theirs / state, ours, rtol=1e-2, atol=2e-3 * np.abs(ours).max())


@given(st.sampled_from([LOGISTIC, OSCILLATOR, VAN_DER_POL, LOTKA_VOLTERRA, BRUSSELATOR]), POWERS, POWERS)
@example(VAN_DER_POL, -1, -4)
@example(VAN_DER_POL, 2, 3)
@examples(7)
def test_the_units_of_a_record_only_rescale_the_equation_that_is_found(law, of_time, of_state):
    time, state, plain = 10.0**of_time, 10.0**of_state, discovered(law)
    assert plain.equation_.skeleton.structure == System.read(law.text).skeleton.structure
    assert_only_units_differ(law, searched(T * time, law.record() * state), plain, time, state)


@pytest.mark.parametrize("law", [VAN_DER_POL, BRUSSELATOR], ids=["one state", "two states"])
@pytest.mark.parametrize("of_state", [-6, 6])
def test_states_of_extreme_size_lead_to_the_same_equation(law, of_state):
    state = 10.0**of_state
    assert_only_units_differ(law, searched(T, law.record() * state), discovered(law), 1.0, state)


@given(st.sampled_from([ENZYME, SWITCH, PENDULUM, FADING, GRAZING]), POWERS, POWERS)
@examples(12)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_units_of_a_record_only_rescale_the_constants_of_a_given_equation(law, of_time, of_state):
    time, state = 10.0**of_time, 10.0**of_state
    model = fitted([law.form], T * time, law.record() * state)
    assert_only_units_differ(law, model, fitted_once(law), time, state)


@pytest.mark.parametrize("law", [SWITCH, GRAZING], ids=["one state", "two states"])
@pytest.mark.parametrize("of_state", [-6, 6])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_states_of_extreme_size_only_rescale_the_constants_of_a_quotient(law, of_state):
    state = 10.0**of_state
    assert_only_units_differ(law, fitted([law.form], T, law.record() * state), fitted_once(law), 1.0, state)


THREE = [LOGISTIC.record((start,), seed)[:, 0] for seed, start in enumerate((0.2, 1.0, 5.0))]


def numbers_by_term(model):
    """The constants and their errors by their terms, whatever the order of the equations."""
    system = model.equation_
    return {term: (v, e) for term, v, e in zip(system.terms, system.values, system.errors, strict=True)}


def assert_same_equation(one, other, rtol=1e-4):
    """The equations agree, with their constants and standard errors, and so do the verdicts."""
    ours, theirs = numbers_by_term(one), numbers_by_term(other)
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose([theirs[t][0] for t in ours], [ours[t][0] for t in ours], rtol=rtol)
    np.testing.assert_allclose([theirs[t][1] for t in ours], [ours[t][1] for t in ours], rtol=20 * rtol)
    assert one.run_.verdict.trust is other.run_.verdict.trust


def assert_identical(one, other):
    """The same equations to the last digit, those that were not chosen too."""
    assert one.equation_.text == other.equation_.text
    assert one.equation_.errors == other.equation_.errors
    assert one.verdict_ == other.verdict_
    pd.testing.assert_frame_equal(one.front_, other.front_)


@cache
def of_three():
    return searched(T, THREE)


@given(st.permutations(range(3)))
@examples(3)
def test_the_order_of_the_experiments_does_not_matter(order):
    model = searched(T, [THREE[i] for i in order])
    assert_same_equation(of_three(), model)
    for new, old in enumerate(order):
        np.testing.assert_allclose(model.predict(T, new), of_three().predict(T, old), rtol=1e-4)


@given(st.sampled_from([LOTKA_VOLTERRA, BRUSSELATOR]), st.permutations(["t", "x0", "x1"]))
@examples(5)
def test_the_order_of_the_columns_does_not_matter(law, order):
    table = pd.DataFrame({"t": T, "x0": law.record()[:, 0], "x1": law.record()[:, 1]})[order]
    model = searched(T, table)
    assert_same_equation(discovered(law), model)
    names = [name for name in order if name != "t"]
    swapped = discovered(law).predict(T)[:, [int(name[1]) for name in names]]
    np.testing.assert_allclose(model.predict(T), swapped, rtol=1e-3, atol=1e-4)


def fit_of_common_constants(records, **data):
    """Experiments that are copies would be evidence for constants that differ between the others."""
    return fitted([LOGISTIC.form], T, records, Knowledge(vary="none"), **data).equation_


@given(st.integers(0, 2))
@examples(3)
def test_an_experiment_that_stands_twice_counts_twice(again):
    twice = fit_of_common_constants([*THREE, THREE[again]])
    weights = [np.full(len(T), 2.0 if i == again else 1.0) for i in range(3)]
    np.testing.assert_allclose(twice.values, fit_of_common_constants(THREE, weights=weights).values, rtol=1e-5)


def test_experiments_that_all_stand_twice_halve_the_variance():
    once, twice = fit_of_common_constants(THREE), fit_of_common_constants([*THREE, *THREE])
    np.testing.assert_allclose(twice.values, once.values, rtol=1e-6)
    np.testing.assert_allclose(twice.errors, np.array(once.errors) / np.sqrt(2), rtol=0.01)


def test_a_record_that_stands_twice_leads_to_the_same_equation():
    u = LOGISTIC.record()[:, 0]
    once, twice = discovered(LOGISTIC).equation_, searched(T, [u, u]).equation_
    assert twice.skeleton.structure == once.skeleton.structure
    np.testing.assert_allclose(twice.values, once.values, rtol=1e-4)


@given(st.sampled_from([LOGISTIC, OSCILLATOR, LOTKA_VOLTERRA]), st.floats(-1e4, 1e4))
@examples(6)
def test_the_zero_of_time_does_not_matter_to_a_law_without_time(law, begin):
    model = searched(T + begin, law.record())
    assert_same_equation(discovered(law), model)
    np.testing.assert_allclose(model.predict(T + begin), discovered(law).predict(T), rtol=1e-3, atol=1e-4)


@given(st.sampled_from([LOGISTIC, OSCILLATOR, VAN_DER_POL]), st.integers(0, 99))
@examples(2)
def test_one_state_is_the_same_by_every_door(tmp_path_factory, law, seed):
    """Arrays, a dictionary, a DataFrame, and the command line on a file."""
    folder, u = tmp_path_factory.mktemp("doors"), law.record(seed=seed)[:, 0]
    table = pd.DataFrame({"t": T, "u": u})
    model = searched(T, u)
    for values in (u[:, None], {"u": u}, table[["u"]], table):
        assert_identical(searched(T, values), model)
    table.to_csv(folder / "data.csv", index=False)
    arguments = ["discover", str(folder / "data.csv"), "--out", str(folder / "run"), "--evaluations", "40"]
    assert main(arguments) == 0
    run = read_run(folder / "run")
    assert run.system.text == model.equation_.text
    assert run.system.errors == model.equation_.errors
    assert run.verdict == model.run_.verdict


@given(st.sampled_from([LOGISTIC, LOTKA_VOLTERRA]), st.integers(0, 2**32 - 1))
@examples(3)
def test_a_seed_gives_one_answer_at_any_number_of_jobs(law, seed):
    alone, again, together = (
        LatentGrammarFlow(max_evaluations=60, random_state=seed, n_jobs=n).fit(T, law.record()) for n in (1, 1, 2)
    )
    assert_identical(alone, again)
    assert_identical(alone, together)
