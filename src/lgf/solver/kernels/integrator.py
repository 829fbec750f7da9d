"""Dormand-Prince 5(4) over eight lanes, with dense output at the sample times.

A lane is one vector of constants and one initial state. In free mode every lane has its own time and step; in shared
mode all lanes follow the steps of lane 0, so that differences between lanes are derivatives with respect to what was
perturbed, free of step-size noise.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64, types

from lgf.compilation import linked, njit
from lgf.solver.kernels import FAST, INNER, LINKED
from lgf.solver.kernels.elementary import exponential, logarithm
from lgf.solver.kernels.input_jumps import jump_width, next_break
from lgf.solver.kernels.lanes import absolute, load, repeated, store, where
from lgf.solver.kernels.machine import LANES, PROGRAM, WIDE, Program, execute
from lgf.solver.kernels.slopes import (
    ACTIVE,
    DENSE,
    DENSE_WEIGHTS,
    ERROR,
    ERROR_WEIGHTS,
    LAST_ROOT,
    LAST_TIME,
    N_STAGES,
    N_WORK,
    ROOT,
    ROOT_SLOPE,
    ROOT_TIME,
    STEP,
    TIME,
    TRIED,
    remember_root,
    slopes_of_stages,
    weighted,
)

OK, BLEW_UP, OUT_OF_STEPS, SINGULAR, OUTSIDE_DOMAIN = range(5)


class Flow(NamedTuple):
    """The rate of change of the state vector, compiled.

    With degree 1 the program's outputs are the rates. Otherwise the system is one implicit equation, and the outputs
    are the coefficients of a polynomial of that degree in its highest derivative, or its residual (degree GENERAL).
    """

    program: Program
    degree: int
    n: int  # length of the state vector
    rates: np.ndarray  # int64 [state]: position in the state vector of the variable that the state's equation drives


GENERAL = -1  # the highest derivative is found by Newton's method on the residual


class Options(NamedTuple):
    """Options of the integrator."""

    rtol: float
    atol: np.ndarray  # [n]
    largest_step: float
    limit: np.ndarray  # [n] a lane in which a state exceeds its limit has blown up
    nudge: np.ndarray  # [n] added to an initial state at which the slopes are not finite
    max_steps: int
    root: float  # the highest derivative at the start, to choose a branch of an implicit equation
    root_slope: float  # and its slope


class Workspace(NamedTuple):
    """Memory and results of the integrator."""

    R: np.ndarray  # [register, lane]
    W: np.ndarray  # [register, WIDE] several samples of all lanes
    S: np.ndarray  # [N_WORK, lane]
    K: np.ndarray  # [N_STAGES, n, lane]
    Y: np.ndarray  # [sample, column, lane] the trajectories: the state vector, then the highest derivatives
    reached: np.ndarray  # [lane] number of samples filled
    status: np.ndarray  # [lane] final status


def make_workspace(flow: Flow, samples: int) -> Workspace:
    """Memory for trajectories of this many samples."""
    return Workspace(
        np.zeros((flow.program.n_registers, LANES)),
        np.zeros((flow.program.n_registers, WIDE)),
        np.zeros((N_WORK, LANES)),
        np.zeros((N_STAGES, flow.n, LANES)),
        np.zeros((samples, flow.n + len(flow.rates), LANES)),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
    )


@njit(**INNER, fastmath=FAST)
def _step_factor(n, y, S, K, R, rtol, atol):
    """Write to S[ERROR] the factor 0.9 err^(-1/5) by which each lane's step may change (>= 0.9: accepted)."""
    total = repeated(0.0)
    for d in range(n):
        old = absolute(load(y, d, 0))
        new = absolute(load(R, 1 + d, 0))
        e = weighted(ERROR_WEIGHTS, 7, K, d)
        q = e * load(S, TRIED, 0) / (atol[d] + rtol * where(old > new, old, new))
        total = total + q * q
    store(S, 0.9 * exponential(-0.1 * logarithm(total / np.float64(n) + 1e-20)), ERROR, 0)


