"""Work spread over threads of this process, and the threads of BLAS.

Kernels and BLAS release Python's lock, so threads run side by side.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Spread:
    """Work for the threads of a pool; without a pool, for this thread. Spread work must not spread work itself."""

    n_jobs: int = 1
    pool: ThreadPoolExecutor | None = None

    def __call__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """The results of the function for all items, in their order."""
        return list((map if self.pool is None else self.pool.map)(function, items))


alone = Spread()


@contextmanager
def on_threads(n_jobs: int) -> Iterator[Spread]:
    """Spreads work over so many threads, which end with the context; -1 stands for all processors."""
    count = n_jobs if n_jobs > 0 else processors()
    if count == 1:
        yield alone
        return
    with ThreadPoolExecutor(count) as pool:
        yield Spread(n_jobs, pool)


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS uses one thread: the number of threads would change the last digits.

    Threads may enter it only inside a context that was entered before them: the last one to leave restores the number.
    """
    return _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")


@cache  # looking for the loaded libraries at every use took 3 % of a small search
def _libraries(with_scipy: bool) -> ThreadpoolController:
    """The loaded libraries. SciPy brings a BLAS of its own, and is imported late."""
    return ThreadpoolController()
