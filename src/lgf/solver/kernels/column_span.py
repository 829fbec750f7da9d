"""Columns that may explain rows of data, and the span of a chosen set of them, by inner products.

A search chooses about one column in twenty, so only the products of these with all others are computed.
"""

import math
from typing import NamedTuple

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import ALLOCATES, FASTEST, INLINED, INNER

_SMALLEST = 1e-5  # part of a column outside the span of a set, below which it adds nothing
_SMALLEST_TANGENT = 1e-4


class Columns(NamedTuple):
    """The columns of one problem."""

    rows: np.ndarray
    moment: np.ndarray  # [column and tangent] products with the explained rows
    square: float  # squared length of the explained rows
    term: np.ndarray
    cost: np.ndarray
    weight: np.ndarray  # [term] exp(cost / rows): a squared residual times it orders terms as the description length
    key: np.ndarray


class Span(NamedTuple):
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


@njit(**ALLOCATES)
def empty_span(choices, options):
    """Room for the span of a set of so many columns."""
    M, n_columns = choices.rows.shape[1], choices.term.shape[0]
    n_pairs = M - n_columns
    # Memory for the products is used as far as it is written.
    return Span(
        np.empty((M, M)), np.zeros(M, np.bool_), np.zeros(2 * options.depth * options.width, np.int64),
        np.zeros((2 * options.depth, M)), np.zeros(M), np.zeros(M), np.zeros(n_pairs), np.zeros(n_columns),
        np.zeros(M), np.zeros(n_pairs),
    )  # fmt: skip


@njit(**INNER, fastmath=FASTEST)
def product(a, b):
    """The inner product of two vectors."""
    total = 0.0
    for r in range(a.shape[0]):
        total += a[r] * b[r]
    return total


@njit(**INNER, fastmath=FASTEST)
def multiply(rows, span, n):
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
            span.products[a, j] = product(rows[j], rows[a])


@njit(**INNER)
def _tangent(columns, column):
    """The tangent of a column, -1 = none."""
    n_columns = columns.term.shape[0]
    return n_columns + column if n_columns + column < columns.rows.shape[0] else -1


@njit(**INNER)
def want(columns, span, chosen, size, n):
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
def make_span(columns, chosen, size, span):
    """Project all columns on a set, whose products are stored; returns the squared residual."""
    for j in range(span.outside.shape[0]):
        span.moment[j] = columns.moment[j]
        span.outside[j] = span.square[j]
    rss = columns.square
    n = np.int64(0)
    for i in range(size):
        n, fall = _add_direction(span, n, chosen[i])
        rss -= fall
    for i in range(size):
        beside = _tangent(columns, chosen[i])
        if beside >= 0:
            n, fall = _add_direction(span, n, beside)
            rss -= fall
    n_columns, n_pairs = span.gain.shape[0], span.mixed.shape[0]
    for i in range(n_pairs):
        span.mixed[i] = span.product[i]
    for k in range(n):
        inside = span.inside[k]
        for i in range(n_pairs):
            span.mixed[i] -= inside[i] * inside[n_columns + i]
    return rss


@njit(**INLINED)
def gains(span):
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