@njit(**INNER, fastmath=FAST)
def _dense_coefficients(n, S, K):
    """Write the last coefficient of the dense output of every state to K[DENSE]."""
    for d in range(n):
        store(K, load(S, TRIED, 0) * weighted(DENSE_WEIGHTS, 7, K, d), DENSE, d, 0)


@njit(**INNER)
def _leave_singular_start(n, n_active, y, window, nudge, S, K, R):
    """Whether the slopes at the start are not finite (0/0, say): all lanes then move a hair into the window."""
    finite = True
    for d in range(n):
        for k in range(n_active):
            if not abs(K[0, d, k]) < 1e300:
                finite = False
    if finite:
        return False
    for k in range(LANES):
        S[TIME, k] += 1e-6 * window
        R[0, k] = S[TIME, k]
        for d in range(n):
            y[d, k] += nudge[d]
            R[1 + d, k] = y[d, k]
    return True


@njit(**LINKED, fastmath=FAST)
def integrate(flow, constants, n_active, y, t, table, options, shared, with_highest, work):
    """Solve for all lanes; the trajectories go to work.Y, the return value is the number of steps tried.

    constants [p, lane] and y [n, lane], the initial states, which are used up, differ from lane to lane. With
    with_highest the highest derivatives are written as well.
    """
    N = t.shape[0]
    end = t[N - 1]
    window = end - t[0]
    p = constants.shape[0]
    n = flow.n
    degree = flow.degree
    code, outputs, literals = flow.program.code, flow.program.outputs, flow.program.literals
    R, W, S, K, Y, reached, status = work.R, work.W, work.S, work.K, work.Y, work.reached, work.status
    rtol, atol, limit = options.rtol, options.atol, options.limit
    largest_step = options.largest_step
    root, root_slope = options.root, options.root_slope
    at = flow.program.constants_at
    for j in range(p):
        store(R, load(constants, j, 0), at + j, 0)
    for j in range(literals.shape[0]):
        store(R, repeated(literals[j]), at + p + j, 0)
    first = min(largest_step, max(0.2 * (t[min(1, N - 1)] - t[0]), 1e-4 * window))
    lanes = y.shape[1]  # LANES; a loop over a number that LLVM knows becomes eight copies of its body
    for k in range(lanes):
        S[ACTIVE, k] = 1.0 if k < n_active else 0.0
        reached[k] = 1
        status[k] = OUT_OF_STEPS
    store(S, repeated(t[0]), TIME, 0)
    store(S, repeated(first), STEP, 0)
    store(S, repeated(root), ROOT, 0)
    store(S, repeated(root_slope), ROOT_SLOPE, 0)
    store(S, repeated(t[0]), ROOT_TIME, 0)
    store(R, repeated(t[0]), 0, 0)
    store(R, repeated(root), 1 + n, 0)
    for d in range(n):
        store(R, load(y, d, 0), 1 + d, 0)
        store(Y, load(y, d, 0), 0, d, 0)
    for _ in range(2):
        slopes_of_stages(code, outputs, degree, n, y, R, table, S, K, np.int64(0), np.int64(1))
        if not _leave_singular_start(n, n_active, y, window, options.nudge, S, K, R):
            break
    for k in range(lanes):
        S[LAST_ROOT, k] = K[0, n - 1, k]
        S[LAST_TIME, k] = S[TIME, k]
        if N == 1:
            S[ACTIVE, k] = 0.0
            status[k] = OK
    smallest = 1e-9 * window
    close = 1e-12 * (abs(end) + window)
    steps = 0
    active = n_active if N > 1 else 0
    crossing = jump_width(table)
    while steps < options.max_steps and active > 0:
        steps += 1
        if shared:
            left = end - S[TIME, 0]
            if crossing > 0.0:
                left = min(left, next_break(table, S[TIME, 0]) - S[TIME, 0])
            store(S, repeated(min(S[STEP, 0], left)), TRIED, 0)
        else:
            step, remaining = load(S, STEP, 0), end - load(S, TIME, 0)
            store(S, where(step < remaining, step, remaining) * load(S, ACTIVE, 0), TRIED, 0)
            if crossing > 0.0:
                for k in range(lanes):
                    left = next_break(table, S[TIME, k]) - S[TIME, k]
                    S[TRIED, k] = min(S[TRIED, k], left)
        slopes_of_stages(code, outputs, degree, n, y, R, table, S, K, np.int64(1), np.int64(7))
        _step_factor(n, y, S, K, R, rtol, atol)
        _dense_coefficients(n, S, K)
        if shared:
            factor = S[ERROR, 0]
            finite = factor < 1e300
            h = S[TRIED, 0]
            if finite and (factor >= 0.9 or h <= crossing):
                now = S[TIME, 0] + h
                i = reached[0]
                if i < N and t[i] <= now + close:
                    last = i
                    for d in range(n):
                        old = load(y, d, 0)
                        rises = load(R, 1 + d, 0) - old
                        bends = h * load(K, 0, d, 0) - rises
                        turns = rises - h * load(K, 6, d, 0) - bends
                        coefficients = load(K, DENSE, d, 0)
                        last = i
                        while last < N and t[last] <= now + close:
                            x = (t[last] - S[TIME, 0]) / h
                            rest = bends + x * (turns + (1.0 - x) * coefficients)
                            store(Y, old + x * (rises + (1.0 - x) * rest), last, d, 0)
                            last += 1
                    for k in range(lanes):
                        reached[k] = last
                store(S, repeated(now), TIME, 0)
                grown = min(h * min(max(factor, 0.2), 6.0), largest_step)
                # A step that was cut at a jump says little about the next one.
                store(S, repeated(max(grown, S[STEP, 0]) if h < S[STEP, 0] else grown), STEP, 0)
                for d in range(n):
                    store(y, load(R, 1 + d, 0), d, 0)
                    store(K, load(K, 6, d, 0), 0, d, 0)
                if degree != 1:
                    for k in range(lanes):
                        remember_root(S, K, n, k, now)
                if reached[0] >= N:
                    status[0] = OK
                    active = 0
                elif _blew_up(n, y, limit, 0):
                    status[0] = BLEW_UP
                    active = 0
            else:
                h *= min(max(factor, 0.2), 0.9) if finite else 0.25
                for k in range(lanes):
                    S[STEP, k] = h
                if h < smallest:
                    status[0] = SINGULAR if finite else OUTSIDE_DOMAIN
                    active = 0
        else:
            active = 0
            for k in range(lanes):
                if S[ACTIVE, k] == 0.0:
                    continue
                factor = S[ERROR, k]
                finite = factor < 1e300
                h = S[TRIED, k]
                if finite and (factor >= 0.9 or h <= crossing):
                    now = S[TIME, k] + h
                    i = reached[k]
                    if i < N and t[i] <= now + close:
                        last = i
                        for d in range(n):
                            rise = R[1 + d, k] - y[d, k]
                            bend = h * K[0, d, k] - rise
                            turn = rise - h * K[6, d, k] - bend
                            dense = K[DENSE, d, k]
                            last = i
                            while last < N and t[last] <= now + close:
                                x = (t[last] - S[TIME, k]) / h
                                Y[last, d, k] = y[d, k] + x * (
                                    rise + (1.0 - x) * (bend + x * (turn + (1.0 - x) * dense))
                                )
                                last += 1
                        reached[k] = last
                    S[TIME, k] = now
                    grown = min(h * min(max(factor, 0.2), 6.0), largest_step)
                    S[STEP, k] = max(grown, S[STEP, k]) if h < S[STEP, k] else grown
                    for d in range(n):
                        y[d, k] = R[1 + d, k]
                        K[0, d, k] = K[6, d, k]
                    if degree != 1:
                        remember_root(S, K, n, k, now)
                    if reached[k] >= N:
                        S[ACTIVE, k] = 0.0
                        status[k] = OK
                    elif _blew_up(n, y, limit, k):
                        S[ACTIVE, k] = 0.0
                        status[k] = BLEW_UP
                    else:
                        active += 1
                else:
                    h *= min(max(factor, 0.2), 0.9) if finite else 0.25
                    S[STEP, k] = h
                    if h < smallest:
                        S[ACTIVE, k] = 0.0
                        status[k] = SINGULAR if finite else OUTSIDE_DOMAIN
                    else:
                        active += 1
    if shared:
        for k in range(1, lanes):
            status[k] = status[0]
    if with_highest and degree == 1:
        _explicit_highest_derivatives(
            code, outputs, n, flow.rates, n_active, at, p + literals.shape[0], t, table, R, W, Y, reached
        )
    elif with_highest:
        _highest_derivatives(
            code, outputs, degree, n, flow.rates, n_active, t, table, root, root_slope, R, S, K, Y, reached
        )
    return steps


