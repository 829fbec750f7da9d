"""Compilation of the kernels of a search into the cache on disk, in several processes at once.

Whoever runs lgf for the first time waits for it. The kernels are independent of each other (see `lgf.compilation`), so
each process takes the next one; `python -m lgf.search.precompilation` is such a process.
"""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import IO, Any

import numpy as np

from lgf.compilation import CACHED, is_cached
from lgf.grammar import load_grammar, sample
from lgf.grammar.machine import draw_all
from lgf.solver.kernels import integrator, kalman, machine, projections, residual, slopes, trajectory_fit
from lgf.threads import processors

_MOST_PROCESSES = 4  # more would wait for the longest kernel


def _compiling(kernel: Any, signature: Any) -> Callable[[], None]:
    return lambda: kernel.compile(signature)


def _sample() -> None:
    sample(load_grammar("standard"), np.random.default_rng(0), 1)


KERNELS: dict[str, tuple[Any, Callable[[], None]]] = {
    name: (kernel, _compiling(kernel, signature))
    for name, kernel, signature in (
        ("fit of trajectories", trajectory_fit.fit_trajectory, trajectory_fit.FIT_TRAJECTORY),
        ("filter", kalman.filter_record, kalman.FILTER_RECORD),
        ("integrator", integrator.integrate, integrator.INTEGRATE),
        ("fit of residuals", residual.fit_residual, residual.FIT_RESIDUAL),
        ("slopes", slopes.slopes, slopes.SLOPES),
        ("machine", machine.execute_wide, machine.EXECUTE),
        ("pairs of terms", projections.best_pairs, projections.BEST_PAIRS),
        ("terms along a record", projections.term_rows, projections.TERM_ROWS),
        ("columns", machine.evaluate_wide, machine.EVALUATE),
        ("projections", projections.subtract_projection, projections.SUBTRACT_PROJECTION),
        ("terms beside others", projections.beside, projections.BESIDE),
        ("residuals", residual.residual_loss, residual.RESIDUAL_LOSS),
    )
} | {"grammar": (draw_all, _sample)}
"""What the first fit needs, longest first: (numba function, compilation) by name."""


def is_compiled() -> bool:
    """Whether the cache on disk holds all kernels, compiled from the sources as they are."""
    return all(is_cached(kernel) for kernel, _ in KERNELS.values())


def precompile(report: Callable[[str], None] = lambda name: None) -> None:
    """Fills the cache on disk; `report` gets the name of each kernel that is done.

    Without a cache there is nothing to fill: kernels are then compiled in the process that calls them.
    """
    if not CACHED or is_compiled():
        return
    waiting: SimpleQueue[str] = SimpleQueue()
    for name in KERNELS:
        waiting.put(name)
    count = min(processors(), _MOST_PROCESSES)
    command = [sys.executable, "-m", "lgf.search.precompilation"]
    helpers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda helper: _feed(helper, waiting, report), helpers))
    finally:
        for helper in helpers:
            helper.kill()
            helper.communicate()  # closes the pipes


def _feed(helper: "subprocess.Popen[str]", waiting: "SimpleQueue[str]", report: Callable[[str], None]) -> None:
    """Gives the helper one kernel after the other; one that fails is left to the process that calls it."""
    assert helper.stdin is not None
    assert helper.stdout is not None
    while True:
        try:
            name = waiting.get_nowait()
        except Empty:
            return
        try:
            helper.stdin.write(name + "\n")
            helper.stdin.flush()
        except OSError:
            return
        if not helper.stdout.readline():
            return
        report(name)


def _serve(orders: IO[str]) -> None:
    for line in orders:
        KERNELS[line.strip()][1]()
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(sys.stdin)
