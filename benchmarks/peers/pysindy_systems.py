"""PySINDy on systems: polynomials up to degree 3, plain, in weak form, or as an ensemble; run in PySINDy's environment.

In, as JSON on the standard input: t, values [N, n], smoothed [N, n], variant. Out, as JSON in the last line: equations
(one text a state in x0, x1, ...), cpu_seconds and peak_memory_mb. Generous to the peer: `plain` and `ensemble` take
the states smoothed by this project's Gaussian process, the start is the true one, and of 25 thresholds the one whose
solved trajectory is nearest to the measured values.
"""

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
import pysindy
from scipy.integrate import solve_ivp

from benchmarks.memory import peak_memory_mb

THRESHOLDS = np.geomspace(1e-3, 2.0, 25)
DEGREE = 3
MOST_SLOPES = 20_000


def model(variant: str, t: np.ndarray, threshold: float) -> Any:
    """The model of a variant."""
    library: Any = pysindy.PolynomialLibrary(degree=DEGREE)
    optimizer: Any = pysindy.STLSQ(threshold=threshold, alpha=1e-6)
    if variant == "weak":
        library = pysindy.WeakPDELibrary(library, spatiotemporal_grid=t, K=200, p=4)
    if variant == "ensemble":
        optimizer = pysindy.EnsembleOptimizer(optimizer, bagging=True, n_models=20)
    return pysindy.SINDy(feature_library=library, optimizer=optimizer)


def solved(coefficients: np.ndarray, powers: np.ndarray, start: np.ndarray, t: np.ndarray) -> np.ndarray | None:
    """The states [N, n]; None if they do not reach the end."""
    count = 0

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        if count > MOST_SLOPES or np.max(np.abs(x)) > 1e6:
            raise FloatingPointError
        return coefficients @ np.prod(x**powers, axis=1)

    try:
        found = solve_ivp(slope, (t[0], t[-1]), start, t_eval=t, rtol=1e-6, atol=1e-9, method="LSODA")
    except (FloatingPointError, ValueError):
        return None
    return found.y.T if found.success else None


def main() -> None:
    """Reads the task, writes the answer."""
    task = json.load(sys.stdin)
    t, values, smoothed = (np.asarray(task[key], float) for key in ("t", "values", "smoothed"))
    data = values if task["variant"] == "weak" else smoothed
    powers = pysindy.PolynomialLibrary(degree=DEGREE).fit(data).powers_
    began, best, chosen = time.process_time(), np.inf, np.zeros((data.shape[1], len(powers)))
    for threshold in THRESHOLDS:
        try:
            fitted = model(task["variant"], t, threshold).fit(data, t=t)
        except (ValueError, np.linalg.LinAlgError):
            continue
        coefficients = np.asarray(fitted.coefficients())
        states = solved(coefficients, powers, np.asarray(task["start"], float), t)
        error = np.inf if states is None else float(np.sum((states - values) ** 2 / np.var(values, axis=0)))
        if error < best:
            best, chosen = error, coefficients
    names = ["*".join(f"x{i}" if e == 1 else f"x{i}^{int(e)}" for i, e in enumerate(row) if e) or "1" for row in powers]
    equations = [
        " + ".join(f"{c:.8g}*{name}" for c, name in zip(row.tolist(), names, strict=True) if c != 0.0) or "0"
        for row in chosen
    ]
    seconds = time.process_time() - began
    print(json.dumps({"equations": equations, "cpu_seconds": seconds, "peak_memory_mb": peak_memory_mb()}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
