"""The runs in a folder as the page lists them. The folders are the only store, so a new server finds every run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lgf.errors import LgfError
from lgf.files import is_regular, read_bytes
from lgf.report.page import REPORT
from lgf.runs.equations import equation_view
from lgf.runs.folder import REQUEST, RESULT, read_run
from lgf.runs.lock import is_locked
from lgf.runs.progress import FAILED, LIVE, PREPARING, STOP, read_progress
from lgf.runs.request import Run
from lgf.runs.serialisation import read_json

DOWNLOADS = {
    "equation.tex": "application/x-tex",
    "equation.py": "text/x-python",
    "equation.json": "application/json",
    "front.csv": "text/csv",
    REPORT: "text/html",
}
_DIED = "The search ended without a word: it was killed, or the computer went off. What it fitted is kept."


@dataclass(frozen=True)
class RunState:
    """What a run is doing: preparing, searching, refining, stopping, waiting, stopped, failed, died or finished."""

    state: str
    sentence: str = ""

    @property
    def live(self) -> bool:
        """Whether a process searches, or is about to."""
        return self.state in (*LIVE, "stopping")


def run_folders(runs: Path) -> dict[str, Path]:
    """The folders that hold a run, by name; links are not followed."""
    try:
        entries = list(os.scandir(runs))
    except FileNotFoundError:
        return {}
    folders = {e.name: Path(e.path) for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)}
    return {name: folder for name, folder in folders.items() if is_regular(folder / REQUEST)}


def find_run(runs: Path, name: str) -> Path:
    """The folder of the run with this name; LgfError if there is none."""
    folder = run_folders(runs).get(name)
    if folder is None:
        raise LgfError("There is no such run in this folder; it may have been moved or deleted.")
    return folder


def run_state(folder: Path, waiting: bool = False, starting: int | None = None) -> RunState:
    """The state of the run; `starting` is the process that this server started for it, if it still lives."""
    progress = read_progress(folder) or {}
    stage = str(progress.get("stage"))
    if is_locked(folder):
        if is_regular(folder / STOP):
            return RunState("stopping")
        return RunState(stage if stage in LIVE else PREPARING)
    if starting is not None and progress.get("pid") != starting:
        return RunState(PREPARING)
    if waiting:
        return RunState("waiting")
    if stage in LIVE:
        return RunState("died", _DIED)
    if stage == FAILED:
        return RunState("failed", str(progress.get("sentence", "")))
    result = result_row(folder)
    if result is None:
        return RunState("stopped", "Stopped before an equation was chosen.")
    return RunState("stopped" if result["interrupted"] else "finished")


def result_row(folder: Path) -> dict[str, Any] | None:
    """Equation and error of a run for a list; None while there is no result that can be read."""
    path = folder / RESULT
    if not is_regular(folder / RESULT):
        return None
    try:
        return _result_row(path, path.stat().st_mtime_ns)
    except (OSError, LgfError):
        return None


@lru_cache(maxsize=256)
def _result_row(path: Path, _changed: int) -> dict[str, Any]:
    run = read_run(path.parent)
    equation = equation_view(run, run.best)
    return {
        **{name: getattr(equation, name) for name in ("text", "math", "error", "error_text", "complexity")},
        "seconds": run.seconds,
        "evaluations": run.evaluations,
        "interrupted": run.interrupted,
    }


def load_run(folder: Path) -> Run:
    """The finished run in the folder, read again only if it changed."""
    path = folder / RESULT
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise LgfError("This run has no equation yet; go on with it first.") from error
    return _load_run(folder, changed)


@lru_cache(maxsize=8)
def _load_run(folder: Path, _changed: int) -> Run:
    # The journal is of no use here and may be long.
    return replace(read_run(folder), journal=())


def row(folder: Path, state: RunState) -> dict[str, Any]:
    """One line of the list of runs."""
    try:
        changed = max(p.stat().st_mtime for p in (folder / REQUEST, folder / RESULT) if p.exists())
    except (OSError, ValueError):
        changed = 0.0
    result = result_row(folder)
    return {
        "run": folder.name,
        "state": state.state,
        "sentence": state.sentence,
        "live": state.live,
        "changed": changed,
        "result": None if result is None else {k: v for k, v in result.items() if k != "interrupted"},
    }


def read_download(folder: Path, name: str) -> bytes:
    """The content of one of the files that may be downloaded; links are not followed."""
    if name not in DOWNLOADS:
        raise LgfError("There is no such file.")
    if not folder.joinpath(name).exists():
        raise LgfError(f"This run has no {name} yet.")
    return read_bytes(folder / name)


def downloads(folder: Path) -> list[str]:
    """The names of the files of this run that can be downloaded."""
    return [name for name in DOWNLOADS if is_regular(folder / name)]


def facts_beside(folder: Path, name: str) -> Mapping[str, Any] | None:
    """A small JSON file that the page wrote into the run folder; None if it is not there or not readable."""
    try:
        return read_json(read_bytes(folder / name, 1_000_000))
    except ValueError:
        return None
