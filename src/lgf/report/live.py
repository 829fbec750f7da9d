"""The progress of a search while it runs: in a terminal, in a notebook, or nowhere."""

import html
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from lgf.runs.journal import Tick
from lgf.runs.percentages import percentage
from lgf.runs.request import Notify, Request
from lgf.search.candidate import Candidate
from lgf.search.loop import Iteration
from lgf.standard_error import make_console

_PAUSE = 0.5  # seconds between two updates of a notebook


@contextmanager
def live_progress(request: Request, console: Console | None = None) -> Iterator[Notify | None]:
    """A callback for the progress of a run; None if there is neither a notebook nor a terminal to show it in."""
    notebook = _notebook() if console is None else None
    if notebook is not None:
        with _in_notebook(Progress(request), notebook) as notify:
            yield notify
        return
    console = console or make_console()
    if not console.is_terminal:
        yield None
        return
    progress = Progress(request)
    live = Live(progress, console=console, refresh_per_second=4, transient=True)
    live.start()
    try:
        yield progress.notify
    finally:
        live.stop()


class Progress:
    """How far it has settled, fits per second, best equation with its error, and time left."""

    def __init__(self, request: Request):
        self._limits, self._problem = request.settings.search, request.problem
        self._started = time.monotonic()
        self._settled = 0.0
        self._tick = Tick(0, 0.0, None, False)
        self._best: Candidate | None = None
        self.equation = "reading the record ..."

    def notify(self, event: Iteration | Tick) -> None:
        """Updates the display after an iteration or some fits."""
        if isinstance(event, Iteration):
            self._settled = event.settled
            return
        self._tick = event
        if event.best is not None and event.best is not self._best:
            self._best = event.best
            self.equation = str(event.best.shown(self._problem))

    @property
    def line(self) -> str:
        """The stage, the number of fits and the time left."""
        tick, seconds = self._tick, time.monotonic() - self._started
        stage = "refining the finalists" if tick.refining else f"settled {self._settled:.0%}"
        pace = tick.fits / seconds if seconds > 0 else 0.0
        return f"{stage}   {tick.fits} equations fitted, {pace:.0f} a second   {self._left(seconds, pace)}"

    @property
    def error(self) -> str:
        """The error of the best equation so far; empty before there is one."""
        return "" if self._best is None else f"   error {percentage(self._best.loss**0.5)}"

    def __rich__(self) -> Text:
        return Text.assemble((self.line + "\n", "dim"), (self.equation, "bold"), self.error, overflow="ellipsis")

    def _repr_html_(self) -> str:
        line, equation = html.escape(self.line), html.escape(self.equation + self.error)
        return f"<pre>{line}\n<b>{equation}</b></pre>"

    def _left(self, seconds: float, pace: float) -> str:
        """The time left until the first budget ends; empty without a budget."""
        left = []
        if self._limits.max_seconds is not None:
            left.append(self._limits.max_seconds - seconds)
        if self._limits.max_evaluations is not None and pace > 0:
            left.append((self._limits.max_evaluations - self._tick.fits) / pace)
        return f"at most {max(min(left), 0.0):.0f} s left" if left else ""


def _notebook() -> Any:
    """The module that shows things in the notebook we are in; None outside of one."""
    if "IPython" not in sys.modules:
        return None
    import IPython  # pyright: ignore[reportMissingImports]
    import IPython.display  # pyright: ignore[reportMissingImports]

    shell = IPython.get_ipython()
    return IPython.display if shell is not None and hasattr(shell, "kernel") else None


@contextmanager
def _in_notebook(progress: Progress, notebook: Any) -> Iterator[Notify]:
    """A callback that replaces one output of the cell, which is empty at the end."""
    handle = notebook.display(progress, display_id=True)
    shown = time.monotonic()

    def notify(event: Iteration | Tick) -> None:
        nonlocal shown
        progress.notify(event)
        if time.monotonic() - shown > _PAUSE:
            shown = time.monotonic()
            handle.update(progress)

    try:
        yield notify
    finally:
        handle.update(notebook.HTML(""))
