"""Files and folders that are not what they should be: each is refused in a sentence, at once, and nothing is lost."""

import errno
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from lgf import LatentGrammarFlow, LgfError
from lgf.batch.answer import Answer, Status
from lgf.batch.sources import name_records
from lgf.batch.table import write_table
from lgf.cli import main
from lgf.data import read_observations
from lgf.files import open_regular, read_bytes, write_atomically
from lgf.grammar import load_grammar
from lgf.paper.training.recipe import load_recipe
from lgf.runs.folder import JOURNAL, REQUEST, RESULT, open_run, read_journal, read_run, take_folder
from lgf.runs.journal import Journal
from lgf.runs.lock import is_locked
from lgf.runs.presets import settings_in
from lgf.runs.progress import read_progress
from lgf.search.settings import PRESETS

DECAY = "t,u\n" + "".join(f"{t},{np.exp(-t)}\n" for t in np.linspace(0, 3, 30))

READERS = {
    "table": read_observations,
    "recipe": load_recipe,
    "settings": lambda path: settings_in(path, PRESETS["default"]),
    "file of a run": read_bytes,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["pipe", "endless device", "folder"])
def test_only_regular_files_are_read(reader, kind, tmp_path):
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path("/dev/zero")
    with pytest.raises(LgfError, match=r"not a regular file|is a directory"):
        READERS[reader](path)


@pytest.mark.parametrize("name", [REQUEST, RESULT, JOURNAL, "progress.json"])
def test_a_pipe_in_a_run_folder_hangs_nothing(duffing_folder, name):
    duffing_folder.joinpath(name).unlink(missing_ok=True)
    os.mkfifo(duffing_folder / name)
    assert read_progress(duffing_folder) is None
    assert not is_locked(duffing_folder)
    if name != "progress.json":
        with pytest.raises(LgfError, match="not a regular file"):
            read_run(duffing_folder)
    if name == JOURNAL:
        with pytest.raises(LgfError, match=r"regular file|cannot be opened"):
            Journal(duffing_folder / JOURNAL)._append(["a line"])


@pytest.fixture
def duffing_folder(duffing, tmp_path):
    from lgf.runs.folder import write_run

    write_run(duffing, tmp_path / "run")
    return tmp_path / "run"


def test_a_file_is_read_up_to_a_bound_and_links_only_where_a_user_names_them(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"12345")
    link.symlink_to(file)
    assert read_bytes(file, 5) == read_bytes(link, 5, links=True) == b"12345"
    with pytest.raises(LgfError, match="more than the 4 bytes"):
        read_bytes(file, 4)
    with pytest.raises(LgfError, match="it is a link"):
        read_bytes(link)
    with pytest.raises(LgfError, match="no file"):
        open_regular(tmp_path / "nowhere")


def test_a_pipe_in_place_of_a_temporary_file_hangs_nothing(tmp_path):
    os.mkfifo(tmp_path / ".file.part")
    write_atomically(tmp_path / "file", b"content")
    assert tmp_path.joinpath("file").read_bytes() == b"content"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("folder", ["", ".", "..", "/", "../..", "full"])
def test_a_run_takes_no_folder_that_is_not_its_own(folder, tmp_path, monkeypatch):
    tmp_path.joinpath("here", "full").mkdir(parents=True)
    tmp_path.joinpath("here", "full", "thesis.tex").touch()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(LgfError, match=r"not a run's own|holds other files"):
        take_folder(folder)
    with pytest.raises(LgfError, match=r"not a run's own|holds other files"):
        name_records(["a.csv"], Path(folder))


def test_of_many_who_want_a_folder_one_gets_it(duffing, tmp_path):
    def attempt(_):
        try:
            return open_run(tmp_path / "run", duffing.request)
        except LgfError:
            return None

    with ThreadPoolExecutor(8) as pool:
        taken = [path for path in pool.map(attempt, range(8)) if path is not None]
    assert taken == [tmp_path / "run" / JOURNAL]


def test_an_estimator_is_saved_over_another_one_as_a_whole(duffing, decay, tmp_path):
    for run in (duffing, decay):
        LatentGrammarFlow()._store(run).save(tmp_path / "run")
    stored = read_run(tmp_path / "run")
    assert stored.system == decay.system
    assert stored.request.problem.n_samples == decay.request.problem.n_samples
    assert read_journal(tmp_path / "run") == list(decay.journal)


class _Full:
    encoding = "utf-8"

    def write(self, text=""):
        raise OSError(errno.ENOSPC, "No space left on device")

    flush = write

    def isatty(self):
        return False


@pytest.mark.parametrize("stream", [None, _Full()])
def test_the_result_is_kept_when_nobody_reads_standard_error(stream, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(DECAY)
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["discover", "data.csv", "--evaluations", "5", "--order", "1", "--seconds", "60"]) == 0
    assert "u' = " in capsys.readouterr().out
    assert str(read_run("runs/data").system)
    assert main(["discover", "nowhere.csv"]) == 2


def test_a_run_that_was_killed_in_its_last_step_resumes_to_the_same_result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(DECAY)
    assert main(["discover", "data.csv", "--evaluations", "12", "--out", "run"]) == 0
    before = json.loads(Path("run", RESULT).read_text())
    last = json.loads(Path("run", "progress.json").read_text())
    Path("run", "progress.json").write_text(json.dumps(last | {"stage": "refining"}))  # as a kill leaves it
    assert main(["discover", "--resume", "run"]) == 0
    after = json.loads(Path("run", RESULT).read_text())
    assert {k: v for k, v in after.items() if k not in ("seconds", "history")} == {
        k: v for k, v in before.items() if k not in ("seconds", "history")
    }
    assert main(["discover", "--resume", "run"]) == 0  # of a run that ended, it asks for more
    assert json.loads(Path("run", RESULT).read_text())["evaluations"] > before["evaluations"]


def test_a_link_in_a_batch_folder_leads_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(DECAY)
    Path("outside").mkdir()
    name_records(["a.csv"], Path("out"))
    Path("out", "a").symlink_to(tmp_path / "outside")
    assert main(["discover", "a.csv", "--evaluations", "5", "--batch", "out"]) == 2
    assert list(Path("outside").iterdir()) == []


def test_no_cell_of_the_table_of_a_batch_runs_as_a_formula(tmp_path):
    lines = [Answer(f"{sign}cmd|' /C calc'!A0", f"{sign}1+1.csv", Status.FAILED, f"{sign}1") for sign in "=+-@\t"]
    table, _ = write_table(lines, tmp_path)
    for row in table.read_text().splitlines()[1:]:
        assert not any(cell.strip('"').startswith(("=", "+", "-", "@", "\t")) for cell in row.split(","))


def test_a_grammar_that_never_ends_is_not_read(tmp_path):
    with tmp_path.joinpath("large.grammar").open("wb") as file:
        file.truncate(10_000_000_000)
    with pytest.raises(LgfError, match="bytes that are read"):
        load_grammar(tmp_path / "large.grammar")
