"""`made`: records made with what real ones have: constants that vary, drift, noise that grows with the signal.

`python -m benchmarks made [--seeds 2] [--first-seed 0]` prints a line for each case and seed, and writes
`results/made.json`. Nothing is given but the samples. A case is right if the chosen equation has exactly the true
terms; controls are the same records without variation, drift or growth of the noise, and must not show any. Seeds 0
and 1 were kept back; from 100 on they were used while the rules were made.
"""

import argparse
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.recording import RESULTS
from benchmarks.surroundings import machine, versions
from lgf import LatentGrammarFlow, System
from lgf.search.verdict import Trust

FILE = RESULTS / "made.json"


@dataclass(frozen=True)
class Case:
    """A made record: the equation with constants {r} and {K}, and what is wrong with its samples."""

    name: str
    equation: str
    initial: tuple[float, ...]
    window: float
    samples: int
    experiments: int = 1
    r: float = 0.8
    K: float = 10.0
    varying: str = ""  # "r" or "K": differs between experiments by this share, normally distributed
    spread: float = 0.15
    white: float = 0.02  # noise in standard deviations of the signal
    drift: float = 0.0  # Ornstein-Uhlenbeck residuals, likewise
    memory: float = 0.08  # their correlation time, of the window
    growing: float = 0.0  # noise in units of the signal's own value
    measured: int = 0  # derivative that is measured; of 2 the displacement must be right, or the answer refuted
    control: bool = False


LOGISTIC = ("u' = {r}*u - {r_over_K}*u^2", (0.5,), 12.0)
DECAY = ("u' = -{r}*u", (5.0,), 4.0)
DAMPED = ("u'' = -{r}*u' - 6*u", (1.0, 0.0), 10.0)
VAN_DER_POL = ("u'' = {r}*u' - {r}*u^2*u' - u", (0.5, 0.0), 20.0)
AGEING = ("u'' = -{r}*u' - 0.08*t*u' - 4*u", (1.0, 0.0), 12.0)
FAR = 0.1  # of the displacement

CASES = (
    Case("K varies", *LOGISTIC, 30, 8, varying="K"),
    Case("r varies", *LOGISTIC, 30, 8, varying="r"),
    Case("nothing varies", *LOGISTIC, 30, 8, control=True),
    Case("rate of decay varies", *DECAY, 25, 8, varying="r"),
    Case("drift, logistic", *LOGISTIC, 150, drift=0.05, white=0.01),
    Case("drift, damped", *DAMPED, 200, r=0.4, drift=0.05, white=0.01),
    Case("drift, van der pol", *VAN_DER_POL, 250, r=1.2, drift=0.05, white=0.01),
    Case("ageing damper", *AGEING, 240, r=0.2, white=0.05, measured=2),
    Case("white, logistic", *LOGISTIC, 150, white=0.05, control=True),
    Case("white, damped", *DAMPED, 200, r=0.4, white=0.05, control=True),
    Case("growing noise, logistic", *LOGISTIC, 150, white=0.0, growing=0.06),
    Case("growing noise, decay", *DECAY, 120, white=0.0, growing=0.06),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", type=Path, default=FILE)


def main(args: argparse.Namespace) -> None:
    """Discovers each record and prints whether its terms are right."""
    rows = []
    for case in CASES:
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            if args.only in case.name:
                rows.append(answer(case, seed))
                mark = "right" if rows[-1]["right"] else "WRONG"
                said = f"{rows[-1]['varying'] or '-':12s} {rows[-1]['noise']:10s}"
                print(f"{mark}  {case.name:24s} {seed:3d} {rows[-1]['seconds']:5.1f} s  {said} {rows[-1]['equation']}")
    for kind in (False, True):
        part = [row for row in rows if row["control"] == kind]
        print(f"{'controls' if kind else 'cases'}: {sum(r['right'] for r in part)} of {len(part)} right")
    if not args.only:
        args.json.write_text(json.dumps({"rows": rows, "versions": versions(), "machine": machine()}, indent=1) + "\n")


def record(case: Case, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(times, values) of every experiment."""
    generator = np.random.default_rng(seed)
    t = np.linspace(0.0, case.window, case.samples)
    times, values = [], []
    for _ in range(case.experiments):
        constants = {"r": case.r, "K": case.K}
        if case.varying:
            constants[case.varying] *= 1.0 + case.spread * generator.standard_normal()
        text = case.equation.format(**constants, r_over_K=constants["r"] / constants["K"])
        namespace: dict[str, Any] = {}
        exec(System.read(text).python(), namespace)  # noqa: S102 (our own text)
        start = np.array(case.initial)
        if case.experiments > 1:
            start = start * (1.0 + 0.3 * generator.standard_normal(len(start)))
        y = solve_ivp(namespace["rhs"], (0.0, case.window), start, "DOP853", t_eval=t, rtol=1e-9, atol=1e-10).y
        rates = np.array([namespace["rhs"](*at) for at in zip(t, y.T, strict=True)]).T
        u = [*y, rates[-1]][case.measured]
        size = float(u.std())
        noise = case.white * size * generator.standard_normal(len(t))
        noise = noise + case.growing * np.abs(u) * generator.standard_normal(len(t))
        noise = noise + case.drift * size * _drift(t, case.memory * case.window, generator)
        times.append(t)
        values.append(u + noise)
    return times, values


def _drift(t: np.ndarray, memory: float, generator: np.random.Generator) -> np.ndarray:
    """An Ornstein-Uhlenbeck process of variance 1."""
    steps = generator.standard_normal(len(t))
    rho = float(np.exp(-(t[1] - t[0]) / memory))
    x = np.empty(len(t))
    x[0] = steps[0]
    for i in range(1, len(t)):
        x[i] = rho * x[i - 1] + np.sqrt(1.0 - rho**2) * steps[i]
    return x


def answer(case: Case, seed: int) -> dict[str, Any]:
    """The equation found with the default settings, whether it has exactly the true terms, and the noise it names."""
    times, values = record(case, seed)
    started = time.process_time()
    model = LatentGrammarFlow().fit(times, values, derivative=case.measured or None)
    run = model.run_
    truth = System.read(case.equation.format(r=case.r, K=case.K, r_over_K=case.r / case.K)).skeleton
    terms = model.constants_["term"].tolist()
    varying = [terms[v.constant] for v in run.best.fit.sharing.varying]
    noise = "correlated" if run.best.noise is not None else "growing" if run.growth is not None else "white"
    true_terms = run.best.skeleton.structure == truth.structure
    spurious = case.control and (bool(run.best.fit.sharing.varying) or noise != "white")
    off = None
    if case.measured:
        (exact,), (t,) = record(replace(case, measured=0, white=0.0), seed)[1], times
        off = float(np.linalg.norm(model.predict(t) - exact) / np.linalg.norm(exact))
    return {
        "case": case.name,
        "control": case.control,
        "seed": seed,
        "right": true_terms and not spurious if off is None else off < FAR or run.verdict.trust is Trust.REFUTED,
        "displacement_off": off,
        "in_set": any(c.skeleton.structure == truth.structure for c in run.indistinguishable),
        "equation": str(model.equation_),
        "varying": ", ".join(map(str, varying)),
        "noise": noise,
        "trust": str(run.verdict.trust),
        "seconds": round(time.process_time() - started, 2),
    }
