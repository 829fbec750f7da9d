"""Terms integrated along a trajectory, as they enter the integral form of an equation, with whitened errors.

The equation x' = sum of c_k f_k reads x(t) = x(0) + sum of c_k F_k(t), where F_k is the integral of f_k along the
trajectory. An equation of second order takes the integral twice. Errors of the trajectory integrate to a drift, so the
noise of a row is white noise plus a random walk. A Kalman filter whitens it in time linear in the number of samples.
"""

from typing import NamedTuple

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import ALLOCATES, FASTEST, INNER, KERNEL
from lgf.solver.kernels.linear import damped_solve, least_squares, normal_equations
from lgf.solver.kernels.machine import LARGEST_VALUE, WIDE, evaluate_one

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


@njit(**KERNEL)
def integrate_terms(programs, owner, x, grid, largest, depth, sample, out, size):
    """Write the integrals of every term at these depths and samples to out [column, depth, sample].

    Column c is program owner[c] with the first constants of x[c]. size[c] receives the largest absolute integral at any
    depth and sample; it is infinite, and the integrals zero, where a term is not below `largest` everywhere.
    """
    R = np.zeros((programs.n_registers, WIDE))
    values = np.empty(grid.t.shape[0])
    integrals = np.zeros((grid.n_depths, grid.node.shape[0]))
    for c in range(owner.shape[0]):
        if not evaluate_one(programs, owner[c], x[c], grid.t, grid.columns, grid.inputs, largest, R, values):
            out[c] = 0.0
            size[c] = np.inf
            continue
        _integrals(values, grid, integrals)
        most = 0.0
        for i in range(integrals.shape[0]):
            for j in range(integrals.shape[1]):
                most = max(most, abs(integrals[i, j]))
        size[c] = most
        for i in range(depth.shape[0]):
            for j in range(sample.shape[0]):
                out[c, i, j] = integrals[depth[i], sample[j]]


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


class Sums(NamedTuple):
    """Sums of terms to be fitted, one after the other: sum i has the places first[i] to first[i + 1]."""

    first: np.ndarray  # int64 [sum + 1]
    term: np.ndarray  # int64 [place]
    column: np.ndarray  # int64 [place] the column of which x are the constants, -1 = none
    x: np.ndarray  # [place, constant] guesses of the constants inside the term, which receive their values
    weight: np.ndarray  # [place] receives the coefficient
    rss: np.ndarray  # [sum] receives the squared residual, infinite if a term is not defined


class Integrated(NamedTuple):
    """Columns that are integrated already, at the places that are needed."""

    integrals: np.ndarray  # [column, depth, sample]
    size: np.ndarray  # [column] infinite if it is not defined
    rows: Rows  # the rows for these places


class _Room(NamedTuple):
    """Room for the fit of one sum."""

    R: np.ndarray
    values: np.ndarray
    integrals: np.ndarray
    A: np.ndarray  # [term, then derivatives by the constants inside; row]
    trial: np.ndarray
    moved: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    weights: np.ndarray
    both: np.ndarray
    residual: np.ndarray  # [row]
    normal: np.ndarray
    moment: np.ndarray
    small_normal: np.ndarray
    small_moment: np.ndarray
    factor: np.ndarray
    held: np.ndarray


@njit(**ALLOCATES)
def _room(programs, sums, grid, n_rows):
    """Room for the largest sum."""
    most_terms = 0
    most = 0
    for i in range(sums.first.shape[0] - 1):
        k = sums.first[i + 1] - sums.first[i]
        q = 0
        for place in range(sums.first[i], sums.first[i + 1]):
            q += programs.p[sums.term[place]]
        most_terms = max(most_terms, k)
        most = max(most, k + q)
    C = sums.x.shape[1]
    return _Room(
        np.zeros((programs.n_registers, WIDE)), np.empty(grid.t.shape[0]),
        np.zeros((grid.n_depths, grid.node.shape[0])), np.zeros((most, n_rows)), np.zeros((most_terms, n_rows)),
        np.zeros((most_terms, C)), np.zeros((most_terms, C)), np.zeros((most_terms, C)), np.zeros(most),
        np.zeros(most), np.zeros(n_rows), np.zeros((most, most)), np.zeros(most), np.zeros((most, most)),
        np.zeros(most), np.zeros((most, most)), np.zeros(most, np.bool_),
    )  # fmt: skip


