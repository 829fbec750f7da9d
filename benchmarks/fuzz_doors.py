"""Fuzzes every entry point of the package with hostile inputs and reports faults.

python -m benchmarks.fuzz_doors 1000000 [--seed 0] [--jobs 1] [--doors grammar,run] [--json FILE] [--keep FOLDER]

An input may be accepted, or rejected with a documented error. Anything else is a fault: another error, code
execution, a file written elsewhere, too much time or memory. The first input of each kind of fault is saved.
"""

import argparse
import gc
import json
import multiprocessing
import signal
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.fuzzing.doors import Door, make_doors
from benchmarks.fuzzing.watching import Watch, bound_process, examined

BATCH = 500
_WARM = 20
_WARMING = 300.0  # CPU seconds after which a process that is still warming up is ended


@dataclass(frozen=True)
class Batch:
    """Inputs `start` to `stop` of one door."""

    door: str
    start: int
    stop: int


@dataclass
class Tally:
    """Outcomes of the inputs of one entry point; faults by kind, with their number and the first input."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    cpu_seconds: float = 0.0
    slowest_ms: float = 0.0
    slowest_input: int = -1
    faults: dict[str, dict[str, Any]] = field(default_factory=dict)

    def blame(self, kind: str, index: int, detail: str, count: int = 1) -> None:
        """Counts a fault."""
        known = self.faults.setdefault(kind, {"count": 0, "input": index, "detail": detail})
        known["count"] += count

    def add(self, other: "Tally") -> None:
        """Adds the counts of another tally."""
        for name in ("inputs", "accepted", "refused", "cpu_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.slowest_ms > self.slowest_ms:
            self.slowest_ms, self.slowest_input = other.slowest_ms, other.slowest_input
        for kind, fault in other.faults.items():
            self.blame(kind, fault["input"], fault["detail"], fault["count"])


def examine(door: Door, seed: int, start: int, stop: int, watch: Watch, at: Any = None) -> Tally:
    """The tally of these inputs; `at` (a shared number) holds the number of the current input."""
    tally = Tally()
    folder = Path(watch.folder)
    for index in range(start, stop):
        if at is not None:
            at.value = index
        made = door.input(seed, index)
        once = partial(examined, partial(door.enter, made, folder), door.refusals, door.limit, watch, at is not None)
        outcome = once()
        if outcome.seconds > door.limit:  # it may have imported a module
            outcome = once()
        tally.inputs += 1
        tally.accepted += outcome.status == "accepted"
        tally.refused += outcome.status == "refused"
        tally.cpu_seconds += outcome.seconds
        if 1e3 * outcome.seconds > tally.slowest_ms:
            tally.slowest_ms, tally.slowest_input = 1e3 * outcome.seconds, index
        if outcome.status == "fault":
            tally.blame(outcome.kind, index, outcome.detail)
    return tally


def fuzz(n: int, seed: int = 0, jobs: int = 1, names: Sequence[str] = (), keep: Path | None = None) -> dict[str, Tally]:
    """Tallies by entry point of about n inputs in total; the first input of each kind of fault is saved."""
    with tempfile.TemporaryDirectory(prefix="lgf-fuzz-") as folder:
        scratch = Path(folder)
        doors = [door for door in make_doors(scratch) if not names or door.name in names]
        total = sum(door.share for door in doors)
        counts = {door.name: max(1, round(n * door.share / total)) for door in doors}
        batches = [
            Batch(name, start, min(start + BATCH, count))
            for name, count in counts.items()
            for start in range(0, count, BATCH)
        ]
        tallies = {name: Tally() for name in counts}
        with ThreadPoolExecutor(jobs) as pool:
            for found in pool.map(lambda job: list(_supervised(batches[job::jobs], seed, scratch, job)), range(jobs)):
                for name, tally in found:
                    tallies[name].add(tally)
        if keep is not None:
            for door in doors:
                for fault in tallies[door.name].faults.values():
                    fault["kept"] = str(_keep(door, seed, fault["input"], keep))
    return tallies


def _supervised(batches: list[Batch], seed: int, scratch: Path, job: int) -> Iterator[tuple[str, Tally]]:
    """Tallies of the batches, run in a separate process; if an input kills it, a new process continues."""
    context = multiprocessing.get_context("spawn")
    while batches:
        at = context.Value("q", -1, lock=False)
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(batches, seed, scratch, job, at, theirs))
        process.start()
        theirs.close()
        done = 0
        while True:
            try:
                tally = ours.recv()
            except EOFError:
                break
            yield batches[done].door, tally
            done += 1
        process.join()
        batches = batches[done:]
        if batches:
            cut, killer = batches[0], at.value
            if killer < 0 or (process.exitcode or 0) >= 0:  # ended by an error of the fuzzer itself, not by a signal
                raise RuntimeError(f"the fuzzer failed at input {killer} of {cut.door}; its traceback stands above.")
            tally = Tally(inputs=1)
            tally.blame(f"the process died (code {process.exitcode})", killer, "")
            yield cut.door, tally
            # the earlier inputs of this batch were examined, but their tally was lost
            pieces = [Batch(cut.door, cut.start, killer), Batch(cut.door, killer + 1, cut.stop)]
            batches = [piece for piece in pieces if piece.start < piece.stop] + batches[1:]


def _work(batches: list[Batch], seed: int, scratch: Path, job: int, at: Any, results: Connection) -> None:
    threadpool_limits(1)  # time of other threads would be counted for the input
    folder = scratch / f"job-{job}"
    folder.mkdir(exist_ok=True)
    doors = {door.name: door for door in make_doors(scratch)}
    watch = Watch(folder)
    signal.setitimer(signal.ITIMER_VIRTUAL, _WARMING)
    for name in {batch.door for batch in batches}:
        warm(doors[name], folder)
    gc.collect()
    gc.freeze()  # garbage collection of loaded modules must not count as time of an input
    bound_process()
    warnings.simplefilter("ignore")  # numpy's overflow warnings are not faults
    for batch in batches:
        results.send(examine(doors[batch.door], seed, batch.start, batch.stop, watch, at))
    results.close()


def warm(door: Door, folder: Path) -> None:
    """Runs some inputs unmeasured, so that imports and compilation are done."""
    for made in door.sound:
        door.enter(made, folder)
    for index in range(_WARM):
        try:
            door.enter(door.input(-1, index), folder)
        except Exception:  # noqa: BLE001 - the same kinds of input are examined later
            continue


def _keep(door: Door, seed: int, index: int, keep: Path) -> Path:
    """The path of the input, written into the folder."""
    made = door.input(seed, index)
    path = keep / f"{door.name}-{seed}-{index}"
    files = made if isinstance(made, dict) else {"input": made}
    path.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        path.joinpath(name).write_bytes(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return path


def _table(tallies: dict[str, Tally]) -> str:
    names = ("inputs", "accepted", "refused", "faults", "slowest ms", "mean us")
    lines = [f"{'door':10s}" + "".join(f"{name:>11s}" for name in names)]
    for name, t in tallies.items():
        faults = sum(f["count"] for f in t.faults.values())
        mean = 1e6 * t.cpu_seconds / max(t.inputs, 1)
        counts = "".join(f"{count:11d}" for count in (t.inputs, t.accepted, t.refused, faults))
        lines.append(f"{name:10s}{counts}{t.slowest_ms:11.1f}{mean:11.0f}")
        for kind, fault in t.faults.items():
            lines.append(f"    {fault['count']:6d}  {kind}; first: input {fault['input']} {fault.get('kept', '')}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 if there was no fault."""
    parser = argparse.ArgumentParser("python -m benchmarks.fuzz_doors", description=__doc__)
    parser.add_argument("n", type=int, help="inputs in total")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--doors", default="", help="names of doors, separated by commas; all if not given")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-faults"), help="folder for inputs that show a fault")
    args = parser.parse_args(arguments)
    tallies = fuzz(args.n, args.seed, args.jobs, [name for name in args.doors.split(",") if name], args.keep)
    print(_table(tallies))
    if args.json:
        figures = {"seed": args.seed, "doors": {name: asdict(tally) for name, tally in tallies.items()}}
        args.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 1 if any(tally.faults for tally in tallies.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
