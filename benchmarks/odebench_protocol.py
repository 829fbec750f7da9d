"""`odebench`: all 63 systems of ODEBench by its own protocol, one line of JSON for each; resumable.

The protocol is that of d'Ascoli et al. (ODEFormer, 2024): 512 samples of all states on [0, 10] from the first start,
noise x (1 + sigma xi) with white Gaussian xi, and a share rho of the samples dropped at random. Every method knows that
the system is x' = f(x), of first order and without t, and nothing else. Scores are taken against a tight solution of
the truth on all 512 times, because the stored solutions are not accurate enough to score the truth itself: R2, weighted
by the variance of the states, from the first start (reconstruction, from the initial state that the method fitted at
the first sample that was not dropped; peers, which fit none, start from the true one) and from the second
(generalisation, from the true one). R2 > 0.9 is a success.
"""

import argparse
import json
import math
import resource
import subprocess
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choosing import stated
from benchmarks.odebench import Benchmarked, _truth_beside, all_systems, r2, structure_of
from benchmarks.peers.asking import interpreter
from benchmarks.recording import RESULTS, append, digest, rows
from benchmarks.surroundings import ROOT, load_average, machine, versions
from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.grammar import load_grammar
from lgf.language.cheapest_derivation import encoding
from lgf.language.language import make_language
from lgf.runs.presets import proposers_for
from lgf.search.discover import Discovery, discover
from lgf.search.settings import DiscoverySettings
from lgf.search.systems.language import GRAMMAR
from lgf.smoothing.complete import complete
from lgf.solver.reference import solve_by_reference
from lgf.solver.trajectory import SolveStatus
from lgf.threads import on_threads

SAMPLES, WINDOW = 512, (0.0, 10.0)
TIMES = np.linspace(*WINDOW, SAMPLES)
SIGMAS, RHOS = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05), (0.0, 0.5)
PEERS = ("pysindy-plain", "pysindy-weak", "pysindy-ensemble", "pyoperon", "gplearn")
PEER_FOLDER = Path(__file__).parent / "peers"
ROW_EVALUATIONS = 250_000  # of a peer for each right-hand side, several times the time of this project's search
ONE_STATE = "standard"  # grammar and model for one state


@cache
def true_states(system: Benchmarked) -> tuple[np.ndarray, ...]:
    """The true states [512, n] from each start."""
    trajectories = [solved(system.system, np.array(start)) for start in system.starts]
    assert all(states is not None for states in trajectories), f"{system.id} does not solve"
    return tuple(states for states in trajectories if states is not None)


def solved(system: System, initial: np.ndarray, first: int = 0) -> np.ndarray | None:
    """The states [512 - first, n] of a system by the independent solver; None if it does not reach the end."""
    trajectory = solve_by_reference(system, tuple(float(v) for v in initial), TIMES[first:])
    if trajectory.status is not SolveStatus.OK:
        return None
    return trajectory.values[:, : len(system.frame.names)]


def observe(system: Benchmarked, sigma: float, rho: float, seed: int) -> Problem:
    """The noisy record from the first start, with a share rho of its samples dropped."""
    clean = true_states(system)[0]
    rng = np.random.default_rng([system.number, seed])
    values = clean * (1.0 + sigma * rng.standard_normal(clean.shape))
    dropped = rng.choice(SAMPLES, int(rho * SAMPLES), replace=False)
    present = np.setdiff1d(np.arange(SAMPLES), dropped)
    names = tuple(Variable(f"x{i}") for i in range(len(system.rhs)))
    record = Observation(TIMES[present], values[present], names)
    return Problem((record,), Knowledge(order=1, autonomous=True))


