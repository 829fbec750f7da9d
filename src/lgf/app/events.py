"""Live news for the page: one stream of server-sent events for all runs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from lgf.app.run_folders import row, run_folders
from lgf.app.searches import Searches
from lgf.runs.folder import PROGRESS
from lgf.runs.progress import read_progress
from lgf.runs.serialisation import for_page

INTERVAL = 0.25  # seconds between two looks at the folders
_PING = 15.0  # seconds of silence after which a comment keeps the connection open
_MOST_NEWS = 100  # events that a slow page may be behind


class News:
    """Looks at the run folders and tells every open page what changed."""

    def __init__(self, runs: Path, searches: Searches):
        self._runs, self._searches = runs, searches
        self._seen: dict[str, tuple[Any, ...]] | None = None  # None before the first look
        self._listeners: set[asyncio.Queue[str | None]] = set()

    async def watch(self) -> None:
        """Runs until cancelled."""
        while True:
            for event in await run_in_threadpool(self._look):
                for listener in list(self._listeners):
                    if listener.full():  # a page that is too slow reconnects and starts from a snapshot
                        self._listeners.discard(listener)
                    else:
                        listener.put_nowait(event)
            await asyncio.sleep(INTERVAL)

    async def stream(self) -> AsyncIterator[str]:
        """The events for one page, beginning with the state of all runs."""
        listener: asyncio.Queue[str | None] = asyncio.Queue(_MOST_NEWS)
        self._listeners.add(listener)
        try:
            yield _event("snapshot", await run_in_threadpool(self.rows))
            while listener in self._listeners:
                try:
                    event = await asyncio.wait_for(listener.get(), _PING)
                except TimeoutError:
                    event = ": still here\n\n"
                if event is None:
                    break
                yield event
        finally:
            self._listeners.discard(listener)

    def end(self) -> None:
        """Ends every stream, so that the server can end."""
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(None)

    def rows(self) -> list[dict[str, Any]]:
        """The list of the runs, newest first."""
        rows = [row(folder, self._searches.state(folder)) for folder in run_folders(self._runs).values()]
        return sorted(rows, key=lambda r: -r["changed"])

    def _look(self) -> list[str]:
        """The events since the last look."""
        self._searches.advance()
        before, events, seen = self._seen, [], {}
        for name, folder in run_folders(self._runs).items():
            state = self._searches.state(folder)
            seen[name] = (state, _changed(folder / PROGRESS))
            if before is not None and seen[name] != before.get(name):
                facts = {**row(folder, state), "progress": read_progress(folder)}
                events.append(_event("progress", facts))
        events += [_event("gone", {"run": name}) for name in before or () if name not in seen]
        self._seen = seen
        return events if self._listeners else []


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _event(kind: str, facts: Any) -> str:
    return f"event: {kind}\ndata: {for_page(facts).decode()}\n\n"
