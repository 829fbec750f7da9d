"""The environment of a measurement: machine, load and versions."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import lgf

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("numpy", "scipy", "numba", "sympy")


def versions() -> dict[str, str]:
    """Versions of lgf and its dependencies; lgf's with the commit, and a + if files have changed since."""
    found = {"lgf": f"{lgf.__version__} {_commit()}".strip(), "python": platform.python_version()}
    return found | {name: version(name) for name in _PACKAGES}


def machine() -> dict[str, str | int]:
    """The processor and how many of its cores this process may use."""
    return {"processor": _processor(), "cores": len(os.sched_getaffinity(0)), "system": platform.platform()}


def load_average() -> float:
    """Mean number of running processes in the last minute."""
    return os.getloadavg()[0]


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--exclude=*"], cwd=ROOT, capture_output=True, text=True
    )
    return described.stdout.strip()
