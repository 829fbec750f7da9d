import contextlib
import errno
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lgf.data import Knowledge, Observation, Problem
from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.files import write_atomically
from lgf.fit.constants import ConstantFit
from lgf.fit.segments import Shooting
from lgf.fit.sharing import Sharing, Varying
from lgf.report.run_view import run_view
from lgf.runs.equations import front_rows
from lgf.runs.folder import (
    JOURNAL,
    discard_run,
    open_run,
    read_journal,
    read_request,
    read_run,
    write_run,
)
from lgf.runs.journal import Journal, read_lines
from lgf.runs.request import Run, execute
from lgf.runs.serialisation import read, to_plain, written
from lgf.search.candidate import Candidate, Noise, Prediction, Proposal
from lgf.search.settings import PRESETS
from lgf.solver.forcing import Forcing
from lgf.solver.stability import Stability, StabilityKind
from lgf.solver.trajectory import SolveStatus


def stored(value):
    return written(to_plain(value))


def read_again(value):
    """The value from what is stored of it, which is strict JSON."""
    return read(type(value), json.loads(stored(value), parse_constant=lambda name: pytest.fail(name)))


def same(one: Run, other: Run) -> None:
    assert one.system == other.system
    assert front_rows(run_view(one).front) == front_rows(run_view(other).front)
    timeless = [
        replace(run, seconds=0.0, history=tuple(replace(i, seconds=0.0) for i in run.history)) for run in (one, other)
    ]
    assert stored(timeless[0]) == stored(timeless[1])


@pytest.fixture
def folder(duffing, tmp_path):
    write_run(duffing, tmp_path / "run")
    return tmp_path / "run"


def test_what_is_written_is_read(duffing, decay, tmp_path):
    named = replace(decay, request=replace(decay.request, source="decay.csv"))
    for name, run in (("duffing", duffing), ("decay", named)):
        write_run(run, tmp_path / name)
        back = read_run(tmp_path / name)
        same(back, run)
        assert back.journal == run.journal
        assert stored(back.request) == stored(run.request)
        assert back.request.settings == run.request.settings
        np.testing.assert_array_equal(back.trajectory().values, run.trajectory().values)
        again = tmp_path / f"{name} again"
        write_run(back, again)
        for file in (tmp_path / name).iterdir():
            assert file.read_bytes() == (again / file.name).read_bytes()


def test_an_equation_that_could_not_be_solved_is_written_and_read(decay, tmp_path):
    history = (replace(decay.history[0], best=np.inf, top=np.inf), *decay.history[1:])
    unsolved = replace(decay, best=replace(decay.best, objective=np.inf), history=history)
    write_run(unsolved, tmp_path / "run")
    same(read_run(tmp_path / "run"), unsolved)


def test_every_candidate_survives_the_journal(duffing, decay):
    for run in (duffing, decay):
        assert run.discovery is not None
        for candidate in run.discovery.population:
            back = read_again(candidate)
            assert back.skeleton == candidate.skeleton
            assert Skeleton.read(str(candidate.skeleton), candidate.skeleton.frame) == candidate.skeleton
            assert stored(back) == stored(candidate)
            np.testing.assert_array_equal(back.fit.covariance, candidate.fit.covariance)


@pytest.mark.parametrize(("name", "kept"), [("duffing", 1), ("duffing", 10_000), ("decay", 0), ("decay", 50)])
def test_an_interrupted_run_resumes_to_the_same_result(request, tmp_path, name, kept):
    whole = request.getfixturevalue(name)
    journal = open_run(tmp_path / "run", whole.request)
    journal.write_text("".join(line + "\n" for line in whole.journal[:kept]) + '{"stage": "torn of')
    lines = read_journal(tmp_path / "run")
    assert lines == list(whole.journal[:kept])
    fitted = []
    resumed = execute(
        read_request(tmp_path / "run", resume=True), path=journal, lines=lines, notify=lambda news: fitted.append(news)
    )
    same(resumed, whole)
    assert resumed.journal == whole.journal
    assert journal.read_text().splitlines() == list(whole.journal)


