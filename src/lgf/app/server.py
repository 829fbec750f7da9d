"""`lgf app`: the server on this machine's own address, and nowhere else."""

import asyncio
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import uvicorn
from starlette.applications import Starlette

from lgf.app.gate import Gate, Session
from lgf.app.routes import Page, make_app
from lgf.app.searches import Searches
from lgf.equation.system import System
from lgf.errors import LgfError
from lgf.solver.solve import solve

HOST, PORT = "127.0.0.1", 8765
RUNS = "runs"  # below the folder, as for the command line
_PAUSE = 5.0  # seconds between two addresses that pages without a session ask for


def serve(folder: Path, port: int | None = None, browser: bool = True) -> None:
    """Serves the page for the runs in the folder until Ctrl-C."""
    if not folder.is_dir():
        raise LgfError(f"{folder} is not a folder; name the folder that holds, or will hold, the runs.")
    listener = listen(port)
    address = f"http://{HOST}:{listener.getsockname()[1]}"
    server, session = make_server(folder, listener)
    link = f"{address}/#token={session.new_token()}"
    sys.stdout.write(f"The page for the runs in {folder.resolve() / RUNS} is at\n\n    {link}\n\nCtrl-C ends it.\n")
    sys.stdout.flush()
    if browser:
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
    server.run(sockets=[listener])


def make_server(folder: Path, listener: socket.socket) -> tuple["PageServer", Session]:
    """(the server behind its gate, its secrets) for the runs in the folder."""
    host, port = listener.getsockname()
    session, runs = Session(port), folder.resolve() / RUNS
    page = Page(runs, session, Searches(runs), Doorbell(session, f"http://{host}:{port}").ring)
    config = uvicorn.Config(
        Gate(make_app(page, _lifespan(page)), session, port),
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        http="h11",
        ws="none",
        timeout_graceful_shutdown=3,
    )
    return PageServer(config, page), session


class PageServer(uvicorn.Server):
    """A server that ends the streams of events first; it would otherwise wait for the pages to close them."""

    def __init__(self, config: uvicorn.Config, page: Page):
        super().__init__(config)
        self.page = page

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the streams, then the server."""
        self.page.news.end()
        await super().shutdown(sockets)


def listen(port: int | None) -> socket.socket:
    """A socket on this machine's own address: at this port, or at the usual or any free one."""
    reason: Exception | None = None
    for number in (PORT, 0) if port is None else (port,):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, number))
            listener.listen(128)  # a browser that is quicker than the server waits
        except (OSError, OverflowError) as error:
            listener.close()
            reason = error
        else:
            return listener
    raise LgfError(f"port {port} cannot be used ({reason}); give another one, or none for any free one.")


class Doorbell:
    """Prints a new address in the terminal for a page that has no session; not more often than every few seconds."""

    def __init__(self, session: Session, address: str):
        self._session, self._address = session, address
        self._last = -_PAUSE

    def ring(self) -> None:
        """Prints the address."""
        if time.monotonic() - self._last < _PAUSE:
            return
        self._last = time.monotonic()
        sys.stdout.write(
            f"A page asks for a new address:\n\n    {self._address}/#token={self._session.new_token()}\n\n"
        )
        sys.stdout.flush()


def _lifespan(page: Page):
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=warm_up, daemon=True).start()
        watch = asyncio.create_task(page.news.watch())
        yield
        watch.cancel()
        page.searches.stop_all()

    return lifespan


def warm_up() -> None:
    """Loads or compiles the solver, so that the first move of a slider does not wait for it."""
    solve(System.read("u' = -u"), (1.0,), np.linspace(0.0, 1.0, 10))
