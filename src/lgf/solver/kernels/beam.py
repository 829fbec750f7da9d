"""Selection of terms by a beam search over sets of columns, on their inner products.

A set is scored by its description length n ln(rss / n) + k ln(n) + 2 ln(2) bits. A column with a constant inside may
have a tangent, its derivative with respect to the logarithm of that constant. The tangent of a chosen column is free
to move along, so a coarse grid of such constants suffices.
"""

import math
from typing import NamedTuple

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import ALLOCATES, INNER, KERNEL
from lgf.solver.kernels.column_span import Columns, empty_span, gains, make_span, multiply, product, want
from lgf.solver.kernels.term_sets import empty_pool, insert, place_of, push


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


class _Room(NamedTuple):
    """Room for the extensions of a set."""

    chosen: np.ndarray  # int64 [depth + 1] the columns of the set, and the one that is added
    least_left: np.ndarray  # [term] squared residual with the best column of the term
    best_column: np.ndarray  # int64 [term]
    order: np.ndarray  # [term] what terms are ordered by
    top: np.ndarray  # int64, the terms that are added
    touched: np.ndarray  # int64, places of the pool that were added or improved


@njit(**ALLOCATES)
def _empty_room(n_terms, options):
    return _Room(
        np.zeros(options.depth + 1, np.int64), np.zeros(n_terms), np.zeros(n_terms, np.int64), np.zeros(n_terms),
        np.zeros(max(options.branches, options.swap_branches), np.int64),
        np.zeros(options.width * options.branches + 1, np.int64),
    )  # fmt: skip


@njit(**INNER)
def _extend(columns, options, count_cost, pool, span, room, rss, size, key, cost, branches, n_touched):
    """Push the best extensions of the chosen set to the pool; returns the number of touched places."""
    n_terms = columns.key.shape[0]
    n_rows = columns.rows.shape[1]
    chosen, least_left, order, top = room.chosen, room.least_left, room.order, room.top
    best_column, touched = room.best_column, room.touched
    for i in range(n_terms):
        least_left[i] = np.inf
    gains(span)
    for j in range(columns.term.shape[0]):
        term = columns.term[j]
        left = max(rss - span.gain[j], options.floor)
        if left < least_left[term]:
            least_left[term] = left
            best_column[term] = j
    for i in range(n_terms):
        order[i] = least_left[i] * columns.weight[i]
    for i in range(size):
        order[columns.term[chosen[i]]] = np.inf
    found = 0
    for i in range(n_terms):
        if order[i] == np.inf or (found == branches and order[i] >= order[top[found - 1]]):
            continue  # as most are: a look is cheaper than a call
        found = insert(top, found, branches, order, i)
    for i in range(found):
        term = top[i]
        chosen[size] = best_column[term]
        length = n_rows * math.log(least_left[term] / n_rows) + columns.cost[term] + cost + count_cost[size + 1]
        place = push(pool, key ^ columns.key[term], chosen, size + 1, length)
        if place >= 0 and n_touched < touched.shape[0]:
            touched[n_touched] = place
            n_touched += 1
    return n_touched


@njit(**ALLOCATES)
def _grow(columns, count_cost, options, pool, span, room):
    """Fill the pool with sets of more and more columns, the best of each set of terms."""
    chosen = room.chosen
    level = np.zeros(options.width, np.int64)
    n_level = 1
    least = np.inf
    for size in range(options.depth):
        n_touched = 0
        n_wanted = np.int64(0)  # a literal would be compiled apart
        for i in range(n_level):
            n_wanted = want(columns, span, pool.columns[level[i]], size, n_wanted)
        multiply(columns.rows, span, n_wanted)
        for i in range(n_level):
            key = np.uint64(0)
            cost = 0.0
            if size > 0:
                key = pool.key[level[i]]
                pool.extended[level[i]] = True
                for j in range(size):
                    chosen[j] = pool.columns[level[i], j]
                    cost += columns.cost[columns.term[chosen[j]]]
            rss = make_span(columns, chosen, size, span)
            n_touched = _extend(
                columns, options, count_cost, pool, span, room, rss, size, key, cost, options.branches, n_touched
            )
        # The best of the touched sets, each once, are extended next.
        n_level = 0
        for i in range(n_touched):
            place = room.touched[i]
            again = False
            for j in range(n_level):
                again = again or level[j] == place
            if not again:
                n_level = insert(level, n_level, options.width, pool.length, place)
        if n_level == 0:
            break
        least = min(least, pool.length[level[0]])
        if pool.length[level[0]] > least + options.margin:
            break


