"""A server of the page on a port of its own, over a folder of its own, and a client that behaves like a browser."""

import http.client
import json
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from lgf.app.server import listen, make_server
from lgf.data import Knowledge, Problem, observations_from_arrays
from lgf.grammar import load_grammar
from lgf.report.page import write_report
from lgf.runs.folder import write_run
from lgf.runs.request import Request, Run, execute
from lgf.search.loop import SearchSettings
from lgf.search.select import SelectionSettings
from lgf.search.settings import DiscoverySettings


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Client:
    """Calls of the page; `headers` replace or, with None, remove those of a browser."""

    port: int
    cookie: str = ""
    extra: dict = field(default_factory=dict)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def call(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Host": f"127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin", "Cookie": self.cookie}
        if method != "GET":
            sent["Origin"] = self.address
        sent = {k: v for k, v in {**sent, **(headers or {})}.items() if v is not None}
        content = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            for single in value if isinstance(value, list) else [value]:
                connection.putheader(name, single)
        if content is not None or method == "POST":
            connection.putheader("Content-Length", str(len(content or b"")))
        connection.endheaders(content)
        answer = connection.getresponse()
        try:
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, {} if body is None else body, **more)

    def login(self, token):
        answer = self.post("/api/login", {"token": token})
        assert answer.status == 200, answer.body
        self.cookie = answer.headers["set-cookie"].split(";")[0]
        return answer

    def until(self, run, *states, seconds=240):
        """The facts of the run once it is in one of these states."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            facts = self.get(f"/api/runs/{run}").json
            if facts["state"] in states:
                return facts
            time.sleep(0.1)
        raise AssertionError(f"{run} is {facts['state']} ({facts['sentence']}), not {states}")


@dataclass
class Site:
    folder: Path
    session: object
    client: Client

    @property
    def runs(self):
        return self.folder / "runs"

    def stranger(self):
        """A client that was never let in."""
        return Client(self.client.port)


@pytest.fixture
def site(tmp_path):
    listener = listen(0)
    server, session = make_server(tmp_path, listener)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    client = Client(listener.getsockname()[1])
    client.login(session.new_token())
    yield Site(tmp_path, session, client)
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive()
    for process in server.page.searches.processes:
        process.wait(120)  # the server asked it to stop


@pytest.fixture(scope="session")
def rabbits() -> Run:
    """Prey and predator, from equations that the user gave."""
    t = np.linspace(0.0, 8.0, 81)
    truth = "prey' = 1.1*prey - 0.4*prey*predator; predator' = 0.1*prey*predator - 0.4*predator"
    from lgf.equation.system import System
    from lgf.solver.solve import solve

    solved = solve(System.read(truth), {"prey": 10.0, "predator": 5.0}, t)
    values = np.column_stack([solved["prey"], solved["predator"]])
    values += 0.02 * np.random.default_rng(3).normal(size=values.shape)
    settings = DiscoverySettings(
        search=SearchSettings(first=10, max_evaluations=10), selection=SelectionSettings(n_finalists=2)
    )
    problem = Problem(observations_from_arrays(t, values, states=["prey", "predator"]), Knowledge(order=1))
    start = ("prey' = C*prey + C*prey*predator; predator' = C*prey*predator + C*predator",)
    return execute(Request(problem, load_grammar("standard"), settings, start=start))


@pytest.fixture(scope="session")
def written(tmp_path_factory, duffing, decay, rabbits):
    """A folder with three finished runs."""
    folder = tmp_path_factory.mktemp("written")
    for name, run in (("duffing", duffing), ("decay", decay), ("rabbits", rabbits)):
        write_run(run, folder / name)
        write_report(run, folder / name)
    return folder


@pytest.fixture
def shelf(site, written):
    """The site with three finished runs in its folder."""
    shutil.copytree(written, site.runs)
    return site
