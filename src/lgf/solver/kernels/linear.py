"""Small symmetric linear systems, as they arise in least squares."""

import math

import numpy as np

from lgf.compilation import njit
from lgf.solver.kernels import FASTEST, INNER


@njit(**INNER, fastmath=FASTEST)
def normal_equations(J, r, n, A, g):
    """Write J J' and J r to A and g, for the first n rows of J [., sample]."""
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for q in range(r.shape[0]):
                s += J[i, q] * J[j, q]
            A[i, j] = s
            A[j, i] = s
        s = 0.0
        for q in range(r.shape[0]):
            s += J[i, q] * r[q]
        g[i] = s


@njit(**INNER, fastmath=FASTEST)
def damped_solve(A, g, n, damping, held, x, L):
    """Write to x the solution of (A + damping * diag A) x = -g; held unknowns and null directions get 0."""
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            if i == j:
                s *= 1.0 + damping
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                if held[i] or not s > 1e-13 * A[i, i]:
                    L[i, i] = np.inf  # drops the unknown: everything divided by it vanishes
                else:
                    L[i, i] = math.sqrt(s)
            else:
                L[i, j] = s / L[j, j] if L[j, j] < 1e300 else 0.0
    for i in range(n):
        s = -g[i]
        for k in range(i):
            s -= L[i, k] * x[k]
        x[i] = s / L[i, i] if L[i, i] < 1e300 else 0.0
    for i in range(n - 1, -1, -1):
        if not L[i, i] < 1e300:
            x[i] = 0.0
            continue
        s = x[i]
        for k in range(i + 1, n):
            s -= L[k, i] * x[k]
        x[i] = s / L[i, i]


@njit(**INNER, fastmath=FASTEST)
def residual(J, r, n, x, out):
    """Write r + x J to out, for the first n rows of J, and return the sum of its squares; out may be r."""
    total = 0.0
    for q in range(r.shape[0]):
        s = r[q]
        for i in range(n):
            s += x[i] * J[i, q]
        out[q] = s
        total += s * s
    return total


@njit(**INNER)
def least_squares(J, r, n, x, A, g, L, held, out):
    """Write to x what makes the sum of squares of r + x J least, and that residual to out; returns the sum."""
    normal_equations(J, r, n, A, g)
    damped_solve(A, g, n, 1e-12, held, x, L)
    return residual(J, r, n, x, out)


@njit(**INNER, fastmath=FASTEST)
def bounded_solve(A, g, n, lower, upper, x):
    """Improve x towards the minimum of x'Ax/2 + g'x inside the box, by coordinate descent from the clipped x."""
    for i in range(n):
        x[i] = min(max(x[i], lower[i]), upper[i])
    for _ in range(200):
        largest = 0.0
        for i in range(n):
            if not A[i, i] > 0.0:
                continue
            s = g[i]
            for j in range(n):
                s += A[i, j] * x[j]
            new = min(max(x[i] - s / A[i, i], lower[i]), upper[i])
            change = abs(new - x[i]) * math.sqrt(A[i, i])
            largest = change if change > largest else largest
            x[i] = new
        if largest < 1e-10:
            break
