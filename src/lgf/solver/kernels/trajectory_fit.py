"""The trajectory stage: Levenberg-Marquardt on the solved system, over one or more experiments.

The unknowns are the free constants, then the initial values that are not given. The Jacobian comes from lanes on a
shared step sequence; eight damping values are tried at once, one per lane.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64, types

from lgf.compilation import njit
from lgf.solver.kernels import ALLOCATES, FASTEST, INNER, KERNEL
from lgf.solver.kernels.integrator import FLOW, OK, Options, Workspace, make_workspace, solve_lanes
from lgf.solver.kernels.lanes import load, repeated, store, where
from lgf.solver.kernels.linear import damped_solve
from lgf.solver.kernels.machine import LANES

_STEP = 1e-6  # of difference quotients, relative
LARGEST = 1e8  # of an unknown, unless its own limits are wider


class Record(NamedTuple):
    """The measured data as arrays.

    Experiments stand one after the other; those of experiment e are the samples first[e] .. first[e + 1] - 1 and the
    table rows table_first[e] .. table_first[e + 1] - 1. Columns are those of the frame.
    """

    t: np.ndarray  # [N]
    data: np.ndarray  # [N, column] measured values; anything where the weight is 0
    weight: np.ndarray  # [N, column], 0 = not measured
    ceiling: np.ndarray  # [column] largest squared error that a sample may count
    first: np.ndarray  # [E + 1]
    initial: np.ndarray  # [E, n] the initial state, given or as first guess
    unknown: np.ndarray  # [E, n] -1 = given, else the position among the unknown initial values
    table: np.ndarray  # [rows, 4] the sampled inputs of all experiments, as the register machine reads them
    table_first: np.ndarray  # [E + 1]
    root: np.ndarray  # [E] the highest derivative at the start, to choose a branch of an implicit equation
    root_slope: np.ndarray  # [E] its slope
    largest_step: np.ndarray  # [E]
    limit: np.ndarray  # [n] a state beyond its limit has blown up
    atol: np.ndarray  # [n] absolute tolerance
    nudge: np.ndarray  # [E, n] added to an initial state at which the system is singular


class Unknowns(NamedTuple):
    """The unknowns x of a fit: free constants, then initial values.

    In experiment e the j-th constant of the program is x[source[e, j]], so constants may differ between experiments.
    """

    source: np.ndarray  # [E, p]
    n_free: int  # free constants; initial values follow them
    mean: np.ndarray  # [P] of the prior
    error: np.ndarray  # [P] standard error of the prior in units of the loss; 0 = no prior
    least: np.ndarray  # [P] size below which the steps of difference quotients do not become shorter


class Search(NamedTuple):
    """Budgets and tolerances of the search for the unknowns."""

    rtol: float
    max_steps: int  # of one solve
    with_highest: bool  # whether highest derivatives were measured
    leave_above: float  # a best start with a larger loss is returned as it is
    max_iterations: int
    tolerance: float  # relative fall of the loss below which the search ends
    far_loss: float  # above this loss
    far_tolerance: float  # that tolerance holds
    hopeless_loss: float  # above this loss an eighth of the budget is spent
    budget: int  # steps of the integrator


class Memory(NamedTuple):
    """The memory of a fit, allocated once."""

    integrator: Workspace
    y: np.ndarray  # [n, lane]
    C: np.ndarray  # [p, lane]
    columns: np.ndarray  # [column, lane] loss of each column
    loss: np.ndarray  # [lane]
    worst: np.ndarray  # [lane] the status of the experiment that ended worst
    samples: np.ndarray  # [lane] how many were reached
    steps: np.ndarray  # [lane] of difference quotients


_workspace = njit(**ALLOCATES)(make_workspace)


@njit(**ALLOCATES)
def make_memory(flow, p, longest):
    """Fresh memory for samples up to `longest` per experiment."""
    columns = flow.n + flow.rates.shape[0]
    return Memory(
        _workspace(flow, longest),
        np.zeros((flow.n, LANES)),
        np.zeros((p, LANES)),
        np.zeros((columns, LANES)),
        np.zeros(LANES),
        np.zeros(LANES, np.int64),
        np.zeros(LANES),
        np.zeros(LANES),
    )


@njit(**INNER)
def _solve_experiment(flow, record, unknowns, e, N, X, n_active, rtol, max_steps, shared, with_highest, memory):
    """Solve experiment e, its first N samples, for the unknowns in the columns of X; returns the steps tried."""
    for j in range(memory.C.shape[0]):
        store(memory.C, load(X, unknowns.source[e, j], 0), j, 0)
    for d in range(flow.n):
        free = record.unknown[e, d]
        start = repeated(record.initial[e, d])
        if free >= 0:
            start = load(X, unknowns.n_free + free, 0)
        store(memory.y, start, d, 0)
    begin = record.first[e]
    options = Options(
        rtol, record.atol, record.largest_step[e], record.limit, record.nudge[e], max_steps, record.root[e],
        record.root_slope[e],
    )  # fmt: skip
    return solve_lanes(
        flow, memory.C, n_active, memory.y, record.t[begin : begin + N],
        record.table[record.table_first[e] : record.table_first[e + 1]], options, shared, with_highest,
        memory.integrator,
    )  # fmt: skip


@njit(**INNER, fastmath=FASTEST)
def _add_loss(record, e, N, memory):
    """Add the weighted squared errors of every lane on experiment e, its first N samples, to memory.columns."""
    begin = record.first[e]
    Y, columns, samples = memory.integrator.Y, memory.columns, memory.samples
    for k in range(LANES):
        samples[k] = memory.integrator.reached[k]
    for d in range(columns.shape[0]):
        largest = repeated(record.ceiling[d])
        total = load(columns, d, 0)
        for i in range(N):
            w = record.weight[begin + i, d]
            if w != 0.0:
                errors = load(Y, i, d, 0) - record.data[begin + i, d]
                squares = errors * errors
                squares = where(squares < largest, squares, largest)  # NaN too
                total = total + w * where(np.float64(i) < load(samples, 0), squares, largest)
        store(columns, total, d, 0)


@njit(**INNER)
def _prior_loss(unknowns, X, loss):
    """Add the squared distance of the unknowns from the mean of their prior to the loss."""
    total = load(loss, 0)
    for j in range(unknowns.mean.shape[0]):
        if unknowns.error[j] > 0.0:
            z = (load(X, j, 0) - unknowns.mean[j]) / unknowns.error[j]
            total = total + z * z
    store(loss, total, 0)


@njit(**INNER)
def losses_of_lanes(flow, record, unknowns, windows, X, n_active, rtol, max_steps, with_highest, memory):
    """Fill memory.loss and .columns with the losses of the unknowns in each column of X, .worst with how it ended.

    The return value is the number of steps tried.
    """
    loss = memory.loss
    memory.worst[:] = OK
    memory.columns[:] = 0.0
    steps = 0
    for e in range(windows.shape[0]):
        steps += _solve_experiment(
            flow, record, unknowns, e, windows[e], X, n_active, rtol, max_steps, np.bool_(False), with_highest, memory
        )
        _add_loss(record, e, windows[e], memory)
        for k in range(LANES):
            if memory.integrator.status[k] != OK:
                memory.worst[k] = memory.integrator.status[k]
    total = repeated(0.0)
    for d in range(memory.columns.shape[0]):
        total = total + load(memory.columns, d, 0)
    store(loss, total, 0)
    _prior_loss(unknowns, X, loss)
    for k in range(n_active, LANES):
        loss[k] = np.inf
    return steps


@njit(**INNER, fastmath=FASTEST)
def _accumulate(J, active, n_active, rows, A, g):
    """Add J J' to the lower half of A and J r to g at the active unknowns; the residual r is the last row of J."""
    for i in range(n_active):
        for j in range(i + 1):
            s = 0.0
            for row in range(rows):
                s += J[i, row] * J[j, row]
            A[active[i], active[j]] += s
        s = 0.0
        for row in range(rows):
            s += J[i, row] * J[n_active, row]
        g[active[i]] += s


