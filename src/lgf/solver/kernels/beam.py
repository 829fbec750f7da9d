"""Selection of terms by a beam search over sets of columns, on their inner products.

A set is scored by its description length n ln(rss / n) + k ln(n) + 2 ln(2) bits. A column with a constant inside may
have a tangent, its derivative with respect to the logarithm of that constant. The tangent of a chosen column is free
to move along, so a coarse grid of such constants suffices.

A search chooses about one column in twenty, so only the products of these with all others are computed.
"""

import math
from typing import NamedTuple

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import FASTEST, INNER, KERNEL

_INLINED = INNER | {"inline": "always"}  # with few columns a call takes as long as the function
_SMALLEST = 1e-5  # part of a column outside the span of a set, below which it adds nothing
_SMALLEST_TANGENT = 1e-4


class Choices(NamedTuple):
    """Problems of selection that differ in their columns and costs.

    The tangents of the first columns stand behind all columns, in the same order, so that loops run along arrays.
    """

    rows: np.ndarray  # [problem, column and tangent, row], columns of length 1
    y: np.ndarray  # [row] what is explained
    term: np.ndarray  # int64 [column] which term a column belongs to; a set has a term once
    cost: np.ndarray  # [problem, term] of adding it, as description length
    count_cost: np.ndarray  # [problem, depth + 1] the description length of the number of terms of a set
    key: np.ndarray  # uint64 [term] random numbers, to recognise sets


class BeamOptions(NamedTuple):
    """Sizes of the beam search."""

    width: int  # sets that are extended
    depth: int  # terms of a set
    branches: int  # extensions of a set
    swaps: int  # sets whose terms are dropped and exchanged, in each of two rounds
    swap_branches: int
    margin: float  # a level whose best set is worse by this much ends the search
    floor: float  # least squared residual that is believed
    fewest: int  # terms of a set that is listed
    listed: int  # the shortest sets of each problem, which are returned


class Listed(NamedTuple):
    """The shortest sets of each problem, shortest first."""

    count: np.ndarray  # int64 [problem] how many there are
    columns: np.ndarray  # int64 [problem, set, depth]
    size: np.ndarray  # int64 [problem, set]
    length: np.ndarray  # [problem, set] description length


class _Columns(NamedTuple):
    """The columns of one problem."""

    rows: np.ndarray
    moment: np.ndarray  # [column and tangent] products with the explained rows
    square: float  # squared length of the explained rows
    term: np.ndarray
    cost: np.ndarray
    weight: np.ndarray  # [term] exp(cost / rows): a squared residual times it orders terms as the description length
    key: np.ndarray


class _Pool(NamedTuple):
    """The sets found so far, with a hash table of their keys."""

    columns: np.ndarray  # int64 [set, depth]
    size: np.ndarray  # int64 [set]
    key: np.ndarray  # uint64 [set]
    length: np.ndarray  # [set] description length
    extended: np.ndarray  # bool [set] whether the extensions of its columns are in the pool
    table: np.ndarray  # int64 [power of two] set or -1
    count: np.ndarray  # int64 [1]


class _Span(NamedTuple):
    """The products of the columns, and the projections of all columns on the span of one set."""

    products: np.ndarray  # [column and tangent, column and tangent], of those that are stored
    stored: np.ndarray  # bool [column and tangent]
    wanted: np.ndarray  # int64, room for columns whose products are computed next
    inside: np.ndarray  # [direction, column] components along an orthonormal basis
    moment: np.ndarray  # [column] products of the residual with the columns
    outside: np.ndarray  # [column] squared length outside the span
    mixed: np.ndarray  # [pair] product of a column with its tangent, outside the span
    gain: np.ndarray  # [column] fall of the squared residual if it is added
    square: np.ndarray  # [column and tangent] squared length
    product: np.ndarray  # [pair] of a column and its tangent


