"""`peers`: install other programs, each in an environment of its own; `ask` hands them a problem."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.peers.exchange import WORST
from benchmarks.problems import frame_of
from benchmarks.surroundings import ROOT
from lgf.data.problem import Problem
from lgf.smoothing.complete import complete

ENVIRONMENTS = ROOT / ".venv-peers"
HERE = Path(__file__).parent
CORES = 2
LONGEST = 1800  # seconds


def names() -> tuple[str, ...]:
    """The peers that there are."""
    return tuple(sorted(file.stem.removeprefix("requirements-") for file in HERE.glob("requirements-*.txt")))


def interpreter(name: str) -> Path:
    """The Python of the peer's environment."""
    return ENVIRONMENTS / name / "bin" / "python"


def install(name: str) -> None:
    """Make the environment of the peer anew."""
    ENVIRONMENTS.mkdir(exist_ok=True)
    (ENVIRONMENTS / ".gitignore").write_text("*\n")
    subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENTS / name], check=True)
    requirements = HERE / f"requirements-{name}.txt"
    subprocess.run([interpreter(name), "-m", "pip", "install", "--quiet", "-r", requirements], check=True)


def task_for(problem: Problem, order: int, seed: int = 0) -> dict:
    """The problem as the peers read it (see benchmarks/peers/exchange.py), with the same completion as ours."""
    (observation,) = problem.observations
    frame = frame_of(problem, order)
    completed = complete(observation, frame, "auto", problem.signals()).trajectory
    (measured,) = observation.columns
    (forcing,) = completed.inputs.values() or (None,)
    return {
        "t": observation.t.tolist(),
        "values": observation.values[:, 0].tolist(),
        "measured": measured.derivative,
        "states": completed.values.T.tolist(),
        "initial": [float(observation.initial.get(v, completed[v][0])) for v in frame.variables],
        "order": order,
        "forcing": None if forcing is None else forcing.tolist(),
        "seed": seed,
        "cores": CORES,
    }


def ask(name: str, problem: Problem, order: int, seed: int = 0) -> dict:
    """The peer's answer: equation, objective, seconds; a peer that fails answers 0 and says why under "failure"."""
    if not interpreter(name).exists():
        raise FileNotFoundError(f"the peer {name!r} is not installed; run python -m benchmarks peers install {name}.")
    task = json.dumps(task_for(problem, order, seed))
    command = [interpreter(name), "-m", f"benchmarks.peers.{name}"]
    began = time.perf_counter()
    try:
        run = subprocess.run(command, input=task, capture_output=True, text=True, cwd=ROOT, timeout=LONGEST, check=True)
        return json.loads(run.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        failure = f"no answer within {LONGEST} s"
    except subprocess.CalledProcessError as error:
        failure = error.stderr.strip()[-500:]
    zero = f"u{chr(39) * order} = 0"
    return {"equation": zero, "objective": WORST, "seconds": time.perf_counter() - began, "failure": failure}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("action", choices=("list", "install"))
    parser.add_argument("names", nargs="*", choices=[*names(), []], metavar="NAME", help=", ".join(names()))


def main(args: argparse.Namespace) -> None:
    """List the peers, or install those named (all, if none is)."""
    for name in args.names or names():
        if args.action == "install":
            install(name)
        print(f"{name:12s}{'installed' if interpreter(name).exists() else 'not installed'}")
