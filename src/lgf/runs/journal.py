"""The journal of a run: one line per fit, written to disk at once.

The search is deterministic for a seed. An interrupted run is therefore resumed by running it again from the start: fits
in the journal are looked up, the others are computed.
"""

import os
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lgf.errors import LgfError
from lgf.files import open_regular, read_bytes
from lgf.fit.segments import Shooting
from lgf.fit.sharing import Sharing
from lgf.runs.serialisation import checked, read, read_json, to_plain, written
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.loop import Mapper, joblib_map
from lgf.stopping import StopToken
from lgf.threads import Spread, alone, processors

LARGEST = 2_000_000_000  # most bytes of a journal
_CHUNK = 64  # fits per job between two writes
_BLOCK = 1 << 16  # bytes read at once from the end of a journal

Key = tuple[str, str, float, tuple[float, ...] | None, Sharing, Shooting | None]


@dataclass(frozen=True)
class _Line:
    """A line of the journal."""

    stage: str  # of the search, as the evaluator's settings say it
    candidate: Candidate


@dataclass(frozen=True)
class Tick:
    """Progress of a run after some fits."""

    fits: int
    seconds: float
    best: Candidate | None
    refining: bool  # the finalists are being refitted
    front: tuple[Candidate, ...] = ()  # the Pareto front so far, simplest first


class Journal:
    """A mapper for `discover` that records every candidate; with a path, on disk as soon as it is fitted."""

    def __init__(
        self,
        path: Path | None = None,
        lines: Iterable[str] = (),
        spread: Spread = alone,
        notify: Callable[[Tick], None] | None = None,
        stop: StopToken | None = None,
    ):
        self.lines = list(lines)
        self._path = path
        self._map: Mapper = joblib_map(spread)
        self._chunk = _CHUNK * (spread.n_jobs if spread.n_jobs > 0 else processors())
        self._notify = notify
        self._stop = stop or StopToken()
        self._known = _candidates(self.lines)
        self._started = time.monotonic()
        self._fits = 0
        self._best: Candidate | None = None
        self._front: tuple[Candidate, ...] = ()
        if path is not None:
            _cut_torn_line(path)

    def __call__(self, evaluator: Evaluator, proposals: Sequence[Proposal]) -> list[Candidate]:
        """The candidates of the proposals, in their order.

        After `stop` was asked, these are the candidates so far. Finalists are always refitted.
        """
        stage = _stage(evaluator)
        candidates: list[Candidate] = []
        for begin in range(0, len(proposals), self._chunk):
            if self._stop.asked and not evaluator.refining:
                break
            candidates += self._look_up_or_fit(evaluator, stage, proposals[begin : begin + self._chunk])
            if self._notify is not None:
                seconds = time.monotonic() - self._started
                self._notify(Tick(self._fits, seconds, self._best, evaluator.refining, self._front))
        return candidates

    def _look_up_or_fit(self, evaluator: Evaluator, stage: str, proposals: Sequence[Proposal]) -> list[Candidate]:
        keys = [_key(stage, p) for p in proposals]
        missing = {key: p for key, p in zip(keys, proposals, strict=True) if key not in self._known}
        new_fits = dict(zip(missing, self._map(evaluator, list(missing.values())), strict=True))
        self._append([written(to_plain(_Line(stage, c))).decode() for c in new_fits.values()])
        self._known |= new_fits
        candidates = [replace(self._known[key], proposal=p) for key, p in zip(keys, proposals, strict=True)]
        self._fits += len(candidates)
        self._best = min(
            (c for c in (self._best, *candidates) if c is not None), key=lambda c: c.objective, default=None
        )
        self._front = tuple(Population([*self._front, *candidates]).front())
        return candidates

    def _append(self, lines: Sequence[str]) -> None:
        self.lines += lines
        if self._path is None or not lines:
            return
        handle = open_regular(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write("".join(line + "\n" for line in lines).encode())
                file.flush()
                os.fsync(handle)
        except OSError as error:
            raise LgfError(f"{self._path} cannot be written ({error.strerror}); make room for it.") from error


def read_lines(path: Path) -> list[str]:
    """The complete lines of a journal; a last line that a crash cut off, or that is being written, is left out."""
    if not path.exists():
        return []
    content = read_bytes(path, LARGEST)
    try:
        return content[: content.rfind(b"\n") + 1].decode().splitlines()
    except UnicodeDecodeError as error:
        raise LgfError(f"{path} is not text; start the run anew in another folder.") from error


def _cut_torn_line(path: Path) -> None:
    """Removes a last line that a crash cut off, so that the next line stands by itself.

    Only the process that writes the journal does this: to any other the last line may be one that is being written.
    """
    if not path.exists():
        return
    with os.fdopen(open_regular(path, os.O_RDWR), "rb+") as file:
        end = kept = file.seek(0, os.SEEK_END)
        while kept > 0:
            begin = max(kept - _BLOCK, 0)
            file.seek(begin)
            newline = file.read(kept - begin).rfind(b"\n")
            if newline >= 0:
                kept = begin + newline + 1
                break
            kept = begin
        if kept < end:
            file.truncate(kept)


def _candidates(lines: Sequence[str]) -> dict[Key, Candidate]:
    candidates: dict[Key, Candidate] = {}
    for number, text in enumerate(lines, start=1):
        line = checked(
            lambda text=text: read(_Line, read_json(text.encode())), f"line {number} of the journal", "remove the line"
        )
        candidates[_key(line.stage, line.candidate.proposal)] = line.candidate
    return candidates


def _key(stage: str, proposal: Proposal) -> Key:
    return stage, str(proposal.skeleton), proposal.bits, proposal.start, proposal.sharing, proposal.shooting


def _stage(evaluator: Evaluator) -> str:
    """A hash of the evaluator's settings; evaluators with equal settings give the same candidates."""
    settings = evaluator.fit, evaluator.objective, evaluator.assess_all, evaluator.growth
    return f"{zlib.crc32(repr(settings).encode()):08x}" + ("-part" if evaluator.of_part else "")
