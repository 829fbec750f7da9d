"""Many records: names, answers in run folders, workers that die, one table, one structure for all."""

import csv
import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lgf import LatentGrammarFlow, LgfError, fit_files
from lgf.batch.answer import ANSWER, Answer, Question, Status, answer, read_answer
from lgf.batch.common_structure import shortest
from lgf.batch.files import ReadTable
from lgf.batch.sources import find_sources, name_records
from lgf.batch.table import summary, write_table
from lgf.batch.workers import answer_all
from lgf.cli import main
from lgf.data import Knowledge
from lgf.runs.folder import REQUEST
from lgf.runs.presets import with_budget
from lgf.runs.serialisation import to_plain, written
from lgf.search.settings import DiscoverySettings

COLUMNS = {"time": "t", "value": "u"}
SETTINGS = with_budget(DiscoverySettings(), 30, None)


def write_decay(path, rate=0.5):
    t = np.linspace(0, 4, 30)
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(t))
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({"t": t, "u": 3 * np.exp(-rate * t) + noise}).to_csv(path, index=False)
    return str(path)


@pytest.fixture
def plates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k in (1, 2, 10):
        write_decay(Path(f"plates/p{k}.csv"), 0.3 + 0.1 * k)
    return Path("plates")


@pytest.fixture
def question():
    return Question(ReadTable(COLUMNS, None, None, Knowledge(order=1)), settings=SETTINGS)


def without_times(lines):
    return [replace(line, seconds=0.0) for line in lines]


def test_paths_folders_and_patterns_name_the_same_files_in_natural_order(plates, monkeypatch):
    files = ["plates/p1.csv", "plates/p2.csv", "plates/p10.csv"]
    assert find_sources(["plates"]) == find_sources(["plates/*.csv"]) == tuple(files)
    assert find_sources([*reversed(files), "plates"]) == tuple(reversed(files))
    assert find_sources(["plates", "nowhere.csv"]) == (*files, "nowhere.csv")
    monkeypatch.setenv("HOME", str(Path.cwd()))
    assert find_sources(["~/plates/*.csv"]) == tuple(str(Path.cwd() / file) for file in files)
    with pytest.raises(LgfError, match=r"no file matches 'plates/\*\.xls'"):
        find_sources(["plates/*.xls"])
    Path("empty").mkdir()
    with pytest.raises(LgfError, match="the folder empty holds no table"):
        find_sources(["empty"])


def test_names_of_records_are_unique_and_stay_when_files_are_added(plates):
    write_decay(Path("other/p1.csv"))
    assert name_records(["plates/p1.csv"], Path("out")) == {"p1": "plates/p1.csv"}
    both = name_records(["other/p1.csv", "plates/p1.csv"], Path("out"))
    assert both == {"other-p1": "other/p1.csv", "p1": "plates/p1.csv"}
    Path("out/batch.json").write_text('{"plates/p1.csv": "../p1"}')
    with pytest.raises(LgfError, match=r"batch\.json is damaged"):
        name_records(["plates/p1.csv"], Path("out"))


