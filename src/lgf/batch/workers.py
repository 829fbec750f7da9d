"""The records of a batch over workers: joblib's threads or processes, or the processes of a Dask cluster."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import BrokenProcessPool

from lgf.batch.answer import ANSWER, IN_HAND, Answer, Question, Status, answer
from lgf.errors import LgfError, quoted
from lgf.runs.folder import holds_run
from lgf.stopping import StopToken

KINDS = ("processes", "threads")  # or the address of a Dask scheduler
_MOST_DEATHS = 2  # of workers, with nothing but this record in hand

Notify = Callable[[Answer], None]


def answer_all(
    question: Question,
    records: Mapping[str, Any],
    folder: Path,
    *,
    n_jobs: int = 1,
    workers: str | None = "processes",
    notify: Notify = lambda _: None,
) -> list[Answer]:
    """The answers to the records (sources by name), in their order; each is passed to `notify` when it is there.

    `workers` is "processes", "threads", the address of a Dask scheduler, or None for the backend that the caller set by
    joblib.parallel_config. A worker that dies takes nothing with it: its record is answered by another. Ctrl-C ends the
    batch with the answers so far.
    """
    answers: dict[str, Answer] = {}
    deaths: Counter[str] = Counter()

    def collect(line: Answer) -> None:
        answers[line.record] = line
        notify(line)

    def remaining() -> dict[str, Any]:
        return {name: source for name, source in records.items() if name not in answers}

    for name, source in records.items():  # no worker is needed to read an answer
        if folder.joinpath(name, ANSWER).exists():
            collect(answer(question, name, source, folder))
    try:
        with _backend(workers, n_jobs) as shares_memory:
            together = remaining()
            while together:
                try:
                    for line in _answers(question, together, folder, n_jobs, shares_memory):
                        collect(line)
                        if line.status is Status.STOPPED:
                            raise KeyboardInterrupt
                except _worker_deaths():
                    # One death ends all workers of a pool, so those that had a record in hand are tried one by one.
                    if len(together) == 1:
                        deaths.update(together.keys())
                    for name in [name for name in together if deaths[name] >= _MOST_DEATHS]:
                        collect(_given_up(name, records[name]))
                suspects = [name for name in remaining() if folder.joinpath(name, IN_HAND).exists()]
                together = {name: records[name] for name in suspects[:1]} or remaining()
    except KeyboardInterrupt:
        for name, source in remaining().items():
            text = source if isinstance(source, str) else name
            begun = _begun(folder / name)
            answers[name] = Answer(
                name, text, Status.STOPPED, "stopped; the same command goes on with it" if begun else "not begun"
            )
    return [answers[name] for name in records]


def _answers(
    question: Question, records: Mapping[str, Any], folder: Path, n_jobs: int, shares_memory: bool
) -> Iterator[Answer]:
    if n_jobs == 1:
        for name, source in records.items():
            yield answer(question, name, source, folder)
        return
    stop = StopToken() if shares_memory else None
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    lines = parallel(delayed(answer)(question, name, source, folder, stop) for name, source in records.items())
    try:
        yield from lines  # type: ignore[misc]
    finally:
        if stop is not None:
            stop.ask()  # threads end at their next fit
        lines.close()  # type: ignore[union-attr]


def map_records(
    function: Callable[..., Any], question: Question, records: Mapping[str, Any], *arguments: Any,
    n_jobs: int = 1, workers: str | None = "processes",
) -> list[Any]:  # fmt: skip
    """function(question, source, *arguments) of each record, in their order."""
    if n_jobs == 1:
        return [function(question, source, *arguments) for source in records.values()]
    with _backend(workers, n_jobs):
        return list(
            Parallel(n_jobs=n_jobs)(delayed(function)(question, source, *arguments) for source in records.values())
        )


@contextmanager
def _backend(workers: str | None, n_jobs: int) -> Iterator[bool]:
    """Sets joblib's backend; yields whether the workers share the memory of this process."""
    if workers is None or n_jobs == 1:
        yield False
    elif workers in KINDS:
        with parallel_config("threading" if workers == "threads" else "loky"):
            yield workers == "threads"
    elif "://" in workers or ":" in workers:
        with _dask_client(workers), parallel_config("dask"):
            yield False
    else:
        raise LgfError(
            f"workers is {quoted(workers)}; choose from {', '.join(KINDS)}, or give the address of a Dask scheduler, "
            "such as tcp://host:8786."
        )


@contextmanager
def _dask_client(address: str) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError as error:
        raise LgfError("Dask is not installed; install it: pip install distributed.") from error
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise LgfError(f"no Dask scheduler answers at {address}; check the address.") from error
    with client:
        yield


def _worker_deaths() -> tuple[type[BaseException], ...]:
    """The exceptions that say that a worker died."""
    try:
        from distributed.scheduler import KilledWorker
    except ImportError:
        return (BrokenProcessPool,)
    return BrokenProcessPool, KilledWorker


def _begun(folder: Path) -> bool:
    return holds_run(folder) and not folder.joinpath(ANSWER).exists()


def _given_up(name: str, source: Any) -> Answer:
    text = source if isinstance(source, str) else name
    return Answer(
        name, text, Status.FAILED,
        f"the process that searched for it died {_MOST_DEATHS} times; there may be too little memory.",
    )  # fmt: skip