def test_nothing_is_fitted_twice(duffing):
    def refuse(evaluator, proposals):
        assert not proposals
        return []

    journal = Journal(lines=duffing.journal)
    journal._map = refuse
    assert duffing.discovery is not None
    from lgf.runs.presets import proposers_for
    from lgf.search.discover import discover

    again = discover(
        duffing.request.problem, duffing.request.grammar, duffing.request.settings, mapper=journal,
        proposers=proposers_for(duffing.request.grammar),
        warm=[c.proposal for c in duffing.discovery.population if c.proposal.origin == "given"],
    )  # fmt: skip
    assert again.best.objective == duffing.best.objective


def test_a_run_in_a_folder_is_not_written_over(folder, duffing):
    with pytest.raises(LgfError, match="holds a run already"):
        open_run(folder, duffing.request)


def test_discarding_takes_away_only_what_is_empty(folder, duffing, tmp_path):
    before = {f.name: f.read_bytes() for f in folder.iterdir()}
    discard_run(folder)
    assert {f.name: f.read_bytes() for f in folder.iterdir()} == before
    open_run(tmp_path / "new", duffing.request)
    discard_run(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LgfError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_loses_nothing_that_was_fitted(duffing, tmp_path, monkeypatch):
    journal = open_run(tmp_path / "run", duffing.request)
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LgfError, match="make room"):
        execute(duffing.request, path=journal)
    monkeypatch.undo()
    lines = read_journal(tmp_path / "run")
    assert lines
    same(execute(duffing.request, path=journal, lines=lines), duffing)


def test_links_are_not_followed(folder, tmp_path, duffing):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (folder / JOURNAL).unlink()
    (folder / JOURNAL).symlink_to(victim)
    with pytest.raises(LgfError):
        read_journal(folder)
    with pytest.raises(LgfError):
        execute(duffing.request, path=folder / JOURNAL)
    (folder / "front.csv").unlink()
    (folder / "front.csv").symlink_to(victim)
    write_run(duffing, folder)
    assert victim.read_text() == "precious"
    assert not (folder / "front.csv").is_symlink()


def test_another_version_is_read_but_not_resumed(folder):
    facts = json.loads((folder / "run.json").read_text())
    facts["versions"]["lgf"] = "99.0"
    (folder / "run.json").write_text(json.dumps(facts))
    read_run(folder)
    with pytest.raises(LgfError, match=r"lgf 99\.0"):
        read_request(folder, resume=True)


DAMAGES = {
    "no folder": lambda f: shutil.rmtree(f),
    "run.json missing": lambda f: (f / "run.json").unlink(),
    "run.json empty": lambda f: (f / "run.json").write_text(""),
    "run.json no JSON": lambda f: (f / "run.json").write_text("{"),
    "run.json a list": lambda f: (f / "run.json").write_text("[]"),
    "run.json binary": lambda f: (f / "run.json").write_bytes(b"\xff\xfe\0"),
    "run.json nested": lambda f: (f / "run.json").write_text("[" * 100_000),
    "run.json of another format": lambda f: _change(f, "run.json", "format", 1),
    "no settings": lambda f: _change(f, "run.json", "request.settings", None),
    "unknown setting": lambda f: _change(f, "run.json", "request.settings", {"magic": 1}),
    "no problem": lambda f: _change(f, "run.json", "request.problem", {}),
    "hostile grammar": lambda f: _change(f, "run.json", "request.grammar", "__import__('os')"),
    "seed as text": lambda f: _change(f, "run.json", "request.seed", "many"),
    "equation.json missing": lambda f: (f / "equation.json").unlink(),
    "equation.json empty": lambda f: (f / "equation.json").write_text(""),
    "best missing": lambda f: _change(f, "equation.json", "best", None),
    "hostile skeleton": lambda f: _change(f, "equation.json", "best", {"skeleton": "__import__('os').system('x')"}),
    "branches of another number": lambda f: _change(f, "equation.json", "branches", []),
    "history of text": lambda f: _change(f, "equation.json", "history", ["x"]),
    "an unknown value": lambda f: _change(f, "equation.json", "magic", 1),
    "a negative loss": lambda f: _change(f, "equation.json", "best.fit.loss", -1.0),
    "no experiment": lambda f: _change(f, "equation.json", "best.fit.by_experiment", []),
    "a constant more": lambda f: _change(f, "equation.json", "best.fit.values", [1.0] * 9),
    "a forcing in u": lambda f: _change(f, "run.json", "request.problem.observations", [{"inputs": {"F": "u"}}]),
    "versions a number": lambda f: _change(f, "equation.json", "versions", 3),
}