def test_the_command_answers_each_record_and_a_bad_file_has_its_sentence(plates, capsys):
    Path("plates/p3.csv").write_text("t,u\n0,1\n1")
    order = ["discover", "plates/*.csv", "--batch", "out", "--order", "1", "--evaluations", "30", "--json"]
    assert main(order) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["record"] for row in rows] == ["p1", "p2", "p3", "p10"]
    assert [row["status"] for row in rows] == ["answered", "answered", "failed", "answered"]
    assert rows[2]["sentence"].startswith("line 3 of p3.csv has 1 cell but")
    assert rows[0]["equation"].startswith("u' = -0.40")
    assert rows[0]["error"] < 0.02
    with Path("out/summary.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["equation"] for row in table] == [row["equation"] for row in rows]
    page = Path("out/summary.html").read_text()
    assert page.count("<svg") == 3
    assert "line 3 of p3.csv" in page
    # the answered ones are read, the mended one is answered
    answered = Path("out/p1", ANSWER).stat().st_mtime_ns
    write_decay(Path("plates/p3.csv"))
    assert main(order) == 0
    again = json.loads(capsys.readouterr().out)
    assert [row["status"] for row in again] == ["answered"] * 4
    assert again[0] == rows[0]
    assert Path("out/p1", ANSWER).stat().st_mtime_ns == answered
    # other settings are another question
    assert main([*order, "--seed", "1"]) == 2
    assert "holds the answer to other data or settings" in capsys.readouterr().err


def test_the_notes_and_units_of_each_table_are_in_its_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    t = np.arange(30)
    table = pd.DataFrame({"date": pd.Timestamp("2026-03-05") + pd.to_timedelta(t, "D"), "u [cm]": 3 * np.exp(-0.1 * t)})
    model = LatentGrammarFlow(order=1, max_evaluations=30)
    rows = fit_files(model, {"a": table}, "out", workers="threads")
    assert rows["unit of t"].tolist() == ["day"]
    assert "[1/d]" in rows["equation"][0]
    notes = json.loads(Path("out/a", REQUEST).read_text())["request"]["notes"]
    assert "The times in 'date' are dates; t counts days from the first one." in notes


def test_one_structure_with_constants_of_each_record(plates):
    model = LatentGrammarFlow(order=1, max_evaluations=30)
    table = fit_files(model, "plates/*.csv", "out", one_structure=True, **COLUMNS)
    assert list(table["verdict"]) == ["confirmed"] * 3
    np.testing.assert_allclose(table["constant of C*u"], [-0.4, -0.5, -1.3], rtol=0.03)


def test_a_structure_that_fails_on_a_record_counts_as_the_worst_there():
    lengths = np.array([[[-10.0, 5.0], [-20.0, 9.0]], [[np.inf, 5.0], [-2.0, 9.0]], [[-30.0, 5.0], [-19.0, 9.0]]])
    assert shortest(lengths) == 0  # -42 + 5 against -41 + 9
    assert shortest(lengths[:2]) == 1


def test_threads_and_tables_in_memory_give_the_answers_of_one_process(plates, question):
    tables = {path.stem: pd.read_csv(path) for path in plates.iterdir()}
    alone = answer_all(question, tables, Path("alone"))
    threads = answer_all(question, tables, Path("threads"), n_jobs=2, workers="threads")
    assert without_times(alone) == without_times(threads)


def test_a_stopped_batch_goes_on_where_it_was(plates, question):
    records = name_records(find_sources(["plates"]), Path("out"))
    seen = []

    def stop_after_one(line):
        seen.append(line)
        raise KeyboardInterrupt

    lines = answer_all(question, records, Path("out"), notify=stop_after_one)
    assert [line.status for line in lines] == [Status.ANSWERED, Status.STOPPED, Status.STOPPED]
    finished = answer_all(question, records, Path("out"))
    assert finished[0] == seen[0]
    assert without_times(finished) == without_times(answer_all(question, records, Path("whole")))


def test_a_bug_in_one_record_is_written_down(plates, question):
    line = answer(replace(question, read=lambda source: 1 / 0), "p1", "plates/p1.csv", Path("out"))
    assert line.status is Status.FAILED
    assert "a bug of lgf (ZeroDivisionError)" in line.sentence
    assert "1 / 0" in Path("out/p1/bug.txt").read_text()


DAMAGED = {
    "a negative error": ("error", -1, False),
    "a negative prediction": ("prediction", -1e308, False),
    "no error": ("error", None, True),
    "a huge error": ("error", 1e308, True),
    "an infinite error": ("error", "Infinity", True),
    "an error that is no number": ("error", "large", False),
    "no samples of a curve": ("curves", [["u", [], [], []]], True),
    "a curve that is none": ("curves", [[]], False),
    "half a constant": ("constants", [["C", 1.0]], False),
    "an endless time": ("seconds", "Infinity", False),
    "minus one sample": ("samples", -1, False),
    "another status": ("status", "lost", False),
    "no status": ("status", None, False),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_answer_is_a_sentence_and_an_odd_one_a_line_of_the_table(plates, name):
    field, value, sound = DAMAGED[name]
    folder = Path("out/p1")
    folder.mkdir(parents=True)
    line = Answer("p1", "plates/p1.csv", Status.ANSWERED, "Confirmed.", "u' = -u", 0.01, 0.02, "confirmed")
    folder.joinpath(ANSWER).write_text(json.dumps({**json.loads(written(to_plain(line))), field: value}))
    if sound:
        line = read_answer(folder)
        write_table([line], Path("out"))
        assert summary([line])
        return
    with pytest.raises(LgfError, match=r"answer\.json is damaged \(.*\); remove that file\.$"):
        read_answer(folder)


def test_a_search_in_the_same_folder_is_left_alone(plates, question):
    from lgf.runs.folder import open_run
    from lgf.runs.lock import locked

    open_run(Path("out/p1"), question.request("plates/p1.csv"))
    with locked("out/p1"):
        line = answer(question, "p1", "plates/p1.csv", Path("out"))
    assert line.status is Status.BUSY
    assert answer(question, "p1", "plates/p1.csv", Path("out")).status is Status.ANSWERED


class ReadOrDie:
    """Reads a table, but kills its process the first time, or each time for the record that is named."""

    def __init__(self, read, folder, deadly=""):
        self._read, self._mark, self._deadly = read, folder / "died", deadly

    def __call__(self, source):
        if source == self._deadly or not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self._read(source)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_worker_loses_nothing_and_a_deadly_record_is_given_up(plates, question, tmp_path):
    records = name_records(find_sources(["plates"]), Path("out"))
    alone = answer_all(question, records, Path("alone"))
    deadly = replace(question, read=ReadOrDie(question.read, tmp_path, deadly="plates/p2.csv"))
    lines = answer_all(deadly, records, tmp_path / "out", n_jobs=2, workers="processes")
    assert [line.status for line in lines] == [Status.ANSWERED, Status.FAILED, Status.ANSWERED]
    assert "died 2 times" in lines[1].sentence
    assert without_times([lines[0], lines[2]]) == without_times([alone[0], alone[2]])


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_whose_worker_is_killed(plates, question):
    distributed = pytest.importorskip("distributed")
    records = name_records(find_sources([str(plates.resolve())]), Path("out"))
    alone = answer_all(question, records, Path("alone"))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        killer = threading.Thread(target=lambda: (time.sleep(1.0), os.kill(victim, signal.SIGKILL)))
        killer.start()
        address = client.scheduler.address
        lines = answer_all(question, records, Path("out").resolve(), n_jobs=2, workers=address)
        killer.join()
    assert without_times(lines) == without_times(alone)


def test_mistakes_have_sentences(plates, question):
    records = {"p1": "plates/p1.csv"}
    with pytest.raises(LgfError, match="workers is 'fast'; choose from processes, threads, or give the address"):
        answer_all(question, records, Path("out"), n_jobs=2, workers="fast")
    with pytest.raises(LgfError, match="no Dask scheduler answers at tcp"):
        answer_all(question, records, Path("out"), n_jobs=2, workers="tcp://127.0.0.1:9")
    with pytest.raises(LgfError, match="the model is 'standard'; give a LatentGrammarFlow"):
        fit_files("standard", "plates", "out")
    with pytest.raises(LgfError, match="none of the 2 records could be answered; a: there is no file"):
        fit_files(LatentGrammarFlow(), ["a.csv", "b.csv"], "out")
