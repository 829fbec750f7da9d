"""Settings from a file, from Python, and in a run's folder; the user's own proposers."""

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from lgf import LatentGrammarFlow
from lgf.cli import main
from lgf.fit.settings import FitMethod
from lgf.runs.folder import JOURNAL, read_journal, read_request
from lgf.runs.percentages import percentage
from lgf.runs.presets import checked_settings, settings_in
from lgf.runs.request import execute
from lgf.search.loop import SearchSettings
from lgf.search.proposers.basic import MonteCarloProposer
from lgf.search.select import SelectionSettings
from lgf.search.settings import PRESETS, DiscoverySettings, ProposerShare

T = np.linspace(0.0, 4.0, 50)
U = 2.0 * np.exp(-0.5 * T)
SMALL = DiscoverySettings(
    search=SearchSettings(first=15, max_evaluations=45), selection=SelectionSettings(n_finalists=2)
)
FILE = """
smoothing = "whittaker"

[search]
population = 15

[selection]
n_finalists = 2

[fit]
method = "nelder_mead"

[flow]
steps = 4

[[proposers]]
name = "monte carlo"
share = 1
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("decay.csv").write_text("t,u\n" + "".join(f"{t},{u}\n" for t, u in zip(T, U, strict=True)))
    Path("settings.toml").write_text(FILE)


def test_settings_are_few():
    def leaves(settings):
        parts = [getattr(settings, field.name) for field in fields(settings)]
        return sum(leaves(part) if is_dataclass(part) else 1 for part in parts)

    assert leaves(DiscoverySettings()) <= 100  # 307 in version 0.2; a number that nobody sets stands beside its code


@pytest.mark.parametrize("preset", PRESETS)
def test_a_file_takes_the_place_of_what_it_names_and_of_nothing_else(preset):
    before = PRESETS[preset]
    after = settings_in("settings.toml", before)
    assert after.smoothing == "whittaker"
    assert after.fit.method is FitMethod.NELDER_MEAD
    assert after.proposers == (ProposerShare("monte carlo", 1.0),)
    back = replace(
        after,
        smoothing=before.smoothing,
        search=replace(after.search, population=before.search.population),
        selection=before.selection,
        fit=before.fit,
        flow=replace(after.flow, steps=before.flow.steps),
        proposers=before.proposers,
    )
    assert back == before
    Path("empty.toml").write_text("")
    assert settings_in("empty.toml", before) == before


def test_settings_of_the_command_line_stand_in_the_run():
    order = ["discover", "decay.csv", "--order", "1", "--evaluations", "20", "--settings", "settings.toml"]
    assert main([*order, "--out", "run"]) == 0
    facts = json.loads(Path("run/run.json").read_text())["request"]["settings"]
    assert facts["search"]["population"] == 15
    assert facts["flow"]["steps"] == 4
    assert facts["proposers"] == [{"name": "monte carlo", "share": 1.0}]
    assert "flow.steps" in Path("run/report.html").read_text()
    origins = {json.loads(line)["candidate"]["proposal"]["origin"] for line in read_journal("run")}
    assert origins <= {"enumeration", "monte carlo", "simplified"}


def test_settings_made_in_python_are_read_as_a_file_is():
    loose = replace(
        SMALL,
        fit=replace(SMALL.fit, method="nelder_mead", rtol=1),
        search=replace(SMALL.search, population=np.int64(15)),
        proposers=[ProposerShare("evolution", 1)],
    )
    checked = checked_settings(loose)
    assert checked.fit.method is FitMethod.NELDER_MEAD
    assert type(checked.search.population) is int
    assert checked.proposers == (ProposerShare("evolution", 1.0),)
    assert checked_settings(SMALL) == SMALL


def test_settings_need_no_torch():
    code = "import sys; import lgf.search.settings; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def make_mine(languages, targets, settings, seed):
    """Draws from the grammar, under another name."""

    class Mine(MonteCarloProposer):
        def ask(self, n):
            return [replace(proposal, origin="mine") for proposal in super().ask(n)]

    return Mine(languages, seed)


MINE = replace(SMALL, proposers=(ProposerShare("mine", 0.5), ProposerShare("evolution", 0.5)))


def test_a_users_own_proposer_has_its_share():
    model = LatentGrammarFlow(order=1, settings=MINE, proposers={"mine": make_mine}).fit(T, U)
    origins = [c.proposal.origin for c in model.discovery_.population]
    assert 0 < origins.count("mine") < 30
    assert model.equation_.values == pytest.approx((-0.5,), abs=1e-6)


def test_a_run_with_a_users_own_proposer_is_resumed_where_the_proposer_is(capsys):
    model = LatentGrammarFlow(order=1, settings=MINE, proposers={"mine": make_mine}).fit(T, U)
    model.save("run")
    assert main(["discover", "--resume", "run"]) == 2
    assert "asks a proposer 'mine' that is not of this package" in capsys.readouterr().err
    assert LatentGrammarFlow.load("run").equation_ == model.equation_
    lines = read_journal("run")
    again = execute(
        read_request("run", resume=True), proposers={"mine": make_mine}, path=Path("run") / JOURNAL, lines=lines
    )
    assert again.system == model.equation_
    assert list(again.journal) == lines


def test_a_bug_is_shown_in_full_and_asks_for_a_report(monkeypatch, capsys):
    def broken(*_):
        raise ValueError("no mistake of a user")

    monkeypatch.setattr("lgf.runs.presets.preset_named", broken)
    assert main(["discover", "decay.csv", "--start", "u' = C*u"]) == 70
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "ValueError: no mistake of a user" in said
    last = said.splitlines()[-1]
    assert last.startswith("lgf: this is a bug of lgf ")
    assert last.endswith("""lgf discover decay.csv --start 'u'"'"' = C*u'""")


@pytest.mark.parametrize(("filename", "code"), [("decay.csv", 2), ("settings.toml", 70)])
def test_only_a_file_that_the_user_named_is_the_users(filename, code, monkeypatch, capsys):
    def broken(*_):
        raise FileNotFoundError(2, "No such file or directory", filename)

    monkeypatch.setattr("lgf.runs.presets.preset_named", broken)
    assert main(["discover", "decay.csv"]) == code
    assert ("Traceback" in capsys.readouterr().err) is (code == 70)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.05, "5 %"),
        (0.01234, "1.23 %"),
        (1.0, "100 %"),
        (1.004, "100 %"),
        (27.3, "2730 %"),
        (1e-5, "0.001 %"),
        (1e-9, "less than 0.0001 %"),
        (float("inf"), "more than 1000000 %"),
    ],
)
def test_percentages_are_written_without_an_exponent(share, text):
    assert percentage(share) == text
