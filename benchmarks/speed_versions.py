"""Version 0.1 and this one, measured in one run: fits a second, and `lgf discover` with and without compiled kernels.

    python -m benchmarks.speed_versions 300
    python -m benchmarks.speed_versions discoveries benchmarks/results/discoveries_versions.json

The second compares whole discoveries: every third problem of Benchmarks 1 to 4, noise draw 0, one benchmark after the
other, each by both versions in turn, so that a change of the load meets both. Version 0.1 is the last commit before the
packages were renamed. Its sources are taken from the repository's history and run in processes of their own, with the
same interpreter and libraries.
"""

import json
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np

from benchmarks.first_equation import installed, write_record
from benchmarks.problems import problems
from benchmarks.recording import rows
from benchmarks.surroundings import ROOT, machine

BEFORE = "b2ec5e95f819b1bae2bd938e5ced69514c5ccf7b"
EVALUATIONS = 20  # of the discovery; few, so that starting is most of it
EVERY = 3  # of the problems, whose discoveries are compared
_MIX = """
import json
from threadpoolctl import threadpool_limits
from benchmarks.speed_fit import mix
with threadpool_limits(limits=1):
    print(json.dumps({{name: mix(name, {n}) for name in ("b3", "standard")}}))
"""


def compare(candidates: int) -> dict[str, dict[str, float]]:
    """The figures of both versions."""
    with _before() as before:
        record = before.parent / "decay.csv"
        write_record(record)
        return {"before": _measure(before, record, candidates), "now": _measure(ROOT, record, candidates)}


@contextmanager
def _before() -> Iterator[Path]:
    """A folder with the sources of version 0.1."""
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(before, filter="data")
        yield before


def discoveries(every: int = EVERY) -> dict:
    """For each benchmark and version: processor seconds a problem, mean and median error on u, exact equations."""
    result: dict = {"every": every, "machine": machine(), "benchmarks": {}, "problems": {}}
    with _before() as before:
        roots = {"before": before, "now": ROOT}
        environments = {
            name: installed(root, str(before.parent / f"cache-{name}")) | {"OMP_NUM_THREADS": "1"}
            for name, root in roots.items()
        }
        for name, root in roots.items():  # compiles
            _benchmark(root, environments[name], ["b1/01"])
            _benchmark(root, environments[name], ["b3/duffing"])
        for benchmark in ("b1", "b2", "b3", "b4"):
            ids = [i for i in problems() if i.startswith(f"{benchmark}/")][::every]
            lines = {name: _benchmark(root, environments[name], ids) for name, root in roots.items()}
            result["benchmarks"][benchmark] = {name: _summary(some) for name, some in lines.items()}
            for name, some in lines.items():
                for line in some:
                    own = result["problems"].setdefault(line["problem"], {})
                    own[name] = {"cpu_s": round(line["cpu_seconds"], 2), "error": line["errors"][0]}
            print(benchmark, json.dumps(result["benchmarks"][benchmark]), file=sys.stderr, flush=True)
    return result


def _benchmark(root: Path, environment: dict[str, str], ids: list[str]) -> list[dict]:
    """The result lines of these problems of one benchmark, by the version in this folder, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.jsonl"
        options = ["--only", ",".join(ids), "--seeds", "1", "--jobs", "1", "--out", str(file)]
        command = [sys.executable, "-m", "benchmarks", "run", ids[0].split("/")[0], *options]
        subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True)
        return rows(file)


def _summary(lines: list[dict]) -> dict[str, float]:
    errors = [line["errors"][0] for line in lines]
    return {
        "problems": len(lines),
        "cpu_s": float(np.mean([line["cpu_seconds"] for line in lines])),
        "mean_error": float(np.mean(errors)),
        "median_error": float(np.median(errors)),
        "exact": sum(bool(line["exact"]) for line in lines),
    }


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
    if sys.argv[1:2] == ["discoveries"]:
        Path(sys.argv[2]).write_text(json.dumps(discoveries(), indent=1) + "\n")
    else:
        json.dump(compare(int(sys.argv[1]) if len(sys.argv) > 1 else 300), sys.stdout, indent=1)
