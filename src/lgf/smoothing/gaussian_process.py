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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
_ITERATIONS = 60
_TOLERANCE = 1e-9  # relative fall of the negative log-likelihood below which it is at its minimum
_ROUGHLY = 1e-5  # the same, to compare starts and clocks
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
    z = np.linalg.solve(np.eye(len(root)) + gram, moment)
    derivatives = np.array([rows.derivative[rows.group == g][0] for g in range(rows.n_groups)])
    return GaussianProcess(
        start, window, mean, clock, length, tuple((noise / window**derivatives).tolist()), frequencies, root * z
    )


def _choose_clock(rows: Rows, clocks: tuple[float | None, ...]) -> tuple[float | None, np.ndarray | None]:
    """The clock (time itself, unless another one is significantly better) and the hyperparameters on it."""
    plain, value = _best_of_starts(rows, None)
    if math.exp(plain[0]) < _SHORTEST_FOR_CLOCKS:
        return None, plain
    best = value - _CLOCK_GAIN, None, plain
    for clock in clocks:
        if clock is not None:
            theta, value = _best_of_starts(rows, clock)
            best = min(best, (value, clock, theta), key=lambda candidate: candidate[0])
    return best[1], best[2]


def _maximise(rows: Rows, clock: float | None, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Logarithms of length, scale and noise of each group at the maximum, and the negative log-likelihood there."""
    start = _best_of_starts(rows, clock)[0] if start is None else start
    return _minimum(
        lambda theta: _negative_log_likelihood(theta, rows, clock), start, *_bounds(rows, start), _TOLERANCE
    )


def _best_of_starts(rows: Rows, clock: float | None) -> tuple[np.ndarray, float]:
    """About the maximum: the better one of those near the best two points of a grid."""
    return min(
        (
            _minimum(lambda x: _negative_log_likelihood(x, rows, clock), theta, *_bounds(rows, theta), _ROUGHLY)
            for theta in _starts(rows, clock)
        ),
        key=lambda found: found[1],
    )


def _bounds(rows: Rows, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of the hyperparameters: on a flat likelihood the scale could grow until it overflows."""
    bounds = [(math.log(_shortest(rows)), math.log(6.0)), (start[1] - 12.0, start[1] + 12.0)]
    bounds += [(math.log(1e-5 * size), math.log(3 * size)) for size in rows.deviations]
    lower, upper = np.array(bounds).T
    return lower, upper


def _shortest(rows: Rows) -> float:
    """The shortest length that is tried."""
    return max(0.7 * float(np.median(np.diff(np.unique(rows.t[rows.group >= 0])))), _SHORTEST)


def _minimum(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    x: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    tolerance: float,
) -> tuple[np.ndarray, float]:
    """The minimum of a function of a few variables within bounds, by BFGS on those that are free; (x, value).

    SciPy has it, but its import takes longer than all the rest of the smoothing.
    """
    x = np.clip(x, lower, upper)
    value, gradient = function(x)
    inverse = np.eye(len(x)) / max(float(np.linalg.norm(gradient)), 1e-300)  # the first step has length 1
    for _ in range(_ITERATIONS):
        free = ~(((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0)))
        direction = np.zeros(len(x))
        direction[free] = -inverse[np.ix_(free, free)] @ gradient[free]
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            break
        step = min(1.0, 1.0 / length)  # of the logarithms: shorter lengths take many columns
        while step > 1e-6:
            moved = np.clip(x + step * direction, lower, upper)
            other, slope = function(moved)
            if other <= value + 1e-4 * float(gradient @ (moved - x)):
                break
            step *= 0.4
        else:
            break
        change, bend, fall = moved - x, slope - gradient, value - other
        x, value, gradient = moved, other, slope
        if fall <= tolerance * max(abs(value), 1.0):
            break
        curvature = float(change @ bend)
        if curvature > 1e-10 * float(np.linalg.norm(change) * np.linalg.norm(bend)):
            turn = np.eye(len(x)) - np.outer(change, bend) / curvature
            inverse = turn @ inverse @ turn.T + np.outer(change, change) / curvature
    return x, value


def _starts(rows: Rows, clock: float | None) -> list[np.ndarray]:
    """The best two points of a grid, of different lengths."""
    tried, sizes, shortest = [], rows.deviations, _shortest(rows)
    for length in _LENGTHS:
        if tried and length < max(shortest, 0.0 if clock is None else _SHORTEST_FOR_CLOCKS):
            break
        length, scale = max(length, shortest), _scale_for(rows, sizes[0], length)
        basis = _basis_of(length, scale, rows, clock)
        for relative in _NOISES:
            theta = np.log([length, scale, *(relative * sizes)])
            tried.append((_likelihood(basis, rows, relative * sizes), len(tried), theta))
    tried.sort()
    first = tried[0][2]
    return [first, next((theta for _, _, theta in tried if theta[0] != first[0]), first)]


@dataclass(frozen=True, eq=False)
class _Basis:
    """The columns phi of a length and scale at the rows, and by group of rows, the exact ones last: phi' phi, phi' y
    and y' y, each with the weights of the rows."""

    frequencies: np.ndarray
    phi: np.ndarray  # [row, m]
    grams: list[np.ndarray]
    moments: list[np.ndarray]
    squares: list[float]


def _basis_of(length: float, scale: float, rows: Rows, clock: float | None) -> _Basis:
    frequencies, root = _spectrum(length, scale)
    phi = _design(rows, frequencies, clock) * root
    weights = np.where(rows.group >= 0, rows.weight, 1.0 / _exact_variances(rows))
    grams, moments, squares = [], [], []
    for members in rows.members:
        part, y, w = phi[members], rows.y[members], weights[members]
        weighted = part * w[:, None]
        grams.append(weighted.T @ part)
        moments.append(weighted.T @ y)
        squares.append(float(y @ (w * y)))
    return _Basis(frequencies, phi, grams, moments, squares)


def _likelihood(basis: _Basis, rows: Rows, noise: np.ndarray) -> float:
    """-log p(y) = (y' K^-1 y + log det K + n log 2 pi) / 2, with K = phi phi' + the variances of the noise.

    Bordering I + phi' W phi with phi' W y and y' W y makes its Cholesky factor end in the root of y' K^-1 y.
    """
    precisions = [*(1.0 / noise**2), 1.0]
    m = len(basis.frequencies)
    bordered = np.zeros((m + 1, m + 1))  # the factor reads the lower triangle only
    bordered[:m, :m] = sum(p * gram for p, gram in zip(precisions, basis.grams, strict=True)) + np.eye(m)
    bordered[m, :m] = sum(p * moment for p, moment in zip(precisions, basis.moments, strict=True))
    square = sum(p * s for p, s in zip(precisions, basis.squares, strict=True))
    bordered[m, m] = square * (1.0 + 1e-13)  # rounding must not make it indefinite
    diagonal = np.diag(_cholesky(bordered))
    determinant = 2.0 * float(np.log(diagonal[:m]).sum()) + float(np.log(_variances(rows, noise)).sum())
    return 0.5 * (float(diagonal[m]) ** 2 + determinant + len(rows.y) * math.log(2 * math.pi))


def _negative_log_likelihood(theta: np.ndarray, rows: Rows, clock: float | None) -> tuple[float, np.ndarray]:
    """-log p(y) and its gradient in log (length, scale, noise).

    With coefficients z ~ N(0, 1), posterior mean z and covariance V, Fisher's identity gives
    d log p / d log S_j = (z_j^2 + V_jj - 1) / 2 and d log p / d log v_i = ((r_i^2 + phi_i V phi_i) / v_i - 1) / 2.
    """
    length, noise = math.exp(theta[0]), np.exp(theta[2:])
    basis = _basis_of(length, math.exp(theta[1]), rows, clock)
    precisions = [*(1.0 / noise**2), 1.0]
    identity = np.eye(len(basis.frequencies))
    information = sum(p * gram for p, gram in zip(precisions, basis.grams, strict=True)) + identity
    moment = sum(p * moment for p, moment in zip(precisions, basis.moments, strict=True))
    factor = _cholesky(information)
    solved = np.linalg.solve(information, np.column_stack([identity, moment]))
    inverse, z = solved[:, :-1], solved[:, -1]
    variances = _variances(rows, noise)
    squares = (rows.y - basis.phi @ z) ** 2 / variances
    value = 0.5 * (
        float(squares.sum())
        + float(z @ z)
        + float(np.log(variances).sum())
        + 2 * float(np.log(np.diag(factor)).sum())
        + len(squares) * math.log(2 * math.pi)
    )
    spectral = 0.5 * (z**2 + np.diag(inverse) - 1.0)
    gradient = [spectral @ (1.0 - (basis.frequencies * length) ** 2), 2 * spectral.sum()]
    for members, gram, precision in list(zip(rows.members, basis.grams, precisions, strict=True))[:-1]:
        gradient.append(squares[members].sum() + precision * float(np.vdot(inverse, gram)) - len(squares[members]))
    return value, -np.array(gradient)


def _spectrum(length: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies of the columns (constant, cosines, sines) on the unit window, and the deviations of their
    coefficients."""
    step = 2 * math.pi / (1.0 + 6.0 * length)
    positive = step * np.arange(1, math.ceil(6.5 / length / step) + 1)
    density = scale**2 * length * step / math.sqrt(2 * math.pi)
    root = math.sqrt(2 * density) * np.exp(-0.25 * (positive * length) ** 2)
    return np.concatenate([[0.0], positive, positive]), np.concatenate([[math.sqrt(density)], root, root])


def _design(rows: Rows, frequencies: np.ndarray, clock: float | None) -> np.ndarray:
    if len(rows.orders) == 1:
        return _columns(rows.t, rows.orders[0], frequencies, clock)
    design = np.empty((len(rows.t), len(frequencies)))
    for order in rows.orders:
        selected = rows.derivative == order
        design[selected] = _columns(rows.t[selected], order, frequencies, clock)
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
    """The waves' `order`-th derivative: a constant, cosines and sines of the multiples of the first frequency."""
    positive = frequencies[1 : len(frequencies) // 2 + 1]
    # A power of exp(i x) is one product, a cosine and a sine take ten times as long.
    turns = np.cumprod(np.broadcast_to(np.exp(1j * positive[0] * x)[:, None], (len(x), len(positive))), axis=1)
    # each derivative shifts both waves by a quarter period
    cosine, sine = turns.real, turns.imag
    turned = ((cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine))[order % 4]
    waves = np.empty((len(x), len(frequencies)))
    waves[:, 0] = 1.0 if order == 0 else 0.0
    factors = positive**order
    np.multiply(turned[0], factors, out=waves[:, 1 : len(positive) + 1])
    np.multiply(turned[1], factors, out=waves[:, len(positive) + 1 :])
    return waves


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
    """The lower Cholesky factor; a matrix that rounding made indefinite gets the smallest sufficient ridge."""
    ridge = 1e-14 * float(np.trace(matrix))
    while True:
        try:
            return np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            matrix = matrix + ridge * np.eye(len(matrix))
            ridge *= 10


def _variances(rows: Rows, noise: np.ndarray) -> np.ndarray:
    """The noise variance of each row; exactly known rows get a small, fixed one."""
    return np.where(rows.group >= 0, noise[rows.group] ** 2 / rows.weight, _exact_variances(rows))


def _exact_variances(rows: Rows) -> np.ndarray:
    return (_EXACT * rows.deviations[0] * 4.0 ** (rows.derivative - rows.lead)) ** 2 / rows.weight


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
