"""PySINDy on several experiments of a system; it runs in PySINDy's own environment.

In, as JSON on the standard input: names (columns of the state vector, then the input if there is one), equations
(the left-hand sides), next (for each column of the state vector the column that is its derivative, or -1 - k for the
k-th equation), measured (columns), and experiments, each with t, vector [column, N], highest [equation, N], values
[measured, N] and input.
Out, as JSON: the equations as text, and Schwarz's criterion of their simulation. The library is that of
`benchmarks.peers.pysindy`; the threshold is chosen by simulating the training experiments.
"""

import json
import sys
import warnings

import numpy as np
import pysindy
from scipy.integrate import solve_ivp

from benchmarks.peers.exchange import WORST, criterion
from benchmarks.peers.pysindy import MOST_SLOPES, THRESHOLDS, exponents_of, names_of, terms_of


def columns(experiment: dict) -> np.ndarray:
    """The state vector and the input [N, column]."""
    rows = [*experiment["vector"], *([experiment["input"]] if experiment["input"] is not None else [])]
    return np.array(rows, float).T


def simulated(task: dict, experiment: dict, exponents: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The measured columns [N, measured] along the model's trajectory; NaN where it does not reach the end."""
    t, start = np.array(experiment["t"]), columns(experiment)[0]
    n, slopes = len(task["next"]), 0
    limit = 20 * float(np.max(np.abs(columns(experiment)[:, :n])))

    def slope(time: float, y: np.ndarray) -> np.ndarray:
        nonlocal slopes
        slopes += 1
        if slopes > MOST_SLOPES:
            return np.full(n, np.nan)  # the solver gives up
        row = y if experiment["input"] is None else np.append(y, np.interp(time, t, experiment["input"]))
        highest = coefficients @ terms_of(row[None, :], exponents)[0]
        return np.array([y[k] if k >= 0 else highest[-1 - k] for k in task["next"]])

    def far(time: float, y: np.ndarray) -> float:
        return limit - float(np.max(np.abs(y)))

    far.terminal = True
    with np.errstate(all="ignore"):
        solved = solve_ivp(slope, (t[0], t[-1]), start[:n], t_eval=t, rtol=1e-3, events=far)
    if solved.y.shape[1] < len(t):
        return np.full((len(t), len(task["measured"])), np.nan)
    return solved.y[task["measured"]].T


def solve(task: dict) -> dict:
    """The equations whose simulation has the smallest criterion, and that criterion."""
    X = np.concatenate([columns(e) for e in task["experiments"]])
    Y = np.concatenate([np.array(e["highest"], float).T for e in task["experiments"]])
    values = np.concatenate([np.array(e["values"], float).T for e in task["experiments"]])
    spread = values.std(axis=0)
    exponents = exponents_of(X.shape[1])
    terms = terms_of(X, exponents)
    scale, size = np.linalg.norm(terms, axis=0), np.linalg.norm(Y, axis=0)
    scale[scale == 0.0], size[size == 0.0] = 1.0, 1.0
    best, found, seen = np.inf, np.zeros((Y.shape[1], len(exponents))), set()
    for threshold in THRESHOLDS:
        optimizer = pysindy.STLSQ(threshold=threshold, alpha=1e-3, max_iter=50)
        optimizer.fit(terms / scale, Y / size)
        coefficients = np.atleast_2d(optimizer.coef_) * size[:, None] / scale
        support = tuple(map(tuple, np.argwhere(coefficients)))
        if support in seen:
            continue
        seen.add(support)
        runs = [simulated(task, e, exponents, coefficients) for e in task["experiments"]]
        worth = criterion((values / spread).ravel(), (np.concatenate(runs) / spread).ravel(), len(support))
        if worth < best:
            best, found = worth, coefficients
    texts = []
    for left, row in zip(task["equations"], found, strict=True):
        summands = [f"{c!r}*{name}" for c, name in zip(row.tolist(), names_of(exponents), strict=True) if c != 0.0]
        right = " + ".join(summands) or "0"
        for i in reversed(range(len(task["names"]))):
            right = right.replace(f"x{i}^", f"({task['names'][i]})^")
        texts.append(f"{left} = {right}")
    return {"equation": "; ".join(texts), "criterion": best if np.isfinite(best) else WORST}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # it warns when a threshold leaves nothing
    print(json.dumps(solve(json.load(sys.stdin))))