@njit(**INNER)
def _find_active(record, unknowns, e, p, n, active):
    """Write the unknowns that matter in experiment e to `active`, in rising order; returns how many there are."""
    n_active = 0
    for j in range(unknowns.n_free):
        matters = False
        for i in range(p):
            if unknowns.source[e, i] == j:
                matters = True
        if matters:
            active[n_active] = j
            n_active += 1
    for d in range(n):  # the initial values of an experiment have rising numbers
        if record.unknown[e, d] >= 0:
            active[n_active] = unknowns.n_free + record.unknown[e, d]
            n_active += 1
    return n_active


@njit(**INNER)
def _normal_equations(flow, record, unknowns, windows, x, lower, upper, rtol, max_steps, with_highest, memory, X, J,
                      active, A, g):  # fmt: skip
    """Fill A = J'WJ and g = J'Wr at x, and lane 0 of memory.columns; returns (loss, steps, status).

    The last row of J [P + 2, row] receives the roots of the weights.
    """
    P = x.shape[0]
    Y = memory.integrator.Y
    n_columns = memory.columns.shape[0]
    for i in range(P):
        g[i] = 0.0
        for j in range(P):
            A[i, j] = 0.0
        store(X, repeated(x[i]), i, 0)
    memory.columns[:] = 0.0
    steps = 0
    status = OK
    for e in range(windows.shape[0]):
        N = windows[e]
        begin = record.first[e]
        n_active = _find_active(record, unknowns, e, memory.C.shape[0], flow.n, active)
        done = 0
        reached = 0
        rows = 0
        while done < n_active or done == 0:
            width = min(n_active - done, LANES - 1)
            for lane in range(1, width + 1):
                j = active[done + lane - 1]
                h = _STEP * max(abs(x[j]), unknowns.least[j])
                if x[j] + h > upper[j]:
                    h = -h
                X[j, lane] = x[j] + h
                memory.steps[lane] = h
            steps += _solve_experiment(
                flow, record, unknowns, e, N, X, width + 1, rtol, max_steps, np.bool_(True), with_highest, memory
            )
            if done == 0:
                _add_loss(record, e, N, memory)
                reached = memory.integrator.reached[0]
                if memory.integrator.status[0] != OK:
                    status = memory.integrator.status[0]
                for d in range(n_columns):
                    for i in range(reached):
                        w = record.weight[begin + i, d]
                        if w != 0.0:
                            r = Y[i, d, 0] - record.data[begin + i, d]
                            root = np.sqrt(w)
                            J[n_active, rows] = r * root if r * r < record.ceiling[d] else 0.0
                            J[P + 1, rows] = root
                            rows += 1
            for lane in range(1, width + 1):
                row = 0
                rate = 1.0 / memory.steps[lane]
                for d in range(n_columns):
                    for i in range(reached):
                        if record.weight[begin + i, d] != 0.0:
                            z = (Y[i, d, lane] - Y[i, d, 0]) * rate * J[P + 1, row]
                            J[done + lane - 1, row] = z if abs(z) < 1e100 else 0.0
                            row += 1
                X[active[done + lane - 1], lane] = x[active[done + lane - 1]]
            done += width
            if n_active == 0:
                break
        _accumulate(J, active, n_active, rows, A, g)
    total = 0.0
    for d in range(n_columns):
        total += memory.columns[d, 0]
    for j in range(P):
        if unknowns.error[j] > 0.0:
            z = (x[j] - unknowns.mean[j]) / unknowns.error[j]
            total += z * z
            A[j, j] += 1.0 / unknowns.error[j] ** 2
            g[j] += z / unknowns.error[j]
    for i in range(P):
        for j in range(i):
            A[j, i] = A[i, j]
    return total, steps, status


