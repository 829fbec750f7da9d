"""Nelder and Mead's simplex search on the loss of the solved system, step for step that of SciPy.

The points that an iteration may ask for follow from the simplex alone: reflection, expansion, both contractions and
the shrunk vertices. They are solved side by side, one per lane, before it is known which of them are needed.
"""

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import INNER, KERNEL
from lgf.solver.kernels.machine import LANES
from lgf.solver.kernels.trajectory_fit import losses_of_lanes, make_memory

REFLECTED, EXPANDED, OUTSIDE, INSIDE, SHRUNK = range(5)  # lanes; the shrunk vertices take the last ones


@njit(**INNER)
def _set_lane(points, row, lower, upper, k, X):
    """Write a point, moved into the limits, to lane k of X."""
    for j in range(points.shape[1]):
        X[j, k] = min(max(points[row, j], lower[j]), upper[j])


@njit(**INNER)
def _losses(flow, record, unknowns, windows, points, lower, upper, search, memory, X, losses):
    """Fill losses [m] with those of the points [m, P], eight at a time; infinite where it is not a number."""
    for first in range(0, points.shape[0], LANES):
        width = min(LANES, points.shape[0] - first)
        for k in range(LANES):
            _set_lane(points, first + min(k, width - 1), lower, upper, k, X)
        losses_of_lanes(
            flow, record, unknowns, windows, X, width, search.rtol, search.max_steps, search.with_highest, memory
        )
        for k in range(width):
            losses[first + k] = memory.loss[k] if memory.loss[k] < np.inf else np.inf


@njit(**INNER)
def _sort(vertices, losses):
    """Sort the vertices by their losses; equal ones stay in their order."""
    for i in range(1, losses.shape[0]):
        for j in range(i, 0, -1):
            if not losses[j] < losses[j - 1]:
                break
            losses[j], losses[j - 1] = losses[j - 1], losses[j]
            for d in range(vertices.shape[1]):
                vertices[j, d], vertices[j - 1, d] = vertices[j - 1, d], vertices[j, d]


@njit(**INNER)
def _settled(vertices, losses, xatol, fatol):
    """Whether the simplex is small, and flat; infinite losses are not flat."""
    for i in range(1, losses.shape[0]):
        if not abs(losses[0] - losses[i]) <= fatol:
            return False
        for j in range(vertices.shape[1]):
            if not abs(vertices[i, j] - vertices[0, j]) <= xatol:
                return False
    return True


@njit(**INNER)
def _replace_worst(vertices, losses, points, values, k):
    """Put point k in the place of the worst vertex."""
    vertices[-1] = points[k]
    losses[-1] = values[k]


@njit(**KERNEL)
def search_simplex(flow, record, unknowns, windows, starts, lower, upper, search, iterations, xatol, fatol):
    """The least loss found from the first of the starts: (unknowns, loss, trajectories solved).

    Of `search` only what concerns a single solution is used.
    """
    P = starts.shape[1]
    longest = np.int64(1)
    for e in range(windows.shape[0]):
        longest = max(longest, windows[e])
    memory = make_memory(flow, unknowns.source.shape[1], longest)
    X = np.zeros((P, LANES))
    vertices = np.empty((P + 1, P))
    losses = np.empty(P + 1)
    shrunk = P if SHRUNK + P <= LANES else 0  # those that have a lane
    points = np.empty((SHRUNK + shrunk, P))
    values = np.empty(SHRUNK + shrunk)
    for i in range(P + 1):
        vertices[i] = starts[0]
    for j in range(P):
        vertices[j + 1, j] = 1.05 * starts[0, j] if starts[0, j] != 0.0 else 0.00025
    _losses(flow, record, unknowns, windows, vertices, lower, upper, search, memory, X, losses)
    solves = P + 1
    _sort(vertices, losses)
    for _ in range(1, iterations):
        if _settled(vertices, losses, xatol, fatol):
            break
        for j in range(P):
            middle = 0.0
            for i in range(P):
                middle += vertices[i, j]
            middle /= P
            worst = vertices[P, j]
            points[REFLECTED, j] = 2.0 * middle - worst
            points[EXPANDED, j] = 3.0 * middle - 2.0 * worst
            points[OUTSIDE, j] = 1.5 * middle - 0.5 * worst
            points[INSIDE, j] = 0.5 * middle + 0.5 * worst
            for i in range(shrunk):
                points[SHRUNK + i, j] = vertices[0, j] + 0.5 * (vertices[i + 1, j] - vertices[0, j])
        _losses(flow, record, unknowns, windows, points, lower, upper, search, memory, X, values)
        solves += points.shape[0]
        reflected = values[REFLECTED]
        if reflected < losses[0]:
            _replace_worst(vertices, losses, points, values, EXPANDED if values[EXPANDED] < reflected else REFLECTED)
        elif reflected < losses[P - 1]:
            _replace_worst(vertices, losses, points, values, REFLECTED)
        elif reflected < losses[P] and values[OUTSIDE] <= reflected:
            _replace_worst(vertices, losses, points, values, OUTSIDE)
        elif not reflected < losses[P] and values[INSIDE] < losses[P]:
            _replace_worst(vertices, losses, points, values, INSIDE)
        elif shrunk:
            vertices[1:] = points[SHRUNK:]
            losses[1:] = values[SHRUNK:]
        else:
            for i in range(1, P + 1):
                for j in range(P):
                    vertices[i, j] = vertices[0, j] + 0.5 * (vertices[i, j] - vertices[0, j])
            _losses(flow, record, unknowns, windows, vertices[1:], lower, upper, search, memory, X, losses[1:])
            solves += P
        _sort(vertices, losses)
    return vertices[0].copy(), losses[0], solves
