"""How a run reports to other processes while it searches, and how they stop it.

progress.json  stage, fits, seconds, best equation with its trajectories, front: replaced while the run goes on
stop           made by another process: the search ends at the next chance, as after Ctrl-C
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from lgf.equation.system import System
from lgf.errors import LgfError, Stopped
from lgf.files import read_bytes, write_atomically
from lgf.runs.folder import PROGRESS
from lgf.runs.journal import Tick
from lgf.runs.lock import locked
from lgf.runs.request import Request
from lgf.runs.serialisation import for_page, read_json
from lgf.search.candidate import Candidate
from lgf.search.loop import Iteration
from lgf.solver.solve import solve
from lgf.stopping import StopToken

STOP = "stop"
MOST_EXPERIMENTS = 6  # most experiments whose trajectory is reported
_POINTS = 400  # of a trajectory
_INTERVAL = 0.25  # seconds between two reports, at least

PREPARING, SEARCHING, REFINING = "preparing", "searching", "refining"
ENDED, FAILED = "ended", "failed"
LIVE = (PREPARING, SEARCHING, REFINING)
_BUDGETS = ("max_evaluations", "patience")  # by which the result is the same on any machine


@contextmanager
def reported(folder: str | Path, request: Request) -> Iterator["Reporter"]:
    """A reporter of the run in the folder, which is locked meanwhile; its last report is how the run ended."""
    with locked(folder):
        reporter = Reporter(Path(folder), request)
        try:
            yield reporter
        except (Stopped, KeyboardInterrupt):
            reporter.close(ENDED)
            raise
        except LgfError as error:
            reporter.close(FAILED, str(error).splitlines()[0])
            raise
        except Exception as error:
            reporter.close(FAILED, f"The search ended by a bug of lgf ({type(error).__name__}); please report it.")
            raise
        reporter.close(ENDED)


class Reporter:
    """Writes progress.json, at most four times a second; `stop` is asked by the file `stop`."""

    def __init__(self, folder: Path, request: Request):
        self._folder, self._request = folder, request
        self._written = 0.0
        self._shown: Candidate | None = None
        self._improvements: list[tuple[float, float]] = []  # (seconds, error)
        limits = request.settings.search
        self._facts: dict[str, Any] = {
            "stage": PREPARING,
            "pid": os.getpid(),
            "fits": 0,
            "settled": 0.0,
            "seconds": 0.0,
            "max_seconds": limits.max_seconds,
            **{name: getattr(limits, name) for name in _BUDGETS},
            "best": None,
            "front": [],
            "improvements": self._improvements,
        }
        folder.joinpath(STOP).unlink(missing_ok=True)
        self.stop = StopToken(folder.joinpath(STOP).exists)
        self._write()

    def notify(self, event: Iteration | Tick) -> None:
        """Reports the state after some fits."""
        if isinstance(event, Iteration):
            self._facts["settled"] = event.settled
            return
        stage = REFINING if event.refining else SEARCHING
        self._facts |= {"fits": event.fits, "seconds": event.seconds, "stage": stage}
        if time.monotonic() - self._written < _INTERVAL:
            return
        best = event.best
        if best is not None and best is not self._shown:
            self._shown = best
            self._improvements.append((event.seconds, best.loss**0.5))
            math = best.shown(self._request.problem).mathml()
            self._facts["best"] = {**self._row(best), "math": math, "curves": self._curves(best)}
        self._facts["front"] = [self._row(c) for c in event.front]
        self._write()

    def close(self, stage: str, sentence: str = "") -> None:
        """Reports how the run ended."""
        self._facts |= {"stage": stage, "sentence": sentence}
        self._write()
        self._folder.joinpath(STOP).unlink(missing_ok=True)

    def _write(self) -> None:
        self._written = time.monotonic()
        with suppress(LgfError):  # a full disk costs reports, not the search
            write_atomically(self._folder / PROGRESS, for_page(self._facts))

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        text = str(candidate.shown(self._request.problem))
        return {"complexity": candidate.complexity, "error": candidate.loss**0.5, "text": text}

    def _curves(self, candidate: Candidate) -> list[dict[str, Any]]:
        """The trajectory of the candidate for each experiment, at the measured variables."""
        problem, fit = self._request.problem, candidate.fit
        curves = []
        for e, observation in enumerate(problem.observations[:MOST_EXPERIMENTS]):
            t = np.linspace(*observation.window, _POINTS)
            values = tuple(float(v) for v in fit.by_experiment[e])
            solved = solve(System(fit.skeleton, values), fit.initial[e], t, problem.signals(e), max_steps=20_000)
            curves.append({"t": t, "columns": {str(v): solved[v] for v in observation.columns}})
        return curves


def read_progress(folder: str | Path) -> dict[str, Any] | None:
    """The last report of the run in the folder; None if there is none that can be read."""
    try:
        return read_json(read_bytes(Path(folder) / PROGRESS))
    except ValueError:
        return None


def budgets_of_killed(folder: str | Path) -> dict[str, int | None] | None:
    """The budgets of the last search in the folder, if it was killed before it ended; None if it ended."""
    last = read_progress(folder) or {}
    if last.get("stage") not in LIVE:
        return None
    return {n: last[n] for n in _BUDGETS if n in last and (last[n] is None or (type(last[n]) is int and last[n] > 0))}


def request_stop(folder: str | Path) -> None:
    """Asks the search in the folder to end with the best equation so far."""
    write_atomically(Path(folder) / STOP, b"")