@njit(**KERNEL)
def fit_trajectory(flow, record, unknowns, windows, starts, lower, upper, search):
    """The best unknowns found from the best of the starts: (x, loss, losses by column, J'WJ, status, solves, steps).

    starts [s, P] are compared by their loss, at most eight at a time. Unless that of the best is above
    search.leave_above, Levenberg-Marquardt goes on from there until the loss falls by less than the tolerance, or
    cannot be made to fall twice in a row, or the budget of steps is spent. windows [E] says how many samples of each
    experiment count.
    """
    P = starts.shape[1]
    longest = np.int64(1)
    for e in range(windows.shape[0]):
        longest = max(longest, windows[e])
    rtol, max_steps, with_highest = search.rtol, search.max_steps, search.with_highest
    memory = make_memory(flow, unknowns.source.shape[1], longest)
    n_columns = memory.columns.shape[0]
    columns = np.full(n_columns, np.inf)
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
        steps += losses_of_lanes(flow, record, unknowns, windows, X, width, rtol, max_steps, with_highest, memory)
        solves += width
        for k in range(width):
            if memory.loss[k] < best:
                best = memory.loss[k]
                status = memory.worst[k]
                for d in range(n_columns):
                    columns[d] = memory.columns[d, k]
                for j in range(P):
                    x[j] = X[j, k]
    A = np.zeros((P, P))
    if P == 0 or not best <= search.leave_above:
        return x, best, columns, A, status, solves, steps
    g = np.zeros(P)
    L = np.zeros((P, P))
    change = np.zeros(P)
    held = np.zeros(P, np.bool_)
    active = np.zeros(P, np.int64)
    J = np.empty((P + 2, longest * n_columns))
    damping = 1e-3
    failures = 0
    moved = True
    settled = False
    patience = max_steps
    for iteration in range(search.max_iterations + 1):
        if moved:
            loss, tried, status = _normal_equations(
                flow, record, unknowns, windows, x, lower, upper, rtol, max_steps, with_highest, memory, X, J, active,
                A, g,
            )  # fmt: skip
            for d in range(n_columns):
                columns[d] = memory.columns[d, 0]
            steps += tried
            solves += P + 1
            best = min(best, loss)
            # A trial that needs far more steps than the current point is not worth its time.
            patience = min(max_steps, 2 * tried + 50)
        if settled or iteration == search.max_iterations:
            break
        for j in range(P):
            held[j] = (x[j] <= lower[j] and g[j] > 0.0) or (x[j] >= upper[j] and g[j] < 0.0)
        for k in range(LANES):
            damped_solve(A, g, P, damping * 10.0 ** (k - 2), held, change, L)
            for j in range(P):
                z = x[j] + change[j]
                z = z if abs(z) < max(LARGEST, abs(lower[j]), abs(upper[j])) else x[j]
                X[j, k] = min(max(z, lower[j]), upper[j])
        steps += losses_of_lanes(
            flow, record, unknowns, windows, X, np.int64(LANES), rtol, patience, with_highest, memory
        )
        solves += LANES
        winner = 0
        for k in range(1, LANES):
            if memory.loss[k] < memory.loss[winner]:
                winner = k
        moved = memory.loss[winner] < best
        if moved:
            gain = (best - memory.loss[winner]) / best
            best = memory.loss[winner]
            for j in range(P):
                x[j] = X[j, winner]
            damping = min(max(damping * 10.0 ** (winner - 3), 1e-9), 1e8)
            failures = 0
            settled = gain < (search.far_tolerance if best > search.far_loss else search.tolerance)
        else:
            damping = min(damping * 1e4, 1e8)
            failures += 1
            settled = failures >= 2
        settled = settled or steps > (search.budget if best < search.hopeless_loss else search.budget // 8)
        if settled and not moved:
            break
    return x, best, columns, A, status, solves, steps


RECORD = types.NamedTuple(
    (
        float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], int64[::1], float64[:, ::1], int64[:, ::1],
        float64[:, ::1], int64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1],
        float64[:, ::1],
    ),
    Record,
)  # fmt: skip
_UNKNOWNS = types.NamedTuple((int64[:, ::1], int64, float64[::1], float64[::1], float64[::1]), Unknowns)
_SEARCH = types.NamedTuple((float64, int64, boolean, float64, int64, float64, float64, float64, float64, int64), Search)
FIT_TRAJECTORY = (FLOW, RECORD, _UNKNOWNS, int64[::1], float64[:, ::1], float64[::1], float64[::1], _SEARCH)