def run_one(
    system: Benchmarked, settings: DiscoverySettings, sigma: float, rho: float, seed: int, jobs: int
) -> dict[str, Any]:
    """The result line of one system and noise draw."""
    problem = observe(system, sigma, rho, seed)
    grammar = load_grammar(ONE_STATE if len(system.rhs) == 1 else GRAMMAR)
    load, began = load_average(), time.process_time()
    with on_threads(jobs) as spread:
        found = discover(problem, grammar, settings, proposers=proposers_for(grammar), seed=seed, spread=spread)
    seconds = time.process_time() - began
    reported = [found.system, *(c.fit.system(found.target) for c in found.indistinguishable)]
    truth = _truth_of_one_state if len(system.rhs) == 1 else _truth_beside
    facts = {
        "in_set": any(is_exact(system, other) for other in reported),
        "set_size": len(found.indistinguishable),
        "trust": found.verdict.trust.value,
        "objective": found.best.objective,
        "truth": truth(system, found, problem),
        "segments": found.best.fit.segments,
        "cpu_seconds": seconds, "seconds": found.seconds, "evaluations": found.evaluations,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "cores_used": jobs, "load": load, "machine": machine(), "versions": versions(),
    }  # fmt: skip
    first = int(np.searchsorted(TIMES, problem.observations[0].t[0] - 1e-9))
    scores = judged(system, found.system, found.best.fit.initial[0], first)
    return about(system, sigma, rho, seed) | scores | facts


def about(system: Benchmarked, sigma: float, rho: float, seed: int) -> dict[str, Any]:
    """What a result line is about."""
    return {"problem": system.id, "dim": len(system.rhs), "sigma": sigma, "rho": rho, "seed": seed}


def judged(system: Benchmarked, answer: System, initial: np.ndarray | None = None, first: int = 0) -> dict[str, Any]:
    """The scores of an answer; the reconstruction starts from `initial` at sample `first`, or from the true start."""
    truth = true_states(system)
    start = np.array(system.starts[0]) if initial is None else initial
    return {
        "equation": str(answer).replace("\n", "; "),
        "exact": is_exact(system, answer),
        "r2": r2(truth[0][first:], solved(answer, start, first)),
        "r2_other_start": r2(truth[1], solved(answer, np.array(system.starts[1]))),
    }


def is_exact(system: Benchmarked, answer: System) -> bool:
    """Whether the answer has the true terms, as written or with expanded right-hand sides."""
    if answer.frame.orders != system.system.frame.orders:
        return False
    try:
        if structure_of(answer) in system.structures:
            return True
    except ValueError:  # a peer may write 0/0 or abs(sqrt(...)), which SymPy turns into what no equation here has
        return False
    return len(system.rhs) == 1 and stated(answer.skeleton).structure == stated(system.system.skeleton).structure


def _truth_of_one_state(system: Benchmarked, found: Discovery, problem: Problem) -> dict[str, Any]:
    """As `truth_beside` of judging.py: what became of the true structure, and the cause if it was not chosen."""
    from benchmarks.judging import fitted_as_finalist
    from lgf.search.candidate import Proposal

    (frame,) = problem.frames
    grammar = load_grammar(ONE_STATE)
    language = make_language(grammar, problem, frame, found.targets[frame].ranges)
    encoded = encoding(grammar, system.system, False)
    skeleton = None if encoded.derivation is None else language.skeleton(encoded.derivation)
    bits = math.inf if skeleton is None else language.price(skeleton)
    if skeleton is None or not math.isfinite(bits):
        return {"tried": False, "bits": None, "objective": None, "cause": "not in the language"}
    tried = skeleton.structure in found.population
    fitted = fitted_as_finalist(Proposal(skeleton, bits), found)
    if is_exact(system, found.system):
        cause = "exact"
    elif fitted.objective >= found.best.objective:
        cause = "wrongly chosen"
    else:
        cause = "not selected" if tried else "not proposed"
    return {"tried": tried, "bits": bits, "objective": fitted.objective, "cause": cause}


def ask_peer(peer: str, system: Benchmarked, sigma: float, rho: float, seed: int) -> dict[str, Any]:
    """The result line of a peer, which has the true start and the states and slopes that this project smoothed."""
    problem = observe(system, sigma, rho, seed)
    (record,), frame = problem.observations, problem.frames[0]
    n, smooth = len(system.rhs), complete(record, frame).trajectory.values
    program, _, variant = peer.partition("-")
    if program == "pysindy":
        module = [f"benchmarks.peers.{program}_systems"]
        task = {"variant": variant, "t": record.t.tolist(), "values": record.values.tolist(),
                "smoothed": smooth[:, :n].tolist(), "start": system.starts[0]}  # fmt: skip
    else:
        module = ["benchmarks.peers.by_component", program]
        task = {"states": smooth[:, :n].tolist(), "slopes": smooth[:, n:].tolist(), "seed": seed, "cores": 1,
                "evaluations": ROW_EVALUATIONS}  # fmt: skip
    command = [interpreter(program), "-m", *module]
    load = load_average()
    run = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, cwd=ROOT, check=True)
    answer = json.loads(run.stdout.splitlines()[-1])
    found = System.read("; ".join(f"x{i}' = {right}" for i, right in enumerate(answer["equations"])))
    facts = {"cpu_seconds": answer["cpu_seconds"], "load": load, "machine": machine(), "versions": versions()}
    return about(system, sigma, rho, seed) | judged(system, found) | facts


