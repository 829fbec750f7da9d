"""The answer to one record of a batch: a run in a folder of its own, resumed or read if it is there already."""

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from lgf.data import Problem
from lgf.errors import LgfError
from lgf.files import read_bytes, write_atomically
from lgf.grammar import Grammar
from lgf.report.run_view import run_view
from lgf.runs.folder import (
    JOURNAL,
    RESULT,
    discard_run,
    holds_run,
    open_run,
    read_journal,
    read_request,
    write_run,
)
from lgf.runs.lock import is_locked, locked
from lgf.runs.presets import model_named
from lgf.runs.request import Request, Run, check_request, execute
from lgf.runs.serialisation import checked, read, read_json, to_plain, written
from lgf.search.settings import DiscoverySettings
from lgf.settings.ranges import Tally, Weight
from lgf.stopping import StopToken

ANSWER = "answer.json"  # the line of the record in the table, written last
IN_HAND = "in-hand"  # exists while a worker is at the record, and after the death of that worker
BUG = "bug.txt"
_POINTS = 60  # of the curves in the table

Read = Callable[[Any], tuple[Problem, tuple[str, ...]]]
"""(the problem in a source of data, notes on how it was read); LgfError if it cannot be read."""


class Status(StrEnum):
    """What became of a record."""

    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"
    BUSY = "busy"  # another process searches in its folder


@dataclass(frozen=True)
class Question:
    """What is asked of every record of a batch."""

    read: Read
    model: str = "standard"
    settings: DiscoverySettings = DiscoverySettings()
    seed: int = 0
    start: tuple[str, ...] = ()

    def request(self, source: Any) -> Request:
        """The request for one record."""
        grammar, trained = _model(self.model)
        name = source if isinstance(source, str) else ""
        problem, notes = self.read(source)
        return Request(problem, grammar, self.settings, self.seed, self.start, trained, name, notes)


@lru_cache(maxsize=2)
def _model(name: str) -> tuple[Grammar, str | None]:
    return model_named(name)


class Curve(NamedTuple):
    """A measured column and its solution at a few times; None where there is no value."""

    name: str
    t: tuple[float, ...]
    measured: tuple[float | None, ...]
    solution: tuple[float | None, ...]


@dataclass(frozen=True)
class Answer:
    """The line of one record in the table of a batch."""

    record: str
    source: str
    status: Status
    sentence: str = ""  # the verdict, or why there is no equation
    equation: str = ""
    error: Annotated[float, Field(ge=0.0)] | None = None  # root mean square, relative to the signal
    prediction: Annotated[float, Field(ge=0.0)] | None = None  # of samples that the fit did not see
    trust: str = ""
    constants: tuple[tuple[str, float, float], ...] = ()  # (term, value, standard error)
    samples: Tally = 0
    evaluations: Tally = 0
    seconds: Weight = 0.0  # of the processor
    curves: tuple[Curve, ...] = field(default=(), repr=False)
    time_unit: str = ""  # by the header, or of dates, which need not be the same in all records


def answer(question: Question, record: str, source: Any, folder: Path, stop: StopToken | None = None) -> Answer:
    """The answer to one record. A mistake in its data, or a bug, is its sentence, and stops nothing else."""
    text = source if isinstance(source, str) else record
    try:
        if stop is not None and stop.asked:
            return Answer(record, text, Status.STOPPED, "not begun")
        with _in_hand(folder / record):
            request = question.request(source)
            check_request(request)
            return _answered(request, record, text, folder / record, stop)
    except LgfError as error:
        return Answer(record, text, Status.FAILED, str(error).splitlines()[0])
    except OSError as error:
        return Answer(record, text, Status.FAILED, f"{error.filename or 'a file'} cannot be used: {error.strerror}.")
    except KeyboardInterrupt:
        return Answer(record, text, Status.STOPPED, "stopped before an equation was chosen")
    except Exception as error:  # noqa: BLE001  a bug in one record must not cost the others
        bug = folder / record / BUG
        bug.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(bug, traceback.format_exc().encode())
        return Answer(
            record, text, Status.FAILED, f"a bug of lgf ({type(error).__name__}); please report it with the file {bug}."
        )


@contextmanager
def _in_hand(folder: Path) -> Iterator[None]:
    """Marks the folder of a record while a worker is at it, so that a dead worker's record is known."""
    mark = folder / IN_HAND
    if folder.is_symlink():  # the answer would be written into another folder
        raise LgfError(f"the folder {folder} is a link; remove it, or name another folder for the batch.")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(mark, b"")
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def _answered(request: Request, record: str, source: str, folder: Path, stop: StopToken | None) -> Answer:
    began = time.thread_time()
    lines: list[str] = []
    if not holds_run(folder):
        open_run(folder, request, beside=(IN_HAND, BUG))
    elif not _asks_the_same(request, folder):
        raise LgfError(
            f"{folder} holds the answer to other data or settings than {source} now has; remove that folder, or name "
            "another one for the batch."
        )
    elif folder.joinpath(RESULT).exists() and folder.joinpath(ANSWER).exists():
        return read_answer(folder)
    elif is_locked(folder):
        return Answer(record, source, Status.BUSY, "another process searches for it")
    else:
        read_request(folder, resume=True)  # refuses a run of another version
        lines = read_journal(folder)
    with locked(folder):
        try:
            run = execute(request, path=folder / JOURNAL, lines=lines, stop=stop)
        except LgfError:
            discard_run(folder)
            raise
        if run.interrupted:
            return Answer(record, source, Status.STOPPED, "stopped; the same command goes on with it")
        write_run(run, folder)
        line = answer_of(run, record, source, time.thread_time() - began)
        write_atomically(folder / ANSWER, written(to_plain(line)))
    return line


def answer_of(run: Run, record: str, source: str, seconds: float) -> Answer:
    """The line of a run in the table."""
    view = run_view(run)
    chosen = view.chosen
    return Answer(
        record, source, Status.ANSWERED, " ".join(view.sentences), chosen.text, chosen.error, chosen.prediction,
        view.trust, tuple((c.term, c.value, c.error) for c in chosen.constants), view.samples, view.evaluations,
        seconds, _curves(run), view.units.get("t", ""),
    )  # fmt: skip


def read_answer(folder: Path) -> Answer:
    """The answer that is stored in a run folder."""
    path = folder / ANSWER
    return checked(lambda: read(Answer, read_json(read_bytes(path))), str(path), "remove that file")


def _asks_the_same(request: Request, folder: Path) -> bool:
    """Whether the run in the folder was asked the same."""
    try:
        asked = [replace(r, source="", notes=()) for r in (request, read_request(folder))]
    except LgfError:
        return False
    return len({written(to_plain(r)) for r in asked}) == 1


def _curves(run: Run) -> tuple[Curve, ...]:
    """Each measured column of the first experiment beside the solution, thinned."""
    o, solved = run.request.problem.observations[0], run.trajectory(0)
    rows = np.unique(np.linspace(0, len(o) - 1, _POINTS).round().astype(int))
    t = tuple(float(f"{time:.5g}") for time in o.t[rows])
    curves = ((str(v), o.values[rows, j], solved[v][rows]) for j, v in enumerate(o.columns))
    return tuple(Curve(name, t, _short(measured), _short(solution)) for name, measured, solution in curves)


def _short(values: np.ndarray) -> tuple[float | None, ...]:
    return tuple(float(f"{v:.5g}") if np.isfinite(v) else None for v in values)
