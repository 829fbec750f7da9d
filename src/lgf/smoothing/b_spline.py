"""B-splines by their recursion, for a dense basis of a few hundred. SciPy's take longer to import than to evaluate."""

import numpy as np


def b_splines(x: np.ndarray, knots: np.ndarray, degree: int, derivative: int = 0) -> np.ndarray:
    """The values [N, p] at x of the p B-splines on these knots, or of a derivative of theirs.

    A negative derivative is an integral from the first knot. The first and the last knot occur degree + 1 times.
    """
    if derivative > 0:
        inner = b_splines(x, knots[1:-1], degree - 1, derivative - 1) * (
            degree / (knots[degree + 1 : -1] - knots[1 : -degree - 1])
        )
        nothing = np.zeros((len(x), 1))
        return np.hstack([nothing, inner]) - np.hstack([inner, nothing])
    if derivative < 0:
        inner = b_splines(x, np.concatenate([knots[:1], knots, knots[-1:]]), degree + 1, derivative + 1)
        widths = (knots[degree + 1 :] - knots[: -degree - 1]) / (degree + 1)
        return np.cumsum(inner[:, :0:-1], axis=1)[:, ::-1] * widths
    x = np.asarray(x, float)
    interval = np.clip(np.searchsorted(knots, x, side="right") - 1, degree, len(knots) - degree - 2)
    values = np.zeros((len(x), len(knots) - 1))
    values[np.arange(len(x)), interval] = 1.0
    for k in range(1, degree + 1):
        widths = knots[k:] - knots[:-k]
        inverse = 1.0 / np.where(widths > 0, widths, np.inf)
        rising = (x[:, None] - knots[: -k - 1]) * inverse[:-1]
        falling = (knots[k + 1 :] - x[:, None]) * inverse[1:]
        values = rising * values[:, :-1] + falling * values[:, 1:]
    return values
