"""Compilation: kernels that call each other by address, helpers that fill the cache, and no folder for a cache."""

import io
import os
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
import pytest
from numba import float64, int64, njit, types
from numba.core.errors import TypingError
from rich.console import Console

from lgf.cli import terminal
from lgf.compilation import linked, search_clock

NOWHERE = """
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []
import lgf.paper.discovery.proposer  # the layer above every kernel
from lgf.compilation import CACHED
from lgf.solver.kernels.trajectory_fit import fit_trajectory
assert not CACHED
assert fit_trajectory.stats.cache_path is None
"""

HELPED = """
from lgf.search import precompilation
every = precompilation.KERNELS
kernel, _ = every["residuals"]
precompilation.KERNELS = {"residuals": every["residuals"]}
assert not precompilation.is_compiled()
done = []
precompilation.precompile(done.append)
assert done == ["residuals"]
assert precompilation.is_compiled()
every["residuals"][1]()
assert sum(kernel.stats.cache_hits.values()) == 1
"""

ONCE = """
import importlib, pkgutil
import numpy as np
import lgf.solver.kernels as package
from lgf import LatentGrammarFlow
rng = np.random.default_rng(0)
t = np.linspace(0, 6, 80)
u = 2 * np.exp(-0.5 * t) + 0.01 * rng.normal(size=80)
LatentGrammarFlow(order=1, max_evaluations=120).fit(t, u)
turning = np.column_stack([np.cos(t), np.sin(t)]) + 0.01 * rng.normal(size=(80, 2))
LatentGrammarFlow(max_evaluations=40).fit(t, turning)
called = 0
for module in pkgutil.iter_modules(package.__path__):
    for name, kernel in vars(importlib.import_module(f"{package.__name__}.{module.name}")).items():
        if hasattr(kernel, "overloads") and kernel.overloads:
            called += 1
            assert len(kernel.overloads) == 1, (module.name, name, [str(types) for types in kernel.overloads])
assert called > 10, called
"""


class Pair(NamedTuple):
    weights: np.ndarray
    factor: float


def test_nowhere_to_keep_compiled_code():
    process = subprocess.run([sys.executable, "-c", NOWHERE], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(("name", "value"), [("NUMBA_DISABLE_JIT", "1"), ("NUMBA_NUM_THREADS", "0")])
def test_numba_that_cannot_be_used_is_the_users_to_mend(name, value):
    process = subprocess.run(
        [sys.executable, "-m", "lgf", "check", "impact"], capture_output=True, text=True, check=False,
        env=os.environ | {name: value},
    )  # fmt: skip
    assert process.returncode == 2, process.stderr
    (said,) = process.stderr.splitlines()
    assert name in said


def test_arrays_of_other_layouts_do_not_compile_a_kernel_again():
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", ONCE], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_the_clock_of_a_search_stands_still_during_a_compilation():
    @njit
    def outer(x):
        return inner(x) + np.sum(np.sort(x))

    @njit
    def inner(x):
        return np.linalg.norm(x)

    clock, wall = search_clock(), time.monotonic()
    outer(np.ones(3))
    clock, wall = search_clock() - clock, time.monotonic() - wall
    assert 0 <= clock < wall / 2
    before = search_clock()
    time.sleep(0.01)
    assert search_clock() - before >= 0.01


@pytest.mark.parametrize(
    ("cached", "compiled", "said"),
    [(True, False, "kernels, once;"), (False, False, "NUMBA_CACHE_DIR"), (True, True, None)],
)
def test_what_is_said_before_a_compilation(monkeypatch, cached, compiled, said):
    reported = []
    monkeypatch.setattr(terminal, "CACHED", cached)
    monkeypatch.setattr(terminal, "is_compiled", lambda: compiled)
    monkeypatch.setattr(terminal, "precompile", lambda report: reported.append(report("integrator")))
    console = Console(file=io.StringIO())
    terminal.compile_kernels(console)
    heard = console.file.getvalue()
    assert heard == "" if said is None else said in heard
    assert bool(reported) is (cached and not compiled)


def test_a_linked_kernel_is_called_as_one_that_is_compiled_in():
    kernel = njit(lambda pair, count: pair.weights[:count].sum() * pair.factor)
    signature = float64(types.NamedTuple((float64[::1], float64), Pair), int64)
    call = linked(kernel, signature)

    @njit(nogil=True)
    def twice(pair, count):
        return 2.0 * call(pair, count)

    pair = Pair(np.array([1.0, 2.0, 4.0]), 3.0)
    assert not kernel.signatures
    assert [twice(pair, n) for n in (1, 3)] == [2 * kernel.py_func(pair, n) for n in (1, 3)]
    assert len(kernel.signatures) == 1
    with pytest.raises(TypingError):
        twice(Pair(np.ones((2, 2)), 1.0), 1)  # of other types it would read wrong memory


def test_a_second_process_fills_the_cache(tmp_path):
    """A process with an empty cache has a kernel compiled by a helper, and then loads it."""
    process = subprocess.run(
        [sys.executable, "-c", HELPED], capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
