"""A release and this version, measured in one run: fits a second, and `lgf discover` with and without compiled kernels.

    python -m benchmarks.speed_versions 0.2.0
    python -m benchmarks.speed_versions 0.1 benchmarks/results/discoveries_versions.json

The second compares whole discoveries: every third problem of Benchmarks 1 to 4, noise draw 0, one benchmark after the
other, each by both versions in turn, so that a change of the load meets both.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import releases
from benchmarks.first_equation import write_record
from benchmarks.problems import problems
from benchmarks.recording import rows
from benchmarks.releases import NOW
from benchmarks.surroundings import machine

EVALUATIONS = 20  # of the discovery; few, so that starting is most of it
EVERY = 3  # of the problems, whose discoveries are compared
_MIX = """
import json
from threadpoolctl import threadpool_limits
from benchmarks.speed_fit import mix
with threadpool_limits(limits=1):
    print(json.dumps({{name: mix(name, {n}) for name in ("b3", "standard")}}))
"""


def compare(before: str, candidates: int = 300) -> dict[str, dict[str, float]]:
    """The figures of both versions."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "decay.csv"
        write_record(record)
        return {name: _measure(version, record, candidates) for name, version in (("before", before), ("now", NOW))}


def discoveries(before: str, every: int = EVERY) -> dict:
    """For each benchmark and version: processor seconds a problem, mean and median error on u, exact equations."""
    result: dict = {"every": every, "machine": machine(), "benchmarks": {}, "problems": {}}
    with tempfile.TemporaryDirectory() as folder:
        environments = {
            name: releases.environment(version, cache=f"{folder}/{name}") | {"OMP_NUM_THREADS": "1"}
            for name, version in (("before", before), ("now", NOW))
        }
        for environment in environments.values():  # compiles
            _benchmark(environment, ["b1/01"])
            _benchmark(environment, ["b3/duffing"])
        for benchmark in ("b1", "b2", "b3", "b4"):
            ids = [i for i in problems() if i.startswith(f"{benchmark}/")][::every]
            lines = {name: _benchmark(environment, ids) for name, environment in environments.items()}
            result["benchmarks"][benchmark] = {name: _summary(some) for name, some in lines.items()}
            for name, some in lines.items():
                for line in some:
                    own = result["problems"].setdefault(line["problem"], {})
                    own[name] = {"cpu_s": round(line["cpu_seconds"], 2), "error": line["errors"][0]}
            print(benchmark, json.dumps(result["benchmarks"][benchmark]), file=sys.stderr, flush=True)
    return result


def _benchmark(environment: dict[str, str], ids: list[str]) -> list[dict]:
    """The result lines of these problems of one benchmark, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.jsonl"
        options = ["--only", ",".join(ids), "--seeds", "1", "--jobs", "1", "--out", str(file)]
        command = [sys.executable, "-m", "benchmarks", "run", ids[0].split("/")[0], *options]
        subprocess.run(command, env=environment, capture_output=True, check=True)
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


def _measure(version: str, record: Path, candidates: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        environment = releases.environment(version, cache=cache)
        cold_cpu, cold_wall = _discover(record, environment)
        _discover(record, environment)  # compiles what the first run did not need
        warm_cpu, warm_wall = min(_discover(record, environment) for _ in range(2))
        mixed = subprocess.run(
            [sys.executable, "-c", _MIX.format(n=candidates)], env=environment, capture_output=True, text=True,
            check=True,
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
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(discoveries(sys.argv[1]), indent=1) + "\n")
    else:
        json.dump(compare(sys.argv[1]), sys.stdout, indent=1)
