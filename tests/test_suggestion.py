"""Suggestions: the experiment tells apart what the data cannot, and nothing outside what is allowed is suggested."""

from dataclasses import replace

import numpy as np
import pytest
from tests.given_equations import fitted

from lgf import LatentGrammarFlow
from lgf.cli import main
from lgf.errors import LgfError
from lgf.report.canvas import png
from lgf.report.figures import suggestion_figure
from lgf.runs.posterior import make_posterior
from lgf.runs.suggestion import DECISIVE, Allowed, suggest, useful
from lgf.solver.forcing import Forcing


@pytest.fixture(scope="module")
def slow():
    """A short record of a decay, which u' = C*u and u' = C*u^2 explain equally well; they part at other values."""
    rng = np.random.default_rng(5)
    t = np.linspace(0.0, 1.0, 30)
    u = np.exp(-0.3 * t) + 0.02 * rng.standard_normal(30)
    return fitted(["u' = C*u", "u' = C*u^2"], t, u, initial=1.0)


def test_the_default_stays_within_the_data(slow):
    (found,) = suggest(slow.run_)
    low, high = slow.predict(np.linspace(0, 1, 50))[[-1, 0]]
    (start,) = found.start.values()
    assert low - 1e-9 <= start <= high + 1e-9
    assert len(found.t) == 30
    assert np.ptp(found.t) == pytest.approx(1.0)


def test_a_wider_range_and_a_longer_record_tell_more(slow):
    (near,) = suggest(slow.run_, 1, Allowed({"u": (0.9, 1.0)}, durations=(0.3,)))
    (far,) = slow.suggest(starts={"u": (0.5, 5.0)}, durations=(1.0, 8.0), samples=60)
    assert far.error < near.error
    assert far.disagreement > 5 * near.disagreement
    assert far.decided == 1
    assert near.decided == 0
    assert np.ptp(far.t) == 8.0
    assert far.start[next(iter(far.start))] > 2.0  # the rates agree near 1
    assert "is expected" in str(far)
    assert "is not expected" in str(near)


def test_the_expected_change_is_what_a_second_record_brings(slow):
    (plan,) = slow.suggest(starts={"u": (3.0, 3.0)}, durations=(2.0,), samples=40)
    rng = np.random.default_rng(0)
    first = slow.run_.request.problem.observations[0]
    noise = next(iter(plan.noise.values()))
    changes = []
    for _ in range(6):
        second = plan.trajectories[0].u + noise * rng.standard_normal(40)
        both = fitted(
            ["u' = C*u", "u' = C*u^2"], [first.t, plan.t], [first.values[:, 0], second], initial=[[1.0], [3.0]]
        )
        best, other = both.discovery_.population.best(2)
        changes.append(other.objective - best.objective)
    assert both.run_.best.skeleton.structure == slow.run_.best.skeleton.structure
    # the loss is relative and its logarithm counts, so large changes count for less than the linear expectation
    assert min(changes) > 6
    assert plan.gains[0] > 0.3 * np.mean(changes)


def test_an_equation_that_blows_up_is_told_from_one_that_does_not():
    """Wells with starts alike: u' = C*u^2*exp(C*t) is their logistic growth, but from other starts it blows up."""
    t, rng = np.linspace(0.0, 12.0, 25), np.random.default_rng(5)
    levels = 10 * (1 + 0.15 * rng.standard_normal(5))
    u = [K / (1 + (K / 0.5 - 1) * np.exp(-0.8 * t)) + 0.06 * rng.standard_normal(25) for K in levels]
    model = fitted(["u' = C*u + C*u^2", "u' = C*u^2*exp(C*t)"], [t] * 5, u)
    (found,) = model.suggest()
    assert found.decided == 1


def test_later_experiments_add_to_the_first(slow):
    one, two = slow.suggest(2, starts={"u": (0.5, 5.0)}, durations=[2.0])
    assert two.error < one.error


def test_experiments_that_tell_nothing_are_not_suggested(slow):
    with pytest.raises(LgfError, match=r"from the other equation .* measure more precisely or another state") as near:
        slow.suggest(3, starts={"u": (0.9, 1.0)}, durations=[0.3])
    assert str(near.value).count(".") <= 2  # one sentence, and a number
    telling, *_ = suggest(slow.run_, 1, Allowed({"u": (0.5, 5.0)}, durations=(4.0,)))
    nothing, *_ = suggest(slow.run_, 1, Allowed({"u": (0.9, 1.0)}, durations=(0.3,)))
    assert useful([telling, nothing]) == [telling]
    several = replace(nothing, gains=(1.0, 2.5, 5.9))
    with pytest.raises(
        LgfError, match=r"from any of 3 other equations \(a description length that changes by up to 5.9"
    ):
        useful([several, telling])
    assert "is not expected to tell the chosen equation from any of 3 other equations" in str(several)
    assert "is expected to tell the chosen equation from 1 of 3" in str(replace(nothing, gains=(1.0, 6.1, 5.9)))


