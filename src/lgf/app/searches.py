"""The searches of this server: each is `lgf discover --resume` in a process of its own, one after the other."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from lgf.app.run_folders import RunState, run_folders, run_state
from lgf.errors import LgfError
from lgf.files import open_regular
from lgf.runs.lock import is_locked
from lgf.runs.progress import STOP, read_progress, request_stop

LOG = "search.log"


class Searches:
    """Starts, stops and looks after the processes that search in the run folders."""

    def __init__(self, runs: Path, jobs: int | None = None):
        self._runs = runs
        self._jobs = max((os.cpu_count() or 2) - 1, 1) if jobs is None else jobs  # one processor stays free
        self._waiting: dict[str, float | None] = {}  # run -> seconds, in the order of their turn
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def processes(self) -> tuple[subprocess.Popen[bytes], ...]:
        """The processes that were started and not yet seen to end."""
        return tuple(self._processes.values())

    def state(self, folder: Path) -> RunState:
        """The state of the run in this folder."""
        process = self._processes.get(folder.name)
        starting = process.pid if process is not None and process.poll() is None else None
        return run_state(folder, folder.name in self._waiting, starting)

    def start(self, folder: Path, seconds: float | None = None) -> None:
        """Searches in the folder as soon as no other search runs; seconds count from then."""
        if self.state(folder).live or folder.name in self._waiting:
            raise LgfError("This run is being searched already.")
        self._waiting[folder.name] = seconds
        self.advance()

    def stop(self, folder: Path) -> None:
        """Asks the search to end with the best so far; if it was asked before, ends its process."""
        if self._waiting.pop(folder.name, 0) != 0:
            return
        if not self.state(folder).live:
            raise LgfError("This run is not being searched.")
        process = self._processes.get(folder.name)
        if not is_locked(folder):  # it is still starting and holds nothing
            if process is not None:
                process.terminate()
        elif not (folder / STOP).exists():
            request_stop(folder)
        elif process is not None:
            process.kill()
        else:  # it was started by an earlier server; only its own process can have written this number under the lock
            pid = (read_progress(folder) or {}).get("pid")
            if isinstance(pid, int) and pid > 1:
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)

    def advance(self) -> None:
        """Starts the next waiting search if none runs."""
        for name, process in list(self._processes.items()):
            if process.poll() is not None:
                del self._processes[name]
        if not self._waiting or self._processes:
            return
        folders = run_folders(self._runs)
        if any(is_locked(folder) for folder in folders.values()):
            return
        name = next(iter(self._waiting))
        seconds = self._waiting.pop(name)
        if name in folders:
            self._processes[name] = self._spawn(folders[name], seconds)

    def stop_all(self) -> None:
        """Asks every search of this server to end with the best so far."""
        self._waiting.clear()
        for name, process in self._processes.items():
            if process.poll() is not None:
                continue
            if not is_locked(self._runs / name):  # it is still starting and holds nothing
                process.terminate()
            else:
                with suppress(LgfError):
                    request_stop(self._runs / name)

    def _spawn(self, folder: Path, seconds: float | None) -> subprocess.Popen[bytes]:
        # -P: a file of the user's folder named like a module must not be imported.
        command = [sys.executable, "-P", "-m", "lgf.cli", "discover", "--resume", str(folder)]
        command += ["--jobs", str(self._jobs)]
        if seconds is not None:
            command += ["--seconds", str(seconds)]
        with suppress(FileNotFoundError):
            (folder / STOP).unlink()
        with os.fdopen(open_regular(folder / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as log:
            # A session of its own: Ctrl-C in the terminal of the server is for the server.
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )


def run_name(table: str) -> str:
    """A name for a run on this table: letters, digits, - and _ of its name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", Path(table).stem).strip("-")[:60] or "run"
