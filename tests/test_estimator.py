import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lgf
from lgf import Knowledge, LatentGrammarFlow
from lgf.data.knowledge import Statements
from lgf.equation.operator_form import in_operator_form
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitSettings

T = np.linspace(0.0, 4.0, 50)
U = 2.0 * np.exp(-0.5 * T) + 1e-3 * np.random.default_rng(1).normal(size=50)


@pytest.fixture(scope="module")
def fitted():
    return LatentGrammarFlow(order=1, autonomous=True, max_evaluations=30, random_state=3).fit(T, U)


def test_the_equation_is_found_and_shown(fitted):
    assert str(fitted.equation_).startswith("u' = -0.")
    assert fitted.equation_.values[0] == pytest.approx(-0.5, abs=0.01)
    assert 0 < fitted.equation_.errors[0] < 0.01
    assert list(fitted.front_) == ["equation", "complexity", "loss", "prediction", "objective", "stable", "chosen"]
    assert fitted.front_.chosen.sum() == 1
    assert fitted.front_.equation[fitted.front_.chosen].item() == str(fitted.equation_)
    assert str(fitted.equation_) in set(fitted.indistinguishable_.equation)
    assert 8 < fitted.discovery_.evaluations <= 30
    assert "noise" in fitted.findings_[0].sentence


def test_predict_is_the_trajectory_of_u(fitted):
    exact = 2.0 * np.exp(-0.5 * T)
    np.testing.assert_allclose(fitted.predict(T), exact, atol=5e-3)
    shuffled = np.random.default_rng(1).permutation(np.append(T, [T[3], 7.0]))
    np.testing.assert_allclose(fitted.predict(shuffled), 2.0 * np.exp(-0.5 * shuffled), atol=5e-3)
    np.testing.assert_allclose(fitted.predict(T[10:, None]), exact[10:], atol=5e-3)
    assert fitted.score(T, exact) > 0.999
    with pytest.raises(LgfError, match="before the record"):
        fitted.predict([-1.0, 2.0])
    with pytest.raises(LgfError, match="one value per time"):
        fitted.score(T, U[:-1])


def test_simulate_reaches_the_end_of_a_window_of_millions_of_time_constants(fitted):
    """The solver for records takes steps of a twentieth of the window at most, and fails there."""
    trajectory = fitted.simulate(np.linspace(0.0, 1e9, 500), initial=5.0)
    assert trajectory.status == "ok"
    np.testing.assert_allclose(trajectory.u[1:], 0.0, atol=1e-8)


def test_simulate_takes_a_new_state(fitted):
    trajectory = fitted.simulate(T, 5.0)
    np.testing.assert_allclose(trajectory.u, 5.0 * np.exp(-0.5 * T), atol=0.05)
    assert trajectory.status == "ok"
    with pytest.raises(LgfError, match="initial state has 2 values"):
        fitted.simulate(T, (1.0, 0.0))


def test_parameters_clone_and_pickle(fitted):
    parameters = fitted.get_params()
    assert parameters["random_state"] == 3
    assert parameters["knowledge"].order == 1
    assert clone(fitted).get_params() == parameters
    assert not hasattr(clone(fitted), "equation_")
    assert clone(fitted).set_params(random_state=4).random_state == 4
    assert clone(fitted).set_params(knowledge=Knowledge(order=2)).knowledge.order == 2
    back = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert back.equation_ == fitted.equation_
    np.testing.assert_array_equal(back.predict(T), fitted.predict(T))


def test_knowledge_is_one_object_and_its_fields_are_keywords():
    assert len(LatentGrammarFlow().get_params()) == 11
    assert LatentGrammarFlow().knowledge is None
    known = Knowledge(order=2, units={"t": "s"})
    assert LatentGrammarFlow(known).knowledge is known
    both = LatentGrammarFlow(known, order=1, hidden="y", vary=["auto"]).knowledge
    assert (both.order, both.units, both.hidden, both.vary) == (1, {"t": "s"}, ("y",), "auto")
    assert Statements.__annotations__.keys() == Knowledge.__dataclass_fields__.keys()


