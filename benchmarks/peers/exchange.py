"""What a peer is given and what it gives back; plain NumPy, because it runs in the peer's own environment.

In, as JSON on the standard input: t, values (the measured column), measured (which derivative it is), states (the
completed u, u', ..., one list each), initial, order, forcing (one value per time, or null), seed, cores.
Out, as JSON in the last line of the standard output: equation, objective (the peer's own, smaller is better), seconds.
"""

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

NOISE = 0.07  # of its standard deviation: how far a completed derivative is off, in the mean over Benchmark 1
WORST = 1e300  # the objective of an answer that is none


@dataclass(frozen=True)
class Task:
    """The highest derivative y [N] as a function of the columns X [N, K], whose names are those in an equation."""

    names: tuple[str, ...]
    X: np.ndarray
    y: np.ndarray
    order: int
    measured: int  # which derivative was measured
    values: np.ndarray  # the measured column [N]
    initial: tuple[float, ...]  # u, u', ... at the start, given or smoothed
    seed: int
    cores: int
    evaluations: int = 500_000  # the budget of a peer that counts them

    @property
    def noise(self) -> float:
        """What a peer may take for the standard error of y; without it a description length means nothing."""
        return NOISE * float(np.std(self.y)) or 1.0


def read_task() -> Task:
    """The task on the standard input."""
    given = json.load(sys.stdin)
    order = given["order"]
    columns = {"t": given["t"]} | {"u" + "'" * k: given["states"][k] for k in range(order)}
    if given["forcing"] is not None:
        columns["F"] = given["forcing"]
    return Task(
        names=tuple(columns),
        X=np.column_stack([np.asarray(c, float) for c in columns.values()]),
        y=np.asarray(given["states"][order], float),
        order=order,
        measured=given["measured"],
        values=np.asarray(given["values"], float),
        initial=tuple(given["initial"]),
        seed=given["seed"],
        cores=given["cores"],
    )


def answer(solve: Callable[[Task], tuple[str, float]]) -> None:
    """Read the task, time `solve`, which gives a right-hand side in X0, X1, ... and an objective, and write both."""
    task = read_task()
    began = time.perf_counter()
    right, objective = solve(task)
    seconds = time.perf_counter() - began
    text = re.sub(r"\b[xX](\d+)\b", lambda found: f"({task.names[int(found[1])]})", right)
    left = "u" + "'" * task.order
    worth = float(objective) if np.isfinite(objective) else WORST
    print(json.dumps({"equation": f"{left} = {text}", "objective": worth, "seconds": seconds}))


def criterion(y: np.ndarray, predicted: np.ndarray, parameters: int) -> float:
    """Schwarz's criterion of a regression: n ln(mean square) + k ln(n); infinite where the prediction is not finite."""
    square = float(np.mean((y - predicted) ** 2))
    return len(y) * np.log(max(square, 1e-300)) + parameters * np.log(len(y)) if np.isfinite(square) else np.inf