@njit(**ALLOCATES)
def _exchange(columns, count_cost, options, pool, span, room):
    """Drop each term of the best sets of the pool, and extend what is left, in two rounds."""
    n_rows = columns.rows.shape[1]
    chosen = room.chosen
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
                size = np.int64(0)
                cost = 0.0
                key = pool.key[place]
                for j in range(pool.size[place]):
                    if j == drop:
                        key ^= columns.key[columns.term[pool.columns[place, j]]]
                    else:
                        chosen[size] = pool.columns[place, j]
                        cost += columns.cost[columns.term[chosen[size]]]
                        size += 1
                same = place_of(pool, key, chosen, size)
                if size == 0 or (same >= 0 and pool.extended[same]):
                    continue
                multiply(columns.rows, span, want(columns, span, chosen, size, np.int64(0)))
                rss = make_span(columns, chosen, size, span)
                length = n_rows * math.log(max(rss, options.floor) / n_rows) + cost
                push(pool, key, chosen, size, length + count_cost[size])
                same = place_of(pool, key, chosen, size)
                if same >= 0:
                    pool.extended[same] = True
                _extend(columns, options, count_cost, pool, span, room, rss, size, key, cost, options.swap_branches, 0)


@njit(**ALLOCATES)
def _list(pool, options, problem, out):
    """Write the shortest sets of the pool, of equal ones the first, to out."""
    columns, size, length = out.columns[problem], out.size[problem], out.length[problem]
    top = np.zeros(options.listed, np.int64)
    found = 0
    for i in range(pool.count[0]):
        if pool.size[i] >= options.fewest and pool.length[i] < np.inf:
            found = insert(top, found, options.listed, pool.length, i)
    for k in range(found):
        size[k] = pool.size[top[k]]
        length[k] = pool.length[top[k]]
        for j in range(size[k]):
            columns[k, j] = pool.columns[top[k], j]
    out.count[problem] = found


@njit(**KERNEL)
def select_terms(choices, options, out):
    """Write the shortest sets of columns of each problem, the best of each set of terms, to out."""
    pool = empty_pool(options)
    span = empty_span(choices, options)
    room = _empty_room(choices.cost.shape[1], options)
    moment = np.zeros(choices.rows.shape[1])
    weight = np.zeros(choices.cost.shape[1])
    for problem in range(choices.rows.shape[0]):
        rows = choices.rows[problem]
        columns = Columns(
            rows, moment, product(choices.y, choices.y), choices.term, choices.cost[problem], weight,
            choices.key,
        )  # fmt: skip
        for j in range(rows.shape[0]):
            moment[j] = product(rows[j], choices.y)
            span.square[j] = product(rows[j], rows[j])
            span.stored[j] = False
        for i in range(span.product.shape[0]):
            span.product[i] = product(rows[i], rows[span.gain.shape[0] + i])
        for i in range(weight.shape[0]):
            weight[i] = math.exp(choices.cost[problem, i] / rows.shape[1])
        pool.count[0] = 0
        for slot in range(pool.table.shape[0]):
            pool.table[slot] = -1
        _grow(columns, choices.count_cost[problem], options, pool, span, room)
        _exchange(columns, choices.count_cost[problem], options, pool, span, room)
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
