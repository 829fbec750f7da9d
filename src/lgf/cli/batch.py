"""`lgf discover ... --batch OUT`: answers many records, prints a line for each, and writes one table."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from lgf.batch.answer import Answer, Question, Status
from lgf.batch.common_structure import answer_with_one_structure
from lgf.batch.sources import find_sources, name_records
from lgf.batch.table import check_any, summary, table_rows, write_table
from lgf.batch.workers import answer_all
from lgf.cli.problem import Columns, read_problem
from lgf.cli.terminal import compile_kernels
from lgf.data import Problem
from lgf.errors import Stopped
from lgf.runs.percentages import percentage
from lgf.runs.serialisation import written
from lgf.stopping import signals_as_ctrl_c


class ReadRecord:
    """Reads the problem of one record as `lgf discover` does."""

    def __init__(self, columns: Columns, forcing: list[str] | None, initial: str | None, known: Mapping[str, Any]):
        self._arguments = columns, forcing, initial, dict(known)

    def __call__(self, source: str) -> tuple[Problem, tuple[str, ...]]:
        """(the problem in the file or record, notes on how it was read)."""
        return read_problem(source, *self._arguments)


def answer_batch(
    question: Question,
    data: list[str],
    folder: Path,
    jobs: int,
    workers: str,
    one_structure: bool,
    as_json: bool,
    console: Console,
) -> None:
    """Answers the records in the folder, writes the table, and prints the equation of each."""
    records = name_records(find_sources(data, folder), folder)
    compile_kernels(console)
    common = None
    with signals_as_ctrl_c():
        with _progress(len(records), "answered", console) as notify:
            answers = answer_all(question, records, folder, n_jobs=jobs, workers=workers, notify=notify)
        stopped = any(line.status is Status.STOPPED for line in answers)
        if one_structure and not stopped and any(line.status is Status.ANSWERED for line in answers):
            with _progress(len(records), "answered by the common structure", console) as notify:
                common, answers = answer_with_one_structure(
                    question, records, answers, folder, n_jobs=jobs, workers=workers, notify=notify
                )
            stopped = any(line.status is Status.STOPPED for line in answers)
    table, page = write_table(answers, folder, common)
    if as_json:
        typer.echo(written(table_rows(answers, common), indent=1).decode())
    for line in answers:
        if line.status is not Status.ANSWERED:
            console.print(f"{line.record}: {line.status.value}: {line.sentence}", style="yellow", soft_wrap=True)
        elif not as_json:
            assert line.error is not None
            equation = "; ".join(line.equation.splitlines())
            typer.echo(f"{line.record}: {equation}  ({percentage(line.error)}, {line.trust})")
    if common is not None:
        console.print(f"one structure for all: {common}", soft_wrap=True)
    console.print(summary(answers), style="dim", soft_wrap=True)
    console.print(f"table: {table}, page: {page}", soft_wrap=True)
    if stopped:
        raise Stopped("Stopped early; what is answered is saved. The same command goes on with the rest.")
    check_any(answers)


@contextmanager
def _progress(total: int, what: str, console: Console) -> Iterator[Callable[[Answer], None]]:
    """A callback that displays how many records are done; silent if the console is not a terminal."""
    if not console.is_terminal:
        yield lambda _: None
        return
    started, done, failed = time.monotonic(), 0, 0
    live = Live(Text(f"0 of {total} records {what}", "dim"), console=console, refresh_per_second=4, transient=True)
    live.start()

    def notify(line: Answer) -> None:
        nonlocal done, failed
        done += 1
        failed += line.status is not Status.ANSWERED
        left = (time.monotonic() - started) / done * (total - done)
        counts = f"{done - failed} of {total} records {what}" + (f", {failed} not" if failed else "")
        last = f"\n{line.record}: {'; '.join(line.equation.splitlines()) or line.sentence}"
        live.update(Text.assemble((f"{counts}   about {left:.0f} s left", "dim"), (last, "bold"), overflow="ellipsis"))

    try:
        yield notify
    finally:
        live.stop()
