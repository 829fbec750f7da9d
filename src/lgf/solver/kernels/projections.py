"""Kernels of the projections of a record on the terms of a grammar, in integral form.

A term is a column over the grid of the record, integrated as often as the measured column was differentiated. All that
is asked of the columns afterwards (what a term explains alone, beside others, in pairs) follows from their inner
products with each other and with the measured column.
"""

import numpy as np
from numba import float32, float64, int64

from lgf.compilation import njit
from lgf.solver.kernels import ALLOCATES, FASTEST, INNER, KERNEL
from lgf.solver.kernels.lanes import LANES, load, repeated, store, where
from lgf.solver.kernels.machine import PROGRAMS, WIDE, run, set_samples

LEAST_FREE = 4e-6
"""The least squared part of a unit column outside others for which it is compared beside them."""
_SIDE_BY_SIDE = 64  # rows that are summed at once


@njit(**ALLOCATES)
def _registers(programs, t, columns, inputs):
    """Register files [block, register, WIDE] that hold the samples, WIDE to a block, for programs run one by one."""
    R = np.zeros(((t.shape[0] + WIDE - 1) // WIDE, programs.n_registers, WIDE))
    for b in range(R.shape[0]):
        set_samples(R[b], t, columns, inputs, b * WIDE)
    return R


@njit(**INNER)
def _run(programs, k, x, R, row):
    """Write program k, for the constants x, to row [sample]."""
    for b in range(R.shape[0]):
        output = run(programs, k, x, R[b])
        first = b * WIDE
        for i in range(min(WIDE, row.shape[0] - first)):
            row[first + i] = R[b, output, i]


@njit(**KERNEL)
def term_rows(programs, owner, relative, unit, units, cofactors, t, columns, inputs, largest, X):
    """Write the terms over the grid, each with root mean square 1, to the rows of X [column, sample].

    Column c is program owner[c]. Its constant j is relative[c, j] over the unit number unit[c, j]: the first units are
    given, the others are the mean absolute values of the cofactors, which are programs without constants. A column that
    is not below `largest` everywhere, or vanishes, is zero.
    """
    N = t.shape[0]
    row = np.empty(N)
    given = units.shape[0]
    x = np.empty(relative.shape[1])
    sizes = np.empty(given + cofactors.outputs.shape[0])
    for k in range(given):
        sizes[k] = units[k]
    R = _registers(cofactors, t, columns, inputs)
    for k in range(cofactors.outputs.shape[0]):
        _run(cofactors, k, x, R, row)
        total = 0.0
        for i in range(N):
            total += abs(row[i])
        sizes[given + k] = total / N if 0.0 < total < largest else 1.0
    R = _registers(programs, t, columns, inputs)
    n = owner.shape[0]
    rows = np.zeros((4, N))
    for first in range(0, n, 4):
        few = min(4, n - first)
        for r in range(few):
            c = first + r
            k = owner[c]
            for j in range(programs.p[k]):
                x[j] = relative[c, j] / sizes[unit[c, j]]
            _run(programs, k, x, R, rows[r])
        totals = _four_squares(rows)
        for r in range(few):
            sound = True
            for i in range(N):
                sound &= abs(rows[r, i]) < largest
            scale = 1.0 / np.sqrt(totals[r] / N) if sound and totals[r] > 1e-200 else 0.0
            for i in range(N):
                X[first + r, i] = rows[r, i] * scale if sound else 0.0


@njit(**INNER)
def _four_squares(rows):
    """The sums of squares of four rows: side by side, because a sum waits for each of its additions."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(rows.shape[1]):
        a += rows[0, i] * rows[0, i]
        b += rows[1, i] * rows[1, i]
        c += rows[2, i] * rows[2, i]
        d += rows[3, i] * rows[3, i]
    return a, b, c, d


@njit(**INNER)
def _squares(x, sums):
    """Write the sums of squares of the columns of x to `sums`."""
    sums[:] = 0.0
    for i in range(x.shape[0]):
        for r in range(_SIDE_BY_SIDE):
            sums[r] += x[i, r] * x[i, r]


@njit(**KERNEL)
def subtract_projection(X, Z):
    """Subtract from the rows of X their projection on the rows of Z; returns the share [row] of their length left."""
    K, M = X.shape
    basis = np.zeros((Z.shape[0], M))
    n = 0
    v = np.empty(M)
    for k in range(Z.shape[0]):
        before = 0.0
        for i in range(M):
            v[i] = Z[k, i]
            before += v[i] * v[i]
        for _ in range(2):
            for q in range(n):
                dot = 0.0
                for i in range(M):
                    dot += v[i] * basis[q, i]
                for i in range(M):
                    v[i] -= dot * basis[q, i]
        after = 0.0
        for i in range(M):
            after += v[i] * v[i]
        if after > 1e-8 * before and after > 0.0:
            for i in range(M):
                basis[n, i] = v[i] / np.sqrt(after)
            n += 1
    left = np.zeros(K)
    # A sum over one row waits for each addition, so the sums of several rows are added up side by side.
    x = np.zeros((M, _SIDE_BY_SIDE), np.float32)
    dot, before, after = np.zeros(_SIDE_BY_SIDE), np.zeros(_SIDE_BY_SIDE), np.zeros(_SIDE_BY_SIDE)
    for first in range(0, K, _SIDE_BY_SIDE):
        rows = min(_SIDE_BY_SIDE, K - first)
        for r in range(rows):
            for i in range(M):
                x[i, r] = X[first + r, i]
        _squares(x, before)
        for q in range(n):
            dot[:] = 0.0
            for i in range(M):
                for r in range(_SIDE_BY_SIDE):
                    dot[r] += x[i, r] * basis[q, i]
            for i in range(M):
                for r in range(_SIDE_BY_SIDE):
                    x[i, r] -= dot[r] * basis[q, i]
        _squares(x, after)
        for r in range(rows):
            for i in range(M):
                X[first + r, i] = x[i, r]
            left[first + r] = np.sqrt(after[r] / before[r]) if before[r] > 0.0 else 0.0
    return left


@njit(**INNER, fastmath=FASTEST)
def _outside(G, c, chosen, W, w):
    """Fill W [n, K] and w [n] with the products of the columns, and of c, with an orthonormal basis of the chosen ones.

    Returns the size of the basis: those of the chosen that the ones before them say are left out.
    """
    K = c.shape[0]
    used = 0
    for a in range(chosen.shape[0]):
        i = chosen[a]
        pivot = G[i, i]
        for q in range(used):
            pivot -= W[q, i] * W[q, i]
        if pivot < LEAST_FREE:
            continue
        scale = 1.0 / np.sqrt(pivot)
        v = c[i]
        for q in range(used):
            v -= W[q, i] * w[q]
        w[used] = v * scale
        for k in range(K):
            W[used, k] = G[i, k]
        for q in range(used):
            factor = W[q, i]
            for k in range(K):
                W[used, k] -= factor * W[q, k]
        for k in range(K):
            W[used, k] *= scale
        used += 1
    return used


@njit(**INNER, fastmath=FASTEST)
def _beside(G, c, W, w, used, free, share):
    """`beside`, from the products with a basis of the chosen columns."""
    K = c.shape[0]
    left = 1.0
    for q in range(used):
        left -= w[q] * w[q]
    left = max(left, 1e-10)
    for k in range(K):
        f = G[k, k]
        s = c[k]
        for q in range(used):
            f -= W[q, k] * W[q, k]
            s -= w[q] * W[q, k]
        free[k] = f
        share[k] = min(max(s / np.sqrt(f * left), -1.0), 1.0) if f > LEAST_FREE else 0.0
    return left


@njit(**KERNEL, fastmath=FASTEST)
def beside(G, c, chosen, free, share):
    """What unit columns are worth beside the chosen ones.

    G [K, K] are their inner products, c [K] those with the unit measured column. free [K] becomes the squared part of
    each column outside the chosen, share [K] its correlation there with what the chosen leave of the measured column,
    0 where the column is not free. Returns the squared part of the measured column that the chosen leave.
    """
    W = np.zeros((chosen.shape[0], c.shape[0]))
    w = np.zeros(chosen.shape[0])
    used = _outside(G, c, chosen, W, w)
    return _beside(G, c, W, w, used, free, share)


@njit(**KERNEL, fastmath=FASTEST)
def best_pairs(G, c, chosen, pair):
    """The best pair of columns beside the chosen ones; pair [K] becomes what each explains with its best partner.

    Shares are of the square that the chosen leave.
    """
    K = c.shape[0]
    W = np.zeros((chosen.shape[0], K))
    w = np.zeros(chosen.shape[0])
    used = _outside(G, c, chosen, W, w)
    free = np.zeros(K)
    share = np.zeros(K)
    _beside(G, c, W, w, used, free, share)
    root = np.zeros(K)
    s = share
    for k in range(K):
        root[k] = 1.0 / np.sqrt(free[k]) if free[k] > LEAST_FREE else 0.0
        pair[k] = share[k] * share[k]
    row = np.empty(K + LANES)
    best = np.empty(LANES)
    top, first, second = -1.0, 0, 0
    for i in range(K):
        if root[i] == 0.0:
            continue
        for j in range(i):
            row[j] = G[i, j]
        for q in range(used):
            v = W[q, i]
            for j in range(i):
                row[j] -= v * W[q, j]
        si = s[i]
        for j in range(i):
            g = row[j] * root[i] * root[j]
            det = 1.0 - g * g
            e = (si * si + s[j] * s[j] - 2.0 * si * s[j] * g) / max(det, 1e-3)
            row[j] = min(e, 1.0) if det > 1e-3 and root[j] > 0.0 else 0.0
        for j in range(i):
            pair[j] = row[j] if row[j] > pair[j] else pair[j]
        row[i : i + LANES] = -1.0
        highest = _highest(row, i, best)
        if highest > pair[i]:
            pair[i] = highest
        if highest > top:
            top, first = highest, i
            second = 0
            while row[second] != highest:
                second += 1
    return first, second


@njit(**INNER)
def _highest(row, n, best):
    """The largest of the first n numbers above -1, which the next eight must be; best [LANES] is memory."""
    most = repeated(-1.0)
    for j in range(0, n, LANES):
        values = load(row, j)
        most = where(values > most, values, most)
    store(best, most, 0)
    highest = best[0]
    for k in range(1, LANES):
        if best[k] > highest:
            highest = best[k]
    return highest


TERM_ROWS = (
    PROGRAMS, int64[::1], float64[:, ::1], int64[:, ::1], float64[::1], PROGRAMS, float64[::1], float64[:, ::1],
    float64[:, ::1], float64, float32[:, ::1],
)  # fmt: skip
SUBTRACT_PROJECTION = (float32[:, ::1], float32[:, ::1])
BESIDE = (float32[:, ::1], float64[::1], int64[::1], float64[::1], float64[::1])
BEST_PAIRS = (float32[:, ::1], float64[::1], int64[::1], float64[::1])
