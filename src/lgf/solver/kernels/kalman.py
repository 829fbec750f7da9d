"""A continuous-discrete extended Kalman filter: the innovations of a record under disturbances of the law.

The law is dx = f(x, t) dt + g(x) sigma dW with g = 1 or the state itself; a sample has noise of a known variance.
Between samples the mean is the solution of the law, and the covariance moves with the derivatives of that solution by
its start. Lanes hold the solution and its neighbours, and several vectors of constants side by side.
"""

import numpy as np
from numba import boolean, float64, int64

from lgf.compilation import njit
from lgf.solver.kernels import ALLOCATES, FASTEST, INNER, KERNEL
from lgf.solver.kernels.input_jumps import jump_width
from lgf.solver.kernels.integrator import FLOW, OK, Options, Workspace, solve_lanes
from lgf.solver.kernels.lanes import load, repeated, store
from lgf.solver.kernels.machine import LANES, WIDE
from lgf.solver.kernels.slopes import N_STAGES, N_WORK, ROOT, ROOT_SLOPE, ROOT_TIME, slopes_of_stages
from lgf.solver.kernels.trajectory_fit import RECORD

MOST_VARIABLES = LANES - 1  # of the state vector: a lane for the solution, and one for each neighbour
_STEP = 1e-6  # between neighbours, relative to the state and its size
_LARGEST = 1e100  # of a covariance
_TERMS = 24  # of the series of a covariance
_SUBSTEP = 0.25  # largest step, in units of the fastest rate
_MOST_SUBSTEPS = 8  # more are left to the steps of the integrator


