"""The trajectory stage: Levenberg-Marquardt on the solved equation, over one or more experiments.

The unknowns are the constants, then the initial values that are not given. The Jacobian comes from lanes on a shared
step sequence; eight damping values are tried at once, one per lane.
"""

from collections import namedtuple

import numpy as np
from numba import njit

from lgf.solver.kernels import FASTEST, INNER, KERNEL
from lgf.solver.kernels.integrator import N_STAGES, N_WORK, OK, integrate
from lgf.solver.kernels.linear import damped_solve
from lgf.solver.kernels.machine import LANES

HOPELESS = 1e30

# What was measured, in arrays. Experiments stand one after the other; those of experiment e are the samples
# first[e] .. first[e + 1] - 1 and the table rows table_first[e] .. table_first[e + 1] - 1.
Record = namedtuple(
    "Record",
    [
        "t",  # [N]
        "data",  # [N, n + 1] measured u, u', .., u^(n); anything where the weight is 0
        "weight",  # [N, n + 1], 0 = not measured
        "ceiling",  # [n + 1] largest squared error that a sample may count
        "first",  # [E + 1]
        "initial",  # [E, n] the initial state, given or as first guess
        "unknown",  # [E, n] -1 = given, else the position among the unknown initial values
        "initial_error",  # [E, n] standard error of the first guess of an unknown initial value (a prior)
        "table",  # [M, 4] sampled forcing in cubic pieces
        "table_first",  # [E + 1]
        "table_start",  # [E]
        "table_rate",  # [E]
        "root",  # [E] the highest derivative at the start, to choose a branch of an implicit equation
        "root_slope",  # [E] its slope
        "largest_step",  # [E]
        "limit",  # scalar: a lane with |u| above it has blown up
        "atol",  # [n] absolute tolerance per state
        "nudge",  # [E, n] added to an initial state at which the equation is singular
    ],
)

# Workspace of the integrator and of the loss, made once per fit.
Work = namedtuple("Work", ["R", "S", "K", "Y", "y", "C", "reached", "status", "loss", "worst"])


@njit(**KERNEL)
def make_work(n_registers, n, p, longest):
    """Fresh workspace for samples up to `longest` per experiment."""
    return Work(
        np.zeros((n_registers, LANES)),
        np.zeros((N_WORK, LANES)),
        np.zeros((N_STAGES, n, LANES)),
        np.zeros((longest, n + 1, LANES)),
        np.zeros((n, LANES)),
        np.zeros((p, LANES)),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
        np.zeros(LANES),
        np.zeros(LANES, np.int64),
    )


# inline="always" where a kernel has few callers: numba optimises a callee anew inside every caller.
@njit(inline="always", error_model="numpy")
def _solve_experiment(
    code, outputs, degree, literals, n, p, record, e, N, X, n_active, rtol, max_steps, shared, with_top, work
):  # fmt: skip
    """Solve experiment e, its first N samples, for the unknowns in the columns of X; returns the steps tried."""
    for j in range(p):
        for k in range(LANES):
            work.C[j, k] = X[j, k]
    for d in range(n):
        free = record.unknown[e, d]
        for k in range(LANES):
            work.y[d, k] = record.initial[e, d] if free < 0 else X[p + free, k]
    begin = record.first[e]
    return integrate(
        code, outputs, degree, literals, n, work.C, n_active, work.y, record.t[begin : begin + N],
        record.table[record.table_first[e] : record.table_first[e + 1]], record.table_start[e], record.table_rate[e],
        rtol, record.atol, record.largest_step[e], record.limit, record.nudge[e], max_steps, shared, with_top,
        record.root[e], record.root_slope[e], work.R, work.S, work.K, work.Y, work.reached, work.status,
    )  # fmt: skip


@njit(**INNER, fastmath=FASTEST)
def _add_loss(record, e, N, n, work):
    """Add the weighted squared errors of every lane on experiment e to work.loss."""
    begin = record.first[e]
    for d in range(n + 1):
        ceiling = record.ceiling[d]
        for i in range(N):
            w = record.weight[begin + i, d]
            if w == 0.0:
                continue
            x = record.data[begin + i, d]
            for k in range(LANES):
                error = work.Y[i, d, k] - x
                error = error * error
                error = error if error < ceiling else ceiling  # NaN too
                work.loss[k] += w * (error if i < work.reached[k] else ceiling)


