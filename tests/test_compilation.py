"""Where no folder can be written, compiled code is kept nowhere, and everything works all the same."""

import io
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from lgf.cli import terminal

NOWHERE = """
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []
import lgf.flow_proposer  # the layer above every kernel
from lgf.compilation import CACHED
from lgf.solver.kernels.trajectory_fit import fit_trajectory
assert not CACHED
assert fit_trajectory.stats.cache_path is None
"""


def test_nowhere_to_keep_compiled_code():
    process = subprocess.run([sys.executable, "-c", NOWHERE], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(("kept", "said"), [("", "kernels, once;"), (None, "NUMBA_CACHE_DIR"), ("kept", None)])
def test_what_is_said_before_a_compilation(monkeypatch, tmp_path, kept, said):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/fit.nbi").touch()
    path = None if kept is None else str(tmp_path / kept)
    compiled = []
    monkeypatch.setattr(terminal, "fit_trajectory", SimpleNamespace(stats=SimpleNamespace(cache_path=path)))
    monkeypatch.setattr(terminal, "warm_up", lambda: compiled.append(True))
    console = Console(file=io.StringIO())
    terminal.compile_kernels(console)
    heard = console.file.getvalue()
    assert heard == "" if said is None else said in heard
    assert bool(compiled) is (said is not None)