@njit(**INNER)
def _neighbours(mean, sizes, n, groups, y, steps):
    """Write each group's mean and its neighbours to the lanes of y [n, lane], and their distances to steps."""
    for k in range(LANES):
        g = min(k // (n + 1), groups - 1)
        for d in range(n):
            y[d, k] = mean[g, d]
    for g in range(groups):
        for d in range(n):
            h = _STEP * (abs(mean[g, d]) + sizes[d])
            steps[g, d] = h
            y[d, g * (n + 1) + 1 + d] += h


@njit(**INNER)
def _set_constants(flow, C, R):
    """Write constants [p, lane] and literals to their registers."""
    at = flow.program.constants_at
    for j in range(C.shape[0]):
        store(R, load(C, j, 0), at + j, 0)
    for j in range(flow.program.literals.shape[0]):
        store(R, repeated(flow.program.literals[j]), at + C.shape[0] + j, 0)


@njit(**INNER)
def _slopes_at(flow, time, y, table, root, root_slope, start, work):
    """Write the rates at the states y [n, lane] to work.K[0]."""
    n, R, S = flow.n, work.R, work.S
    store(R, repeated(time), 0, 0)
    for d in range(n):
        store(R, load(y, d, 0), 1 + d, 0)
    store(S, repeated(root), ROOT, 0)
    store(S, repeated(root_slope), ROOT_SLOPE, 0)
    store(S, repeated(start), ROOT_TIME, 0)
    slopes_of_stages(
        flow.program.code, flow.program.outputs, flow.degree, n, y, R, table, S, work.K, np.int64(0), np.int64(1)
    )


@njit(**INNER)
def _jacobian(n, g, steps, K, A):
    """Write the derivatives of the rates in K[0] by the states to A [n, n]."""
    lane = g * (n + 1)
    for d in range(n):
        for j in range(n):
            A[d, j] = (K[0, d, lane + 1 + j] - K[0, d, lane]) / steps[g, j]


@njit(**INNER)
def _substeps(A, groups, n, h):
    """The steps of equal length that the fourth order needs in the time h, for rates with these derivatives."""
    norm = 0.0
    for g in range(groups):
        for i in range(n):
            row = 0.0
            for j in range(n):
                row += abs(A[g, i, j])
            norm = max(norm, row)
    return np.int64(norm * h / _SUBSTEP) + 1 if norm * h < 1e3 else np.int64(0)


@njit(**INNER)
def _runge_kutta(flow, start, end, parts, y, table, options, begin, work, K):
    """Move the states y [n, lane] from start to end in so many steps of the classical fourth order.

    K [2, n, lane] is room for the states at the stages, and for the sums of their slopes.
    """
    n, h = flow.n, (end - start) / parts
    for part in range(parts):
        t = start + part * h
        for stage in range(4):
            at = y if stage == 0 else K[0]
            _slopes_at(flow, t + h * (0.0 if stage == 0 else 1.0 if stage == 3 else 0.5), at, table, options.root,
                       options.root_slope, begin, work)  # fmt: skip
            weight = h / 6.0 if stage in (0, 3) else h / 3.0
            reach = h if stage == 2 else 0.5 * h
            for d in range(n):
                slope = load(work.K, 0, d, 0)
                store(K, (load(K, 1, d, 0) if stage else repeated(0.0)) + weight * slope, 1, d, 0)
                store(K, load(y, d, 0) + reach * slope, 0, d, 0)
        for d in range(n):
            store(y, load(y, d, 0) + load(K, 1, d, 0), d, 0)


@njit(**INNER)
def _intensity(flow, sigma, proportional, states, mean, spread, D):
    """Write the intensity of the disturbances of each variable of the state vector to D [n]."""
    for d in range(flow.n):
        D[d] = 0.0
    for s in range(states.shape[0]):
        d = states[s]
        D[flow.rates[s]] = sigma[s] ** 2 * (mean[d] ** 2 + spread[d, d] if proportional[s] else 1.0)


@njit(**INNER, fastmath=FASTEST)
def _product(a, b, n, transposed, out):
    """Write a b, or a b', to out; all [n, n]."""
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * (b[j, k] if transposed else b[k, j])
            out[i, j] = s


@njit(**INNER)
def _accumulated(A, D, h, n, Q, E, M, T, U):
    """Write to Q the covariance that white noise of intensity D (diagonal) leaves after the time h under x' = A x.

    The series of both exponentials over a part of the time that is short for A, then doubled.
    """
    norm = 0.0
    for i in range(n):
        row = 0.0
        for j in range(n):
            row += abs(A[i, j])
        norm = max(norm, row)
    if not norm * h < 1e6:
        return False
    halvings = 0
    part = h
    while norm * part > 1.0:
        part *= 0.5
        halvings += 1
    for i in range(n):
        for j in range(n):
            T[i, j] = D[i] if i == j else 0.0
            Q[i, j] = part * T[i, j]
            M[i, j] = 1.0 if i == j else 0.0
            E[i, j] = M[i, j]
    factor, bound = part, 1.0
    for k in range(1, _TERMS):
        # T becomes A T + T A', M becomes A M part / k
        _product(A, T, n, np.bool_(False), U)
        for i in range(n):
            for j in range(n):
                T[i, j] = U[i, j] + U[j, i]
        factor *= part / (k + 1)
        for i in range(n):
            for j in range(n):
                Q[i, j] += factor * T[i, j]
        if halvings:
            _product(A, M, n, np.bool_(False), U)
            for i in range(n):
                for j in range(n):
                    M[i, j] = U[i, j] * part / k
                    E[i, j] += M[i, j]
        bound *= 2.0 * norm * part / (k + 1)
        if bound < 1e-15:
            break
    for _ in range(halvings):
        _product(E, Q, n, np.bool_(False), U)
        _product(U, E, n, np.bool_(True), T)
        for i in range(n):
            for j in range(n):
                Q[i, j] += T[i, j]
        _product(E, E, n, np.bool_(False), U)
        for i in range(n):
            for j in range(n):
                E[i, j] = U[i, j]
    return True


@njit(**INNER)
def _update(m, P, H, expected, value, variance, n, gain):
    """Condition mean and covariance on a sample of H x; returns its innovation and the variance of that."""
    s = variance
    for i in range(n):
        gain[i] = 0.0
        for j in range(n):
            gain[i] += P[i, j] * H[j]
    for i in range(n):
        s += H[i] * gain[i]
    v = value - expected
    for i in range(n):
        m[i] += gain[i] / s * v
    # Joseph's form for one sample: P - K (PH)' - (PH) K' + K s K' with K = PH / s stays symmetric
    for i in range(n):
        for j in range(i + 1):
            P[i, j] -= gain[i] * gain[j] / s
            P[j, i] = P[i, j]
        P[i, i] = max(P[i, i], 0.0)
    return v, s


@njit(**ALLOCATES)
def _workspace(flow, columns):
    """Memory of the integrator for two samples."""
    return Workspace(
        np.zeros((flow.program.n_registers, LANES)),
        np.zeros((flow.program.n_registers, WIDE)),
        np.zeros((N_WORK, LANES)),
        np.zeros((N_STAGES, flow.n, LANES)),
        np.zeros((2, columns, LANES)),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
    )


@njit(**ALLOCATES)
def _options(record, e, rtol, max_steps):
    """The options of the integrator for an experiment."""
    return Options(
        rtol, record.atol, record.largest_step[e], record.limit, record.nudge[e], max_steps, record.root[e],
        record.root_slope[e],
    )  # fmt: skip


@njit(**KERNEL)
def filter_record(flow, record, e, N, constants, start, sigma, proportional, states, scale, sizes, lead, rtol,
                  max_steps, innovations, variances):  # fmt: skip
    """Filter the first N samples of experiment e; returns the status.

    For each group of constants [group, p], initial states start [group, n], deviations of the disturbances
    sigma [group, state] and scales of the noise [group, column] it writes the innovations [group, N, column] and their
    variances; a variance is 0 where nothing was measured. proportional [state] says which disturbances grow with their
    state, whose positions in the state vector are `states`. sizes [n] are typical states. The steps of all groups are
    those of the first. The start is as uncertain as disturbances make it in the time `lead` before the first sample.
    """
    n, groups, columns = flow.n, constants.shape[0], record.data.shape[1]
    work = _workspace(flow, columns)
    p = constants.shape[1]
    C = np.zeros((p, LANES))
    for k in range(LANES):
        g = min(k // (n + 1), groups - 1)
        for j in range(p):
            C[j, k] = constants[g, j]
    _set_constants(flow, C, work.R)
    y, steps_of, both = np.zeros((n, LANES)), np.zeros((groups, n)), np.zeros(2)
    last, spread = start.copy(), np.zeros((groups, n, n))  # mean and covariance
    A0, A1 = np.zeros((groups, n, n)), np.zeros((groups, n, n))
    Phi, A, Q = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    E, M, T, U = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    D, before, H, gain = np.zeros(n), np.zeros((groups, n)), np.zeros(n), np.zeros(n)
    rates = np.zeros((groups, flow.rates.shape[0]))
    table = record.table[record.table_first[e] : record.table_first[e + 1]]
    options = _options(record, e, rtol, max_steps)
    begin = record.first[e]
    disturbed = np.any(sigma > 0.0)
    derivatives = False
    for c in range(n, columns):
        for i in range(N):
            derivatives |= record.weight[begin + i, c] > 0.0
    if disturbed:
        _neighbours(last, sizes, n, groups, y, steps_of)
        _slopes_at(flow, record.t[begin], y, table, options.root, options.root_slope, record.t[begin], work)
        for g in range(groups):
            _jacobian(n, g, steps_of, work.K, A)
            _intensity(flow, sigma[g], proportional, states, last[g], spread[g], D)
            if not _accumulated(A, D, lead, n, Q, E, M, T, U):
                return np.int64(1)
            for d in range(n):
                for j in range(n):
                    spread[g, d, j] += Q[d, j]
    smooth = not jump_width(table) > 0.0  # a step must not cross a jump of an input
    K = np.zeros((2, n, LANES))
    for i in range(N):
        if i > 0:
            both[0], both[1] = record.t[begin + i - 1], record.t[begin + i]
            _neighbours(last, sizes, n, groups, y, steps_of)
            if disturbed:
                _slopes_at(flow, both[0], y, table, options.root, options.root_slope, record.t[begin], work)
                for g in range(groups):
                    _jacobian(n, g, steps_of, work.K, A0[g])
                    _intensity(flow, sigma[g], proportional, states, last[g], spread[g], before[g])
            parts = _substeps(A0, groups, n, both[1] - both[0]) if disturbed and smooth else 0
            parts = parts if parts <= _MOST_SUBSTEPS else np.int64(0)
            if parts > 0:
                _runge_kutta(flow, both[0], both[1], parts, y, table, options, record.t[begin], work, K)
            else:
                solve_lanes(
                    flow, C, np.int64(groups * (n + 1)), y, both, table, options, np.bool_(True), np.bool_(False), work
                )
                if work.reached[0] < 2:
                    return work.status[0]
                for d in range(n):
                    for k in range(LANES):
                        y[d, k] = work.Y[1, d, k]
            for g in range(groups):
                for d in range(n):
                    if not abs(y[d, g * (n + 1)]) <= record.limit[d]:
                        return np.int64(1)
            for g in range(groups):
                lane = g * (n + 1)
                for d in range(n):
                    for j in range(n):
                        Phi[d, j] = (y[d, lane + 1 + j] - y[d, lane]) / steps_of[g, j]
                    last[g, d] = y[d, lane]
                _product(Phi, spread[g], n, np.bool_(False), U)
                _product(U, Phi, n, np.bool_(True), T)
                for d in range(n):
                    for j in range(d + 1):
                        spread[g, d, j] = 0.5 * (T[d, j] + T[j, d])
                        spread[g, j, d] = spread[g, d, j]
        if (i > 0 and disturbed) or derivatives:
            _neighbours(last, sizes, n, groups, y, steps_of)
            _slopes_at(flow, record.t[begin + i], y, table, options.root, options.root_slope, record.t[begin], work)
            for g in range(groups):
                _jacobian(n, g, steps_of, work.K, A1[g])
                for s in range(rates.shape[1]):
                    rates[g, s] = work.K[0, flow.rates[s], g * (n + 1)]
        if i > 0 and disturbed:
            for g in range(groups):
                _intensity(flow, sigma[g], proportional, states, last[g], spread[g], D)
                for d in range(n):
                    D[d] = 0.5 * (D[d] + before[g, d])
                    for j in range(n):
                        A[d, j] = 0.5 * (A0[g, d, j] + A1[g, d, j])
                if not _accumulated(A, D, both[1] - both[0], n, Q, E, M, T, U):
                    return np.int64(1)
                for d in range(n):
                    for j in range(n):
                        spread[g, d, j] += Q[d, j]
                    if not spread[g, d, d] < _LARGEST:
                        return np.int64(1)
        for g in range(groups):
            for d in range(n):
                before[g, d] = last[g, d]
            for c in range(columns):
                w = record.weight[begin + i, c]
                variances[g, i, c] = 0.0
                innovations[g, i, c] = 0.0
                if w > 0.0:
                    expected = last[g, c] if c < n else rates[g, c - n]
                    for d in range(n):
                        if c < n:
                            H[d] = 1.0 if d == c else 0.0
                        else:
                            H[d] = A1[g, flow.rates[c - n], d]
                            expected += H[d] * (last[g, d] - before[g, d])
                    v, s = _update(
                        last[g], spread[g], H, expected, record.data[begin + i, c], scale[g, c] ** 2 / w, n, gain
                    )
                    innovations[g, i, c] = v
                    variances[g, i, c] = s
    return np.int64(OK)


FILTER_RECORD = (
    FLOW, RECORD, int64, int64, float64[:, ::1], float64[:, ::1], float64[:, ::1], boolean[::1], int64[::1],
    float64[:, ::1], float64[::1], float64, float64, int64, float64[:, :, ::1], float64[:, :, ::1],
)  # fmt: skip