def _change(folder, file, key, value):
    facts = json.loads((folder / file).read_text())
    *parents, last = key.split(".")
    place = facts
    for parent in parents:
        place = place[parent]
    place[last] = value
    (folder / file).write_text(json.dumps(facts))


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_gives_one_sentence(folder, name):
    DAMAGES[name](folder)
    with pytest.raises(LgfError) as caught:
        read_run(folder)
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith(".")
    assert len(said) < 400


ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([-1, 1e308, 10**400])
    | st.text(max_size=8)
)
ODDER = ODD | st.lists(ODD, max_size=3) | st.dictionaries(st.text(max_size=3), ODD, max_size=2)


def damaged(data, facts):
    """The facts with something else in one place, at any depth."""
    if not isinstance(facts, (dict, list)) or not facts or not data.draw(st.integers(0, 5)):
        return data.draw(ODDER)
    at = data.draw(st.sampled_from(sorted(facts) if isinstance(facts, dict) else range(len(facts))))
    facts[at] = damaged(data, facts[at])
    return facts


@given(st.data())
@settings(deadline=None, derandomize=True, max_examples=150)
def test_any_place_of_a_journal_line_may_hold_anything(duffing, data):
    """Whatever stands in place of a value, reading gives a candidate or one sentence."""
    entry = json.loads(duffing.journal[data.draw(st.integers(0, len(duffing.journal) - 1))])
    with contextlib.suppress(LgfError):
        Journal(lines=[json.dumps(damaged(data, entry))])


