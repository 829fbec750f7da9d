"""PySINDy: polynomials up to degree 3, sequentially thresholded least squares.

The threshold is chosen by simulation: errors of completed derivatives are too correlated for a criterion on them. The
terms are evaluated here, because a simulation by PySINDy's own library takes milliseconds a step.
"""

import warnings
from itertools import combinations_with_replacement

import numpy as np
import pysindy
from scipy.integrate import solve_ivp

from benchmarks.peers.exchange import Task, answer, criterion

DEGREE = 3
THRESHOLDS = np.geomspace(1e-3, 1.0, 25)  # of the target's norm, for terms of unit norm
MOST_SLOPES = 20_000


def solve(task: Task) -> tuple[str, float]:
    """The combination of library terms whose simulation has the smallest criterion, and that criterion."""
    exponents = exponents_of(task.X.shape[1])
    terms, names = terms_of(task.X, exponents), names_of(exponents)
    size = float(np.linalg.norm(task.y))
    scale = np.linalg.norm(terms, axis=0)
    scale[scale == 0.0] = 1.0
    best, found, seen = np.inf, np.zeros(len(names)), set()
    for threshold in THRESHOLDS:
        optimizer = pysindy.STLSQ(threshold=threshold, alpha=1e-3, max_iter=50)
        optimizer.fit(terms / scale, task.y[:, None] / size)
        coefficients = np.ravel(optimizer.coef_) * size / scale
        support = tuple(np.flatnonzero(coefficients))
        if support in seen:
            continue
        seen.add(support)
        worth = criterion(task.values, _simulate(task, exponents, coefficients), len(support))
        if worth < best:
            best, found = worth, coefficients
    summands = [f"{c!r}*{name}" for c, name in zip(found.tolist(), names, strict=True) if c != 0.0]
    return " + ".join(summands) or "0", best


def exponents_of(n: int) -> np.ndarray:
    """Exponents [terms, n] of the monomials in n variables."""
    chosen = [c for degree in range(DEGREE + 1) for c in combinations_with_replacement(range(n), degree)]
    return np.array([[c.count(i) for i in range(n)] for c in chosen])


def terms_of(X: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """The monomials [N, terms] of the columns X [N, n]."""
    return np.prod(X[:, None, :] ** exponents, axis=2)


def names_of(exponents: np.ndarray) -> list[str]:
    """The monomials as text in x0, x1, ..."""
    return ["*".join(f"x{i}^{e}" for i, e in enumerate(row) if e) or "1" for row in exponents]


def _simulate(task: Task, exponents: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The measured derivative along the model's own trajectory; NaN where it does not reach the end."""
    t, order = task.X[:, 0], task.order
    forcing = task.X[:, order + 1 :].T  # one row or none
    limit = 20 * float(np.max(np.abs(task.X[:, 1 : order + 1])))

    def highest(time: float, y: np.ndarray) -> float:
        row = np.concatenate([[time], y, [np.interp(time, t, values) for values in forcing]])
        return float((terms_of(row[None, :], exponents) @ coefficients)[0])

    slopes = 0

    def slope(time: float, y: np.ndarray) -> np.ndarray:
        nonlocal slopes
        slopes += 1
        if slopes > MOST_SLOPES:
            return np.full(order, np.nan)  # the solver gives up
        return np.append(y[1:], highest(time, y))

    def far(time: float, y: np.ndarray) -> float:
        return limit - float(np.max(np.abs(y)))

    far.terminal = True
    longest = float(t[-1] - t[0]) / 50
    with np.errstate(all="ignore"):
        solved = solve_ivp(slope, (t[0], t[-1]), task.initial, t_eval=t, rtol=1e-3, max_step=longest, events=far)
    if solved.y.shape[1] < len(t):
        return np.full(len(t), np.nan)
    if task.measured < order:
        return solved.y[task.measured]
    return np.array([highest(time, y) for time, y in zip(t, solved.y.T, strict=True)])


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # it warns when a threshold leaves nothing
    answer(solve)
