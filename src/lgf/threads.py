"""Work spread over threads of this process, and the threads of BLAS.

Kernels and BLAS release Python's lock, so threads run side by side.
"""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

Spread = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""The results of a function for all items, in their order."""


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_threads(n_jobs: int) -> Spread:
    """Spreads work over so many threads; -1 stands for all processors. They end with the returned function."""
    count = n_jobs if n_jobs > 0 else processors()
    if count == 1:
        return alone
    pool = ThreadPoolExecutor(count)
    return lambda function, items: list(pool.map(function, items))


def alone(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The results one after the other, in this thread."""
    return [function(item) for item in items]


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS uses one thread: the number of threads would change the last digits.

    Threads may enter it only inside a context that was entered before them: the last one to leave restores the number.
    """
    return _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")


@cache  # looking for the loaded libraries at every use took 3 % of a small search
def _libraries(with_scipy: bool) -> ThreadpoolController:
    """The loaded libraries. SciPy brings a BLAS of its own, and is imported late."""
    return ThreadpoolController()
