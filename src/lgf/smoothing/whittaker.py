"""Whittaker smoothing with a third-derivative penalty on any grid: a penalised quintic spline with banded matrices.

Minimises sum_i w_i (y_i - f^(d_i)(t_i))^2 + lambda int f'''^2 over splines with knots at the sample times; lambda
minimises the generalised cross-validation score. Time and memory are linear in the number of samples.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, dia_array

from lgf.data.noise import rough_noise
from lgf.smoothing.rows import Rows

DEGREE = 5
PENALTY = 3
_LOG_LAMBDA = np.linspace(-3.0, 10.0, 14)  # with time in knot spacings; beyond it the factors lose precision
_LEAST_KNOTS = 40
_MOST_FOR_EXACT_TRACE = 450
_PROBES = 32
_EXACT_WEIGHT = 1e6


@dataclass(frozen=True, eq=False)
class _System:
    """The normal equations and the quantities of the score.

    The trace of the smoother is that of (gram + lambda penalty)^-1 gram: exact with `probes` = identity, else
    estimated with random signs (Hutchinson).
    """

    design: csr_array
    y: np.ndarray
    weight: np.ndarray
    counted: np.ndarray
    gram: csr_array
    penalty: csr_array
    probes: np.ndarray

    def solve(self, log_lambda: float) -> tuple[np.ndarray, float, float]:
        """Coefficients, generalised cross-validation score and noise variance."""
        bands = _bands(self.gram)
        ridge = 1e-10 * float(np.median(bands[-1]))  # so that rounding cannot make the matrix indefinite
        bands += 10.0**log_lambda * _bands(self.penalty)
        factor = _factor(bands, ridge)
        right = np.column_stack([self.design.T @ (self.weight * self.y), self.gram @ self.probes])
        solved = cho_solve_banded((factor, False), right, check_finite=False)
        trace = np.sum(solved[:, 1:] * self.probes) * len(self.probes) / np.sum(self.probes**2)
        residual = (self.y - self.design @ solved[:, 0])[self.counted]
        squares = float(self.weight[self.counted] @ residual**2)
        n = len(residual)
        free = max(n - float(trace), 1e-6 * n)
        return solved[:, 0], n * squares / free**2, squares / free


def _factor(bands: np.ndarray, ridge: float) -> np.ndarray:
    """The banded Cholesky factor; a matrix that rounding made indefinite gets the smallest larger ridge that helps."""
    while True:
        bands[-1] += ridge
        try:
            return cholesky_banded(bands, check_finite=False)
        except LinAlgError:
            ridge *= 10.0


def fit_whittaker(rows: Rows) -> tuple[BSpline, tuple[float, ...]]:
    """The smooth curve through these rows, and the noise of each measured column."""
    sites = _sites(rows.t)
    levels = _levels(rows)
    spline, log_lambda, variance = _fit(rows, sites, levels)
    while log_lambda > _LOG_LAMBDA[-2] and len(sites) > _LEAST_KNOTS:
        # a curve this smooth needs a coarser grid of knots in double precision
        sites = sites[np.unique(np.linspace(0, len(sites) - 1, max(len(sites) // 4, _LEAST_KNOTS)).round().astype(int))]
        spline, log_lambda, variance = _fit(rows, sites, levels)
    return spline, tuple(float(math.sqrt(variance) * level / levels[0]) for level in levels)


def _sites(t: np.ndarray) -> np.ndarray:
    """The sample times, without those that nearly coincide: knots must be apart."""
    sites = np.unique(t)
    least = 0.05 * float(np.median(np.diff(sites)))
    if np.all(np.diff(sites) >= least):
        return sites
    knots = [sites[0]]
    for site in sites[1:-1]:
        if site - knots[-1] >= least and sites[-1] - site >= least:
            knots.append(site)
    return np.array([*knots, sites[-1]])


def _levels(rows: Rows) -> np.ndarray:
    """The noise levels that weight the columns against each other; a single column has level 1."""
    if rows.n_groups == 1:
        return np.ones(1)
    columns = [rows[rows.group == g] for g in range(rows.n_groups)]
    return np.array([max(rough_noise(c.t, c.y), 1e-9 * float(np.std(c.y)), 1e-300) for c in columns])


def _fit(rows: Rows, sites: np.ndarray, levels: np.ndarray) -> tuple[BSpline, float, float]:
    """The curve with these knots, its log10 lambda, and the noise variance of the first column."""
    start, unit = sites[0], float(np.ptp(sites)) / (len(sites) - 1)
    stretch = unit**rows.derivative
    exact = _EXACT_WEIGHT * (len(sites) / 8.0) ** (2 * rows.derivative)
    weight = np.where(rows.group >= 0, rows.weight * (levels[0] / (levels[rows.group] * stretch)) ** 2, exact)
    scaled = Rows((rows.t - start) / unit, rows.y * stretch, rows.derivative, rows.group, weight)
    knots = _knots((sites - start) / unit)
    system = _system(scaled, knots)
    best = int(np.argmin([system.solve(x)[1] for x in _LOG_LAMBDA]))
    around = (_LOG_LAMBDA[max(best - 1, 0)], _LOG_LAMBDA[min(best + 1, len(_LOG_LAMBDA) - 1)])
    refined: Any = minimize_scalar(
        lambda x: system.solve(x)[1], bounds=around, method="bounded", options={"xatol": 0.03}
    )
    coefficients, _, variance = system.solve(float(refined.x))
    return BSpline(_knots(sites), coefficients, DEGREE), float(refined.x), variance


def _knots(sites: np.ndarray) -> np.ndarray:
    return np.concatenate([[sites[0]] * DEGREE, sites, [sites[-1]] * DEGREE])


def _system(rows: Rows, knots: np.ndarray) -> _System:
    design = csr_array((len(rows.t), len(knots) - DEGREE - 1))
    for order in np.unique(rows.derivative):
        design = design + _scaled(rows.derivative == order, _design(rows.t, int(order), knots))
    gram = csr_array(design.T @ _scaled(rows.weight, design))
    nodes, shares = np.polynomial.legendre.leggauss(DEGREE - PENALTY + 1)
    cells = np.unique(knots)
    middle, half = (cells[1:] + cells[:-1]) / 2, np.diff(cells) / 2
    rough = _design((middle[:, None] + half[:, None] * nodes).ravel(), PENALTY, knots)
    penalty = csr_array(rough.T @ _scaled((half[:, None] * shares).ravel(), rough))
    size = len(knots) - DEGREE - 1
    exact = size <= _MOST_FOR_EXACT_TRACE
    probes = np.eye(size) if exact else np.random.default_rng(0).choice([-1.0, 1.0], size=(size, _PROBES))
    return _System(csr_array(design), rows.y, rows.weight, rows.group >= 0, gram, penalty, probes)


def _scaled(factors: np.ndarray, matrix: csr_array) -> csr_array:
    """The matrix with row i multiplied by factor i."""
    n = len(factors)
    return csr_array(dia_array((np.asarray(factors, dtype=float)[None], [0]), shape=(n, n)) @ matrix)


def _design(x: np.ndarray, order: int, knots: np.ndarray) -> csr_array:
    """The design matrix of the `order`-th derivative: B-splines of lower degree times divided differences."""
    matrix = csr_array(BSpline.design_matrix(x, knots[order : len(knots) - order], DEGREE - order))
    for degree in range(DEGREE - order + 1, DEGREE + 1):
        inner = knots[DEGREE - degree : len(knots) - (DEGREE - degree)]
        size = len(inner) - degree - 1
        gaps = inner[degree + 1 : size + degree] - inner[1:size]
        rate = np.divide(degree, gaps, out=np.zeros_like(gaps), where=gaps > 0)
        bands = np.stack([np.append(-rate, 0.0), np.insert(rate, 0, 0.0)])
        matrix = matrix @ dia_array((bands, [0, 1]), shape=(size - 1, size))
    return csr_array(matrix)


def _bands(matrix: csr_array) -> np.ndarray:
    """Upper banded form of a symmetric matrix."""
    return np.stack([np.pad(matrix.diagonal(k), (k, 0)) for k in range(DEGREE, -1, -1)])
