"""Selection of terms by a beam search over sets of columns, on their Gram matrix.

A set is scored by its description length n ln(rss / n) + k ln(n) + 2 ln(2) bits. A column with a constant inside may
have a tangent, its derivative with respect to the logarithm of that constant. The tangent of a chosen column is free
to move along, so a coarse grid of such constants suffices.
"""

import math
from typing import NamedTuple

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import FASTEST, INNER, KERNEL

_SMALLEST = 1e-5  # part of a column outside the span of a set, below which it adds nothing
_SMALLEST_TANGENT = 1e-4


class Columns(NamedTuple):
    """Columns by their inner products; tangents stand behind the columns in the Gram matrix."""

    gram: np.ndarray  # [column and tangent, column and tangent], columns of length 1
    moment: np.ndarray  # [column and tangent] products with the explained rows
    square: float  # squared length of the explained rows
    term: np.ndarray  # int64 [column] which term a column belongs to; a set has a term once
    tangent: np.ndarray  # int64 [column] its place in the Gram matrix, -1 = none
    cost: np.ndarray  # [column] of adding it, in units of description length; equal or infinite for those of a term
    key: np.ndarray  # uint64 [term] random numbers, to recognise sets


class BeamOptions(NamedTuple):
    """Sizes of the beam search."""

    width: int  # sets that are extended
    depth: int  # terms of a set
    branches: int  # extensions of a set
    swaps: int  # sets whose terms are dropped and exchanged, in each of two rounds
    swap_branches: int
    margin: float  # a level whose best set is worse by this much ends the search
    n_rows: float
    floor: float  # least squared residual that is believed


class Pool(NamedTuple):
    """The sets found so far, with a hash table of their keys."""

    columns: np.ndarray  # int64 [set, depth]
    size: np.ndarray  # int64 [set]
    key: np.ndarray  # uint64 [set]
    length: np.ndarray  # [set] description length
    table: np.ndarray  # int64 [power of two] set or -1
    count: np.ndarray  # int64 [1]


