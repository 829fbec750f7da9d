"""From `lgf discover` to the first fitted equation, in processes of their own: processor and wall seconds, memory.

Bytecode and compiled kernels are in folders of their own, as an installation has them after its first run (warm), or
not at all (cold). Processor seconds include those of helper processes.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import releases
from benchmarks.releases import NOW
from benchmarks.surroundings import ROOT

MEASURED = ("b3/duffing", "odebench/26", "odebench/52", "odebench/26, 2000 samples")  # whose memory is measured
_FIRST = """
import json, os, resource, sys, time
began = time.perf_counter()
import lgf.cli
import lgf.search.evaluate as evaluate
fit = evaluate.fit_constants
def first(*args, **kwargs):
    fit(*args, **kwargs)
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(u.ru_utime + u.ru_stime for u in usage)
    print(json.dumps([cpu, time.perf_counter() - began]), flush=True)
    os._exit(0)
evaluate.fit_constants = first
lgf.cli.main(["discover", sys.argv[1], "--out", sys.argv[2]])
"""
_MEMORY = """
import json, resource
import numpy as np
from benchmarks.odebench import WINDOW, systems
from benchmarks.problems import problem_named
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.grammar import load_grammar
from lgf.runs.presets import proposers_for
from lgf.search.discover import discover
from lgf.search.systems.language import GRAMMAR
from lgf.solver.reference import solve_by_reference
name, _, samples = {name!r}.partition(", ")
if name.startswith("odebench"):
    named, grammar = next(s for s in systems() if s.id == name), load_grammar(GRAMMAR)
    data = named.observe(0.05, 0)
    if samples:
        t = np.linspace(*WINDOW, int(samples.split()[0]))
        clean = solve_by_reference(named.system, named.starts[0], t).values[:, : len(named.rhs)]
        noise = 0.05 * clean.std(axis=0) * np.random.default_rng(0).standard_normal(clean.shape)
        data = Problem((Observation(t, clean + noise, data.observations[0].columns),))
else:
    data, grammar = problem_named(name).observe(), load_grammar("standard")
discover(data, grammar, proposers=proposers_for(grammar))
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""


def write_record(file: Path) -> None:
    """A decay with noise, 80 samples."""
    t = np.linspace(0.0, 5.0, 80)
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(t))
    np.savetxt(file, np.column_stack([t, np.exp(-0.7 * t) + noise]), delimiter=",", header="t,u", comments="")


def measure(repetitions: int = 5) -> dict[str, float]:
    """The figures; those of the warm start are the best of several."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "decay.csv"
        write_record(record)
        environment = releases.environment(NOW, cache=f"{folder}/cache")
        cold = _first(record, environment)
        warm = [_first(record, environment) for _ in range(1 + repetitions)][1:]
        # The second run of each: the first one compiles kernels, which takes memory of its own.
        memory = {
            name: [_run(_MEMORY.format(name=name), [], environment) for _ in range(2)][1] for name in MEASURED
        }  # fmt: skip
    return {
        "cold_cpu_s": cold[0], "cold_wall_s": cold[1], "warm_cpu_s": min(cpu for cpu, _ in warm),
        "warm_wall_s": min(wall for _, wall in warm), **{f"memory_mb {k}": v for k, v in memory.items()},
    }  # fmt: skip


def _first(record: Path, environment: dict[str, str]) -> list[float]:
    with tempfile.TemporaryDirectory() as out:
        return _run(_FIRST, [str(record), f"{out}/run"], environment)


def _run(code: str, arguments: list[str], environment: dict[str, str]):
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, check=True, text=True, cwd=ROOT, env=environment
    )
    return json.loads(run.stdout.splitlines()[-1])


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=1)
