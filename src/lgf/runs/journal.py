"""Every fit of a run, one line each: on disk as it is made, and never made twice.

The search is deterministic given its seed, so a run that was interrupted is resumed by running it again from the start
with its journal at hand: what stands there is looked up, the rest is fitted.
"""

import json
import os
import signal
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from lgf.errors import LgfError
from lgf.runs.serialisation import candidate_from_plain, candidate_to_plain
from lgf.search.candidate import Candidate, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.loop import Mapper, joblib_map

LARGEST = 2_000_000_000  # bytes of a journal that is read
_CHUNK = 64  # fits per job between two writes

Key = tuple[str, str, float, tuple[float, ...] | None]


@dataclass(frozen=True)
class Tick:
    """Where a run stands after some fits."""

    fits: int
    seconds: float
    best: Candidate | None
    refining: bool  # the finalists are being refitted


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """A list that notes the first Ctrl-C in place of raising it; a second one raises KeyboardInterrupt.

    An exception that arrives inside a compiled kernel comes out as a SystemError, so the search has to be stopped
    between two fits.
    """
    interrupts: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        if len(interrupts) > 1:
            raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread, which alone is interrupted
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


class Journal:
    """A mapper for `discover` that keeps every candidate; with a path it is on disk as soon as it is fitted."""

    def __init__(
        self,
        path: Path | None = None,
        lines: Iterable[str] = (),
        n_jobs: int = 1,
        notify: Callable[[Tick], None] | None = None,
        stop: Callable[[], object] = lambda: False,
    ):
        self.lines = list(lines)
        self._path = path
        self._map: Mapper = joblib_map(n_jobs)
        self._chunk = _CHUNK * max(n_jobs, 1) if n_jobs != -1 else _CHUNK * (os.cpu_count() or 1)
        self._notify = notify
        self._stop = stop
        self._stopping = False
        self._known = _candidates(self.lines)
        self._started = time.monotonic()
        self._fits = 0
        self._best: Candidate | None = None

    def __call__(self, evaluator: Evaluator, proposals: Sequence[Proposal]) -> list[Candidate]:
        """The candidates of the proposals, in their order.

        When `stop` says so, the search gets what is fitted so far and, if it asks again, a KeyboardInterrupt; the
        finalists, which come after, are always refitted.
        """
        stage = _stage(evaluator)
        if self._stopping and not evaluator.refining:
            raise KeyboardInterrupt
        found: list[Candidate] = []
        for begin in range(0, len(proposals), self._chunk):
            if not evaluator.refining and self._stop():
                self._stopping = True
                break
            found += self._fitted(evaluator, stage, proposals[begin : begin + self._chunk])
            if self._notify is not None:
                self._notify(Tick(self._fits, time.monotonic() - self._started, self._best, evaluator.refining))
        return found

    def _fitted(self, evaluator: Evaluator, stage: str, proposals: Sequence[Proposal]) -> list[Candidate]:
        keys = [_key(stage, p) for p in proposals]
        missing = {key: p for key, p in zip(keys, proposals, strict=True) if key not in self._known}
        fresh = dict(zip(missing, self._map(evaluator, list(missing.values())), strict=True))
        self._keep([_line(stage, candidate) for candidate in fresh.values()])
        # The proposal in hand carries more than the journal does: its tokens in a latent space.
        found = [
            fresh[key] if key in fresh else replace(self._known[key], proposal=p)
            for key, p in zip(keys, proposals, strict=True)
        ]
        self._known |= fresh
        self._fits += len(found)
        self._best = min((c for c in (self._best, *found) if c is not None), key=lambda c: c.objective, default=None)
        return found

    def _keep(self, lines: Sequence[str]) -> None:
        self.lines += lines
        if self._path is None or not lines:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        try:
            handle = os.open(self._path, flags, 0o666)
            try:
                with os.fdopen(handle, "wb", closefd=False) as file:
                    file.write("".join(line + "\n" for line in lines).encode())
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise LgfError(f"{self._path} cannot be written ({error.strerror}); make room for it.") from error


def read_lines(path: Path) -> list[str]:
    """The complete lines of a journal; a last line that was cut off by a crash is taken out of the file."""
    if not path.exists():
        return []
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
        raise LgfError(f"{path} is not a journal of a run; start the run anew in another folder.")
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    try:
        lines = whole.decode().splitlines()
    except UnicodeDecodeError as error:
        raise LgfError(f"{path} is not text; start the run anew in another folder.") from error
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    return lines


def _candidates(lines: Sequence[str]) -> dict[Key, Candidate]:
    known: dict[Key, Candidate] = {}
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            candidate = candidate_from_plain(entry)
            known[_key(str(entry["stage"]), candidate.proposal)] = candidate
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise LgfError(
                f"line {number} of the journal is no candidate ({type(error).__name__}); remove the line."
            ) from error
    return known


def _line(stage: str, candidate: Candidate) -> str:
    return json.dumps({"stage": stage, **candidate_to_plain(candidate)}, allow_nan=False)


def _key(stage: str, proposal: Proposal) -> Key:
    return stage, str(proposal.skeleton), proposal.bits, proposal.start


def _stage(evaluator: Evaluator) -> str:
    """A name for how hard the evaluator tries: two that try alike give the same candidates."""
    settings = evaluator.fit, evaluator.objective, evaluator.stability, evaluator.assess_all
    return f"{zlib.crc32(repr(settings).encode()):08x}"
