"""The sets of terms that a search has found, each once, with the columns that explain most."""

from typing import NamedTuple

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import ALLOCATES, INLINED, INNER


class Pool(NamedTuple):
    """The sets found so far, with a hash table of their keys."""

    columns: np.ndarray  # int64 [set, depth]
    size: np.ndarray  # int64 [set]
    key: np.ndarray  # uint64 [set]
    length: np.ndarray  # [set] description length
    extended: np.ndarray  # bool [set] whether the extensions of its columns are in the pool
    table: np.ndarray  # int64 [power of two] set or -1
    count: np.ndarray  # int64 [1]


@njit(**ALLOCATES)
def empty_pool(options):
    """A pool with room for all sets of a search."""
    capacity = options.depth * (options.width * options.branches + 2 * options.swaps * (options.swap_branches + 1))
    slots = 1
    while slots < 2 * capacity:
        slots *= 2
    return Pool(
        np.zeros((capacity, options.depth + 1), np.int64), np.zeros(capacity, np.int64), np.zeros(capacity, np.uint64),
        np.zeros(capacity), np.zeros(capacity, np.bool_), np.zeros(slots, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


@njit(**INLINED)
def push(pool, key, chosen, size, length):
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
def place_of(pool, key, chosen, size):
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


@njit(**INLINED)
def insert(best, n, most, key, i):
    """Put i among the first n of best, which are sorted by their keys; at most so many stay. Returns their number.

    Of equal ones the first comes first.
    """
    if n < most or key[i] < key[best[n - 1]]:
        at = n if n < most else n - 1
        while at > 0 and key[best[at - 1]] > key[i]:
            best[at] = best[at - 1]
            at -= 1
        best[at] = i
        n = min(n + 1, most)
    return n
