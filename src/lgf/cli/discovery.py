"""The steps of `lgf discover`: prepare the folder, run the search, print and write the result."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from lgf.cli.terminal import compile_kernels, show_findings
from lgf.data.condensation import condensation_sentence
from lgf.errors import LgfError, Stopped
from lgf.report.live import live_progress
from lgf.report.page import write_report
from lgf.report.run_view import RunView, run_view
from lgf.runs.equations import EquationView, front_rows
from lgf.runs.folder import JOURNAL, discard_run, holds_run, new_folder, open_run, write_run
from lgf.runs.journal import Tick
from lgf.runs.progress import Reporter, reported
from lgf.runs.request import Request, Run, check_request, execute
from lgf.runs.serialisation import written
from lgf.search.loop import Iteration
from lgf.stopping import signals_as_ctrl_c

RUNS = Path("runs")  # parent of the default run folders


def prepare_folder(request: Request, out: Path | None, notes: Sequence[str], console: Console) -> Path:
    """The run folder, created after the request has been checked: `out`, or else an unused one in runs/."""
    check_request(request)
    folder = new_folder(RUNS, Path(request.source).stem) if out is None else out
    open_run(folder, request)
    for note in notes:
        console.print(note, style="dim", soft_wrap=True)
    condensation = condensation_sentence(request.problem, request.settings.samples)
    if condensation is not None:
        console.print(condensation, style="dim", soft_wrap=True)
    show_findings(request.findings, console)
    return folder


@contextmanager
def _with_resume_hint(folder: Path) -> Iterator[None]:
    """Adds the command to resume to an error, if the folder holds a run."""
    try:
        yield
    except LgfError as error:
        if not holds_run(folder):
            raise
        reason = str(error).rstrip(".")
        raise LgfError(f"{reason}; what was fitted is kept, go on with: lgf discover --resume {folder}.") from error


def search_and_write(
    request: Request, folder: Path, lines: Sequence[str], jobs: int, as_json: bool, console: Console, resumed: bool
) -> None:
    """Runs the search in its folder, where other processes can follow and stop it, then prints and writes the result.

    Fits in `lines` are not repeated.
    """
    with _with_resume_hint(folder), reported(folder, request) as reporter:
        compile_kernels(console)
        try:
            run = _search(request, folder, lines, jobs, console, reporter)
        except LgfError:
            if not resumed:
                discard_run(folder)  # if nothing was fitted, there is nothing to resume
                if folder.parent == RUNS and not any(RUNS.iterdir()):
                    RUNS.rmdir()
            raise
        write_results(run, folder, as_json, console)


def _search(
    request: Request, folder: Path, lines: Sequence[str], jobs: int, console: Console, reporter: Reporter
) -> Run:
    with signals_as_ctrl_c(), live_progress(request, console) as show:

        def notify(event: Iteration | Tick) -> None:
            reporter.notify(event)
            if show is not None:
                show(event)

        try:
            return execute(request, n_jobs=jobs, path=folder / JOURNAL, lines=lines, notify=notify, stop=reporter.stop)
        except KeyboardInterrupt as error:
            raise Stopped(
                f"Stopped before an equation was chosen; go on with: lgf discover --resume {folder}"
            ) from error


def write_results(run: Run, folder: Path, as_json: bool, console: Console) -> None:
    """Prints the equation and writes run and report. A full disk or closed pipe stops only one of the two."""
    view = run_view(run)
    chosen = view.chosen
    try:
        typer.echo(written(_facts(view, folder), indent=1).decode() if as_json else view.headline)
    finally:
        write_run(run, folder)
        path = write_report(run, folder)
    summary = f"error {chosen.error_text} of the signal, {view.evaluations} equations in {view.seconds:.0f} s"
    if chosen.stability is not None:
        summary += f", stability: {chosen.stability}"
    if len(view.equal) > 1:
        summary += f", {len(view.equal) - 1} more that the data cannot tell apart"
    if view.headline != chosen.text:
        console.print(f"The best of the equations that were tried: {chosen.text}", style="dim", soft_wrap=True)
    console.print(summary, style="dim", soft_wrap=True)
    for sentence in view.sentences:
        console.print(sentence, soft_wrap=True)
    if len(view.prediction_front) > 1:
        console.print("simplest equations by prediction error (in sample):", style="dim")
        for e in _around_chosen(view.prediction_front):
            mark, equation = "->" if e.chosen else "  ", "; ".join(e.label.splitlines())
            line = f"{mark} {e.prediction_text or 'untested':>8} ({e.error_text})  {equation}"
            console.print(line, style=None if e.chosen else "dim", soft_wrap=True)
    console.print(f"report and figures: {path}", soft_wrap=True)
    if view.interrupted:
        raise Stopped(f"Stopped early; this is the best so far, and it is saved. Go on: lgf discover --resume {folder}")


def _around_chosen(front: Sequence[EquationView], most: int = 5) -> Sequence[EquationView]:
    """At most this many equations of the front around the chosen one."""
    at = next((i for i, e in enumerate(front) if e.chosen), len(front) - 1)
    first = max(min(at - most + 2, len(front) - most), 0)
    return front[first : first + most]


def _facts(view: RunView, folder: Path) -> dict[str, Any]:
    chosen = view.chosen
    found = ("trust", "reason", "verdict", "notes", "evaluations", "seconds", "interrupted")
    return {
        "equation": chosen.text,
        "stable": chosen.stability,
        "constants": [c.value for c in chosen.constants],
        "errors": [c.error for c in chosen.constants],
        **{name: getattr(chosen, name) for name in ("exact", "latex", "initial", "loss", "prediction")},
        **{name: getattr(view, name) for name in found},
        "equivalents": [e.text for e in view.equivalents],
        "prediction_front": view.prediction_rows,
        "varying": [row for row in view.constant_rows if row["spread"] is not None],
        "indistinguishable": [e.text for e in view.equal],
        "front": front_rows(view.front),
        "folder": str(folder),
    }
