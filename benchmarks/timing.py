"""Measurement of processor time."""

import time
from collections.abc import Callable


def best_time(work: Callable[[], object], repetitions: int = 5, calls: int = 1) -> float:
    """Shortest processor time of one call in seconds."""
    times = []
    for _ in range(repetitions):
        began = time.process_time()
        for _ in range(calls):
            work()
        times.append(time.process_time() - began)
    return min(times) / calls
