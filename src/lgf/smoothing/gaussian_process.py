"""Gaussian process of u from samples of u and its derivatives, in time and memory linear in their number.

The squared-exponential kernel s^2 exp(-r^2 / 2 l^2) on a window of length T is, to about 1e-8, a Fourier series with
independent Gaussian coefficients: its period T + 6 l keeps the images apart, its frequencies end where the spectral
density does (6.5 / l). So the process is a Bayesian linear regression on m = 2.1 (T / l + 6) + 1 columns, a
derivative of u is a derivative of the columns, and no n x n matrix is needed. Scale, length and noise
maximise the marginal likelihood, whose gradient follows from Fisher's identity.

A record that starts steep and then creeps is stationary in the logarithm of time rather than in time itself. So the
process may run on the clock log(1 + x / c), with x the elapsed part of the window, if that has a higher marginal
likelihood.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, get_lapack_funcs
from scipy.optimize import minimize

from lgf.smoothing.rows import Rows

CLOCKS = (None, 1.0, 0.3, 0.1)
MOST_COLUMNS = 900

MOST_ROWS = 800  # for the choice of hyperparameters
_MOST_ROWS_FOR_CLOCKS = 300
_CLOCK_GAIN = 3.0  # in log-likelihood, for another clock to be chosen: odds of 20 to 1
_SHORTEST_FOR_CLOCKS = 0.03  # of the window: a record of many oscillations has no single steep start
_LENGTHS = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625)
_NOISES = (0.3, 0.05, 0.008)
_SHORTEST = 2.1 / (MOST_COLUMNS - 20)
_EXACT = 1e-4  # deviation of exactly known values, relative to the signal; smaller ones spoil the factors
_CHUNK = 4096
_potrf, _potri = get_lapack_funcs(("potrf", "potri"), dtype=float)
_STIRLING = ((1,), (0, 1), (0, -1, 1), (0, 2, -3, 1), (0, -6, 11, -6, 1))  # first kind: f(log x)^(n) from f^(k)


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """The posterior: its Fourier coefficients and hyperparameters.

    `length` is in parts of the window (of the clock's, if there is one), `noise` one standard deviation for each
    measured column in its own units.
    """

    start: float
    window: float
    mean: float
    clock: float | None
    length: float
    noise: tuple[float, ...]
    frequencies: np.ndarray
    coefficients: np.ndarray

    def derivative(self, t: np.ndarray, order: int) -> np.ndarray:
        """The posterior mean of the `order`-th derivative of u at these times."""
        x = (np.asarray(t, dtype=float) - self.start) / self.window
        values = np.empty(len(x))
        for lo in range(0, len(x), _CHUNK):
            part = slice(lo, lo + _CHUNK)
            values[part] = _columns(x[part], order, self.frequencies, self.clock) @ self.coefficients
        return values / self.window**order + (self.mean if order == 0 else 0.0)


def fit_gaussian_process(rows: Rows, clocks: tuple[float | None, ...] = (None,)) -> GaussianProcess | None:
    """The process at the maximum of its marginal likelihood; None if it needs more than MOST_COLUMNS columns.

    The likelihood chooses among several `clocks` (None is time itself, and comes first).
    """
    start, window = float(rows.t.min()), float(np.ptp(rows.t))
    noisy = (rows.derivative == 0) & (rows.group >= 0)
    mean = float(np.average(rows.y[noisy], weights=rows.weight[noisy])) if noisy.any() else 0.0
    y = (rows.y - np.where(rows.derivative == 0, mean, 0.0)) * window**rows.derivative
    scaled = Rows((rows.t - start) / window, y, rows.derivative, rows.group, rows.weight)
    clock, start_from = None, None
    if len(clocks) > 1 and rows.lead == 0:
        clock, start_from = _choose_clock(_thin(scaled, _MOST_ROWS_FOR_CLOCKS), clocks)
    theta, _ = _maximise(_thin(scaled, MOST_ROWS), clock, start_from)
    length, noise = math.exp(theta[0]), np.exp(theta[2:])
    if length < 1.05 * _SHORTEST:
        return None
    frequencies, root = _spectrum(length, math.exp(theta[1]))
    gram, moment = _normal_equations(scaled, frequencies, root, noise, clock)
    z = cho_solve((_cholesky(np.eye(len(root)) + gram), False), moment)
    derivatives = np.array([rows.derivative[rows.group == g][0] for g in range(rows.n_groups)])
    return GaussianProcess(
        start, window, mean, clock, length, tuple((noise / window**derivatives).tolist()), frequencies, root * z
    )


def _choose_clock(rows: Rows, clocks: tuple[float | None, ...]) -> tuple[float | None, np.ndarray | None]:
    """The clock (time itself, unless another one is significantly better) and the hyperparameters on it."""
    plain, value = _maximise(rows, None)
    if math.exp(plain[0]) < _SHORTEST_FOR_CLOCKS:
        return None, None
    best = value - _CLOCK_GAIN, None, plain
    for clock in clocks:
        if clock is not None:
            theta, value = _maximise(rows, clock)
            best = min(best, (value, clock, theta), key=lambda candidate: candidate[0])
    return best[1], best[2]


def _maximise(rows: Rows, clock: float | None, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Logarithms of length, scale and noise of each group at the maximum, and the negative log-likelihood there."""
    sizes = _sizes(rows)
    spacing = float(np.median(np.diff(np.unique(rows.t[rows.group >= 0]))))
    shortest = max(0.7 * spacing, _SHORTEST)
    starts = _starts(rows, sizes, shortest, clock) if start is None else [start]
    # Without bounds the scale can grow on a flat likelihood until it overflows.
    scales = [float(theta[1]) for theta in starts]
    bounds = [(math.log(shortest), math.log(6.0)), (min(scales) - 12.0, max(scales) + 12.0)]
    bounds += [(math.log(1e-5 * size), math.log(3 * size)) for size in sizes]
    options = {"maxiter": 60, "ftol": 1e-9}
    results = [
        minimize(_negative_log_likelihood, theta, (rows, clock), "L-BFGS-B", True, bounds=bounds, options=options)
        for theta in starts
    ]
    best = min(results, key=lambda result: result.fun)
    return best.x, float(best.fun)


def _starts(rows: Rows, sizes: np.ndarray, shortest: float, clock: float | None) -> list[np.ndarray]:
    """The best two points of a grid, of different lengths."""
    tried = []
    for length in _LENGTHS:
        if tried and length < max(shortest, 0.0 if clock is None else _SHORTEST_FOR_CLOCKS):
            break
        for relative in _NOISES:
            theta = np.log([max(length, shortest), _scale_for(rows, sizes[0], length), *(relative * sizes)])
            tried.append((_posterior(theta, rows, clock)[0], len(tried), theta))
    tried.sort()
    first = tried[0][2]
    return [first, next((theta for _, _, theta in tried if theta[0] != first[0]), first)]


def _negative_log_likelihood(theta: np.ndarray, rows: Rows, clock: float | None) -> tuple[float, np.ndarray]:
    """-log p(y) and its gradient in log (length, scale, noise).

    With coefficients z ~ N(0, 1), posterior mean z and covariance V, Fisher's identity gives
    d log p / d log S_j = (z_j^2 + V_jj - 1) / 2 and d log p / d log v_i = ((r_i^2 + phi_i V phi_i) / v_i - 1) / 2.
    """
    value, frequencies, phi, variances, factor, z, residual = _posterior(theta, rows, clock)
    inverse = _potri(factor, lower=0)[0]
    inverse = np.triu(inverse) + np.triu(inverse, 1).T
    spectral = 0.5 * (z**2 + np.diag(inverse) - 1.0)
    spread = np.einsum("ij,ij->i", phi @ inverse, phi)
    by_row = 0.5 * ((residual**2 + spread) / variances - 1.0)
    gradient = [spectral @ (1.0 - (frequencies * math.exp(theta[0])) ** 2), 2 * spectral.sum()]
    gradient += [2 * by_row[rows.group == g].sum() for g in range(rows.n_groups)]
    return value, -np.array(gradient)


def _posterior(theta: np.ndarray, rows: Rows, clock: float | None) -> tuple:
    """-log p(y), and the quantities from which its gradient is computed."""
    frequencies, root = _spectrum(math.exp(theta[0]), math.exp(theta[1]))
    variances = _variances(rows, np.exp(theta[2:]))
    phi = _design(rows, frequencies, clock) * root
    weighted = phi / variances[:, None]
    factor = _cholesky(np.eye(len(root)) + weighted.T @ phi)
    z = cho_solve((factor, False), weighted.T @ rows.y)
    residual = rows.y - phi @ z
    value = 0.5 * (
        np.sum(residual**2 / variances)
        + z @ z
        + np.sum(np.log(variances))
        + 2 * np.sum(np.log(np.diag(factor)))
        + len(residual) * math.log(2 * math.pi)
    )
    return float(value), frequencies, phi, variances, factor, z, residual


def _spectrum(length: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies of the columns (constant, cosines, sines) on the unit window, and the deviations of their
    coefficients."""
    step = 2 * math.pi / (1.0 + 6.0 * length)
    positive = step * np.arange(1, math.ceil(6.5 / length / step) + 1)
    density = scale**2 * length * step / math.sqrt(2 * math.pi)
    root = math.sqrt(2 * density) * np.exp(-0.25 * (positive * length) ** 2)
    return np.concatenate([[0.0], positive, positive]), np.concatenate([[math.sqrt(density)], root, root])


def _design(rows: Rows, frequencies: np.ndarray, clock: float | None) -> np.ndarray:
    design = np.empty((len(rows.t), len(frequencies)))
    for order in np.unique(rows.derivative):
        selected = rows.derivative == order
        design[selected] = _columns(rows.t[selected], int(order), frequencies, clock)
    return design


def _columns(x: np.ndarray, order: int, frequencies: np.ndarray, clock: float | None) -> np.ndarray:
    """The `order`-th derivative in x of the columns on their clock."""
    if clock is None:
        return _waves(x, order, frequencies)
    rate = 1.0 / math.log1p(1.0 / clock)
    x = np.maximum(x, 0.0)
    ticks = rate * np.log1p(x / clock)
    terms = [s * rate**k * _waves(ticks, k, frequencies) for k, s in enumerate(_STIRLING[order]) if s != 0]
    return sum(terms[1:], terms[0]) / (clock + x)[:, None] ** order


def _waves(x: np.ndarray, order: int, frequencies: np.ndarray) -> np.ndarray:
    positive = frequencies[1 : len(frequencies) // 2 + 1]
    angle = np.multiply.outer(x, positive)
    cosine, sine = np.cos(angle), np.sin(angle)
    # each derivative shifts both waves by a quarter period
    turned = ((cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine))[order % 4]
    constant = np.full((len(x), 1), 1.0 if order == 0 else 0.0)
    return np.hstack([constant, turned[0] * positive**order, turned[1] * positive**order])


def _normal_equations(
    rows: Rows, frequencies: np.ndarray, root: np.ndarray, noise: np.ndarray, clock: float | None
) -> tuple[np.ndarray, np.ndarray]:
    m = len(root)
    gram, moment = np.zeros((m, m)), np.zeros(m)
    variances = _variances(rows, noise)
    for lo in range(0, len(rows.t), _CHUNK):
        part = np.arange(lo, min(lo + _CHUNK, len(rows.t)))
        phi = _design(rows[part], frequencies, clock) * root
        weighted = phi / variances[part, None]
        gram += weighted.T @ phi
        moment += weighted.T @ rows.y[part]
    return gram, moment


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    """The upper Cholesky factor; a matrix that rounding made indefinite gets the smallest sufficient ridge."""
    factor, info = _potrf(matrix, lower=0, clean=1)
    ridge = 1e-14 * float(np.trace(matrix))
    while info != 0:
        factor, info = _potrf(matrix + ridge * np.eye(len(matrix)), lower=0, clean=1)
        ridge *= 10
    return factor


def _sizes(rows: Rows) -> np.ndarray:
    """The standard deviation of each measured column."""
    deviations = [float(np.std(rows.y[rows.group == g])) for g in range(rows.n_groups)]
    return np.array([d if d > 0 else 1e-12 for d in deviations])


def _variances(rows: Rows, noise: np.ndarray) -> np.ndarray:
    """The noise variance of each row; exactly known rows get a small, fixed one."""
    exact = _EXACT * _sizes(rows)[0] * 4.0 ** (rows.derivative - rows.lead)
    return np.where(rows.group >= 0, noise[rows.group], exact) ** 2 / rows.weight


def _scale_for(rows: Rows, size: float, length: float) -> float:
    """The scale at which the lowest measured derivative has its observed size: var u^(d) = s^2 (2d - 1)!! / l^2d."""
    return size * length**rows.lead / math.sqrt(math.prod(range(1, 2 * rows.lead, 2)))


def _thin(rows: Rows, most: int) -> Rows:
    """About `most` rows, evenly over the record, and all rows that are known exactly."""
    step = math.ceil(len(rows.t) / most)
    keep = rows.group < 0
    for group in range(rows.n_groups):
        keep[np.flatnonzero(rows.group == group)[::step]] = True
    return rows[keep]
