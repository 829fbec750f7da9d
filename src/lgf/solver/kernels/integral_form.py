"""Terms integrated along a trajectory, as they enter the integral form of an equation, with whitened errors.

The equation x' = sum of c_k f_k reads x(t) = x(0) + sum of c_k F_k(t), where F_k is the integral of f_k along the
trajectory. An equation of second order takes the integral twice. Errors of the trajectory integrate to a drift, so the
noise of a row is white noise plus a random walk. A Kalman filter whitens it in time linear in the number of samples.
"""

from typing import NamedTuple

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import FASTEST, INNER, KERNEL
from lgf.solver.kernels.linear import damped_solve
from lgf.solver.kernels.machine import WIDE, Program, evaluate

NODES = 4  # subdivisions of the time between two samples


class Grid(NamedTuple):
    """A trajectory at the nodes of a quadrature: every sample, and three nodes between two samples.

    Sample i is node NODES * i minus three for each experiment that ended before.
    """

    t: np.ndarray  # [node]
    columns: np.ndarray  # [column, node]
    inputs: np.ndarray  # [input, node]
    first: np.ndarray  # [E + 1] samples of the experiments
    node: np.ndarray  # [sample] its node
    weights: np.ndarray  # [depth, NODES + 1] of the integral over one interval
    n_depths: int  # integrals 0 .. n_depths - 1 are needed


class Rows(NamedTuple):
    """The measured rows of one state and their whitening, for one noise model."""

    sample: np.ndarray  # [row]
    depth: np.ndarray  # [row] how often a term is integrated
    scale: np.ndarray  # [row] one over the noise
    restart: np.ndarray  # [row] whether the filter starts anew
    gain: np.ndarray  # [row] of the filter
    precision: np.ndarray  # [row] one over the deviation of the innovation
    nuisance: np.ndarray  # [polynomial, row] orthonormal: unknown initial values, whitened


@njit(**INNER, fastmath=FASTEST)
def _integrals(values, grid, out):
    """Write the integrals of a term's values at the nodes to out [depth, sample]."""
    n_depths = grid.n_depths
    for e in range(grid.first.shape[0] - 1):
        begin = grid.first[e]
        for m in range(n_depths):
            out[m, begin] = 0.0
        out[0, begin] = values[grid.node[begin]]
        for i in range(begin, grid.first[e + 1] - 1):
            k = grid.node[i]
            h = grid.t[k + NODES] - grid.t[k]
            out[0, i + 1] = values[k + NODES]
            power = 1.0
            for m in range(1, n_depths):
                power *= h
                total = 0.0
                for q in range(NODES + 1):
                    total += grid.weights[m - 1, q] * values[k + q]
                total *= power
                factor = 1.0
                for j in range(m):
                    total += factor * out[m - j, i]
                    factor *= h / (j + 1)
                out[m, i + 1] = total


@njit(**INNER, fastmath=FASTEST)
def _whitened(integrals, rows, out):
    """Write the whitened rows of a term's integrals, initial values projected out, to out [row]."""
    R = rows.sample.shape[0]
    level = 0.0
    for r in range(R):
        if rows.restart[r]:
            level = 0.0
        innovation = integrals[rows.depth[r], rows.sample[r]] * rows.scale[r] - level
        level += rows.gain[r] * innovation
        out[r] = innovation * rows.precision[r]
    for k in range(rows.nuisance.shape[0]):
        total = 0.0
        for r in range(R):
            total += rows.nuisance[k, r] * out[r]
        for r in range(R):
            out[r] -= total * rows.nuisance[k, r]


@njit(**INNER)
def _evaluate(programs, owner, x, grid, largest, R, values):
    """Write one term's values at the nodes to values [1, node]; False if they are not below `largest` everywhere."""
    program = Program(
        programs.code[programs.code_first[owner] : programs.code_first[owner + 1]],
        programs.literals[programs.literal_first[owner] : programs.literal_first[owner + 1]],
        programs.outputs[owner : owner + 1],
        programs.n_registers,
        programs.constants_at,
    )
    evaluate(program, x[: programs.p[owner]], grid.t, grid.columns, grid.inputs, R, values)
    for i in range(values.shape[1]):
        if not abs(values[0, i]) < largest:
            return False
    return True


@njit(**KERNEL)
def integrate_terms(programs, owner, x, grid, largest, out):
    """Write the integrals of every term to out [column, depth, sample]; zeros where a term is not below `largest`.

    Column c is program owner[c] with the first constants of x[c].
    """
    R = np.zeros((programs.n_registers, WIDE))
    values = np.empty((1, grid.t.shape[0]))
    for c in range(owner.shape[0]):
        if _evaluate(programs, owner[c], x[c], grid, largest, R, values):
            _integrals(values[0], grid, out[c])
        else:
            out[c] = 0.0


@njit(**KERNEL)
def integrate_values(values, grid, out):
    """Write the integrals of every row of values [column, node] to out [column, depth, sample]."""
    for c in range(values.shape[0]):
        _integrals(values[c], grid, out[c])


