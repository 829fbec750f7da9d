"""Version 0.1 and this one, measured in one run: fits a second, and `lgf discover` with and without compiled kernels.

Version 0.1 is the last commit before the packages were renamed. Its sources are taken from the repository's history and
run in processes of their own, with the same interpreter and libraries.
"""

import json
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path

from benchmarks.first_equation import installed, write_record
from benchmarks.surroundings import ROOT

BEFORE = "b2ec5e95f819b1bae2bd938e5ced69514c5ccf7b"
EVALUATIONS = 20  # of the discovery; few, so that starting is most of it
_MIX = """
import json
from threadpoolctl import threadpool_limits
from benchmarks.speed_fit import mix
with threadpool_limits(limits=1):
    print(json.dumps({{name: mix(name, {n}) for name in ("b3", "standard")}}))
"""


def compare(candidates: int) -> dict[str, dict[str, float]]:
    """The figures of both versions."""
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(before, filter="data")
        record = Path(folder) / "decay.csv"
        write_record(record)
        return {"before": _measure(before, record, candidates), "now": _measure(ROOT, record, candidates)}


def _measure(root: Path, record: Path, candidates: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        environment = installed(root, cache)
        cold_cpu, cold_wall = _discover(record, environment)
        _discover(record, environment)  # compiles what the first run did not need
        warm_cpu, warm_wall = min(_discover(record, environment) for _ in range(2))
        mixed = subprocess.run(
            [sys.executable, "-c", _MIX.format(n=candidates)], cwd=root, env=environment, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
    mixes = json.loads(mixed.stdout.splitlines()[-1])
    return {
        "cold_cpu_s": cold_cpu, "cold_wall_s": cold_wall, "warm_cpu_s": warm_cpu, "warm_wall_s": warm_wall,
        **{f"{name}_per_second": figures["per_second"] for name, figures in mixes.items()},
        **{f"{name}_p99.9_ms": figures["p99.9_ms"] for name, figures in mixes.items()},
    }  # fmt: skip


def _discover(record: Path, environment: dict[str, str]) -> tuple[float, float]:
    """(processor, wall) seconds of a small discovery by the command line, with all its processes."""
    with tempfile.TemporaryDirectory() as out:
        command = ["-m", "lgf", "discover", str(record), "--evaluations", str(EVALUATIONS), "--out", f"{out}/run"]
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], env=environment, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu, time.perf_counter() - began


if __name__ == "__main__":
    json.dump(compare(int(sys.argv[1]) if len(sys.argv) > 1 else 300), sys.stdout, indent=1)
