"""Searches are processes of their own: they outlive pages and servers, and their death harms nobody."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from lgf.app.run_folders import run_state
from lgf.app.searches import Searches, run_name
from lgf.app.server import listen, make_server
from lgf.data import Knowledge, Problem, observations_from_arrays
from lgf.errors import LgfError
from lgf.grammar import load_grammar
from lgf.runs.folder import new_folder, open_run, read_run
from lgf.runs.lock import is_locked, locked
from lgf.runs.progress import read_progress
from lgf.runs.request import Request
from lgf.search.loop import SearchSettings
from lgf.search.select import SelectionSettings
from lgf.search.settings import DiscoverySettings

T = np.linspace(0.0, 6.0, 80)
TABLE = b"t,u\n" + b"".join(
    f"{t:.3f},{u:.5f}\n".encode()
    for t, u in zip(T, 2 * np.exp(-0.5 * T) + 0.01 * np.random.default_rng(0).normal(size=80), strict=True)
)
COLUMNS = [{"role": "time"}, {"role": "value"}]
QUICK = {"columns": COLUMNS, "order": 1, "evaluations": 40, "seconds": 600}
ENDLESS = {"columns": COLUMNS, "order": 2, "seconds": 3600}


def start(site, form):
    id = site.client.call("POST", "/api/data?name=fall.csv", TABLE).json["id"]
    answer = site.client.post("/api/runs", {"data": id, "form": form})
    assert answer.status == 200, answer.body
    return answer.json["run"]


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def events(client, news, ready):
    """Appends (kind, facts) of the stream to `news` until the connection ends."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=300)
    connection.request("GET", "/api/events", headers={"Sec-Fetch-Site": "same-origin", "Cookie": client.cookie})
    answer, kind = connection.getresponse(), ""
    try:
        while line := answer.readline().decode():
            if line.startswith("event: "):
                kind = line[7:].strip()
            elif line.startswith("data: "):
                news.append((kind, json.loads(line[6:])))
                ready.set()
    except OSError:
        pass
    finally:
        connection.close()


def test_a_search_is_followed_to_its_end_and_goes_on_later(site):
    news, ready = [], threading.Event()
    listener = threading.Thread(target=events, args=(site.client, news, ready), daemon=True)
    listener.start()
    assert ready.wait(60)
    run = start(site, QUICK)
    facts = site.client.until(run, "finished")
    assert facts["result"]["text"].startswith("u' = -0.5") or facts["result"]["text"].startswith("u' = -0.4")
    assert news[0] == ("snapshot", [])
    states = [facts["state"] for kind, facts in news if kind == "progress" and facts["run"] == run]
    assert states[0] == "preparing"
    assert "searching" in states
    progress = [facts["progress"] for _, facts in news[1:] if facts["progress"] and facts["progress"]["best"]]
    assert progress[-1]["best"]["curves"][0]["columns"].keys() == {"u"}
    assert progress[-1]["front"]
    assert read_run(site.runs / run).evaluations >= 40
    site.client.post(f"/api/runs/{run}/resume", {"seconds": 1})
    assert site.client.get(f"/api/runs/{run}").json["state"] in ("waiting", "preparing")
    again = site.client.post(f"/api/runs/{run}/resume", {"seconds": 1})
    assert (again.status, again.json["error"]) == (422, "This run is being searched already.")
    assert site.client.until(run, "finished", "stopped")["result"] is not None
    # The process releases the run before it prints.
    wait_for(lambda: (site.runs / run / "search.log").read_text().count("u' = ") == 2)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_search_leaves_the_page_alive_and_a_stopped_one_its_best(site):
    run = start(site, ENDLESS)
    waiting = start(site, QUICK)
    assert site.client.get(f"/api/runs/{waiting}").json["state"] == "waiting"
    assert site.client.post(f"/api/runs/{waiting}/stop").status == 200  # it loses its turn
    assert site.client.get(f"/api/runs/{waiting}").json["state"] == "stopped"
    site.client.until(run, "searching")
    os.kill(read_progress(site.runs / run)["pid"], signal.SIGKILL)
    facts = site.client.until(run, "died")
    assert facts["sentence"].startswith("The search ended without a word")
    assert not facts["live"]
    assert site.client.post(f"/api/runs/{run}/resume", {"seconds": 3600}).status == 200
    site.client.until(run, "searching")
    assert site.client.post(f"/api/runs/{run}/stop").status == 200
    stopped = site.client.until(run, "stopped")
    assert stopped["view"]["interrupted"] is True
    assert not (site.runs / run / "stop").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_search_outlives_its_server_and_the_next_server_finds_it(tmp_path):
    command = [sys.executable, "-P", "-m", "lgf.cli", "app", "--no-browser", "--port", "0", str(tmp_path)]
    folder = tmp_path / "runs/fall"
    endless = SearchSettings(max_seconds=3600.0, max_evaluations=None, patience=None, unique_tolerance=0.0)
    request = Request(
        Problem(observations_from_arrays(T, 2 * np.exp(-0.5 * T)), Knowledge(order=2)), load_grammar("standard"),
        DiscoverySettings(search=endless, selection=SelectionSettings(n_finalists=2)),
    )  # fmt: skip
    open_run(folder, request)
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    searches = Searches(tmp_path / "runs")
    searches.start(folder)
    try:
        assert first.stdout is not None
        first.stdout.readline()
        deadline = time.monotonic() + 120
        while not is_locked(folder):
            assert time.monotonic() < deadline, "the search has not begun, or is over"
            time.sleep(0.05)
    finally:
        first.kill()
        first.communicate()
    listener = listen(0)
    server, session = make_server(tmp_path, listener)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    from tests.app.conftest import Client

    client = Client(listener.getsockname()[1])
    client.login(session.new_token())
    assert client.until("fall", "preparing", "searching")["live"]
    client.until("fall", "searching", "refining")
    assert client.post("/api/runs/fall/stop").status == 200
    if client.get("/api/runs/fall").json["live"]:
        client.post("/api/runs/fall/stop")  # a second time: at once
    client.until("fall", "stopped", "died")
    server.should_exit = True
    thread.join(30)
    for process in searches.processes:
        process.wait(60)


def test_two_processes_do_not_search_in_one_folder(tmp_path):
    folder = tmp_path / "run"
    problem = Problem(observations_from_arrays(T, np.exp(-T)), Knowledge(order=1))
    open_run(folder, Request(problem, load_grammar("standard")))
    assert not is_locked(folder)
    with locked(folder):
        assert is_locked(folder)
        with pytest.raises(LgfError, match=r"^another process searches in .*run; wait for it, or stop it first\.$"):  # noqa: SIM117
            with locked(folder):
                pass
    assert not is_locked(folder)
    assert not is_locked(tmp_path)
    assert run_state(folder).state == "stopped"
    assert run_state(folder, waiting=True).state == "waiting"
    assert run_state(folder, starting=1).state == "preparing"
    with pytest.raises(LgfError, match="not being searched"):
        Searches(tmp_path).stop(folder)


def test_a_name_of_a_run_is_safe_and_unused(tmp_path):
    (tmp_path / "table").mkdir()
    (tmp_path / "table-2").symlink_to(tmp_path / "nowhere")
    assert new_folder(tmp_path, run_name("table.csv")) == tmp_path / "table-3"
    assert run_name("../../etc/passwd") == "passwd"
    assert run_name("Ünï çøde.csv") == "n-de"
    assert run_name("...") == "run"