def test_an_experiment_that_decides_comes_before_one_with_less_error_that_does_not(slow, monkeypatch):
    """Three equations; from high starts two of them are nearly decided, from low ones a single one is."""
    candidates = (slow.run_.best, *slow.run_.front, slow.run_.best)
    rivals = [make_posterior(slow.run_, c) for c in candidates[:3]]
    monkeypatch.setattr("lgf.runs.suggestion._rivals", lambda run: (rivals, np.full(3, 1 / 3)))

    def separations(rivals, pairs, plan):
        high = np.array([DECISIVE, DECISIVE, DECISIVE]) - 0.01
        return high if plan.start[0] > 2.0 else np.array([DECISIVE + 0.01, 0.0, 0.0])

    monkeypatch.setattr("lgf.runs.suggestion._separations", separations)
    one, two = suggest(slow.run_, 2, Allowed({"u": (1.0, 3.0)}))
    assert one.decided == 1
    assert two.decided == 0  # what the first tells is not told again
    assert useful([one, two]) == [one]


def test_what_is_asked_wrongly_is_said(slow):
    for arguments, words in (
        ({"starts": {"u": (2, 1)}}, "low and a high"),
        ({"starts": {"u": "x"}}, "low and a high"),
        ({"starts": {"v": (0, 1)}}, "v"),
        ({"starts": [0, 1]}, "ranges by variable"),
        ({"durations": (0.0,)}, "positive"),
        ({"samples": 1}, "from 2 to"),
    ):
        with pytest.raises(LgfError, match=words):
            slow.suggest(**arguments)
    with pytest.raises(LgfError, match="from 1"):
        slow.suggest(0)
    with pytest.raises(LgfError, match="only one equation"):
        suggest(replace(slow.run_, indistinguishable=(slow.run_.best,), front=(slow.run_.best,)))


def test_one_equation_is_compared_with_the_next_of_the_front(slow):
    others = tuple(c for c in slow.run_.indistinguishable if c is not slow.run_.best)
    (found,) = suggest(replace(slow.run_, indistinguishable=(slow.run_.best,), front=others))
    assert len(found.equations) == 2


def test_inputs_are_chosen_among_those_allowed():
    rng = np.random.default_rng(6)
    t = np.linspace(0.0, 6.0, 60)
    u = 0.5 * (np.sin(t) - np.cos(t) + np.exp(-t)) + 0.01 * rng.standard_normal(60)
    model = fitted(["u' = C*u + C*F", "u' = C*u*abs(u) + C*u + C*F"], t, u, initial=0.0, forcing="sin(t)")
    weak, strong = Forcing.from_formula("0.01*sin(t)"), Forcing.from_formula("20*sin(t)")
    (found,) = suggest(model.run_, 1, Allowed(inputs=({"F": weak}, {"F": strong})))
    assert found.inputs["F"] is strong
    (by_text,) = model.suggest(forcings=["0.01*sin(t)", "20*sin(t)"])
    assert by_text.inputs["F"].describe() == strong.describe()


def test_equations_of_different_order_share_a_start():
    rng = np.random.default_rng(7)
    t = np.linspace(0.0, 2.0, 40)
    u = np.exp(-t) + 0.01 * rng.standard_normal(40)
    model = fitted(["u' = C*u", "u'' = C*u"], t, u)
    posterior = make_posterior(model.run_, next(c for c in model.run_.front if c.skeleton.frame.dimension == 2))
    (name,) = (v for v in posterior.candidate.skeleton.frame.variables if v.derivative == 0)
    np.testing.assert_allclose(posterior.start_of({name: 0.5})[1], -0.5, atol=0.1)
    (found,) = suggest(replace(model.run_, indistinguishable=model.run_.front))
    assert len(found.start) == 1


def test_a_system_is_suggested_from_a_state_of_all_its_variables():
    rng = np.random.default_rng(8)
    t = np.linspace(0.0, 6.0, 60)
    values = np.column_stack([np.sin(t), np.cos(t)]) + 0.05 * rng.standard_normal((60, 2))
    model = fitted(["x' = C*y; y' = C*x", "x' = C*y; y' = C*x + C*x^3"], t, values, states=["x", "y"])
    (found,) = suggest(replace(model.run_, indistinguishable=model.run_.front), 1, Allowed(starts={"x": (0.0, 3.0)}))
    assert [str(v) for v in found.start] == ["x", "y"]
    assert found.start[next(iter(found.start))] > 1.0
    assert png(suggestion_figure(found)).startswith(b"\x89PNG")


def test_the_command_prints_and_draws(slow, tmp_path, capsys):
    slow.save(tmp_path / "run")
    assert main(["suggest", str(tmp_path / "run"), "--start", "u=0.5:5", "--duration", "4", "--n", "2"]) == 0
    out = capsys.readouterr().out
    assert out.count("Start at u =") == 2
    assert (tmp_path / "run" / "suggestion-2.png").read_bytes().startswith(b"\x89PNG")
    assert "No further experiment" not in out
    assert main(["suggest", str(tmp_path / "run"), "--start", "u=0.9:1", "--duration", "0.3"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        "lgf: no experiment that is allowed is expected to tell the chosen equation from the other"
    )
    assert main(["suggest", str(tmp_path / "run"), "--start", "u=5:0.5"]) == 2
    assert main(["suggest", str(tmp_path / "run"), "--duration", "-1"]) == 2
    again = LatentGrammarFlow.load(tmp_path / "run").suggest(starts={"u": (0.5, 5.0)}, durations=[4.0])
    assert again[0].start == slow.suggest(starts={"u": (0.5, 5.0)}, durations=[4.0])[0].start
