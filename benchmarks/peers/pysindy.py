"""PySINDy: polynomials up to degree 3 and two harmonics of every variable, sequentially thresholded least squares.

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
HARMONICS = (1, 2)
THRESHOLDS = np.geomspace(1e-4, 0.3, 25)


def solve(task: Task) -> tuple[str, float]:
    """The combination of library terms whose simulation has the smallest criterion, and that criterion."""
    exponents = _exponents(task.X.shape[1])
    terms, names = _terms(task.X, exponents), _names(exponents)
    scale = np.linalg.norm(terms, axis=0)  # so that a threshold means the same for every term
    scale[scale == 0.0] = 1.0
    best, found, seen = np.inf, np.zeros(len(names)), set()
    for threshold in THRESHOLDS:
        optimizer = pysindy.STLSQ(threshold=threshold * np.linalg.norm(task.y), alpha=1e-6, max_iter=50)
        optimizer.fit(terms / scale, task.y[:, None])
        coefficients = np.ravel(optimizer.coef_) / scale
        support = tuple(np.flatnonzero(coefficients))
        if support in seen:
            continue
        seen.add(support)
        worth = criterion(task.values, _simulate(task, exponents, coefficients), len(support))
        if worth < best:
            best, found = worth, coefficients
    summands = [f"{c!r}*{name}" for c, name in zip(found.tolist(), names, strict=True) if c != 0.0]
    return " + ".join(summands) or "0", best


def _exponents(n: int) -> np.ndarray:
    """Exponents [terms, n] of the monomials in n variables."""
    chosen = [c for degree in range(DEGREE + 1) for c in combinations_with_replacement(range(n), degree)]
    return np.array([[c.count(i) for i in range(n)] for c in chosen])


def _terms(X: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    monomials = np.prod(X[:, None, :] ** exponents, axis=2)
    return np.hstack([monomials, *(wave(k * X) for k in HARMONICS for wave in (np.sin, np.cos))])


def _names(exponents: np.ndarray) -> list[str]:
    monomials = ["*".join(f"x{i}^{e}" for i, e in enumerate(row) if e) or "1" for row in exponents]
    variables = range(exponents.shape[1])
    return monomials + [f"{wave}({k}*x{i})" for k in HARMONICS for wave in ("sin", "cos") for i in variables]


def _simulate(task: Task, exponents: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The measured derivative along the model's own trajectory; NaN where it does not reach the end."""
    t, order = task.X[:, 0], task.order
    forcing = task.X[:, order + 1 :].T  # one row or none
    limit = 1e3 * float(np.max(np.abs(task.X[:, 1 : order + 1])))

    def highest(time: float, y: np.ndarray) -> float:
        row = np.concatenate([[time], y, [np.interp(time, t, values) for values in forcing]])
        return float((_terms(row[None, :], exponents) @ coefficients)[0])

    def slope(time: float, y: np.ndarray) -> np.ndarray:
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