@given(st.data())
@settings(
    deadline=None, derandomize=True, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_place_of_a_result_may_hold_anything(folder, data):
    name = data.draw(st.sampled_from(["run.json", "equation.json"]))
    sound = (folder / name).read_bytes()
    (folder / name).write_text(json.dumps(damaged(data, json.loads(sound))))
    try:
        run = read_run(folder)
        run_view(run)
        run.trajectory()
    except LgfError:
        pass
    finally:
        (folder / name).write_bytes(sound)


def test_journal_lines_that_are_no_candidates(tmp_path):
    path = tmp_path / JOURNAL
    path.write_bytes(b"{}\nhalf")
    lines = read_lines(path)
    assert lines == ["{}"]
    assert path.read_bytes() == b"{}\nhalf"  # a reader may meet a line that is being written
    with pytest.raises(LgfError, match="line 1"):
        Journal(lines=lines)
    for content, left in ((b"{}\nhalf", b"{}\n"), (b"half", b""), (b"", b""), (b"{}\n" + b"x" * 200_000, b"{}\n")):
        path.write_bytes(content)
        Journal(path)
        assert path.read_bytes() == left
    path.write_bytes(b"\xff\n")
    with pytest.raises(LgfError, match="not text"):
        read_lines(path)


finite = st.floats(-1e6, 1e6).map(lambda x: round(x, 9))


@given(
    values=arrays(float, (5, 2), elements=finite),
    missing=st.integers(0, 4),
    low=st.floats(-1e9, 0) | st.just(-np.inf),
    sampled=st.booleans(),
)
@settings(deadline=None, derandomize=True, max_examples=40)
def test_problems_round_trip(values, missing, low, sampled):
    t = np.cumsum(np.full(5, 0.1))
    values[missing, 0] = np.nan
    forcing = Forcing.from_samples(t, values[:, 1]) if sampled else Forcing.from_formula("2*sin(0.1*t)")
    weights = np.abs(values) + 1 if not np.isnan(values).any() else None
    observation = Observation(t, values, ("u", "u''"), weights, (0.1,), {"F": forcing}, "a <name>")
    known = Knowledge(order=2, stable=True, functions=("sin",), bounds={"u^3": (low, 1.0)}, required=("u",))
    problem = Problem((observation,), known)
    back = read_again(problem)
    assert stored(back) == stored(problem)
    np.testing.assert_array_equal(back.observations[0].values, values)
    np.testing.assert_array_equal(back.signals()["F"].values(t), problem.signals()["F"].values(t))
    assert back.knowledge.bounds == {"u^3": (low, 1.0)}


numbers = st.floats(allow_nan=False)
losses = st.floats(0.0, None)
SKELETONS = [
    Skeleton.read(text)
    for text in ("u' = t", "u'' = C*u + F", "x' = C0*x - C1*x*y; y' = C1*x*y", "C*u'' + C*u'*u'' = F")
]


@st.composite
def candidates(draw):
    skeleton = draw(st.sampled_from(SKELETONS))
    n, p, width = draw(st.integers(1, 3)), skeleton.n_constants, skeleton.frame.dimension

    def matrix(rows, columns, elements=numbers):
        return draw(arrays(float, (rows, columns), elements=elements))

    varying = st.builds(Varying, st.integers(0, p - 1), numbers, losses)
    sharing = st.builds(Sharing, st.lists(varying, max_size=2).map(tuple) if p else st.just(()))
    starts = st.none() | st.lists(numbers, max_size=3).map(tuple)
    counts = st.integers(0, 10**6)
    shooting = st.none() | st.builds(Shooting, st.lists(counts, max_size=2).map(tuple), starts, starts, st.booleans())
    fit = ConstantFit(
        skeleton, tuple(matrix(1, p)[0].tolist()), draw(losses), draw(losses),
        matrix(1, len(skeleton.frame.columns), losses)[0], matrix(p, p), matrix(n, width, st.floats()),
        matrix(n, p), draw(sharing), draw(numbers), draw(st.sampled_from(SolveStatus)), draw(counts), draw(counts),
        draw(st.integers(1, 9)), matrix(2 * n, width) if draw(st.booleans()) else None,
    )  # fmt: skip
    derivation = st.none() | st.lists(counts, max_size=4).map(tuple)
    proposal = Proposal(
        draw(st.sampled_from(SKELETONS)), draw(losses), draw(derivation), draw(st.text(max_size=9)), draw(starts),
        draw(sharing), draw(shooting), draw(st.booleans()),
    )  # fmt: skip
    missing = st.none() | losses
    prediction = st.none() | st.builds(Prediction, missing, missing, st.floats(), numbers)
    return Candidate(
        proposal, fit, draw(counts), draw(numbers),
        draw(st.none() | st.builds(Stability, st.sampled_from(StabilityKind), st.text(max_size=9))),
        draw(prediction), draw(st.none() | st.builds(Noise, losses, losses)),
    )  # fmt: skip


@given(candidates())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_candidates_round_trip(candidate):
    back = read_again(candidate)
    assert stored(back) == stored(candidate)
    assert (back.skeleton, back.fit.values, back.proposal.start) == (
        candidate.skeleton, candidate.fit.values, candidate.proposal.start,
    )  # fmt: skip
    for name in ("losses", "covariance", "initial", "by_experiment"):
        np.testing.assert_array_equal(getattr(back.fit, name), getattr(candidate.fit, name))


@pytest.mark.parametrize("preset", PRESETS)
def test_settings_round_trip(preset):
    assert read_again(PRESETS[preset]) == PRESETS[preset]
