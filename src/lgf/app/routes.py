"""The calls of the page. Every answer is JSON, a download, or a file of the page; every error is one sentence."""

import csv
import io
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Call
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from lgf.app.answers import read_answers
from lgf.app.calls import Handler, attachment, facts_answer, read_json, refusal, route, whole_number
from lgf.app.events import News
from lgf.app.form import (
    LONGEST_SEARCH,
    Form,
    checked_uses,
    form_of_record,
    guessed_uses,
    make_request,
    read_problem,
)
from lgf.app.gate import KNOCK, LOGIN, Session
from lgf.app.results import band_view, curve_view, run_facts, suggestion_view, trajectory_view
from lgf.app.run_folders import (
    DOWNLOADS,
    downloads,
    facts_beside,
    find_run,
    load_run,
    read_download,
    row,
)
from lgf.app.searches import Searches, run_name
from lgf.app.simulation import Trial, band_around, try_out
from lgf.app.static_files import static_files
from lgf.app.uploads import Upload, Uploads
from lgf.app.views import (
    data_rows,
    problem_view,
    table_view,
)
from lgf.data import check, read_table, records
from lgf.errors import LgfError
from lgf.files import is_regular, read_bytes, write_atomically
from lgf.report.page import REPORT
from lgf.runs.folder import new_folder, open_run, read_request
from lgf.runs.progress import read_progress
from lgf.runs.request import check_request
from lgf.runs.suggestion import suggest, useful

FORM, TABLE = "form.json", "data.csv"  # beside run.json: what the page needs to ask again
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"


