"""Speed of the parts of a fit (compiling a skeleton, residual, trajectory) and of process start."""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks.choosing import true_skeleton
from benchmarks.problems import problem_named
from benchmarks.speed_fit import draws, target_of
from benchmarks.surroundings import ROOT
from benchmarks.timing import best_time
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitSettings
from lgf.fit.sharing import layout_of, unknowns_of
from lgf.solver.kernels.machine import LANES
from lgf.solver.kernels.residual import residual_loss
from lgf.solver.kernels.trajectory_fit import Search, fit_trajectory
from lgf.solver.program import compile_skeleton

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
from lgf.language.behaviour import behaviour
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