@njit(**INNER)
def _column(programs, owner, x, grid, rows, room, out):
    """Write the whitened rows of one term to out; False if it is too large somewhere."""
    sound = evaluate_one(programs, owner, x, grid.t, grid.columns, grid.inputs, LARGEST_VALUE, room.R, room.values)
    if sound:
        _integrals(room.values, grid, room.integrals)
        _whitened(room.integrals, rows, out)
    return sound


@njit(**INNER)
def _fit_sum(programs, terms, columns, x, grid, rows, integrated, target, max_iterations, room):
    """Fit one sum to the negative target; returns its squared residual, the coefficients in room.weights."""
    k = terms.shape[0]
    N = target.shape[0]
    A, trial, moved, weights, both = room.A, room.trial, room.moved, room.weights, room.both
    residual, normal, moment, factor, held = room.residual, room.normal, room.moment, room.factor, room.held
    size = k
    for i in range(k):
        size += programs.p[terms[i]]
        c = columns[i]
        if c >= 0:
            if not integrated.size[c] < np.inf:
                return np.inf
            _whitened(integrated.integrals[c], integrated.rows, A[i])
        elif not _column(programs, terms[i], x[i], grid, rows, room, A[i]):
            return np.inf
    rss = least_squares(A, target, k, weights, normal, moment, factor, held, residual)
    if size == k:
        return rss
    for i in range(k):
        for j in range(x.shape[1]):
            moved[i, j] = x[i, j]
            room.lower[i, j] = min(x[i, j] * 20.0, x[i, j] / 20.0)
            room.upper[i, j] = max(x[i, j] * 20.0, x[i, j] / 20.0)
        for r in range(N):
            trial[i, r] = A[i, r]
    damping = 1e-2
    for _ in range(max_iterations):
        # Derivatives by the inner constants stand below the columns.
        place = k
        for i in range(k):
            for j in range(programs.p[terms[i]]):
                step = 1e-4 * max(abs(x[i, j]), 1e-6)
                moved[i, j] = x[i, j] + step
                sound = _column(programs, terms[i], moved[i], grid, rows, room, A[place])
                moved[i, j] = x[i, j]
                for r in range(N):
                    A[place, r] = (A[place, r] - A[i, r]) / step * weights[i] if sound else 0.0
                place += 1
        normal_equations(A, target, size, normal, moment)
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
                    moved[i, j] = min(max(x[i, j] + both[place], room.lower[i, j]), room.upper[i, j])
                    place += 1
                if programs.p[terms[i]] > 0:
                    sound = sound and _column(programs, terms[i], moved[i], grid, rows, room, trial[i])
            new = np.inf
            if sound:
                new = least_squares(
                    trial, target, k, both, room.small_normal, room.small_moment, factor, held, residual
                )
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
    return rss


@njit(**KERNEL)
def fit_sums(programs, sums, grid, rows, integrated, y, max_iterations):
    """Fit coefficients and inner constants of each sum of terms, so that it explains the whitened rows y.

    The inner constants stay within a factor of 20 of their guesses. Gauss-Newton with damping on them; the coefficients
    are projected out.
    """
    room = _room(programs, sums, grid, y.shape[0])
    target = -y
    for i in range(sums.first.shape[0] - 1):
        own = slice(sums.first[i], sums.first[i + 1])
        term, column, x = sums.term[own], sums.column[own], sums.x[own]
        sums.rss[i] = _fit_sum(programs, term, column, x, grid, rows, integrated, target, max_iterations, room)
        for j in range(sums.first[i + 1] - sums.first[i]):
            sums.weight[sums.first[i] + j] = room.weights[j]
