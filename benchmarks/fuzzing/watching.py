"""A watch on what an input does: nothing run, nothing written outside a folder, little time, a plain complaint."""

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from lgf.expression.parse import ReadingError
from lgf.grammar import GrammarError

SPARE_MEMORY = 2_000_000_000  # bytes that an input may take
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGING = {
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink", "os.chmod", "os.chown",
    "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile",
}  # fmt: skip
_RUNNING = {
    "exec", "compile", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork",
    "os.forkpty", "os.putenv", "os.kill", "socket.connect", "socket.bind", "socket.getaddrinfo", "ctypes.dlopen",
    "pickle.find_class", "marshal.loads",
}  # fmt: skip


class Forbidden(BaseException):
    """Something that no input may do; not an Exception, so that no handler of the package takes it for its own."""


class OutOfTime(BaseException):
    """An input that takes longer than its door allows."""


@dataclass(frozen=True)
class Outcome:
    """What became of one input: "accepted", "refused", or "fault" with its kind and where it came from."""

    status: str
    seconds: float
    kind: str = ""
    detail: str = ""


class Watch:
    """Hears what the interpreter does while an input is at work; writing is allowed in one folder only."""

    def __init__(self, folder: Path):
        self.folder = os.path.realpath(folder)
        self.heard: list[str] = []
        self._listening = False
        sys.addaudithook(self._hear)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Everything that is forbidden is heard, and stopped, inside."""
        self.heard.clear()
        self._listening = True
        try:
            yield
        finally:
            self._listening = False

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._listening:
            return
        if event == "open":
            path, _, flags = args
            wrong = isinstance(path, (str, bytes)) and flags & _WRITING and not self._inside(path)
        elif event in _CHANGING:
            wrong = not all(self._inside(a) for a in args if isinstance(a, (str, bytes, os.PathLike)))
        else:
            wrong = event in _RUNNING and not _importing(sys._getframe(1))
        if wrong:
            self._listening = False  # what is done to say so is not the input's doing
            said = f"{event} {', '.join(repr(a)[:80] for a in args)}"
            self.heard.append(said)
            raise Forbidden(said)

    def _inside(self, path: Any) -> bool:
        where = os.path.realpath(os.fsdecode(path))
        return where == "/dev/null" or os.path.commonpath([where, self.folder]) == self.folder


def _importing(frame: FrameType | None) -> bool:
    """Whether a module of the package or of a library is being imported, which runs its code."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def bound_process() -> None:
    """Makes this process die rather than hang or fill the memory, whatever compiled code it is in."""
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY,) * 2)
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)


def examined(
    work: Callable[[], object], refusals: tuple[type[Exception], ...], limit: float, watch: Watch, deadly: bool = False
) -> Outcome:
    """What becomes of the work: it may end well, or by one of the refusals with a plain message, within the limit.

    With `deadly`, compiled code that does not come back is ended with the process, at ten times the limit.
    """

    def late(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, late)
    began = time.process_time()
    status, kind, detail = "accepted", "", ""
    try:
        signal.setitimer(signal.ITIMER_PROF, 2 * limit)
        if deadly:
            signal.setitimer(signal.ITIMER_VIRTUAL, 10 * limit)
        with watch.listening():
            work()
    except refusals as error:
        status, kind = "refused", _wrong_message(error, refusals)
        detail = str(error)[:300] if kind else ""
    except (Exception, Forbidden, OutOfTime) as error:  # noqa: BLE001 - whatever comes is what is looked for
        kind, detail = f"{type(error).__name__} at {_place(error)}", "".join(traceback.format_exception(error))[-3000:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGPROF, before)
    seconds = time.process_time() - began
    if watch.heard:
        kind, detail = f"forbidden: {watch.heard[0].split()[0]}", watch.heard[0]
    elif not kind and seconds > limit:
        kind, detail = "too slow", f"{seconds:.2f} s"
    return Outcome("fault" if kind else status, seconds, kind, detail)


def _wrong_message(error: Exception, refusals: tuple[type[Exception], ...]) -> str:
    """What is wrong with the complaint: it must be of a documented class and one plain line (and excerpt, caret)."""
    name = type(error).__name__
    if type(error) not in refusals:
        return f"{name} at {_place(error)}"
    lines = str(error).splitlines()
    if len(lines) not in ((1, 3) if isinstance(error, (ReadingError, GrammarError)) else (1,)):
        return f"message of {len(lines)} lines: {name} at {_place(error)}"
    if not all(line.isprintable() for line in lines):
        return f"message not printable: {name} at {_place(error)}"
    return ""


def _place(error: BaseException) -> str:
    """The innermost line of the package in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f"{os.sep}lgf{os.sep}" in f.filename] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
