"""The residual stage: variable projection on the residual of the equation over a completed record."""

import math

import numpy as np
from numba import float64, int32, int64

from lgf.compilation import njit
from lgf.solver.kernels import FASTEST, INNER, KERNEL
from lgf.solver.kernels.linear import bounded_solve, damped_solve, normal_equations, residual
from lgf.solver.kernels.machine import PROGRAM, WIDE, evaluate


@njit(**INNER)
def _drop_samples(B):
    """Set the columns [column, sample] to 0 at samples where one is not finite; returns how many there are."""
    lost = 0
    for q in range(B.shape[1]):
        finite = True
        for j in range(B.shape[0]):
            finite = finite and abs(B[j, q]) < 1e100
        if not finite:
            lost += 1
            for j in range(B.shape[0]):
                B[j, q] = 0.0
    return lost


@njit(**INNER, fastmath=FASTEST)
def _project(linear, x, lower, upper, weight, B, A, g, L, c, held):
    """Set the linear constants to their best values for the columns in B; the last row of B becomes the residual.

    Samples where a column is not finite do not count; if these are more than a tenth, the residual is infinite.
    """
    m = linear.shape[0]
    N = weight.shape[0]
    total = 0.0
    for j in range(m + 1):
        for q in range(N):
            B[j, q] *= weight[q]
            total += abs(B[j, q])
    if not total < 1e100 and _drop_samples(B) * 10 > N:
        return np.inf
    normal_equations(B, B[m], m, A, g)
    damped_solve(A, g, m, 1e-12, held, c, L)
    outside = False
    for i in range(m):
        if c[i] < lower[linear[i]] or c[i] > upper[linear[i]]:
            outside = True
    if outside:
        for i in range(m):
            L[0, i] = lower[linear[i]]
            L[1, i] = upper[linear[i]]
        bounded_solve(A, g, m, L[0], L[1], c)
    for i in range(m):
        x[linear[i]] = c[i]
    total = residual(B, B[m], m, c, B[m]) / N
    return total if total < np.inf else np.inf


@njit(**KERNEL)
def fit_residual(
    basis, p, linear, nonlinear, starts, lower, upper, t, columns, inputs, weight, stride, n_refined, max_iterations
):
    """Constants that minimise the mean square residual, best first: (constants [k, p], losses [k], evaluations).

    The program `basis` gives one column per linear constant, then the fixed part of the residual.

    starts [s, nonlinear] are tried as they are, on every stride-th sample; the best n_refined of them are refined by
    Levenberg-Marquardt on the nonlinear constants, the linear ones being projected out.
    """
    N = t.shape[0]
    m = linear.shape[0]
    q = nonlinear.shape[0]
    R = np.zeros((basis.n_registers, WIDE))
    B = np.zeros((m + 1, N))
    A = np.zeros((m + 1, m + 1))
    g = np.zeros(m + 1)
    L = np.zeros((max(m + 1, 2), m + 1))
    c = np.zeros(m + 1)
    held = np.zeros(m + 1, np.bool_)
    x = np.ones(p)
    evaluations = 0
    if q == 0:
        evaluate(basis, x, t, columns, inputs, R, B)
        loss = _project(linear, x, lower, upper, weight, B, A, g, L, c, held)
        return x.reshape(1, p), np.array([loss]), 1
    n_starts = starts.shape[0]
    scores = np.empty(n_starts)
    few_t, few_columns = t[::stride].copy(), columns[:, ::stride].copy()
    few_inputs, few_weight = inputs[:, ::stride].copy(), weight[::stride].copy()
    few_B = np.zeros((m + 1, few_t.shape[0]))
    for s in range(n_starts):
        for j in range(q):
            x[nonlinear[j]] = min(max(starts[s, j], lower[nonlinear[j]]), upper[nonlinear[j]])
        evaluate(basis, x, few_t, few_columns, few_inputs, R, few_B)
        scores[s] = _project(linear, x, lower, upper, few_weight, few_B, A, g, L, c, held)
        evaluations += 1
    count = min(n_refined, n_starts)
    found = np.ones((count, p))
    losses = np.full(count, np.inf)
    r = np.zeros(N)
    J = np.zeros((q, N))
    H = np.zeros((q, q))
    slope = np.zeros(q)
    L2 = np.zeros((q, q))
    change = np.zeros(q)
    fixed = np.zeros(q, np.bool_)
    trial = np.ones(p)
    for rank in range(count):
        s = 0
        for k in range(1, n_starts):
            if scores[k] < scores[s]:
                s = k
        if scores[s] >= np.inf:
            break
        scores[s] = np.inf
        for j in range(q):
            x[nonlinear[j]] = min(max(starts[s, j], lower[nonlinear[j]]), upper[nonlinear[j]])
        evaluate(basis, x, t, columns, inputs, R, B)
        loss = _project(linear, x, lower, upper, weight, B, A, g, L, c, held)
        evaluations += 1
        damping = 1e-2
        for _ in range(max_iterations):
            for k in range(N):
                r[k] = B[m, k]
            for j in range(q):
                for k in range(p):
                    trial[k] = x[k]
                step = 1e-6 * max(abs(x[nonlinear[j]]), 1e-3)
                if trial[nonlinear[j]] + step > upper[nonlinear[j]]:
                    step = -step
                trial[nonlinear[j]] += step
                evaluate(basis, trial, t, columns, inputs, R, B)
                value = _project(linear, trial, lower, upper, weight, B, A, g, L, c, held)
                evaluations += 1
                for k in range(N):
                    z = (B[m, k] - r[k]) / step
                    J[j, k] = z if value < np.inf and abs(z) < 1e100 else 0.0
            normal_equations(J, r, q, H, slope)
            gain = 0.0
            for _ in range(6):
                damped_solve(H, slope, q, damping, fixed, change, L2)
                for k in range(p):
                    trial[k] = x[k]
                for j in range(q):
                    i = nonlinear[j]
                    trial[i] = min(max(trial[i] + change[j], lower[i]), upper[i])
                evaluate(basis, trial, t, columns, inputs, R, B)
                value = _project(linear, trial, lower, upper, weight, B, A, g, L, c, held)
                evaluations += 1
                if value < loss:
                    gain = (loss - value) / loss
                    loss = value
                    for k in range(p):
                        x[k] = trial[k]
                    damping = max(0.2 * damping, 1e-8)
                    break
                damping *= 8.0
            if gain < 1e-4:
                break
        place = rank
        while place > 0 and loss < losses[place - 1]:
            losses[place] = losses[place - 1]
            for k in range(p):
                found[place, k] = found[place - 1, k]
            place -= 1
        losses[place] = loss
        for k in range(p):
            found[place, k] = x[k]
    return found, losses, evaluations


@njit(**KERNEL)
def residual_loss(basis, linear, x, t, columns, inputs, weight):
    """The mean square residual of these constants; NaN if any sample is not finite."""
    N = t.shape[0]
    m = linear.shape[0]
    R = np.zeros((basis.n_registers, WIDE))
    B = np.zeros((m + 1, N))
    evaluate(basis, x, t, columns, inputs, R, B)
    total = 0.0
    for k in range(N):
        r = B[m, k]
        for j in range(m):
            r += x[linear[j]] * B[j, k]
        total += (r * weight[k]) ** 2
    return total / N if math.isfinite(total) else math.nan


FIT_RESIDUAL = (
    PROGRAM, int64, int32[::1], int32[::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], float64[:, ::1],
    float64[:, ::1], float64[::1], int64, int64, int64,
)  # fmt: skip
RESIDUAL_LOSS = (PROGRAM, int32[::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1])
