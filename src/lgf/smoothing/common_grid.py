"""Penalised splines of many records at once, evaluated on a common grid.

Records with the same sample times share one Demmler-Reinsch basis: in it the penalty is diagonal, so a record costs one
matrix product and its generalised cross-validation a few more. This is the smoother of the features that a conditional
flow reads, in training and in a search alike. It is much faster than `complete`, and rougher.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.smoothing.b_spline import b_splines
from lgf.smoothing.grid_integrals import GRID, TAU, grid_integrals
from lgf.threads import one_blas_thread

_MOST_KNOTS = 129
_DEGREE = 5
_PENALISED = 3  # the derivative whose square is penalised
_PENALTIES = np.logspace(-14.0, 0.0, 43)
_MIDDLE = 1e-9  # of the penalties, on a logarithmic scale
_DRIFT_ROUNDS = 8
_LEAST_FREE = 0.03  # of the samples: a penalty that leaves fewer degrees of freedom to the noise is not tried


@dataclass(frozen=True, eq=False)
class GridBasis:
    """The basis for one set of sample times in the unit window.

    project     [p, N]: samples to coefficients
    penalties   [p], of each coefficient
    derivative  by k, [GRID, p]: coefficients to the k-th derivative on the grid; -1 and -2 are integrals from 0
    """

    project: np.ndarray
    penalties: np.ndarray
    derivative: dict[int, np.ndarray]


def grid_basis(tau: np.ndarray) -> GridBasis:
    """The basis for samples at these increasing times, of which the first is 0 and the last 1; cached."""
    return _basis(np.ascontiguousarray(tau, float).tobytes())


@lru_cache(maxsize=64)
def _basis(times: bytes) -> GridBasis:
    tau = np.frombuffer(times)
    sites = np.linspace(0.0, 1.0, min(len(tau), _MOST_KNOTS))
    knots = np.concatenate([np.zeros(_DEGREE), sites, np.ones(_DEGREE)])
    p = len(knots) - _DEGREE - 1
    nodes, weights = np.polynomial.legendre.leggauss(_DEGREE - _PENALISED + 1)
    middle, half = (sites[1:] + sites[:-1]) / 2, np.diff(sites) / 2
    points = (middle[:, None] + half[:, None] * nodes).ravel()
    bend = b_splines(points, knots, _DEGREE, _PENALISED)
    penalty = bend.T @ (bend * (half[:, None] * weights).ravel()[:, None])
    design = b_splines(tau, knots, _DEGREE)
    gram = design.T @ design / len(tau)
    gram += 1e-9 * np.trace(gram) / p * np.eye(p)
    with one_blas_thread():
        # Penalties reach from 0 to 1e25. Their eigenvalues beside the samples alone would be lost in rounding; those of
        # the samples beside both lie between 0 and 1.
        factor = np.linalg.cholesky(gram + _MIDDLE * penalty)
        half_way = np.linalg.solve(factor, gram)
        shares, turned = np.linalg.eigh(np.linalg.solve(factor, half_way.T))
        shares = np.clip(shares[::-1], 1e-30, 1.0)
        penalties = (1.0 / shares - 1.0) / _MIDDLE
        basis = np.linalg.solve(factor.T, turned[:, ::-1]) / np.sqrt(shares)
    derivative = {k: b_splines(TAU, knots, _DEGREE, k) @ basis for k in (-2, -1, 0, 1, 2)}
    return GridBasis(basis.T @ design.T / len(tau), np.maximum(penalties, 0.0), derivative)


def smooth_records(tau: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(coefficients [b, p], standard deviations [b] of the noise) of records [b, N] at these times in the unit window.

    Generalised cross-validation chooses the penalty of each record.
    """
    basis = grid_basis(tau)
    n = values.shape[1]
    coefficients = values @ basis.project.T
    squares = coefficients**2
    outside = np.maximum((values**2).mean(1) - squares.sum(1), 0.0)
    shrink = 1.0 / (1.0 + _PENALTIES[:, None] * basis.penalties)
    free = 1.0 - shrink.sum(1) / n
    tried = free >= _LEAST_FREE
    if not tried.any():
        tried[-1] = True
    shrink, free = shrink[tried], np.maximum(free[tried], 1e-3)
    left = squares @ ((1.0 - shrink) ** 2).T + outside[:, None]
    best = np.argmin(left / free**2, axis=1)
    rows = np.arange(len(values))
    return coefficients * shrink[best], np.sqrt(left[rows, best] / free[best])


def on_grid(
    tau: np.ndarray,
    coefficients: np.ndarray,
    observed: int,
    order: int,
    window: np.ndarray,
    initial: np.ndarray,
    noise: np.ndarray,
) -> np.ndarray:
    """[b, order + 1, GRID]: the state and its derivatives on the grid, from the observed derivative.

    window [b] is the length of each record, noise [b] the standard deviation of its samples. initial [b, order] are the
    state and its derivatives at its begin, used where lower derivatives are integrals of the observed one.
    """
    basis = grid_basis(tau)
    length = np.asarray(window)[:, None]
    out = np.zeros((len(coefficients), order + 1, GRID))
    for d in range(order + 1):
        k = d - observed
        out[:, d] = coefficients @ basis.derivative[k].T / length**k
        for j in range(d, observed):
            out[:, d] += initial[:, j : j + 1] * (length * TAU) ** (j - d)  # the factorials are 1 up to order 2
    if observed:
        _subtract_drift(out, observed, length, np.asarray(noise)[:, None] ** 2 * GRID / len(tau))
    return out


def _subtract_drift(columns: np.ndarray, observed: int, length: np.ndarray, variance: np.ndarray) -> None:
    """Subtracts from integrals of an observed derivative the drift that its noise makes.

    The integral of noise grows without bound, and soon hides the state. What is subtracted is the expectation of the
    integrated noise, of this variance [b, 1] on the grid, beside a state that is white. The variance of the state is
    found by expectation maximisation.
    """
    integrals = grid_integrals(observed)
    parts = columns[:, 0] @ integrals.modes
    drift = integrals.sizes**2 * variance * length ** (2 * observed)
    state = np.mean(columns[:, 0] ** 2, axis=1, keepdims=True)
    share = np.zeros_like(parts)
    for _ in range(_DRIFT_ROUNDS):
        share = drift / (drift + state + 1e-300)
        state = np.mean(((1.0 - share) * parts) ** 2 + drift * (1.0 - share), axis=1, keepdims=True)
    noise = (share * parts / integrals.sizes) @ integrals.sources.T / length**observed
    for d in range(observed):
        columns[:, d] -= noise @ integrals.repeated[observed - d - 1].T * length ** (observed - d)
