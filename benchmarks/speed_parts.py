"""Speed of the parts of a fit (compiling a skeleton, residual, trajectory), of process start and of simulated pairs.

`python -m benchmarks.speed_parts FILE` measures the pairs alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.choosing import true_skeleton
from benchmarks.problems import problem_named
from benchmarks.speed_fit import draws, target_of
from benchmarks.surroundings import ROOT, load_average, machine, versions
from benchmarks.timing import best_time
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitSettings
from lgf.fit.sharing import layout_of, unknowns_of
from lgf.grammar import load_grammar
from lgf.solver.kernels.machine import LANES
from lgf.solver.kernels.residual import residual_loss
from lgf.solver.kernels.trajectory_fit import Search, fit_trajectory
from lgf.solver.program import compile_skeleton
from lgf.training.examples import make_examples
from lgf.training.pairs import PairMaker, PairRecipe

_SUMMANDS = 3  # of the sentences of pairs
_CLOCK = "import json, time; wall = time.perf_counter()\n"
_PRINT = "\nprint(json.dumps([time.process_time(), time.perf_counter() - wall]))"
_SOLVE = """
import numpy as np
from lgf.equation.system import System
from lgf.solver.solve import solve
solve(System.read("u'' = -4*u"), (1, 0), np.linspace(0, 1, 11))"""
_EVERYTHING = (
    _SOLVE
    + """
from benchmarks.problems import problem_named
from lgf.search.discover import discover
from lgf.search.loop import SearchSettings
from lgf.search.select import SelectionSettings
from lgf.search.settings import DiscoverySettings
from lgf.grammar import load_grammar
from lgf.paper.behavioural_distance import behaviour
from lgf.equation.skeleton import Skeleton
behaviour(Skeleton.read("u' = C*u"))
settings = DiscoverySettings(SearchSettings(first=10, iterations=4), selection=SelectionSettings(n_finalists=2))
discover(problem_named("b3/duffing").observe(), load_grammar("standard"), settings)"""
)


def kernels() -> dict[str, float]:
    """Milliseconds to compile a skeleton of the Benchmark 3 mix; microseconds of a residual loss and of a trajectory
    per lane, both of the Duffing oscillator at its 301 samples."""
    named = problem_named("b3/duffing")
    data = named.observe()
    target = target_of(data, 2)
    skeletons = [p.skeleton for p in draws("b3", data, target, 200)]
    true = true_skeleton(named)
    compiled = compile_skeleton(true, target.formulas)
    (equation,), settings = compiled.equations, FitSettings()
    values = np.array(fit_constants(true, target).values)
    weight = np.ones(len(target.t))

    def residual() -> None:
        residual_loss(equation.basis, equation.linear, values, target.t, target.columns, target.inputs, weight)

    starts = np.tile(values, (LANES, 1))
    unlimited = np.full(compiled.n_constants, np.inf)
    unknowns = unknowns_of(layout_of(compiled.n_constants, target.n_experiments), target)
    once = Search(settings.rtol, settings.steps_per_solve, target.with_highest, -1.0, 0, 0.0, 0.0, 0.0, 0.0, 0)

    def trajectories() -> None:
        fit_trajectory(compiled.flow, target.record, unknowns, target.windows(), starts, -unlimited, unlimited, once)

    compile_anew = compile_skeleton.__wrapped__
    compiling = best_time(lambda: [compile_anew(s, target.formulas) for s in skeletons]) / len(skeletons)
    return {
        "compile_skeleton_ms": 1e3 * compiling,
        "residual_loss_us": 1e6 * best_time(residual, calls=2000),
        "trajectory_per_lane_us": 1e6 * best_time(trajectories, calls=50) / LANES,
    }


def pairs(chunk: int = 5000, warm_up: int = 200) -> dict[str, float]:
    """Simulated pairs a second of processor time on one core, of the first chunk of `standard`.

    Another chunk warms up what is loaded or computed once. Of the equations, a longer training computes fewer anew.
    """
    grammar = load_grammar("standard")
    with np.errstate(all="ignore"), threadpool_limits(limits=1):
        make_examples(grammar, PairMaker(grammar, PairRecipe(seed=1)).chunk(0, warm_up), _SUMMANDS)
        maker = PairMaker(grammar)
        began = time.process_time()
        made = maker.chunk(0, chunk)
        simulated = time.process_time() - began
        make_examples(grammar, made, _SUMMANDS)
        total = time.process_time() - began
    return {"pairs": chunk, "pairs_per_second": chunk / total, "share_of_features": 1.0 - simulated / total}


def starting() -> dict[str, float]:
    """Run times of separate processes: without cache, with cache, and for import and one solve."""
    with tempfile.TemporaryDirectory() as empty:
        cold, _ = _process(_EVERYTHING, NUMBA_CACHE_DIR=empty)
    _process(_EVERYTHING)  # fills the cache
    warm = min(_process(_EVERYTHING)[0] for _ in range(2))
    starts = [_process(_SOLVE) for _ in range(5)]
    imports = [_process("import lgf") for _ in range(3)]
    return {
        "cold_process_cpu_s": cold,
        "warm_process_cpu_s": warm,
        "cold_compile_cpu_s": cold - warm,
        "start_and_solve_cpu_s": min(cpu for cpu, _ in starts),
        "start_and_solve_wall_s": min(wall for _, wall in starts),
        "import_lgf_wall_s": min(wall for _, wall in imports),
    }


def _process(code: str, **environment: str) -> tuple[float, float]:
    """(processor seconds since the start of the process, wall seconds of the code)."""
    run = subprocess.run(
        [sys.executable, "-c", _CLOCK + code + _PRINT], capture_output=True, check=True, text=True, cwd=ROOT,
        env=os.environ | environment,
    )  # fmt: skip
    cpu, wall = json.loads(run.stdout.splitlines()[-1])
    return cpu, wall


def main(file: Path | None) -> None:
    """Prints the speed of simulated pairs, and writes it to the file."""
    report: dict[str, Any] = {"machine": machine(), "versions": versions(), "load": load_average()}
    report |= {"time": "processor"} | pairs()
    print(json.dumps(report, indent=1))
    if file is not None:
        file.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