@njit(**INNER, fastmath=FAST)
def _blew_up(n, y, limit, k):
    """Whether a state of lane k exceeds its limit or is not finite."""
    for d in range(n):
        if not abs(y[d, k]) <= limit[d]:
            return True
    return False


@njit(**INNER)
def _furthest(n_active, reached):
    """The most samples that a lane has reached."""
    furthest = 0
    for k in range(n_active):
        furthest = max(furthest, reached[k])
    return furthest


@njit(**INNER, fastmath=FAST)
def _explicit_highest_derivatives(
    code, outputs, n, rates, n_active, constants_at, n_constants, t, table, R, W, Y, reached
):  # fmt: skip
    """Write the highest derivative of each state at the samples that were reached to Y[:, n:], several at a time."""
    together = WIDE // LANES
    furthest = _furthest(n_active, reached)
    for j in range(constants_at, constants_at + n_constants):
        for s in range(together):
            store(W, load(R, j, 0), j, s * LANES)
    for first in range(0, furthest, together):
        for s in range(together):
            i = min(first + s, furthest - 1)
            store(W, repeated(t[i]), 0, s * LANES)
            for d in range(n):
                store(W, load(Y, i, d, 0), 1 + d, s * LANES)
        execute(code, W, table)
        for s in range(min(together, furthest - first)):
            for j in range(rates.shape[0]):
                store(Y, load(W, np.uint64(outputs[rates[j]]), s * LANES), first + s, n + j, 0)