@njit(**INNER)
def _prior_loss(record, n, p, X, work):
    """Add to work.loss what the unknown initial values cost for leaving their first guess."""
    for e in range(record.initial.shape[0]):
        for d in range(n):
            free = record.unknown[e, d]
            if free >= 0 and record.initial_error[e, d] > 0.0:
                for k in range(LANES):
                    z = (X[p + free, k] - record.initial[e, d]) / record.initial_error[e, d]
                    work.loss[k] += z * z


@njit(**INNER)
def _losses_of_lanes(
    code, outputs, degree, literals, n, p, record, windows, X, n_active, rtol, max_steps, with_top, work
):  # fmt: skip
    """Fill work.loss with the loss of the unknowns in each column of X, work.worst with how it ended; returns steps."""
    for k in range(LANES):
        work.loss[k] = 0.0
        work.worst[k] = OK
    steps = 0
    for e in range(windows.shape[0]):
        steps += _solve_experiment(
            code, outputs, degree, literals, n, p, record, e, windows[e], X, n_active, rtol, max_steps,
            np.bool_(False), with_top, work,
        )  # fmt: skip
        _add_loss(record, e, windows[e], n, work)
        for k in range(LANES):
            if work.status[k] != OK:
                work.worst[k] = work.status[k]
    _prior_loss(record, n, p, X, work)
    for k in range(n_active, LANES):
        work.loss[k] = HOPELESS
    return steps


@njit(**INNER, fastmath=FASTEST)
def _accumulate(J, P, rows, A, g):
    """Add J J' to the lower half of A and J r to g, the residual r being the last row of J."""
    for i in range(P):
        for j in range(i + 1):
            s = 0.0
            for row in range(rows):
                s += J[i, row] * J[j, row]
            A[i, j] += s
        s = 0.0
        for row in range(rows):
            s += J[i, row] * J[P, row]
        g[i] += s


@njit(inline="always", error_model="numpy")
def _normal_equations(
    code, outputs, degree, literals, n, p, P, record, windows, x, lower, upper, rtol, max_steps, with_top, work, X, J,
    steps_of, A, g,
):  # fmt: skip
    """Fill A = J'WJ and g = J'Wr at x; returns (loss, steps, status)."""
    for i in range(P):
        g[i] = 0.0
        for j in range(P):
            A[i, j] = 0.0
    steps = 0
    total = 0.0
    status = OK
    for e in range(windows.shape[0]):
        N = windows[e]
        begin = record.first[e]
        done = 0
        reached = 0
        rows = 0
        while done < P or done == 0:
            width = 0
            for j in range(P):
                for k in range(LANES):
                    X[j, k] = x[j]
            j = done
            while j < P and width < LANES - 1:
                # Initial values of other experiments do not matter here.
                matters = j < p
                for d in range(n):
                    if record.unknown[e, d] == j - p:
                        matters = True
                steps_of[j] = 0.0
                if matters:
                    width += 1
                    h = 1e-6 * max(abs(x[j]), 1e-3)
                    if x[j] + h > upper[j]:
                        h = -h
                    X[j, width] = x[j] + h
                    steps_of[j] = h
                j += 1
            last = j
            steps += _solve_experiment(
                code, outputs, degree, literals, n, p, record, e, N, X, width + 1, rtol, max_steps, np.bool_(True),
                with_top, work,
            )  # fmt: skip
            if done == 0:
                for k in range(LANES):
                    work.loss[k] = 0.0
                _add_loss(record, e, N, n, work)
                total += work.loss[0]
                reached = work.reached[0]
                if work.status[0] != OK:
                    status = work.status[0]
                rows = 0
                for d in range(n + 1):
                    for i in range(reached):
                        w = record.weight[begin + i, d]
                        if w != 0.0:
                            r = work.Y[i, d, 0] - record.data[begin + i, d]
                            J[P, rows] = r * np.sqrt(w) if r * r < record.ceiling[d] else 0.0
                            rows += 1
            lane = 0
            for j in range(done, last):
                if steps_of[j] == 0.0:
                    for i in range(rows):
                        J[j, i] = 0.0
                    continue
                lane += 1
                row = 0
                for d in range(n + 1):
                    for i in range(reached):
                        w = record.weight[begin + i, d]
                        if w != 0.0:
                            z = (work.Y[i, d, lane] - work.Y[i, d, 0]) / steps_of[j] * np.sqrt(w)
                            J[j, row] = z if abs(z) < 1e100 else 0.0
                            row += 1
            done = last
            if P == 0:
                break
        _accumulate(J, P, rows, A, g)
    for e in range(windows.shape[0]):
        for d in range(n):
            free = record.unknown[e, d]
            if free >= 0 and record.initial_error[e, d] > 0.0:
                j = p + free
                z = (x[j] - record.initial[e, d]) / record.initial_error[e, d]
                total += z * z
                A[j, j] += 1.0 / record.initial_error[e, d] ** 2
                g[j] += z / record.initial_error[e, d]
    for i in range(P):
        for j in range(i):
            A[j, i] = A[i, j]
    return total, steps, status


