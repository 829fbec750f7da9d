"""Several states and several inputs through the public doors: estimator, command line, run folders."""

import csv
import html
import io
import json
import pickle
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from lgf import LatentGrammarFlow, System
from lgf.cli import main
from lgf.data import Knowledge, Observation, Problem, read_observations
from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.grammar import load_grammar
from lgf.report.equilibria import state_rows
from lgf.report.page import write_report
from lgf.report.phase_portrait import phase_portrait
from lgf.runs.folder import FORMAT, front_rows, read_journal, read_request, read_run, write_run
from lgf.runs.journal import Journal
from lgf.runs.request import Request, execute
from lgf.runs.serialisation import to_plain, written
from lgf.search.discover import DiscoverySettings
from lgf.search.select import SelectionSettings
from lgf.solver.forcing import Forcing
from lgf.solver.solve import solve

T = np.linspace(0, 20, 120)
HARES = System.read("hare' = 1.1*hare - 0.4*hare*lynx; lynx' = 0.1*hare*lynx - 0.4*lynx")
TRUE = "hare' = hare + hare*lynx; lynx' = hare*lynx + lynx"
SIMPLER = "hare' = hare; lynx' = lynx"
LARGER = "hare' = hare + hare*lynx + hare^2; lynx' = lynx + hare*lynx"
OTHER = "hare' = hare + hare^2; lynx' = lynx + hare*lynx"
START = {"hare": 10.0, "lynx": 5.0}


def noisy(clean, share=0.05, seed=0):
    return clean + share * clean.std(axis=0) * np.random.default_rng(seed).standard_normal(clean.shape)


def both(start, t=T, seed=0):
    solved = solve(HARES, start, t, rtol=1e-10)
    return noisy(np.column_stack([solved["hare"], solved["lynx"]]), seed=seed)


@pytest.fixture(scope="module")
def values():
    return both(START)


@pytest.fixture(scope="module")
def fitted(values):
    return LatentGrammarFlow(initial_equations=(SIMPLER, OTHER, TRUE, LARGER)).fit(T, values, states=["hare", "lynx"])


@pytest.fixture
def table(tmp_path, monkeypatch, values):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{t:.5f},{hare:.6f},{lynx:.6f}\n" for t, (hare, lynx) in zip(T, values, strict=True))
    Path("hares.csv").write_text("t,hare,lynx\n" + rows)
    return ["discover", "hares.csv", "--value", "hare", "--value", "lynx"]


# Two states, the user's own equations


def test_the_best_of_the_given_equations_is_chosen(fitted):
    assert fitted.equation_.skeleton.structure == HARES.skeleton.structure
    assert fitted.equation_.frame == Frame((("hare", 1), ("lynx", 1)))
    errors, values = np.array(fitted.equation_.errors), np.array(fitted.equation_.values)
    assert np.all(np.abs(np.sort(values) - np.sort(HARES.values)) < 4 * errors[np.argsort(values)])
    assert [line.split(" = ")[0] for line in str(fitted.equation_).splitlines()] == ["hare'", "lynx'"]
    tried = {c.skeleton.structure for c in fitted.discovery_.population}
    assert tried >= {System.read(text).skeleton.structure for text in (TRUE, SIMPLER, LARGER, OTHER)}
    assert fitted.front_.chosen.sum() == 1
    assert fitted.front_.equation[fitted.front_.chosen].item() == str(fitted.equation_)


def test_several_experiments_of_two_states_are_held_out_in_turn():
    starts = [START, {"hare": 3.0, "lynx": 2.0}]
    records = [both(start, seed=seed) for seed, start in enumerate(starts)]
    model = LatentGrammarFlow(initial_equations=(TRUE, OTHER)).fit(T, records, states=["hare", "lynx"], initial=starts)
    assert model.equation_.skeleton.structure == HARES.skeleton.structure
    assert model.run_.best.prediction.left_out < 0.1
    np.testing.assert_allclose(model.run_.best.fit.initial, [list(start.values()) for start in starts])
    exact = solve(HARES, starts[1], T)
    np.testing.assert_allclose(model.predict(T, experiment=1)[:, 0], exact["hare"], rtol=0.1, atol=0.3)