def test_save_and_load(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    assert (tmp_path / "run" / "report.html").is_file()
    back = LatentGrammarFlow.load(tmp_path / "run")
    assert back.equation_ == fitted.equation_
    assert back.discovery_ is None
    pd.testing.assert_frame_equal(back.front_, fitted.front_)
    np.testing.assert_array_equal(back.predict(T), fitted.predict(T))
    again = back.fit(T, U)
    assert again.equation_ == fitted.equation_


def test_the_number_of_jobs_does_not_matter(fitted):
    other = clone(fitted).set_params(n_jobs=2).fit(T, U)
    assert other.equation_ == fitted.equation_
    assert sorted(other.run_.journal) == sorted(fitted.run_.journal)


def test_several_experiments_and_pandas(fitted):
    frame = pd.DataFrame({"t": T, "a": U, "b": 3 * U})
    model = clone(fitted).fit(frame["t"], [frame["a"], frame["b"]], initial=[(2.0,), (6.0,)])
    assert model.equation_.values[0] == pytest.approx(-0.5, abs=0.01)
    assert model.front_.prediction[model.front_.chosen].item() < 1e-2
    np.testing.assert_allclose(model.predict(T, experiment=1), 6 * np.exp(-0.5 * T), atol=0.05)


def test_times_may_be_a_table_of_one_column(fitted):
    model = clone(fitted).fit(pd.DataFrame({"t": T}), pd.Series(U))
    assert str(model.equation_) == str(fitted.equation_)
    assert model.score(pd.DataFrame({"t": T}), U) == fitted.score(T, U)


def test_dates_are_times_with_a_unit_for_fit_and_predict(fitted, tmp_path):
    days = pd.date_range("2026-03-01", periods=len(T), freq="D", tz="UTC")
    model = clone(fitted).fit(days, pd.DataFrame({"when": days, "u": U}))
    assert model.units_["t"] == "d"
    np.testing.assert_allclose(model.equation_.values[0], fitted.equation_.values[0] * T[1], rtol=0.01)
    numbers = np.array([0.0, 7.0, 100.0])
    expected = model.predict(numbers)
    later = days[0] + pd.to_timedelta(numbers, unit="D")
    np.testing.assert_allclose(model.predict(later), expected)
    np.testing.assert_allclose(model.predict(pd.to_timedelta(24 * numbers, unit="h")), expected)
    np.testing.assert_allclose(model.simulate(later, initial=2.0).u, model.simulate(numbers, initial=2.0).u)
    assert model.score(days, U) > 0.99
    model.save(tmp_path)
    loaded = LatentGrammarFlow.load(tmp_path)
    np.testing.assert_allclose(loaded.predict(pd.to_timedelta(numbers, unit="D")), expected)
    with pytest.raises(LgfError, match=r"not known from which one the times count; give numbers, .* in 'd'"):
        loaded.predict(later)


def test_the_times_in_a_table_of_values_are_no_state(fitted):
    frame = pd.DataFrame({"t [s]": T, "u [m]": U})
    for values in (frame, frame.to_dict("records"), frame.to_records(index=False)):
        model = clone(fitted).fit(T, values)
        assert str(model.equation_).split("[")[0].strip() == str(fitted.equation_).split("[")[0].strip()


def test_a_run_in_the_home_folder_is_saved_and_loaded(fitted, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    fitted.save("~/run")
    assert not (tmp_path / "~").exists()
    assert LatentGrammarFlow.load("~/run").equation_ == fitted.equation_


def test_an_equation_is_shown_by_the_text_that_makes_it(fitted):
    assert repr(fitted.equation_) == f"System.read({fitted.equation_.text!r})"
    assert System.read(fitted.equation_.text).values == fitted.equation_.values
    assert "numpy" not in fitted.equation_.python()
    assert "import numpy as np" in System.read("u' = sin(2*u)").python()


def test_forcing_is_shown_on_the_right(duffing):
    equation = duffing.system
    assert str(equation).endswith("= cos(2 t)")
    np.testing.assert_allclose(equation.values, (5, 1, 7, 25), rtol=0.1)


def test_errors_of_the_operator_form_are_those_of_a_fit_of_it(duffing):
    """The slow way: fit the constants of the operator form themselves."""
    turned = duffing.system
    assert duffing.discovery is not None
    exact = FitSettings(iterations=60, tolerance=1e-9, rtol=1e-7, steps_per_solve=4000, steps_per_fit=40_000)
    slow = fit_constants(turned.skeleton, duffing.discovery.target, exact, start=turned.values)
    np.testing.assert_allclose(turned.values, slow.values, rtol=1e-3)
    np.testing.assert_allclose(turned.errors, slow.errors, rtol=0.02)


def test_an_error_that_is_not_known_stays_unknown():
    equation = System.read("u'' = -2*u + 4*u' + 3*F", {"F": "t"})
    covariance = np.diag([0.1, 0.2, 0.3])
    position = list(equation.values).index(-2.0)
    covariance[position, position] = np.inf
    turned = in_operator_form(equation, covariance)
    lost = [not np.isfinite(e) for e in turned.errors]
    assert sum(lost) == 1
    assert turned.values[lost.index(True)] == pytest.approx(2 / 3)


def test_unforced_equations_stay_as_they_are():
    equation = System.read("u' = -2*u")
    assert in_operator_form(equation, np.eye(1)) is equation


def test_initial_equations_are_tried_first():
    model = LatentGrammarFlow(order=1, max_evaluations=5, initial_equations=["u' = 3 - tanh(u)*t^2"]).fit(T, U)
    assert model.run_.journal[0].startswith('{"stage"')
    assert any(c.proposal.origin == "given" for c in model.discovery_.population)


def test_a_warning_of_the_check_is_a_warning():
    with pytest.warns(UserWarning, match="samples in all"):
        LatentGrammarFlow(order=1, max_evaluations=5).fit(T[::3], U[::3])


BAD = {
    "constant data": ({}, (T, 0 * T + 1), {}, "constant"),
    "fewer values": ({}, (T, U[:-1]), {}, "49 values but 50 times"),
    "preset": ({"preset": "magic"}, (T, U), {}, "no preset"),
    "model": ({"model": "magic"}, (T, U), {}, "no grammar"),
    "order": ({"order": 9}, (T, U), {}, "order is 9"),
    "function": ({"functions": ["sinus"]}, (T, U), {}, "sinus"),
    "budget": ({"max_evaluations": 0}, (T, U), {}, "at least 1"),
    "seconds": ({"max_seconds": -1}, (T, U), {}, "positive"),
    "seed": ({"random_state": -1}, (T, U), {}, "not negative"),
    "warm start unreadable": ({"initial_equations": ["u' = ("]}, (T, U), {}, "cannot be read"),
    "warm start of another order": ({"order": 1, "initial_equations": ["u'' = u"]}, (T, U), {}, "of order 2"),
    "warm start with F": ({"initial_equations": ["u' = F"]}, (T, U), {}, "none is given"),
    "warm start of other states": ({"initial_equations": ["u' = x0"]}, (T, U), {}, "'x0' is not known; known are t, u"),
    "forcing": ({}, (T, U), {"forcing": "cos(u)"}, "depends on t only"),
    "derivative": ({}, (T, U), {"derivative": 7}, "measured derivative is 7"),
    "initial": ({"order": 1}, (T, U), {"initial": (1, 2)}, "takes 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_one_sentence(name):
    parameters, data, options, says = BAD[name]
    with pytest.raises(LgfError) as caught:
        LatentGrammarFlow(**parameters).fit(*data, **options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_estimator_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        LatentGrammarFlow().predict(T)


def test_public_names():
    for name in lgf.__all__:
        assert getattr(lgf, name)
        assert name in dir(lgf)
    with pytest.raises(AttributeError):
        lgf.nothing  # noqa: B018
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lgf.LatentGrammarFlow is LatentGrammarFlow


def test_six_samples_get_a_short_equation_and_no_verdict():
    t = np.arange(6.0)
    u = 5.0 * np.exp(-0.5 * t) * (1 + 0.02 * np.random.default_rng(0).standard_normal(6))
    with pytest.warns(UserWarning, match="only 6 samples"):
        model = LatentGrammarFlow(max_evaluations=60).fit(t, u)
    assert len(model.equation_.values) <= 2
    assert model.equation_.errors[0] > 0
    assert model.verdict_.startswith("Inconclusive")
    band = model.predict([7.0], interval=0.9)
    assert band.lower[0] < band.values[0] < band.upper[0]