@njit(**KERNEL)
def fit_trajectory(
    code, outputs, degree, literals, n_registers, n, p, record, windows, starts, lower, upper, rtol, max_steps,
    with_top, leave_above, max_iterations, tolerance, far_loss, far_tolerance, hopeless_loss, budget,
):  # fmt: skip
    """The best unknowns found from the best of the starts: (x, loss, J'WJ, status, solves, steps).

    starts [s, P] are compared by their loss, at most eight at a time. Unless that of the best is above leave_above,
    Levenberg-Marquardt goes on from there until the loss falls by less than `tolerance` (relative; far_tolerance while
    it is above far_loss), or cannot be made to fall twice in a row, or `budget` steps have been tried (an eighth of
    them while the loss is above hopeless_loss). windows [E] says how many samples of each experiment count.
    """
    P = starts.shape[1]
    longest = np.int64(1)
    for e in range(windows.shape[0]):
        longest = max(longest, windows[e])
    total_rows = longest * (n + 1)
    work = make_work(n_registers, n, p, longest)
    X = np.zeros((max(P, 1), LANES))
    x = np.zeros(P)
    best = np.inf
    status = OK
    solves = 0
    steps = 0
    for begin in range(0, starts.shape[0], LANES):
        width = min(LANES, starts.shape[0] - begin)
        for j in range(P):
            for k in range(LANES):
                X[j, k] = min(max(starts[begin + min(k, width - 1), j], lower[j]), upper[j])
        steps += _losses_of_lanes(
            code, outputs, degree, literals, n, p, record, windows, X, width, rtol, max_steps, with_top, work
        )
        solves += width
        for k in range(width):
            if work.loss[k] < best:
                best = work.loss[k]
                status = work.worst[k]
                for j in range(P):
                    x[j] = X[j, k]
    A = np.zeros((P, P))
    if P == 0 or not best <= leave_above:
        return x, best, A, status, solves, steps
    g = np.zeros(P)
    L = np.zeros((P, P))
    change = np.zeros(P)
    held = np.zeros(P, np.bool_)
    steps_of = np.zeros(P)
    J = np.zeros((P + 1, total_rows))
    damping = 1e-3
    failures = 0
    moved = True
    settled = False
    patience = max_steps
    for iteration in range(max_iterations + 1):
        if moved:
            loss, tried, status = _normal_equations(
                code, outputs, degree, literals, n, p, P, record, windows, x, lower, upper, rtol, max_steps, with_top,
                work, X, J, steps_of, A, g,
            )  # fmt: skip
            steps += tried
            solves += P + 1
            best = min(best, loss)
            # A trial that needs far more steps than the point it leaves is no improvement worth waiting for.
            patience = min(max_steps, 2 * tried + 50)
        if settled or iteration == max_iterations:
            break
        for j in range(P):
            held[j] = (x[j] <= lower[j] and g[j] > 0.0) or (x[j] >= upper[j] and g[j] < 0.0)
        for k in range(LANES):
            damped_solve(A, g, P, damping * 10.0 ** (k - 2), held, change, L)
            for j in range(P):
                z = x[j] + change[j]
                z = z if abs(z) < 1e8 else x[j]
                X[j, k] = min(max(z, lower[j]), upper[j])
        steps += _losses_of_lanes(
            code, outputs, degree, literals, n, p, record, windows, X, np.int64(LANES), rtol, patience, with_top, work
        )
        solves += LANES
        winner = 0
        for k in range(1, LANES):
            if work.loss[k] < work.loss[winner]:
                winner = k
        moved = work.loss[winner] < best
        if moved:
            gain = (best - work.loss[winner]) / best
            best = work.loss[winner]
            for j in range(P):
                x[j] = X[j, winner]
            damping = min(max(damping * 10.0 ** (winner - 3), 1e-9), 1e8)
            failures = 0
            settled = gain < (far_tolerance if best > far_loss else tolerance)
        else:
            damping = min(damping * 1e4, 1e8)
            failures += 1
            settled = failures >= 2
        settled = settled or steps > (budget if best < hopeless_loss else budget // 8)
        if settled and not moved:
            break
    return x, best, A, status, solves, steps
