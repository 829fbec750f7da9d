"""Systems with a state that was not measured: proposals, equivalents, orientation, doors."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lgf import LatentGrammarFlow, System
from lgf.cli import main
from lgf.data import Knowledge, Observation, Problem, load_record
from lgf.data.row_knowledge import row_knowledge
from lgf.equation.terms import rows_of, term_of
from lgf.expression.frame import Frame, Variable
from lgf.expression.print import plain
from lgf.fit.settings import FitSettings, patient
from lgf.fit.target_assembly import make_target
from lgf.grammar import load_grammar
from lgf.report.sentences import note_sentence
from lgf.runs.folder import read_run
from lgf.runs.request import Request
from lgf.search.discover import discover
from lgf.search.hidden.coupling import scale_is_free
from lgf.search.hidden.equivalents import equivalent
from lgf.search.hidden.orientation import mirrored
from lgf.search.hidden.record import curves_of, widened, with_guessed_path
from lgf.search.hidden.starts import find_starts
from lgf.search.notes import NoteKind
from lgf.search.settings import DiscoverySettings
from lgf.search.systems.language import system_language
from lgf.smoothing.complete import complete
from lgf.solver.solve import solve

LOTKA_VOLTERRA = System.read("x' = 0.55*x - 0.028*x*y; y' = 0.024*x*y - 0.8*y")
SIR = System.read("x' = 0.6*x*y - 0.25*x; y' = -0.6*x*y")
PAIR = Frame((("x", 1), ("y", 1)))


def measured(system, start, end, n=100, noise=0.05, seed=0):
    """(times, noisy x, clean y)."""
    t = np.linspace(0.0, end, n)
    solved = solve(system, start, t)
    clean = solved["x"]
    return t, clean + noise * clean.std() * np.random.default_rng(seed).standard_normal(n), solved["y"]


def hidden_problem(t, x, **knowledge):
    return Problem((Observation(t, x, ("x",)),), Knowledge(hidden="y", **knowledge))


def terms(candidate):
    rows = [set() for _ in candidate.skeleton.frame.states]
    for row, summand in rows_of(candidate.skeleton):
        rows[row].add(plain(term_of(summand)))
    return rows


def kinds(found):
    return [note.kind for note in found.notes]


def limited(evaluations):
    settings = DiscoverySettings()
    return replace(settings, search=replace(settings.search, max_evaluations=evaluations))


@pytest.fixture(scope="module")
def prey():
    t, x, y = measured(LOTKA_VOLTERRA, {"x": 30, "y": 4}, 20.0)
    return t, x, y, discover(hidden_problem(t, x), load_grammar("systems"), limited(120))


@pytest.fixture(scope="module")
def epidemic():
    t, x, _ = measured(SIR, {"x": 0.01, "y": 1.0}, 40.0)
    return discover(hidden_problem(t, x), load_grammar("systems"), limited(150))


def test_lotka_volterra_comes_out_of_the_prey_alone(prey):
    t, _, y, discovery = prey
    assert terms(discovery.best) == [{"x", "x*y"}, {"y", "x*y"}]
    path = solve(discovery.system, tuple(discovery.best.fit.initial[0]), t)["y"]
    assert np.corrcoef(path, y)[0, 1] > 0.99
    assert path.min() > 0  # oriented
    assert NoteKind.FREE_SCALE in kinds(discovery)
    assert NoteKind.HIDDEN_UNEXPLAINED not in kinds(discovery)


def test_exact_equivalents_of_an_epidemic_are_shown_as_one(epidemic):
    assert terms(epidemic.best) == [{"x", "x*y"}, {"x*y"}]
    forms = [terms(c) for c in epidemic.equivalents]
    assert [{"x*y"}, {"x", "x*y"}] in forms
    structures = {c.skeleton.structure for c in epidemic.indistinguishable}
    rivals = len(structures) - 1
    assert [n.values["number"] for n in epidemic.notes if n.kind is NoteKind.RIVALS] == [rivals] * (rivals > 0)
    assert structures.isdisjoint(c.skeleton.structure for c in epidemic.equivalents)
    # The analytic counterpart: x' = x*z with z = y - g is the same x, and z' = -b*x*(z + g).
    gamma, b = epidemic.best.fit.values[0], epidemic.best.fit.values[1]
    other = next(c for c in epidemic.equivalents if terms(c) == [{"x*y"}, {"x", "x*y"}])
    assert sorted(other.fit.values) == pytest.approx(sorted([b, -b * gamma]), rel=1e-3)


def test_systems_that_only_fit_similarly_are_not_equivalent(epidemic):
    others = [c for c in epidemic.population if np.isfinite(c.objective) and c.skeleton.n_constants == 2]
    poorer = sorted(others, key=lambda c: c.objective)[6]
    assert not equivalent(poorer, epidemic.best, epidemic.target, patient(FitSettings()))


def test_the_mirror_image_gives_the_same_measured_state(epidemic):
    best = epidemic.best
    image = mirrored(best, 1)
    t = epidemic.target.t
    one = solve(best.fit.system(epidemic.target), tuple(best.fit.initial[0]), t)
    other = solve(image.fit.system(epidemic.target), tuple(image.fit.initial[0]), t)
    np.testing.assert_allclose(one["x"], other["x"], rtol=1e-6)
    np.testing.assert_allclose(one["y"], -other["y"], rtol=1e-6)


def test_starts_are_those_of_a_plain_regression():
    t, x, _ = measured(LOTKA_VOLTERRA, {"x": 30, "y": 4}, 20.0, noise=0.0)
    problem = hidden_problem(t, x)
    completions = with_guessed_path(problem, PAIR, [complete(problem.observations[0], PAIR)])
    target = widened(make_target(problem, PAIR, completions), "y")
    language = system_language(load_grammar("systems"), problem, PAIR, target)
    known = row_knowledge(problem.knowledge, PAIR)
    curves = curves_of(target, "y", 80)
    structures = find_starts(language, known, curves, 1, 30.0, {})
    start = next(s for own in structures for s in own if terms_of_start(s) == [{"x", "x*y"}, {"y", "x*y"}])
    rest, coupling = start.components[0].coefficients
    prey, rate = curves.columns[Variable("x")], curves.columns[Variable("x", 1)]
    path = (rate - rest * prey) / (coupling * prey)
    np.testing.assert_allclose(start.path, path, rtol=1e-9)
    weight = prey / np.sqrt(np.mean(prey**2))
    steps = np.diff(curves.t)
    integrals = [np.append(0.0, np.cumsum(0.5 * (f[1:] + f[:-1]) * steps)) for f in (path, prey * path)]
    design = np.column_stack([*integrals, np.ones_like(path)]) * weight[:, None]
    solution, *_ = np.linalg.lstsq(design, path * weight, rcond=None)
    np.testing.assert_allclose(start.components[1].coefficients, solution[:2], rtol=1e-3)


def terms_of_start(start):
    return [{plain(t) for t in c.terms} for c in start.components]


@pytest.mark.parametrize(
    ("knowledge", "given", "free"),
    [
        ({}, (), True),
        ({"populations": ("x", "y")}, (), True),
        ({}, (4.0,), False),
        ({}, (0.0,), True),
        ({"conserved": "x + y"}, (), False),
        ({"known": {"x": "C*x - 0.1*x*y"}}, (), False),
        ({"known": {"x": "C*x + C*x*y"}}, (), True),
        ({"known": {"y": "0.1*x*y - 0.2*y"}}, (), True),
        ({"known": {"y": "0.1*x - 0.2*y"}}, (), False),
        ({"known": {"x": "C*(y - x)"}}, (), False),  # heat from a wall: the same constant before both
        ({"known": {"x": "C*y - C*x"}}, (), True),
        ({"known": {"x": "C0*y - C0*x"}}, (), False),
        ({"known": {"x": "C*y/(C + y)"}}, (), True),
        ({"known": {"x": "C*y/(1 + y)"}}, (), False),
        ({"known": {"x": "C*sin(y)"}}, (), False),
        ({"shared": "x: x*y = -y: x*y"}, (), False),
    ],
)
def test_what_is_known_fixes_the_scale_of_a_hidden_state(knowledge, given, free):
    assert scale_is_free(row_knowledge(Knowledge(hidden="y", **knowledge), PAIR), given) is free


def test_a_given_start_fixes_the_scale_and_workers_change_nothing(prey):
    t, x, y, _ = prey
    frame = pd.DataFrame({"x": x})
    models = [
        LatentGrammarFlow(hidden="y", max_evaluations=30, n_jobs=n).fit(t, frame, initial={"y": 4.0}) for n in (1, 2)
    ]
    assert str(models[0].equation_) == str(models[1].equation_)
    assert terms(models[0].run_.best) == [{"x", "x*y"}, {"y", "x*y"}]
    assert models[0].equation_.values[1] == pytest.approx(-0.028, rel=0.15)
    assert np.sqrt(np.mean((models[0].predict(t)[:, 1] - y) ** 2)) < 0.15 * y.std()
    assert NoteKind.FREE_SCALE not in kinds(models[0].run_)


def test_a_known_equation_of_the_measured_state_and_several_experiments():
    pairs = [
        measured(LOTKA_VOLTERRA, {"x": a, "y": b}, 10.0, n=50, seed=k) for k, (a, b) in enumerate([(30, 4), (15, 25)])
    ]
    model = LatentGrammarFlow(hidden="y", known={"x": "0.55*x - 0.028*x*y"}, max_evaluations=60)
    model.fit([p[0] for p in pairs], [p[1] for p in pairs], states=["x"])
    assert terms(model.run_.best)[1] == {"y", "x*y"}
    for e, (t, _, y) in enumerate(pairs):
        assert np.sqrt(np.mean((model.predict(t, experiment=e)[:, 1] - y) ** 2)) < 0.15 * y.std()


def test_two_measured_states_and_a_conserved_sum_give_the_cold_its_rates():
    record = load_record("cold").observations[0]
    known = Knowledge(
        hidden="S", autonomous=True, conserved="S + infected + recovered", known={"recovered": "C*infected"},
        populations=("S", "infected"),
    )  # fmt: skip
    problem = Problem((Observation(record.t, record.values, ("infected", "recovered")),), known)
    discovery = discover(problem, load_grammar("systems"))
    assert terms(discovery.best) == [{"infected", "S*infected"}, {"infected"}, {"S*infected"}]
    gamma, b = discovery.best.fit.values
    assert b == pytest.approx(0.0222, rel=0.1)
    assert -gamma == pytest.approx(0.277, rel=0.05)
    assert discovery.best.fit.initial[0, 2] == pytest.approx(40, rel=0.03)


def test_the_numbers_of_ones_own_equations_are_where_the_fit_starts(prey):
    t, x, _, _ = prey
    text = "x' = 0.5*x - 0.03*x*y; y' = 0.02*x*y - 0.7*y"
    request = Request(hidden_problem(t, x), load_grammar("systems"), start=(text,))
    (proposal,) = request.proposals
    assert sorted(proposal.start) == [-0.7, -0.03, 0.02, 0.5]
    found = discover(request.problem, request.grammar, limited(1), warm=[proposal])
    assert found.best.loss < 0.01
    (bare,) = replace(request, start=("x' = C*x + C*x*y; y' = C*x*y + C*y",)).proposals
    assert bare.start is None


def test_a_linear_system_is_said_to_be_undetermined():
    t, x, _ = measured(System.read("x' = -1*x + 0.5*y; y' = 0.4*x - 0.8*y"), {"x": 2, "y": 0}, 8.0, n=60, noise=0.02)
    discovery = discover(hidden_problem(t, x), load_grammar("systems"), limited(60))
    if terms(discovery.best)[0] <= {"x", "y", "1"} and terms(discovery.best)[1] <= {"x", "y", "1"}:
        assert NoteKind.LINEAR in kinds(discovery)
    else:
        assert len(discovery.indistinguishable) + len(discovery.equivalents) > 3


def test_one_hidden_state_does_not_explain_a_chaotic_record():
    lorenz = System.read("x' = 10*y - 10*x; y' = 28*x - x*z - y; z' = x*y - 2.6667*z")
    t = np.linspace(0.0, 12.0, 240)
    x = solve(lorenz, {"x": 1, "y": 1, "z": 20}, t)["x"]
    discovery = discover(hidden_problem(t, x), load_grammar("systems"), limited(60))
    assert NoteKind.HIDDEN_UNEXPLAINED in kinds(discovery)


def test_of_several_experiments_one_hidden_state_is_not_blamed_for_a_constant_that_varies():
    t = np.linspace(0.0, 12.0, 120)
    parts = []
    for rate in (0.2, 1.0):
        system = System.read(f"x' = x - 0.5*x*y; y' = 0.4*x*y - {rate}*y")
        parts.append(Observation(t, solve(system, {"x": 2, "y": 1}, t)["x"][:, None], ("x",)))
    problem = Problem(tuple(parts), Knowledge(hidden="y", known={"x": "C*x - C*x*y", "y": "C*x*y - C*y"}))
    discovery = discover(problem, load_grammar("systems"), limited(20))
    assert NoteKind.HIDDEN_UNEXPLAINED not in kinds(discovery)
    assert NoteKind.HIDDEN_UNEXPLAINED_EXPERIMENTS in kinds(discovery)


def test_a_run_is_written_read_resumed_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = ["discover", "hares", "--value", "hare", "--hidden", "lynx", "--population", "hare", "--population", "lynx"]
    assert main([*line, "--evaluations", "40", "--out", "one", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert any("not measured" in sentence for sentence in facts["notes"])
    assert main([*line, "--evaluations", "20", "--out", "two"]) == 0
    assert main(["discover", "--resume", "two", "--evaluations", "40"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == facts["equation"].splitlines()
    run = read_run("one")
    record = load_record("hares").observations[0]
    lynx = run.trajectory(0)["lynx"]
    assert terms(run.best) == [{"hare", "hare*lynx"}, {"lynx", "hare*lynx"}]
    assert np.corrcoef(lynx, record.values[:, 1])[0, 1] > 0.95
    assert [note_sentence(note) for note in run.notes] == facts["notes"]
    report = Path("one/report.html").read_text()
    assert "lynx was not measured" in report
    assert main(["simulate", "one", "--initial", "hare=20,lynx=40", "--t0", "0", "--t1", "5", "--n", "3"]) == 0
    assert "lynx" in capsys.readouterr().out