def file_of(sigma: float, rho: float, peer: str | None = None) -> Path:
    """The file of the results of these conditions."""
    return RESULTS / f"odebench-protocol-{f'{peer}-' if peer else ''}sigma{sigma:g}-rho{rho:g}.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--sigma", default="0,0.01,0.02,0.03,0.04,0.05", help="noise levels (all six)")
    parser.add_argument("--rho", default="0,0.5", help="shares of dropped samples (0 and 0.5)")
    parser.add_argument("--seeds", type=int, default=1, help="noise draws 0, 1, ... (1)")
    parser.add_argument("--only", help="numbers such as 3,25, or odd")
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")
    parser.add_argument("--peer", choices=PEERS, help="run this program instead, in its own environment")
    parser.add_argument("--out", type=Path, metavar="FILE", help="in place of benchmarks/results/NAME.jsonl")


def main(args: argparse.Namespace) -> None:
    """Runs what is missing, and prints the shares of successes."""
    settings = DiscoverySettings()
    name = digest([asdict(settings), *(load_grammar(g).fingerprint for g in (ONE_STATE, GRAMMAR))])
    if args.peer is not None:
        files = (PEER_FOLDER / f"{args.peer.partition('-')[0]}{end}.py" for end in ("", "_systems"))
        name = digest([args.peer, *(file.read_text(encoding="utf-8") for file in files if file.exists())])
    chosen = [s for s in all_systems() if _is_chosen(s, args.only)]
    conditions = [(float(sigma), float(rho)) for rho in args.rho.split(",") for sigma in args.sigma.split(",")]
    for sigma, rho in conditions:
        file = args.out or file_of(sigma, rho, args.peer)
        done = {_key(row) for row in rows(file) if row["digest"] == name}
        for seed in range(args.seeds):
            for system in chosen:
                if _key(about(system, sigma, rho, seed)) in done:
                    continue
                if args.peer is not None:
                    row = {"digest": name, **ask_peer(args.peer, system, sigma, rho, seed)}
                else:
                    row = {"digest": name, **run_one(system, settings, sigma, rho, seed, args.jobs)}
                append(file, row)
                print(_line(row), flush=True)
        lines = [row for row in rows(file) if row["digest"] == name and (row["sigma"], row["rho"]) == (sigma, rho)]
        print(summary(lines, sigma, rho), flush=True)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["problem"], row["sigma"], row["rho"], row["seed"]


def _line(row: dict[str, Any]) -> str:
    verdict = "exact" if row["exact"] else row.get("truth", {}).get("cause", "")
    scores = f"{row['r2']:6.3f} {row['r2_other_start']:6.3f}  {row['cpu_seconds']:5.1f} s"
    return f"{row['problem']} {row['seed']}  {scores}  {verdict:20s} {row['equation']}"


def summary(lines: list[dict[str, Any]], sigma: float, rho: float) -> str:
    """The shares of successes, as text."""
    if not lines:
        return "no runs"
    shares = {
        "reconstructs": np.mean([row["r2"] > 0.9 for row in lines]),
        "generalises": np.mean([row["r2_other_start"] > 0.9 for row in lines]),
        "exact": np.mean([row["exact"] for row in lines]),
    }
    text = "  ".join(f"{key} {100 * value:.1f} %" for key, value in shares.items())
    seconds = [row["cpu_seconds"] for row in lines]
    cost = f"CPU s: median {np.median(seconds):.1f}, total {sum(seconds):.0f}"
    return f"sigma {sigma:g}, rho {rho:g}: {len(lines)} runs  {text}  {cost}"


def _is_chosen(system: Benchmarked, only: str | None) -> bool:
    if only is None:
        return True
    return system.number % 2 == 1 if only == "odd" else system.number in {int(n) for n in only.split(",")}