def make_pool(options: BeamOptions) -> Pool:
    """An empty pool with room for all sets of a search."""
    capacity = options.depth * (options.width * options.branches + 2 * options.swaps * (options.swap_branches + 1))
    slots = 1 << (2 * capacity - 1).bit_length()
    return Pool(
        np.zeros((capacity, options.depth + 1), np.int64), np.zeros(capacity, np.int64), np.zeros(capacity, np.uint64),
        np.full(capacity, np.inf), np.full(slots, -1, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


class _Span(NamedTuple):
    """The projections of all columns on the span of one set.

    The last four are elements of the Gram matrix, gathered once, so that loops over all columns run along arrays.
    """

    inside: np.ndarray  # [direction, column] components along an orthonormal basis
    moment: np.ndarray  # [column] products of the residual with the columns
    outside: np.ndarray  # [column] squared length outside the span
    mixed: np.ndarray  # [pair] product of a column with its tangent, outside the span
    gain: np.ndarray  # [column] fall of the squared residual if it is added
    square: np.ndarray  # [column and tangent] squared length
    column: np.ndarray  # int64 [pair] the columns with a tangent
    tangent: np.ndarray  # int64 [pair] their tangents
    product: np.ndarray  # [pair] of the two


@njit(**INNER)
def _empty_span(columns, depth):
    """Room for the span of a set of so many columns."""
    M, n_columns = columns.gram.shape[0], columns.tangent.shape[0]
    square = np.zeros(M)
    for j in range(M):
        square[j] = columns.gram[j, j]
    n_pairs = 0
    for j in range(n_columns):
        n_pairs += columns.tangent[j] >= 0
    column = np.zeros(n_pairs, np.int64)
    tangent = np.zeros(n_pairs, np.int64)
    product = np.zeros(n_pairs)
    i = 0
    for j in range(n_columns):
        if columns.tangent[j] >= 0:
            column[i] = j
            tangent[i] = columns.tangent[j]
            product[i] = columns.gram[j, tangent[i]]
            i += 1
    return _Span(
        np.zeros((2 * depth, M)), np.zeros(M), np.zeros(M), np.zeros(n_pairs), np.zeros(n_columns), square, column,
        tangent, product,
    )  # fmt: skip


@njit(**INNER, fastmath=FASTEST)
def _add_direction(gram, span, n, a):
    """Add column a to a basis of n directions; returns (directions, fall of the squared residual)."""
    if span.outside[a] < _SMALLEST * span.square[a] or span.outside[a] <= 0.0:
        return n, 0.0
    M = gram.shape[0]
    root = 1.0 / math.sqrt(span.outside[a])
    for j in range(M):
        span.inside[n, j] = gram[a, j]
    for k in range(n):
        z = span.inside[k, a]
        for j in range(M):
            span.inside[n, j] -= z * span.inside[k, j]
    along = span.moment[a] * root
    for j in range(M):
        z = span.inside[n, j] * root
        span.inside[n, j] = z
        span.moment[j] -= along * z
        span.outside[j] -= z * z
    return n + 1, along * along


@njit(**INNER)
def _make_span(columns, chosen, size, span):
    """Project all columns on a set; returns the squared residual."""
    for j in range(columns.gram.shape[0]):
        span.moment[j] = columns.moment[j]
        span.outside[j] = span.square[j]
    rss = columns.square
    n = 0
    for i in range(size):
        n, fall = _add_direction(columns.gram, span, n, chosen[i])
        rss -= fall
    for i in range(size):
        if columns.tangent[chosen[i]] >= 0:
            n, fall = _add_direction(columns.gram, span, n, columns.tangent[chosen[i]])
            rss -= fall
    for i in range(span.column.shape[0]):
        span.mixed[i] = span.product[i]
    for k in range(n):
        for i in range(span.column.shape[0]):
            span.mixed[i] -= span.inside[k, span.column[i]] * span.inside[k, span.tangent[i]]
    return rss


@njit(**INNER)
def _push(pool, key, chosen, size, length):
    """The set's place in the pool, added or improved; -1 if it was there and no worse, or the pool is full."""
    mask = np.uint64(pool.table.shape[0] - 1)
    slot = key & mask
    while pool.table[slot] >= 0:
        place = pool.table[slot]
        if pool.key[place] == key:
            if length < pool.length[place]:
                pool.length[place] = length
                for i in range(size):
                    pool.columns[place, i] = chosen[i]
                return place
            return -1
        slot = (slot + np.uint64(1)) & mask
    place = pool.count[0]
    if place == pool.length.shape[0]:
        return -1
    pool.count[0] += 1
    pool.table[slot] = place
    pool.key[place] = key
    pool.size[place] = size
    pool.length[place] = length
    for i in range(size):
        pool.columns[place, i] = chosen[i]
    return place


@njit(**INNER)
def _extend(columns, options, count_cost, pool, span, rss, chosen, size, key, cost, branches, least_left, best,
            best_column, top, touched, n_touched):  # fmt: skip
    """Push the best extensions of a set to the pool; returns the number of touched places."""
    n_terms = columns.key.shape[0]
    for i in range(n_terms):
        best[i] = np.inf
        least_left[i] = np.inf
    outside, moment, gain = span.outside, span.moment, span.gain
    for j in range(gain.shape[0]):
        gain[j] = moment[j] * moment[j] / outside[j] if outside[j] >= _SMALLEST else 0.0
    for i in range(span.column.shape[0]):
        j, s = span.column[i], span.tangent[i]
        if outside[j] < _SMALLEST:
            continue
        mixed = span.mixed[i]
        left = outside[s] - mixed * mixed / outside[j]
        if left > _SMALLEST_TANGENT * span.square[s]:
            rest = moment[s] - moment[j] * mixed / outside[j]
            slope = rest / left
            if abs(slope) < abs((moment[j] - slope * mixed) / outside[j]):  # within a factor e of the grid
                gain[j] += rest * rest / left
    for j in range(columns.term.shape[0]):
        if columns.cost[j] == np.inf:
            continue
        term = columns.term[j]
        left = max(rss - span.gain[j], options.floor)
        if left >= least_left[term]:  # saves most of the logarithms
            continue
        least_left[term] = left
        score = options.n_rows * math.log(left / options.n_rows) + columns.cost[j]
        if score < best[term]:
            best[term] = score
            best_column[term] = j
    for i in range(size):
        best[columns.term[chosen[i]]] = np.inf
    found = 0
    for i in range(n_terms):
        if best[i] == np.inf or (found == branches and best[i] >= best[top[found - 1]]):
            continue
        place = found if found < branches else found - 1
        while place > 0 and best[top[place - 1]] > best[i]:
            top[place] = top[place - 1]
            place -= 1
        top[place] = i
        if found < branches:
            found += 1
    for i in range(found):
        chosen[size] = best_column[top[i]]
        place = _push(pool, key ^ columns.key[top[i]], chosen, size + 1, best[top[i]] + cost + count_cost[size + 1])
        if place >= 0 and n_touched < touched.shape[0]:
            touched[n_touched] = place
            n_touched += 1
    return n_touched


@njit(**KERNEL)
def select_terms(columns, count_cost, options, pool):
    """Fill the pool with sets of columns, the best of each set of terms.

    count_cost [depth + 1] is the description length of the number of terms of a set.
    """
    n_terms = columns.key.shape[0]
    span = _empty_span(columns, options.depth)
    least_left = np.zeros(n_terms)
    best = np.zeros(n_terms)
    best_column = np.zeros(n_terms, np.int64)
    top = np.zeros(max(options.branches, options.swap_branches), np.int64)
    touched = np.zeros(options.width * options.branches + 1, np.int64)
    chosen = np.zeros(options.depth + 1, np.int64)
    level = np.zeros(options.width, np.int64)
    n_level = 1
    least = np.inf
    for size in range(options.depth):
        n_touched = 0
        for i in range(n_level):
            key = np.uint64(0)
            cost = 0.0
            if size > 0:
                key = pool.key[level[i]]
                for j in range(size):
                    chosen[j] = pool.columns[level[i], j]
                    cost += columns.cost[chosen[j]]
            rss = _make_span(columns, chosen, size, span)
            n_touched = _extend(
                columns, options, count_cost, pool, span, rss, chosen, size, key, cost, options.branches,
                least_left, best, best_column, top, touched, n_touched,
            )  # fmt: skip
        # The best of the touched sets, each once, are extended next.
        n_level = 0
        for i in range(n_touched):
            place = touched[i]
            again = False
            for j in range(n_level):
                again = again or level[j] == place
            if again:
                continue
            if n_level == options.width and pool.length[place] >= pool.length[level[n_level - 1]]:
                continue
            j = n_level if n_level < options.width else n_level - 1
            while j > 0 and pool.length[level[j - 1]] > pool.length[place]:
                level[j] = level[j - 1]
                j -= 1
            level[j] = place
            if n_level < options.width:
                n_level += 1
        if n_level == 0:
            break
        least = min(least, pool.length[level[0]])
        if pool.length[level[0]] > least + options.margin:
            break
    done = np.zeros(pool.length.shape[0], np.bool_)
    for _ in range(2):
        for _ in range(options.swaps):
            place = -1
            for i in range(pool.count[0]):
                if not done[i] and (place < 0 or pool.length[i] < pool.length[place]):
                    place = i
            if place < 0:
                break
            done[place] = True
            for drop in range(pool.size[place]):
                size = 0
                cost = 0.0
                key = pool.key[place]
                for j in range(pool.size[place]):
                    if j == drop:
                        key ^= columns.key[columns.term[pool.columns[place, j]]]
                    else:
                        chosen[size] = pool.columns[place, j]
                        cost += columns.cost[chosen[size]]
                        size += 1
                rss = _make_span(columns, chosen, size, span)
                if size > 0:
                    length = options.n_rows * math.log(max(rss, options.floor) / options.n_rows) + cost
                    _push(pool, key, chosen, size, length + count_cost[size])
                _extend(
                    columns, options, count_cost, pool, span, rss, chosen, size, key, cost, options.swap_branches,
                    least_left, best, best_column, top, touched, 0,
                )  # fmt: skip