def test_a_system_is_found_from_the_command_line_without_any_equation(table, capsys):
    assert main([*table, "--out", "run"]) == 0
    found = System.read(capsys.readouterr().out)
    assert found.skeleton.structure == HARES.skeleton.structure
    assert Path("run/report.html").exists()


WRONG = {
    "one equation": ("hare' = hare", "1 equations for 2 states"),
    "one state twice": ("hare' = hare; hare' = lynx", "does not give hare', lynx'"),
    "another state": ("hare' = hare; fox' = fox", "'fox' is not known"),
    "another order": ("hare'' = hare; lynx' = lynx", "lynx'"),
    "an input": ("hare' = hare + F; lynx' = lynx", "none is given"),
    "unreadable": ("hare' = hare; lynx' = (", "cannot be read"),
}


@pytest.mark.parametrize("name", WRONG)
def test_equations_that_do_not_fit_the_columns_give_one_sentence(table, capsys, name):
    text, says = WRONG[name]
    before = sorted(Path().rglob("*"))
    assert main([*table, "--start", text]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("lgf: ")
    assert says in said
    assert sorted(Path().rglob("*")) == before


def test_given_equations_from_the_command_line(table, capsys):
    assert main([*table, "--start", TRUE, "--start", SIMPLER, "--out", "run"]) == 0
    told = capsys.readouterr()
    first, second = told.out.splitlines()
    assert first.startswith("hare' = 1.1")
    assert second.startswith("lynx' = -0.")
    namespace = {}
    exec(Path("run/equation.py").read_text(), namespace)  # noqa: S102
    np.testing.assert_allclose(namespace["rhs"](0.0, [10.0, 5.0]), [-9.0, 3.0], rtol=0.1)
    assert "aligned" in Path("run/equation.tex").read_text()
    front = list(csv.DictReader(io.StringIO(Path("run/front.csv").read_text())))
    assert [row["equation"] for row in front if row["chosen"] == "True"] == [told.out.strip()]
    assert "hare': " in html.unescape(Path("run/report.html").read_text())
    assert main(["simulate", "run", "--n", "5", "--initial", "8,3"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["t", "hare", "lynx", "hare'", "lynx'"]
    exact = solve(HARES, (8, 3), np.linspace(0, 20, 5))
    np.testing.assert_allclose([float(row["hare"]) for row in rows], exact["hare"], rtol=0.2)


def test_a_run_of_two_states_resumes_to_the_same_result(table, capsys):
    order = [*table, "--start", TRUE, "--start", OTHER, "--json", "--out"]
    assert main([*order, "whole"]) == 0
    whole = json.loads(capsys.readouterr().out)
    lines = Path("whole/candidates.jsonl").read_text().splitlines(keepends=True)
    Path("whole/candidates.jsonl").write_text("".join(lines[:1]))
    Path("whole/equation.json").unlink()
    assert main(["discover", "--resume", "whole", "--json"]) == 0
    resumed = json.loads(capsys.readouterr().out)
    for facts in (resumed, whole):
        del facts["seconds"], facts["folder"]
    assert resumed == whole
    assert Path("whole/candidates.jsonl").read_text().splitlines(keepends=True) == lines


def test_ctrl_c_before_a_given_equation_was_fitted(table, capsys, monkeypatch):
    real = Journal.__call__

    def interrupted(self, evaluator, proposals):
        signal.raise_signal(signal.SIGINT)
        return real(self, evaluator, proposals)

    monkeypatch.setattr(Journal, "__call__", interrupted)
    assert main([*table, "--start", TRUE, "--out", "run"]) == 130
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "--resume run" in told


def test_prediction_is_a_column_for_each_state(fitted, values):
    exact = solve(HARES, START, T)
    predicted = fitted.predict(T)
    assert predicted.shape == (len(T), 2)
    np.testing.assert_allclose(predicted[:, 0], exact["hare"], rtol=0.1, atol=0.3)
    np.testing.assert_allclose(predicted[:, 1], exact["lynx"], rtol=0.1, atol=0.3)
    assert fitted.score(T, values) > 0.99
    assert fitted.score(T, values[:, ::-1]) < 0.5
    missing = values.copy()
    missing[3:9, 1] = np.nan
    assert fitted.score(T, missing) > 0.99
    with pytest.raises(LgfError, match="one value per time and state"):
        fitted.score(T, values[:, 0])


def test_simulation_takes_a_start_by_name_or_in_order(fitted):
    by_name = fitted.simulate(T, {"lynx": 3.0, "hare": 8.0})
    np.testing.assert_array_equal(by_name.values, fitted.simulate(T, (8.0, 3.0)).values)
    assert by_name["hare"][0] == 8.0
    assert [str(v) for v in by_name.variables] == ["hare", "lynx", "hare'", "lynx'"]
    np.testing.assert_allclose(by_name["lynx'"], np.gradient(by_name["lynx"], T), atol=0.1)
    for start in ({"hare": 8.0}, {"hare": 8.0, "fox": 1.0}, (8.0,)):
        with pytest.raises(LgfError):
            fitted.simulate(T, start)
    with pytest.raises(LgfError, match="have no input, and neither has its equation"):
        fitted.simulate(T, (8.0, 3.0), forcing={"rain": "t"})
    np.testing.assert_array_equal(by_name.values, fitted.simulate(T, (8.0, 3.0), forcing={}).values)


def test_columns_of_a_table_are_named_by_it(fitted, values):
    frame = pd.DataFrame(values, columns=["hare", "lynx"])
    again = clone(fitted).fit(T, frame)
    assert again.equation_ == fitted.equation_


def test_states_without_names_are_numbered(values):
    model = LatentGrammarFlow(initial_equations=["x0' = x0 + x0*x1; x1' = x1 + x0*x1"]).fit(T, values)
    assert str(model.equation_).startswith("x0' = 1.1")


def test_an_estimator_of_two_states_is_saved_and_pickled(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    back = LatentGrammarFlow.load(tmp_path / "run")
    assert back.equation_ == fitted.equation_
    assert back.initial_equations == fitted.initial_equations
    np.testing.assert_array_equal(back.predict(T), fitted.predict(T))
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert again.equation_ == fitted.equation_


def test_the_report_shows_every_state_the_phase_portrait_and_the_equilibria(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    text = html.unescape((tmp_path / "run/report.html").read_text())
    for words in ("<h2>Phase portrait</h2>", "<td>saddle</td>", "<td>centre</td>", "<td>hare</td>", "<td>lynx</td>"):
        assert words in text
    assert "has 2 equilibria within ten times the range of the data." in text
    assert (tmp_path / "run/phase.png").read_bytes().startswith(b"\x89PNG")
    rows = {row["measured"]: row for row in state_rows(fitted.run_)}
    residuals = fitted.predict(T) - both(START)
    for k, name in enumerate(("hare", "lynx")):
        error = np.sqrt(np.mean(residuals[:, k] ** 2))
        assert float(rows[name]["root mean square error"]) == pytest.approx(error, rel=0.01)


def test_the_phase_portrait_has_the_trajectory_and_the_equilibria(fitted):
    (axes,) = phase_portrait(fitted.run_).axes
    curve = axes.lines[0]
    expected = fitted.predict(np.linspace(0, 20, 600))
    np.testing.assert_allclose(np.column_stack(curve.get_data()), expected, rtol=1e-6)
    points = [line.get_data() for line in axes.lines if line.get_marker() == "o"]
    assert len(points) == 2
    np.testing.assert_allclose(np.ravel(points[0]), [4.0, 2.75], rtol=0.05)


# Two states and two inputs, in a folder

DRIVEN = System.read(
    "x'' = -4*x - 0.3*x' + 1.5*y + 0.8*push; y' = 0.5*x - 2*y + 1.2*heat",
    frame=Frame((("x", 2), ("y", 1)), ("push", "heat")),
)


@pytest.fixture(scope="module")
def driven():
    t = np.linspace(0, 15, 201)
    heat = Forcing.from_samples(t, np.sin(0.7 * t) + 0.3 * np.cos(2.1 * t))
    push = Forcing.from_formula("cos(1.3*t)")
    solved = solve(DRIVEN, {"x": 1.0, "x'": 0.0, "y": 0.5}, t, {"push": push, "heat": heat}, rtol=1e-10)
    measured = noisy(np.column_stack([solved["x"], solved["y'"]]))
    measured[7, 0] = np.nan
    observation = Observation(
        t, measured, ("x", "y'"), np.where(np.isnan(measured), 1.0, 2.0), {"y": 0.5}, {"heat": heat}, "lab"
    )
    problem = Problem((observation,), Knowledge(order={"x": 2, "y": 1}, inputs={"push": push}, bounds={"heat": (0, 9)}))
    start = ("x'' = x + x' + y + push; y' = x + y + heat", "x'' = C*x + C*y; y' = C*y + C*heat")
    settings = DiscoverySettings(selection=SelectionSettings(n_finalists=2))
    return execute(Request(problem, load_grammar("standard"), settings, start=start))


def test_a_folder_holds_two_states_and_two_inputs(driven, tmp_path):
    assert driven.system.skeleton == DRIVEN.skeleton
    np.testing.assert_allclose(driven.system.values, DRIVEN.values, rtol=0.15)
    write_run(driven, tmp_path / "run")
    read = read_run(tmp_path / "run")
    assert read.frame == driven.frame == DRIVEN.frame
    assert read.system == driven.system
    assert read.journal == driven.journal
    assert written(to_plain(read.request)) == written(to_plain(driven.request))
    assert written(to_plain(read)) == written(to_plain(driven))
    assert front_rows(read) == front_rows(driven)
    np.testing.assert_array_equal(read.trajectory().values, driven.trajectory().values)
    for name in ("push", "heat"):
        np.testing.assert_array_equal(read.trajectory().inputs[name], driven.trajectory().inputs[name])
    write_run(read, tmp_path / "again")
    for file in (tmp_path / "run").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    assert write_report(read, tmp_path / "run").is_file()


def test_a_folder_says_names_and_frames(driven, tmp_path):
    write_run(driven, tmp_path / "run")
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert facts["format"] == FORMAT
    problem = facts["request"]["problem"]
    (observation,) = problem["observations"]
    assert observation["columns"] == ["x", "y'"]
    assert observation["initial"] == {"y": 0.5}
    assert list(observation["inputs"]) == ["heat"]
    assert problem["knowledge"]["inputs"]["push"]["formula"] == "cos(1.3*t)"
    assert problem["knowledge"]["order"] == {"x": 2, "y": 1}
    frame = {"states": [["x", 2], ["y", 1]], "inputs": ["push", "heat"]}
    lines = [json.loads(line) for line in read_journal(tmp_path / "run")]
    assert lines
    best = json.loads((tmp_path / "run/equation.json").read_text())["best"]
    for candidate in (best, *(line["candidate"] for line in lines)):
        assert candidate["fit"]["skeleton"]["frame"] == candidate["proposal"]["skeleton"]["frame"] == frame
    assert read_request(tmp_path / "run", resume=True).start == driven.request.start


DAMAGES = {
    "a state less": lambda frame: frame.update(states=[["x", 2]]),
    "another order": lambda frame: frame.update(states=[["x", 1], ["y", 1]]),
    "another name": lambda frame: frame.update(states=[["x", 2], ["z", 1]]),
    "an input less": lambda frame: frame.update(inputs=["push"]),
    "a name twice": lambda frame: frame.update(inputs=["push", "x"]),
    "no frame": lambda frame: frame.clear(),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_frame_that_does_not_fit_gives_one_sentence(driven, tmp_path, name):
    write_run(driven, tmp_path / "run")
    path = tmp_path / "run/equation.json"
    facts = json.loads(path.read_text())
    DAMAGES[name](facts["best"]["fit"]["skeleton"]["frame"])
    path.write_text(json.dumps(facts))
    with pytest.raises(LgfError, match="is damaged") as caught:
        read_run(tmp_path / "run")
    assert "\n" not in str(caught.value)


def test_new_inputs_are_given_by_name(driven):
    t = np.linspace(0, 5, 51)
    start = {"x": 0.0, "x'": 1.0, "y": 0.0}
    rest = driven.simulate(t, start, {"push": "0", "heat": "0"})
    np.testing.assert_array_equal(rest.inputs["heat"], 0.0)
    with_push = driven.simulate(t, start, {"heat": "0"})  # push is a formula, which the run still has
    np.testing.assert_allclose(with_push.inputs["push"], np.cos(1.3 * t))
    assert np.abs(with_push["x"] - rest["x"]).max() > 0.05
    with pytest.raises(LgfError, match="the forcing heat of the data was given by samples"):
        driven.simulate(t, start)
    with pytest.raises(LgfError, match="say which one is given, by name"):
        driven.simulate(t, start, "0")
    with pytest.raises(LgfError, match="the input 'rain' is not known"):
        driven.simulate(t, start, {"rain": "0"})


# One state and two inputs


@pytest.fixture(scope="module")
def two_inputs():
    t = np.linspace(0, 20, 250)
    a = np.cos(1.3 * t) + np.sin(2.9 * t)
    b = np.where(t % 7 < 3, 1.0, -1.0) * np.sin(0.5 * t)
    system = System.read("u'' = -4*u - 0.4*u' + 1.5*a - 0.7*b", frame=Frame((("u", 2),), ("a", "b")))
    inputs = {"a": Forcing.from_samples(t, a), "b": Forcing.from_samples(t, b)}
    return t, noisy(solve(system, (1, 0), t, inputs, rtol=1e-10).u), a, b, system


@pytest.fixture(scope="module")
def oscillator(two_inputs):
    t, u, a, b, _ = two_inputs
    return LatentGrammarFlow(max_evaluations=60).fit(t, u, forcing={"a": a, "b": b})


def test_an_oscillator_with_two_inputs_is_found(two_inputs, oscillator):
    t, u, _, _, system = two_inputs
    assert oscillator.equation_.skeleton.structure == system.skeleton.structure
    assert oscillator.equation_.frame.inputs == ("a", "b")
    assert str(oscillator.equation_.skeleton) == "u'' = C*u' + C*u + C*a + C*b"
    off = np.abs(np.array(oscillator.equation_.values) - (-0.4, -4.0, 1.5, -0.7))
    errors = np.array(oscillator.equation_.errors)
    assert np.all(off < 4 * errors)
    assert np.all(errors < 0.1)
    assert str(oscillator.equation_).startswith("u'' = ")  # two inputs cannot both stand alone
    assert oscillator.score(t, u) > 0.99
    assert oscillator.run_.best.proposal.derivation is not None


def test_two_inputs_are_read_from_columns_by_name(two_inputs, oscillator, tmp_path, monkeypatch):
    t, u, a, b, _ = two_inputs
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"time": t, "a": a, "u": u, "b": b}).to_csv("driven.csv", index=False)
    (observation,) = read_observations("driven.csv", value="u", forcing=["a", "b"]).observations
    assert list(observation.inputs) == ["a", "b"]
    settings = replace(oscillator.run_.request.settings)
    run = execute(Request(Problem((observation,)), load_grammar("standard"), settings))
    assert run.system == oscillator.equation_


def test_a_run_with_two_inputs_is_saved_and_simulated(two_inputs, oscillator, tmp_path):
    t, _, a, b, _ = two_inputs
    oscillator.save(tmp_path / "run")
    back = LatentGrammarFlow.load(tmp_path / "run")
    assert back.equation_ == oscillator.equation_
    np.testing.assert_array_equal(back.predict(t), oscillator.predict(t))
    start = dict(zip(("u", "u'"), oscillator.run_.best.fit.initial[0], strict=True))
    again = back.simulate(t, start, {"b": b, "a": a})
    np.testing.assert_allclose(again.u, oscillator.predict(t), rtol=1e-5, atol=1e-6)
    without = back.simulate(t, start, {"a": a, "b": "0"})
    assert np.abs(without.u - again.u).max() > 0.05


def test_an_own_equation_may_hold_one_of_two_inputs(two_inputs):
    t, u, a, b, _ = two_inputs
    model = LatentGrammarFlow(order=2, max_evaluations=5, initial_equations=["u'' = u + u' + a"]).fit(
        t, u, forcing={"a": a, "b": b}
    )
    (given,) = [c for c in model.discovery_.population if c.proposal.origin == "given"]
    assert given.skeleton.structure == Skeleton.read("u'' = C*u + C*u' + C*a", given.skeleton.frame).structure
    assert np.isfinite(given.loss)


# A state of another name


def test_a_state_has_the_name_that_the_user_gave_it():
    t = np.linspace(0, 4, 50)
    theta = noisy(2 * np.exp(-0.5 * t), 0.002, seed=1)  # the noise of seed 0 is a constant with 3.7 standard errors
    model = LatentGrammarFlow(order=1, max_evaluations=20).fit(t, theta, states=["theta"])
    assert str(model.equation_).startswith("theta' = -0.")
    assert model.equation_.latex().startswith(r"\dot{\theta} = -0.")
    assert model.equation_.values == pytest.approx([-0.5], rel=1e-3)
    assert "theta" in model.front_.equation[0]
    plain = LatentGrammarFlow(order=1, max_evaluations=20).fit(t, theta)
    assert str(plain.equation_).replace("u", "theta") == str(model.equation_)
    assert plain.equation_.values == model.equation_.values
    np.testing.assert_array_equal(model.simulate(t, {"theta": 3.0})["theta"], plain.simulate(t, 3.0).u)


def test_a_state_and_an_input_of_other_names(tmp_path):
    t = np.linspace(0, 20, 250)
    torque = np.cos(1.3 * t) + 0.5 * np.sin(3 * t)
    system = System.read("theta'' = -4*theta - 0.4*theta' + 1.5*torque", frame=Frame((("theta", 2),), ("torque",)))
    theta = noisy(solve(system, (1, 0), t, {"torque": Forcing.from_samples(t, torque)}, rtol=1e-10).u)
    model = LatentGrammarFlow(
        order={"theta": 2}, stable=True, required=["theta"], bounds={"theta'": "negative"}, max_evaluations=40,
        initial_equations=["theta'' = theta + torque"],
    ).fit(t, theta, states=["theta"], initial={"theta": 1.0}, forcing={"torque": torque})  # fmt: skip
    assert model.equation_.skeleton.frame == system.frame
    assert str(model.equation_).endswith(" theta = torque")
    np.testing.assert_allclose(model.equation_.values, [1 / 1.5, 0.4 / 1.5, 4 / 1.5], rtol=0.05)
    assert model.run_.best.skeleton.structure == system.skeleton.structure
    assert model.run_.best.fit.initial[0, 0] == 1.0
    model.save(tmp_path / "run")
    assert LatentGrammarFlow.load(tmp_path / "run").equation_ == model.equation_
    assert "theta" in (tmp_path / "run" / "report.html").read_text()