@njit(**INNER, fastmath=FAST)
def _highest_derivatives(
    code, outputs, degree, n, rates, n_active, t, table, root, root_slope, R, S, K, Y, reached
):  # fmt: skip
    """The same for an implicit equation, sample by sample."""
    furthest = _furthest(n_active, reached)
    for k in range(LANES):
        S[ROOT, k] = root
        S[ROOT_SLOPE, k] = root_slope
        S[ROOT_TIME, k] = t[0]
        S[LAST_ROOT, k] = root
        S[LAST_TIME, k] = t[0] - 1.0
    for i in range(furthest):
        for k in range(LANES):
            R[0, k] = t[i]
        for d in range(n):
            for k in range(LANES):
                R[1 + d, k] = Y[i, d, k]
        slopes_of_stages(code, outputs, degree, n, R, R, table, S, K, np.int64(0), np.int64(1))
        for j in range(rates.shape[0]):
            for k in range(LANES):
                Y[i, n + j, k] = K[0, rates[j], k]
        for k in range(LANES):
            remember_root(S, K, n, k, t[i])
            if i == 0:
                S[ROOT_SLOPE, k] = root_slope


FLOW = types.NamedTuple((PROGRAM, int64, int64, int64[::1]), Flow)
_OPTIONS = types.NamedTuple(
    (float64, float64[::1], float64, float64[::1], float64[::1], int64, float64, float64), Options
)
_WORKSPACE = types.NamedTuple(
    (float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, :, ::1], int64[::1], int64[::1]),
    Workspace,
)
INTEGRATE = int64(
    FLOW, float64[:, ::1], int64, float64[:, ::1], float64[::1], float64[:, ::1], _OPTIONS, boolean, boolean, _WORKSPACE
)
solve_lanes = linked(integrate, INTEGRATE)