class Page:
    """The handlers of all calls for the runs in one folder."""

    def __init__(self, runs: Path, session: Session, searches: Searches, knock: Callable[[], None]):
        self.runs = runs
        self.session, self.searches, self.knock = session, searches, knock
        self.uploads, self.news = Uploads(self.runs), News(self.runs, searches)
        self._static = static_files()

    def routes(self) -> list[Route]:
        """The table of calls; anything else is not found."""
        get, post = ("GET",), ("POST",)
        calls: list[tuple[str, tuple[str, ...], Handler]] = [
            (LOGIN, post, self.login),
            (KNOCK, post, self.ask_for_address),
            ("/api/records", get, self.list_records),
            ("/api/data", post, self.receive),
            ("/api/data/{id}", get, self.describe_upload),
            ("/api/data/{id}/check", post, self.check),
            ("/api/runs", get, self.list_runs),
            ("/api/runs", post, self.start),
            ("/api/runs/{id}", get, self.describe_run),
            ("/api/runs/{id}/stop", post, self.stop),
            ("/api/runs/{id}/resume", post, self.resume),
            ("/api/runs/{id}/again", post, self.again),
            ("/api/runs/{id}/curve", get, self.curve),
            ("/api/runs/{id}/simulate", post, self.simulate),
            ("/api/runs/{id}/band", post, self.band),
            ("/api/runs/{id}/suggest", post, self.suggest),
            ("/api/runs/{id}/data.csv", get, self.data),
            ("/api/runs/{id}/files/{name}", get, self.download),
            ("/api/events", get, self.events),
            ("/{path:path}", get, self.static),
        ]
        return [route(path, methods, handler) for path, methods, handler in calls]

    async def login(self, call: Call) -> Response:
        """A session for the one-time token."""
        body = await read_json(call)
        cookie = self.session.login(str(body.get("token", "")))
        if cookie is None:
            return refusal(403, "This address was used before; open the newest one that the terminal shows.")
        answer = facts_answer({})
        answer.set_cookie(self.session.cookie, cookie, httponly=True, samesite="strict", path="/")
        return answer

    async def ask_for_address(self, call: Call) -> Response:
        """Prints a new address in the terminal, for a page that lost its session."""
        self.knock()
        return facts_answer({})

    async def list_records(self, call: Call) -> Response:
        """The shipped records."""
        return facts_answer([{"name": r.name, "description": r.description} for r in records().values()])

    async def receive(self, call: Call) -> Response:
        """A table: the body of the call, or the shipped record that is named."""
        name = unquote(call.query_params.get("name", ""))
        record = call.query_params.get("record")
        if record is not None:
            upload = await run_in_threadpool(self._copy_record, record)
        else:
            incoming = self.uploads.receive()
            try:
                async for piece in call.stream():
                    await run_in_threadpool(incoming.write, piece)
                upload = await run_in_threadpool(incoming.finish, name, {})
            except BaseException:  # also when the page went away in the middle
                incoming.discard()
                raise
        return facts_answer({"id": upload.id, "name": upload.name})

    def _copy_record(self, name: str) -> Upload:
        record = records().get(name)
        if record is None:
            raise LgfError("There is no such example.")
        file = files("lgf.data").joinpath("records", record.file)
        form = form_of_record(record, read_table(Path(str(file))))
        return self.uploads.add(file.read_bytes(), record.file, form)

    async def describe_upload(self, call: Call) -> Response:
        """The answers that the form of this table starts with."""
        upload = await run_in_threadpool(self.uploads.find, call.path_params["id"])
        return facts_answer({"id": upload.id, "name": upload.name, "form": upload.form})

    async def check(self, call: Call) -> Response:
        """The table with the roles of its columns, its plot, and what the data check finds."""
        answers = await read_json(call)
        return facts_answer(await run_in_threadpool(self._check, call.path_params["id"], answers))

    def _check(self, id: str, answers: dict[str, Any]) -> dict[str, Any]:
        table = self.uploads.find(id).table
        notes: tuple[str, ...] = ()
        form = read_answers(Form, {**answers, "columns": answers.get("columns")})
        if form.columns is None:
            try:
                uses, notes = guessed_uses(table)
            except LgfError as error:
                unknown = read_answers(Form, {"columns": [{"role": "unused"}] * len(table.names)}).columns
                assert unknown is not None
                return {"table": table_view(table, unknown), "error": str(error), "notes": [], "findings": []}
            form = form.model_copy(update={"columns": uses})
        facts: dict[str, Any] = {"table": table_view(table, checked_uses(table, form)), "error": None, "findings": []}
        try:
            problem, more = read_problem(table, form)
        except LgfError as error:
            return {**facts, "error": str(error), "notes": [*table.notes, *notes]}
        facts |= {"problem": problem_view(problem), "findings": check(problem)}
        return {**facts, "notes": list(dict.fromkeys((*notes, *more)))}

    async def list_runs(self, call: Call) -> Response:
        """The runs in the folder."""
        return facts_answer(await run_in_threadpool(self.news.rows))

    async def start(self, call: Call) -> Response:
        """A new run on an uploaded table."""
        body = await read_json(call)
        return facts_answer(await run_in_threadpool(self._start, str(body.get("data", "")), body.get("form")))

    def _start(self, id: str, answers: Any) -> dict[str, Any]:
        upload = self.uploads.find(id)
        form = read_answers(Form, answers)
        request = make_request(upload.table, form)
        check_request(request)
        folder = new_folder(self.runs, run_name(upload.name))
        open_run(folder, request)
        write_atomically(folder / TABLE, read_bytes(upload.path))
        facts = {"name": upload.name, "form": form.model_dump(mode="json")}
        write_atomically(folder / FORM, json.dumps(facts).encode())
        self.searches.start(folder)
        return {"run": folder.name}

    async def describe_run(self, call: Call) -> Response:
        """State, data and result of a run."""
        return facts_answer(await run_in_threadpool(self._describe_run, call.path_params["id"]))

    def _describe_run(self, id: str) -> dict[str, Any]:
        folder = find_run(self.runs, id)
        state = self.searches.state(folder)
        facts = {
            **row(folder, state), "progress": read_progress(folder), "files": downloads(folder),
            "folder": str(folder), "editable": facts_beside(folder, FORM) is not None,
        }  # fmt: skip
        if facts["result"] is not None and not state.live:
            return {**facts, "view": run_facts(load_run(folder))}
        request = read_request(folder)
        return {**facts, "problem": problem_view(request.problem), "source": request.source}

    async def stop(self, call: Call) -> Response:
        """Ends the search with the best so far."""
        await run_in_threadpool(lambda: self.searches.stop(find_run(self.runs, call.path_params["id"])))
        return facts_answer({})

    async def resume(self, call: Call) -> Response:
        """Goes on with a run that was stopped, died or has time left to use."""
        seconds = (await read_json(call)).get("seconds", 60)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= LONGEST_SEARCH:
            raise LgfError("Give a time between a second and a day.")
        await run_in_threadpool(self._resume, call.path_params["id"], float(seconds))
        return facts_answer({})

    def _resume(self, id: str, seconds: float) -> None:
        folder = find_run(self.runs, id)
        read_request(folder, resume=True)  # a run of another version is refused here, in a sentence
        self.searches.start(folder, seconds)

    async def again(self, call: Call) -> Response:
        """The table and the form of a run, to be changed and searched anew."""
        upload = await run_in_threadpool(self._again, call.path_params["id"])
        return facts_answer({"id": upload.id, "name": upload.name})

    def _again(self, id: str) -> Upload:
        folder = find_run(self.runs, id)
        facts, table = facts_beside(folder, FORM), folder / TABLE
        if facts is None or not is_regular(table):
            raise LgfError("This run was not started from the page, so its table is not here; drop the file again.")
        form = read_answers(Form, facts.get("form")).model_dump(mode="json")
        return self.uploads.add(read_bytes(table), str(facts.get("name")), form)

    async def curve(self, call: Call) -> Response:
        """The trajectory of an equation of the run for one experiment."""
        return facts_answer(await run_in_threadpool(self._curve, call.path_params["id"], call.query_params))

    def _curve(self, id: str, query: Any) -> dict[str, Any]:
        run = load_run(find_run(self.runs, id))
        number, experiment = whole_number(query.get("equation")), whole_number(query.get("experiment"))
        return curve_view(run, number, experiment)

    async def simulate(self, call: Call) -> Response:
        """A trajectory with other constants, another start, another input."""
        trial = read_answers(Trial, await read_json(call))
        return facts_answer(await run_in_threadpool(self._simulate, call.path_params["id"], trial))

    def _simulate(self, id: str, trial: Any) -> dict[str, Any]:
        return trajectory_view(try_out(load_run(find_run(self.runs, id)), trial))

    async def band(self, call: Call) -> Response:
        """The band around a trial, which takes longer than the trial; null if there is none."""
        trial = read_answers(Trial, await read_json(call))
        return facts_answer(await run_in_threadpool(self._band, call.path_params["id"], trial))

    def _band(self, id: str, trial: Any) -> dict[str, Any] | None:
        band = band_around(load_run(find_run(self.runs, id)), trial)
        return None if band is None else band_view(band)

    async def suggest(self, call: Call) -> Response:
        """What to measure next: the experiment that tells the equally good equations apart best."""
        return facts_answer(await run_in_threadpool(self._suggest, call.path_params["id"]))

    def _suggest(self, id: str) -> dict[str, Any]:
        (suggestion,) = useful(suggest(load_run(find_run(self.runs, id))))
        return suggestion_view(suggestion)

    async def data(self, call: Call) -> Response:
        """The measurements of a run as a table."""
        return await run_in_threadpool(self._data, call.path_params["id"])

    def _data(self, id: str) -> Response:
        folder = find_run(self.runs, id)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(data_rows(read_request(folder).problem))
        return attachment(text.getvalue().encode(), f"{folder.name}-data.csv", "text/csv")

    async def download(self, call: Call) -> Response:
        """One of the files of a run."""
        return await run_in_threadpool(self._download, call.path_params["id"], call.path_params["name"])

    def _download(self, id: str, name: str) -> Response:
        folder = find_run(self.runs, id)
        content = read_download(folder, name)
        if name == REPORT:  # it is shown, in a sandbox: the run may be a stranger's
            return Response(content, media_type=DOWNLOADS[name], headers={"Content-Security-Policy": _SANDBOX})
        return attachment(content, f"{folder.name}-{name}", DOWNLOADS[name])

    async def events(self, call: Call) -> Response:
        """The stream of news."""
        return StreamingResponse(self.news.stream(), media_type="text/event-stream")

    async def static(self, call: Call) -> Response:
        """A file of the page."""
        file = self._static.get(call.path_params["path"] or "index.html")
        if file is None:
            return refusal(404, "There is nothing at this address.")
        content, kind = file
        return Response(content, media_type=kind)


def make_app(page: Page, lifespan: Any = None) -> Starlette:
    """The application with all calls of the page."""
    return Starlette(routes=page.routes(), lifespan=lifespan)
