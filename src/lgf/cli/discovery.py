"""The steps of `lgf discover`: prepare the folder, execute the request, show and write the result."""

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from lgf.cli.discover import Stopped
from lgf.cli.terminal import progress_display, show_findings
from lgf.errors import LgfError
from lgf.report.page import write_report
from lgf.report.percentages import percentage
from lgf.runs.folder import JOURNAL, discard_run, front_rows, holds_run, open_run, write_run
from lgf.runs.request import Request, Run, execute, refuse
from lgf.runs.serialisation import jsonable

RUNS = Path("runs")  # where runs go that were given no folder


def prepared(request: Request, folder: Path, notes: Sequence[str], console: Console) -> Path:
    """The folder, made ready after everything that can be wrong was looked at."""
    refuse(request)
    open_run(folder, request)
    for note in notes:
        console.print(note, style="dim", soft_wrap=True)
    show_findings(request.findings, console)
    return folder


def new_folder(data: str) -> Path:
    """The folder for a run on these data, with a number behind its name if that is taken."""
    folder = RUNS / Path(data).stem
    found, number = folder, 1
    while found.exists():
        number += 1
        found = folder.with_name(f"{folder.name}-{number}")
    return found


@contextmanager
def _ending_as_ctrl_c() -> Iterator[None]:
    """A closed terminal and a batch system's time limit end the search as Ctrl-C does: the best so far is kept."""
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    taken = [s for s in signals if signal.getsignal(s) is signal.SIG_DFL]  # nohup has SIGHUP ignored
    for number in taken:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """A disk that fails is told of with the way to go on, if what stands in the folder is enough for that."""
    try:
        yield
    except LgfError as error:
        if not holds_run(folder):
            raise
        said = str(error).rstrip(".")
        raise LgfError(f"{said}; what was fitted is kept, go on with: lgf discover --resume {folder}.") from error


def asked(request: Request, folder: Path, lines: Sequence[str], jobs: int, console: Console) -> Run:
    """The run, its fits kept in the folder's journal; what stands in `lines` is not fitted again."""
    with _resumable(folder), _ending_as_ctrl_c(), progress_display(request, console) as notify:
        try:
            return execute(request, n_jobs=jobs, path=folder / JOURNAL, lines=lines, notify=notify)
        except KeyboardInterrupt as error:
            raise Stopped(
                f"Stopped before an equation was chosen; go on with: lgf discover --resume {folder}"
            ) from error
        except LgfError:
            discard_run(folder)  # unless something was fitted, there is nothing to go on with
            if folder.parent == RUNS and not any(RUNS.iterdir()):
                RUNS.rmdir()
            raise


def finish(run: Run, folder: Path, as_json: bool, console: Console) -> None:
    """Prints the equation and writes everything; neither a full disk nor a closed pipe takes the other away."""
    try:
        typer.echo(json.dumps(_facts(run, folder), indent=1) if as_json else str(run.system))
    finally:
        with _resumable(folder):
            write_run(run, folder)
            path = write_report(run, folder)
    said = f"error {percentage(run.best.loss**0.5)} of the signal, {run.evaluations} equations in {run.seconds:.0f} s"
    if run.best.stability is not None:
        said += f", stability: {run.best.stability.verdict.value}"
    if len(run.indistinguishable) > 1:
        said += f", {len(run.indistinguishable) - 1} more that the data cannot tell apart"
    console.print(said, style="dim", soft_wrap=True)
    console.print(f"report and figures: {path}", soft_wrap=True)
    if run.interrupted:
        raise Stopped(f"Stopped early; this is the best so far, and it is saved. Go on: lgf discover --resume {folder}")


def _facts(run: Run, folder: Path) -> dict[str, Any]:
    return jsonable(
        {
            "equation": str(run.system),
            "exact": run.system.text,
            "latex": run.system.latex(),
            "constants": run.system.values,
            "errors": run.system.errors,
            "initial": run.best.fit.initial,
            "loss": run.best.loss,
            "held_out": run.best.held_out,
            "stable": None if run.best.stability is None else run.best.stability.verdict.value,
            "indistinguishable": [str(run.shown(c)) for c in run.indistinguishable],
            "front": front_rows(run),
            "evaluations": run.evaluations,
            "seconds": run.seconds,
            "interrupted": run.interrupted,
            "folder": str(folder),
        }
    )