@njit(**INNER)
def _empty_pool(options):
    """A pool with room for all sets of a search."""
    capacity = options.depth * (options.width * options.branches + 2 * options.swaps * (options.swap_branches + 1))
    slots = 1
    while slots < 2 * capacity:
        slots *= 2
    return _Pool(
        np.zeros((capacity, options.depth + 1), np.int64), np.zeros(capacity, np.int64), np.zeros(capacity, np.uint64),
        np.zeros(capacity), np.zeros(capacity, np.bool_), np.zeros(slots, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


@njit(**INNER)
def _empty_span(choices, options):
    """Room for the span of a set of so many columns."""
    M, n_columns = choices.rows.shape[1], choices.term.shape[0]
    n_pairs = M - n_columns
    # Memory for the products is used as far as it is written.
    return _Span(
        np.empty((M, M)), np.zeros(M, np.bool_), np.zeros(2 * options.depth * options.width, np.int64),
        np.zeros((2 * options.depth, M)), np.zeros(M), np.zeros(M), np.zeros(n_pairs), np.zeros(n_columns),
        np.zeros(M), np.zeros(n_pairs),
    )  # fmt: skip


@njit(**INNER, fastmath=FASTEST)
def _product(a, b):
    """The inner product of two vectors."""
    total = 0.0
    for r in range(a.shape[0]):
        total += a[r] * b[r]
    return total


@njit(**INNER, fastmath=FASTEST)
def _multiply(rows, span, n):
    """Store the products of the first n wanted columns with all others."""
    M = rows.shape[0]
    whole = n - n % 4
    # Four at a time, so that the columns are read from memory a quarter as often.
    for first in range(0, whole, 4):
        a = span.wanted[first]
        b = span.wanted[first + 1]
        c = span.wanted[first + 2]
        d = span.wanted[first + 3]
        for j in range(M):
            p = 0.0
            q = 0.0
            s = 0.0
            t = 0.0
            for r in range(rows.shape[1]):
                p += rows[j, r] * rows[a, r]
                q += rows[j, r] * rows[b, r]
                s += rows[j, r] * rows[c, r]
                t += rows[j, r] * rows[d, r]
            span.products[a, j] = p
            span.products[b, j] = q
            span.products[c, j] = s
            span.products[d, j] = t
    for i in range(whole, n):
        a = span.wanted[i]
        for j in range(M):
            span.products[a, j] = _product(rows[j], rows[a])


@njit(**INNER)
def _tangent(columns, column):
    """The tangent of a column, -1 = none."""
    n_columns = columns.term.shape[0]
    return n_columns + column if n_columns + column < columns.rows.shape[0] else -1


@njit(**INNER)
def _want(columns, span, chosen, size, n):
    """Add the columns and tangents of a set that are not stored to the n wanted ones; returns their number."""
    for i in range(size):
        for a in (chosen[i], _tangent(columns, chosen[i])):
            if a >= 0 and not span.stored[a]:
                span.stored[a] = True
                span.wanted[n] = a
                n += 1
    return n


@njit(**INNER, fastmath=FASTEST)
def _add_direction(span, n, a):
    """Add column a to a basis of n directions; returns (directions, fall of the squared residual)."""
    if span.outside[a] < _SMALLEST * span.square[a] or span.outside[a] <= 0.0:
        return n, 0.0
    M = span.outside.shape[0]
    root = 1.0 / math.sqrt(span.outside[a])
    new, products = span.inside[n], span.products[a]
    for j in range(M):
        new[j] = products[j]
    whole = n - n % 4
    # Four directions at a time, so that the new one is written to memory a quarter as often.
    for k in range(0, whole, 4):
        b, c, d, e = span.inside[k], span.inside[k + 1], span.inside[k + 2], span.inside[k + 3]
        x, y, z, w = b[a], c[a], d[a], e[a]
        for j in range(M):
            new[j] -= x * b[j] + y * c[j] + z * d[j] + w * e[j]
    for k in range(whole, n):
        b = span.inside[k]
        x = b[a]
        for j in range(M):
            new[j] -= x * b[j]
    along = span.moment[a] * root
    for j in range(M):
        z = new[j] * root
        new[j] = z
        span.moment[j] -= along * z
        span.outside[j] -= z * z
    return n + 1, along * along


@njit(**INNER)
def _make_span(columns, chosen, size, span):
    """Project all columns on a set, whose products are stored; returns the squared residual."""
    for j in range(span.outside.shape[0]):
        span.moment[j] = columns.moment[j]
        span.outside[j] = span.square[j]
    rss = columns.square
    n = 0
    for i in range(size):
        n, fall = _add_direction(span, n, chosen[i])
        rss -= fall
    for i in range(size):
        tangent = _tangent(columns, chosen[i])
        if tangent >= 0:
            n, fall = _add_direction(span, n, tangent)
            rss -= fall
    n_columns, n_pairs = span.gain.shape[0], span.mixed.shape[0]
    for i in range(n_pairs):
        span.mixed[i] = span.product[i]
    for k in range(n):
        inside = span.inside[k]
        for i in range(n_pairs):
            span.mixed[i] -= inside[i] * inside[n_columns + i]
    return rss


@njit(**_INLINED)
def _push(pool, key, chosen, size, length):
    """The set's place in the pool, added or improved; -1 if it was there and no worse, or the pool is full."""
    mask = np.uint64(pool.table.shape[0] - 1)
    slot = key & mask
    while pool.table[slot] >= 0:
        place = pool.table[slot]
        if pool.key[place] == key:
            if length < pool.length[place]:
                pool.length[place] = length
                pool.extended[place] = False
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
    pool.extended[place] = False
    for i in range(size):
        pool.columns[place, i] = chosen[i]
    return place


@njit(**INNER)
def _place(pool, key, chosen, size):
    """The place of the set in the pool, -1 if it is not there or with other columns."""
    mask = np.uint64(pool.table.shape[0] - 1)
    slot = key & mask
    while pool.table[slot] >= 0:
        place = pool.table[slot]
        if pool.key[place] == key:
            for i in range(size):
                there = False
                for j in range(size):
                    there = there or pool.columns[place, j] == chosen[i]
                if not there:
                    return -1
            return place
        slot = (slot + np.uint64(1)) & mask
    return -1


@njit(**_INLINED)
def _gains(span):
    """Write the fall of the squared residual by each column, with its tangent, to the span."""
    n_columns = span.gain.shape[0]
    outside, moment, mixed, gain = span.outside, span.moment, span.mixed, span.gain
    tangent_outside, tangent_moment, tangent_square = outside[n_columns:], moment[n_columns:], span.square[n_columns:]
    # Without branches, so that the loops run in vector registers: what is divided by zero is not chosen.
    for j in range(n_columns):
        fall = moment[j] * moment[j] / outside[j]
        gain[j] = fall if outside[j] >= _SMALLEST else 0.0
    for j in range(mixed.shape[0]):
        steep = mixed[j] / outside[j]
        left = tangent_outside[j] - mixed[j] * steep
        rest = tangent_moment[j] - moment[j] * steep
        slope = rest / left
        near = abs(slope) < abs(moment[j] / outside[j] - slope * steep)  # within a factor e of the grid
        free = (left > _SMALLEST_TANGENT * tangent_square[j]) & (outside[j] >= _SMALLEST)
        fall = rest * slope
        gain[j] += fall if near & free else 0.0


@njit(**_INLINED)
def _extend(columns, options, count_cost, pool, span, rss, chosen, size, key, cost, branches, least_left, best,
            best_column, top, touched, n_touched):  # fmt: skip
    """Push the best extensions of a set to the pool; returns the number of touched places."""
    n_terms = columns.key.shape[0]
    n_rows = columns.rows.shape[1]
    for i in range(n_terms):
        least_left[i] = np.inf
    _gains(span)
    for j in range(columns.term.shape[0]):
        term = columns.term[j]
        left = max(rss - span.gain[j], options.floor)
        if left < least_left[term]:
            least_left[term] = left
            best_column[term] = j
    for i in range(n_terms):
        best[i] = least_left[i] * columns.weight[i]
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
        term = top[i]
        chosen[size] = best_column[term]
        length = n_rows * math.log(least_left[term] / n_rows) + columns.cost[term] + cost + count_cost[size + 1]
        place = _push(pool, key ^ columns.key[term], chosen, size + 1, length)
        if place >= 0 and n_touched < touched.shape[0]:
            touched[n_touched] = place
            n_touched += 1
    return n_touched


@njit(**INNER)
def _fill(columns, count_cost, options, pool, span):
    """Fill the pool with sets of columns, the best of each set of terms."""
    n_terms = columns.key.shape[0]
    n_rows = columns.rows.shape[1]
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
        n_wanted = 0
        for i in range(n_level):
            n_wanted = _want(columns, span, pool.columns[level[i]], size, n_wanted)
        _multiply(columns.rows, span, n_wanted)
        for i in range(n_level):
            key = np.uint64(0)
            cost = 0.0
            if size > 0:
                key = pool.key[level[i]]
                pool.extended[level[i]] = True
                for j in range(size):
                    chosen[j] = pool.columns[level[i], j]
                    cost += columns.cost[columns.term[chosen[j]]]
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
                        cost += columns.cost[columns.term[chosen[size]]]
                        size += 1
                same = _place(pool, key, chosen, size)
                if size == 0 or (same >= 0 and pool.extended[same]):
                    continue
                _multiply(columns.rows, span, _want(columns, span, chosen, size, 0))
                rss = _make_span(columns, chosen, size, span)
                length = n_rows * math.log(max(rss, options.floor) / n_rows) + cost
                _push(pool, key, chosen, size, length + count_cost[size])
                same = _place(pool, key, chosen, size)
                if same >= 0:
                    pool.extended[same] = True
                _extend(
                    columns, options, count_cost, pool, span, rss, chosen, size, key, cost, options.swap_branches,
                    least_left, best, best_column, top, touched, 0,
                )  # fmt: skip


@njit(**INNER)
def _list(pool, options, problem, out):
    """Write the shortest sets of the pool, of equal ones the first, to out."""
    columns, size, length = out.columns[problem], out.size[problem], out.length[problem]
    top = np.zeros(options.listed, np.int64)
    found = 0
    for i in range(pool.count[0]):
        if pool.size[i] < options.fewest or not pool.length[i] < np.inf:
            continue
        if found == options.listed and pool.length[i] >= pool.length[top[found - 1]]:
            continue
        place = found if found < options.listed else found - 1
        while place > 0 and pool.length[top[place - 1]] > pool.length[i]:
            top[place] = top[place - 1]
            place -= 1
        top[place] = i
        if found < options.listed:
            found += 1
    for k in range(found):
        size[k] = pool.size[top[k]]
        length[k] = pool.length[top[k]]
        for j in range(size[k]):
            columns[k, j] = pool.columns[top[k], j]
    out.count[problem] = found


@njit(**KERNEL)
def select_terms(choices, options, out):
    """Write the shortest sets of columns of each problem, the best of each set of terms, to out."""
    pool = _empty_pool(options)
    span = _empty_span(choices, options)
    moment = np.zeros(choices.rows.shape[1])
    weight = np.zeros(choices.cost.shape[1])
    for problem in range(choices.rows.shape[0]):
        rows = choices.rows[problem]
        columns = _Columns(
            rows, moment, _product(choices.y, choices.y), choices.term, choices.cost[problem], weight,
            choices.key,
        )  # fmt: skip
        for j in range(rows.shape[0]):
            moment[j] = _product(rows[j], choices.y)
            span.square[j] = _product(rows[j], rows[j])
            span.stored[j] = False
        for i in range(span.product.shape[0]):
            span.product[i] = _product(rows[i], rows[span.gain.shape[0] + i])
        for i in range(weight.shape[0]):
            weight[i] = math.exp(choices.cost[problem, i] / rows.shape[1])
        pool.count[0] = 0
        for slot in range(pool.table.shape[0]):
            pool.table[slot] = -1
        _fill(columns, choices.count_cost[problem], options, pool, span)
        _list(pool, options, problem, out)


def shortest_sets(choices: Choices, options: BeamOptions) -> Listed:
    """The shortest sets of columns of each problem."""
    problems, listed = len(choices.rows), options.listed
    out = Listed(
        np.zeros(problems, np.int64), np.zeros((problems, listed, options.depth), np.int64),
        np.zeros((problems, listed), np.int64), np.full((problems, listed), np.inf),
    )  # fmt: skip
    select_terms(choices, options, out)
    return out