@njit(**KERNEL)
def whiten(integrals, rows, out):
    """Write the whitened rows of every column of integrals [column, depth, sample] to out [column, row]."""
    for c in range(integrals.shape[0]):
        _whitened(integrals[c], rows, out[c])


@njit(**INNER, fastmath=FASTEST)
def _least_squares(A, k, y, weights, normal, moment, factor, held):
    """Write the weights of the first k rows of A [., row] that explain y best; returns the squared residual."""
    for i in range(k):
        for j in range(i + 1):
            s = 0.0
            for r in range(y.shape[0]):
                s += A[i, r] * A[j, r]
            normal[i, j] = s
            normal[j, i] = s
        s = 0.0
        for r in range(y.shape[0]):
            s -= A[i, r] * y[r]
        moment[i] = s
        held[i] = False
    damped_solve(normal, moment, k, 1e-12, held, weights, factor)
    total = 0.0
    for r in range(y.shape[0]):
        s = y[r]
        for i in range(k):
            s -= weights[i] * A[i, r]
        total += s * s
    return total


@njit(**KERNEL)
def fit_row(programs, terms, x, grid, rows, y, lower, upper, max_iterations):
    """Coefficients and inner constants of a sum of terms that explain the whitened rows y: (coefficients, rss).

    x [term, constant] holds initial guesses of the constants inside the terms and receives their values, which stay
    between lower and upper. Gauss-Newton with damping on the inner constants; the coefficients are projected out.
    """
    k = terms.shape[0]
    N = y.shape[0]
    q = 0
    for i in range(k):
        q += programs.p[terms[i]]
    R = np.zeros((programs.n_registers, WIDE))
    values = np.empty((1, grid.t.shape[0]))
    integrals = np.zeros((grid.n_depths, grid.node.shape[0]))
    A = np.zeros((k + q, N))
    trial = np.zeros((k, N))
    moved = x.copy()
    size = k + q
    weights = np.zeros(size)
    both = np.zeros(size)
    normal = np.zeros((size, size))
    moment = np.zeros(size)
    factor = np.zeros((size, size))
    held = np.zeros(size, np.bool_)
    for i in range(k):
        if not _evaluate(programs, terms[i], x[i], grid, 1e12, R, values):
            return weights[:k], np.inf
        _integrals(values[0], grid, integrals)
        _whitened(integrals, rows, A[i])
    rss = _least_squares(A, k, y, weights, normal, moment, factor, held)
    if q == 0:
        return weights[:k], rss
    damping = 1e-2
    for _ in range(max_iterations):
        # Derivatives by the inner constants stand below the columns.
        place = k
        for i in range(k):
            for j in range(programs.p[terms[i]]):
                step = 1e-4 * max(abs(x[i, j]), 1e-6)
                moved[i, j] = x[i, j] + step
                sound = _evaluate(programs, terms[i], moved[i], grid, 1e12, R, values)
                moved[i, j] = x[i, j]
                if sound:
                    _integrals(values[0], grid, integrals)
                    _whitened(integrals, rows, A[place])
                    for r in range(N):
                        A[place, r] = (A[place, r] - A[i, r]) / step * weights[i]
                else:
                    for r in range(N):
                        A[place, r] = 0.0
                place += 1
        for i in range(size):
            for j in range(i + 1):
                s = 0.0
                for r in range(N):
                    s += A[i, r] * A[j, r]
                normal[i, j] = s
                normal[j, i] = s
            s = 0.0
            for r in range(N):
                s -= A[i, r] * y[r]
            moment[i] = s
            held[i] = False
        gain = 0.0
        for _ in range(5):
            for i in range(k, size):
                normal[i, i] *= 1.0 + damping
            damped_solve(normal, moment, size, 1e-12, held, both, factor)
            for i in range(k, size):
                normal[i, i] /= 1.0 + damping
            place = k
            sound = True
            for i in range(k):
                for j in range(programs.p[terms[i]]):
                    moved[i, j] = min(max(x[i, j] + both[place], lower[i, j]), upper[i, j])
                    place += 1
                sound = sound and _evaluate(programs, terms[i], moved[i], grid, 1e12, R, values)
                if sound:
                    _integrals(values[0], grid, integrals)
                    _whitened(integrals, rows, trial[i])
            new = np.inf
            if sound:
                new = _least_squares(trial, k, y, both, normal[:k, :k].copy(), moment.copy(), factor, held)
            if new < rss:
                gain = (rss - new) / rss
                rss = new
                for i in range(k):
                    weights[i] = both[i]
                    for r in range(N):
                        A[i, r] = trial[i, r]
                    for j in range(x.shape[1]):
                        x[i, j] = moved[i, j]
                damping = max(0.2 * damping, 1e-8)
                break
            for i in range(k):
                for j in range(x.shape[1]):
                    moved[i, j] = x[i, j]
            damping *= 8.0
        if gain < 1e-3:
            break
    return weights[:k], rss
