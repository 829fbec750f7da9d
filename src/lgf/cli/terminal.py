"""The progress display of a run; silent if the output is not a terminal."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.live import Live
from rich.text import Text

from lgf.compilation import CACHED
from lgf.data import Finding
from lgf.equation.operator_form import in_operator_form
from lgf.equation.system import System
from lgf.report.percentages import percentage
from lgf.runs.journal import Tick
from lgf.runs.request import Notify, Request
from lgf.search.candidate import Candidate
from lgf.search.loop import Iteration
from lgf.search.precompilation import KERNELS, is_compiled, precompile

_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def make_console(stderr: bool = False) -> Console:
    """A console without markup: Rich would otherwise interpret a column name such as 'time [h]'."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


@contextmanager
def progress_display(request: Request, console: Console) -> Iterator[Notify | None]:
    """A callback for the progress of a run; None if the console is not a terminal."""
    if not console.is_terminal:
        yield None
        return
    display = _Display(request)
    live = Live(display, console=console, refresh_per_second=4, transient=True)
    live.start()
    try:
        yield display.notify
    finally:
        with suppress(OSError):  # a closed terminal must not lose the result
            live.stop()


class _Display:
    """Displays iteration, fits per second, best equation with its error, and time left."""

    def __init__(self, request: Request):
        self._limits, self._units = request.settings.search, request.problem.units
        self._started = time.monotonic()
        self._settled = 0.0
        self._tick = Tick(0, 0.0, None, False)
        self._best: Candidate | None = None
        self._equation = "reading the record ..."

    def notify(self, event: Iteration | Tick) -> None:
        """Updates the display after an iteration or some fits."""
        if isinstance(event, Iteration):
            self._settled = event.settled
            return
        self._tick = event
        if event.best is not None and event.best is not self._best:
            self._best = event.best
            fit = event.best.fit
            system = System(fit.skeleton, fit.values, fit.errors, units=self._units)
            self._equation = str(in_operator_form(system, fit.covariance))

    def __rich__(self) -> Text:
        tick, seconds = self._tick, time.monotonic() - self._started
        stage = "refining the finalists" if tick.refining else f"settled {self._settled:.0%}"
        pace = tick.fits / seconds if seconds > 0 else 0.0
        line = f"{stage}   {tick.fits} equations fitted, {pace:.0f} a second   {self._left(seconds, pace)}"
        error = "" if self._best is None else f"   error {percentage(self._best.loss**0.5)}"
        return Text.assemble((line + "\n", "dim"), (self._equation, "bold"), error, overflow="ellipsis")

    def _left(self, seconds: float, pace: float) -> str:
        """The time left until the first budget ends; empty without a budget."""
        left = []
        if self._limits.max_seconds is not None:
            left.append(self._limits.max_seconds - seconds)
        if self._limits.max_evaluations is not None and pace > 0:
            left.append((self._limits.max_evaluations - self._tick.fits) / pace)
        return f"at most {max(min(left), 0.0):.0f} s left" if left else ""


def compile_kernels(console: Console) -> None:
    """Compiles the kernels, unless they are cached, with a line that says how far it is."""
    if is_compiled():
        return
    if not CACHED:
        console.print(
            "compiling the numerical kernels, as in every run, because no folder can be written to keep them in (name "
            "one by NUMBA_CACHE_DIR); this takes half a minute ...", style="dim", soft_wrap=True
        )  # fmt: skip
        return
    started, done = time.monotonic(), 0
    sentence = "compiling the numerical kernels, once; this takes 10 to 20 seconds"

    def report(_: str) -> None:
        nonlocal done
        done += 1
        status.update(f"{sentence}: {done} of {len(KERNELS)} after {time.monotonic() - started:.0f} s")

    if not console.is_terminal:
        console.print(f"{sentence} ...", style="dim", soft_wrap=True)
    with console.status(sentence, spinner_style="dim") as status:
        precompile(report)


def show_findings(findings: tuple[Finding, ...], console: Console) -> None:
    """Prints the findings of the data check."""
    for finding in findings:
        console.print(f"{finding.severity}: {finding.sentence}", style=_COLOURS[finding.severity], soft_wrap=True)
