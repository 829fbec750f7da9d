"""`speed`: one table of all timings that determine the speed of a search, with their goals."""

import argparse
import json
from pathlib import Path
from statistics import median

from threadpoolctl import threadpool_limits

from benchmarks import first_equation, speed_grammar, speed_profile, speed_symbolic, speed_workers
from benchmarks.speed_fit import against_scipy, joint, mix, two_threads
from benchmarks.speed_parts import kernels, pairs, starting
from benchmarks.speed_versions import compare
from benchmarks.surroundings import load_average, machine, versions

BEFORE = "0.2.0"  # the release that this version is measured beside
IDLE = 0.5  # a load average above it makes a comparison of threads meaningless


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--candidates", type=int, default=1000, help="Monte Carlo draws of each mix (1000)")
    parser.add_argument("--busy", action="store_true", help="compare threads even if the machine is not idle")


def main(args: argparse.Namespace) -> None:
    """Prints the table."""
    report = {"machine": machine(), "versions": versions(), "load": load_average()}
    print(f"{report['machine']['processor']}, {report['machine']['cores']} cores, load average {report['load']:.1f}")
    print(", ".join(f"{name} {version}" for name, version in report["versions"].items()))

    # First, before this command raises the load average.
    idle = args.busy or report["load"] <= IDLE
    report["two_threads"] = two_threads() if idle else None
    report["workers"] = workers = speed_workers.measure() if idle else None
    _heading("two threads against one")
    if report["two_threads"] is None:
        print(
            f"  not measured: the load average is {report['load']:.1f}, not below {IDLE} (--busy measures all the same)"
        )
    else:
        _line("evaluations of the b3 mix", report["two_threads"], "x", ">= 1.7")
    if workers is not None:
        _line("a search of the Lorenz system", workers["system_ratio"], "x", ">= 1.85")
        _line("B3 in a Dask cluster, against threads", workers["b3_ratio"], "x", "<= 1.1")

    with threadpool_limits(limits=1):
        _heading("a completed fit of the true Benchmark 3 skeletons, against lambdify + RK45 + Nelder-Mead 50 + 250")
        report["against_scipy"] = rows = against_scipy()
        for row in rows:
            times = f"{row['fit_ms']:7.2f} ms against {row['scipy_ms']:8.0f} ms"
            losses = f"loss {row['loss']:.4f} against " + (f"{row['scipy_loss']:.4f}" if row["completed"] else "none")
            print(f"  {row['problem']:26s} {times}  {row['ratio']:7.0f}x  {losses}")
        ratios = [row["ratio"] for row in rows if row["completed"]]
        report["ratio_to_scipy"] = {"median": median(ratios), "least": min(ratios), "completed": len(ratios)}
        _line(f"median of the {len(ratios)} that SciPy completes", median(ratios), "x", ">= 400")
        _line("smallest of them", min(ratios), "x", ">= 400")
        _line("slowest fit of the seven", max(r["fit_ms"] for r in rows), "ms", "<= 5")

        report["mix"] = {}
        for grammar, goal in (("b3", ">= 400"), ("standard", "")):
            figures = report["mix"][grammar] = mix(grammar, args.candidates)
            _heading(f"Monte Carlo mix of grammar {grammar} on b3/duffing, one core, {args.candidates} candidates")
            _line("candidates a second", figures["per_second"], "", goal)
            _line("median", figures["p50_ms"], "ms")
            _line("99 %", figures["p99_ms"], "ms", "<= 35")
            _line("99.9 %", figures["p99.9_ms"], "ms", "<= 60")
            _line("slowest", figures["max_ms"], "ms")

        report["joint"] = {}
        for number, goal in ((26, ">= 400"), (27, ">= 400"), (52, ">= 120"), (56, ">= 120")):
            figures = report["joint"][f"odebench/{number}"] = joint(number)
            _heading(f"joint fits of the search for odebench/{number}, {figures['states']} states, one core")
            _line("fits a second", figures["per_second"], "", goal)
            _line("median", figures["p50_ms"], "ms")
            _line("slowest", figures["max_ms"], "ms")

        _heading("parts")
        report["kernels"] = parts = kernels()
        _line("skeleton to programs", parts["compile_skeleton_ms"], "ms", "<= 0.3")
        _line("residual loss, 301 points", parts["residual_loss_us"], "us", "<= 5")
        _line("trajectory, 301 points, a lane", parts["trajectory_per_lane_us"], "us", "<= 50")

        _heading("simulated pairs of a conditional flow, one core, a chunk of 5,000")
        report["pairs"] = pairs()
        _line("pairs a second", report["pairs"]["pairs_per_second"], "", ">= 700")

    _heading(f"version {BEFORE} (before) and this one (now); processor seconds include helper processes")
    report["versions_compared"] = versions_compared = compare(BEFORE, args.candidates)
    for what, old in versions_compared["before"].items():
        new = versions_compared["now"][what]
        print(f"  {what.replace('_', ' '):46s}{old:12.3g} before {new:10.3g} now")

    _heading("where the processor time of a discovery goes")
    report["profile"] = speed_profile.measure()
    for name, parts in report["profile"].items():
        print(f"  {name}: {parts['seconds']:.2f} s, {parts['evaluations']:.0f} evaluations")
        for part, seconds in parts.items():
            if part not in ("seconds", "evaluations"):
                print(f"    {part:60s}{seconds:8.3f} s {seconds / parts['seconds']:6.0%}")

    _heading("processes")
    report["starting"] = starts = starting()
    _line("cold compile of all kernels, processor", starts["cold_compile_cpu_s"], "s", "<= 30")
    _line("warm start: import and one solve, processor", starts["start_and_solve_cpu_s"], "s", "<= 1")
    _line("the same by the clock", starts["start_and_solve_wall_s"], "s")
    _line("import lgf, by the clock", starts["import_lgf_wall_s"], "s")

    _heading("from `lgf discover` to the first fitted equation, and the memory of a discovery")
    report["first_equation"] = first = first_equation.measure()
    _line("cold, processor", first["cold_cpu_s"], "s", "<= 30")
    _line("cold, by the clock", first["cold_wall_s"], "s", "<= 15")
    _line("warm, processor", first["warm_cpu_s"], "s", "<= 1")
    _line("warm, by the clock", first["warm_wall_s"], "s")
    for name in first_equation.MEASURED:
        _line(f"peak memory of {name}", first[f"memory_mb {name}"], "MB", "<= 350")

    report["grammar"] = speed_grammar.measure()
    for name, figures in report["grammar"].items():
        _heading(f"grammar {name}")
        for what, value in figures.items():
            _line(what.replace("_", " "), value, "")
    report["symbolic"] = speed_symbolic.measure()
    _heading("symbolic layer")
    for what, value in report["symbolic"].items():
        _line(what.replace("_", " "), value, "")
    print(f"\nload average at the end {load_average():.1f}")
    if args.json is not None:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


def _heading(text: str) -> None:
    print(f"\n{text}")


def _line(what: str, value: float, unit: str, goal: str = "") -> None:
    shown = f"{value:12.0f}" if abs(value) >= 1000 else f"{value:12.3g}"
    print(f"  {what:46s}{shown} {unit:3s}" + (f"  goal {goal}" if goal else ""), flush=True)
