"""Dormand-Prince 5(4) over eight lanes, with dense output at the sample times.

A lane is one vector of constants and one initial state. In free mode every lane has its own time and step; in shared
mode all lanes follow the steps of lane 0, so that differences between lanes are derivatives with respect to what was
perturbed, free of step-size noise.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64, types

from lgf.compilation import linked, njit
from lgf.solver.kernels import FAST, INLINED, INNER, LINKED
from lgf.solver.kernels.elementary import exponential, logarithm
from lgf.solver.kernels.input_jumps import jump_width, next_break
from lgf.solver.kernels.lanes import absolute, load, repeated, store, where
from lgf.solver.kernels.machine import LANES, PROGRAM, WIDE, Program, execute
from lgf.solver.kernels.slopes import (
    ACCEPTED,
    ACTIVE,
    DENSE,
    DENSE_WEIGHTS,
    ERROR_WEIGHTS,
    FACTOR,
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
def _begin(flow, constants, n_active, together, y, t, options, first_step, work):
    """Put the constants and the initial states into the registers, and the lanes at the start."""
    R, S, n = work.R, work.S, flow.n
    at, p, literals = flow.program.constants_at, constants.shape[0], flow.program.literals
    for j in range(p):
        store(R, load(constants, j, 0), at + j, 0)
    for j in range(literals.shape[0]):
        store(R, repeated(literals[j]), at + p + j, 0)
    for k in range(y.shape[1]):  # LANES; a loop over a number that LLVM knows becomes eight copies of its body
        S[ACTIVE, k] = 1.0 if together > 1 or k < n_active else 0.0
        work.reached[k] = 1
        work.status[k] = OUT_OF_STEPS if t.shape[0] > 1 else OK
    store(S, repeated(t[0]), TIME, 0)
    store(S, repeated(first_step), STEP, 0)
    store(S, repeated(options.root), ROOT, 0)
    store(S, repeated(options.root_slope), ROOT_SLOPE, 0)
    store(S, repeated(t[0]), ROOT_TIME, 0)
    store(R, repeated(t[0]), 0, 0)
    store(R, repeated(options.root), 1 + n, 0)
    for d in range(n):
        store(R, load(y, d, 0), 1 + d, 0)
        store(work.Y, load(y, d, 0), 0, d, 0)


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


@njit(**INNER, fastmath=FAST)
def _choose_steps(end, together, table, crossing, S):
    """Write the length of the next step of every lane to S[TRIED]; it goes to the end or the next jump at most."""
    step, left = load(S, STEP, 0), end - load(S, TIME, 0)
    store(S, where(step < left, step, left) * load(S, ACTIVE, 0), TRIED, 0)
    if crossing > 0.0:
        for first in range(0, S.shape[1], together):
            left = next_break(table, S[TIME, first]) - S[TIME, first]
            for k in range(first, first + together):
                S[TRIED, k] = min(S[TRIED, k], left)


@njit(**INNER, fastmath=FAST)
def _compare(n, y, S, K, R, rtol, atol):
    """Write to S[FACTOR] the factor 0.9 err^(-1/5) by which each lane's step may change (>= 0.9: accepted).

    K[DENSE] receives the last coefficient of the dense output.
    """
    h = load(S, TRIED, 0)
    total = repeated(0.0)
    for d in range(n):
        old = absolute(load(y, d, 0))
        new = absolute(load(R, 1 + d, 0))
        q = weighted(ERROR_WEIGHTS, 7, K, d) * h / (atol[d] + rtol * where(old > new, old, new))
        total = total + q * q
        store(K, h * weighted(DENSE_WEIGHTS, 7, K, d), DENSE, d, 0)
    store(S, 0.9 * exponential(-0.1 * logarithm(total / np.float64(n) + 1e-20)), FACTOR, 0)


@njit(**INNER, fastmath=FAST)
def _judge(together, crossing, largest_step, S):
    """Write to S[ACCEPTED] whether (1.0) the step of each lane is accepted, and to S[STEP] the length of its next."""
    if together > 1:
        store(S, repeated(S[FACTOR, 0]), FACTOR, 0)
    factor, h, step = load(S, FACTOR, 0), load(S, TRIED, 0), load(S, STEP, 0)
    one, none = repeated(1.0), repeated(0.0)
    finite = factor < 1e300
    accepted = where(finite, where(factor >= 0.9, one, where(h > crossing, none, one)), none) * load(S, ACTIVE, 0)
    store(S, accepted, ACCEPTED, 0)
    factor = where(factor > 0.2, factor, repeated(0.2))
    grown = h * where(factor < 6.0, factor, repeated(6.0))
    grown = where(grown < largest_step, grown, repeated(largest_step))
    # A step that was cut at a jump says little about the next one.
    grown = where(h < step, where(grown > step, grown, step), grown)
    shrunk = h * where(finite, where(factor < 0.9, factor, repeated(0.9)), repeated(0.25))
    store(S, where(accepted > 0.5, grown, shrunk), STEP, 0)


@njit(**INLINED)
def _interpolated(x, h, old, new, slope, next_slope, dense):
    """The state at the share x of a step of length h, from what it is at the ends; numbers or lanes."""
    rises = new - old
    bends = h * slope - rises
    turns = rises - h * next_slope - bends
    return old + x * (rises + (1.0 - x) * (bends + x * (turns + (1.0 - x) * dense)))


@njit(**INLINED)
def _write_samples(first, together, n, t, close, begin, y, S, K, R, Y):
    """Write the samples from `begin` on that the step of one lane, or of all together, covers; returns the next one."""
    h, before = S[TRIED, first], S[TIME, first]
    beyond = begin
    while beyond < t.shape[0] and t[beyond] <= before + h + close:
        beyond += 1
    if beyond > begin and together == 1:
        for d in range(n):
            old, new, dense = y[d, first], R[1 + d, first], K[DENSE, d, first]
            slope, next_slope = K[0, d, first], K[6, d, first]
            for i in range(begin, beyond):
                Y[i, d, first] = _interpolated((t[i] - before) / h, h, old, new, slope, next_slope, dense)
    elif beyond > begin:
        for d in range(n):
            olds, news, denses = load(y, d, 0), load(R, 1 + d, 0), load(K, DENSE, d, 0)
            slopes, next_slopes = load(K, 0, d, 0), load(K, 6, d, 0)
            for i in range(begin, beyond):
                values = _interpolated((t[i] - before) / h, h, olds, news, slopes, next_slopes, denses)
                store(Y, values, i, d, 0)
    return beyond


@njit(**INLINED)
def _blew_up(n, R, limit, k):
    """Whether a state of lane k exceeds its limit or is not finite at the end of the step."""
    beyond = False
    for d in range(n):
        beyond |= not abs(R[1 + d, k]) <= limit[d]
    return beyond


@njit(**INNER, fastmath=FAST)
def _finish(together, n, t, close, smallest, limit, y, S, K, R, Y, reached, status):
    """Write the samples that accepted steps cover, and the status of lanes that end; returns how many go on.

    Lanes that step together count as one.
    """
    active = 0
    for first in range(0, S.shape[1], together):
        if S[ACTIVE, first] == 0.0:
            continue
        ends = OUT_OF_STEPS
        if S[ACCEPTED, first] > 0.5:
            begin = reached[first]
            beyond = _write_samples(first, together, n, t, close, begin, y, S, K, R, Y)
            if beyond > begin:
                reached[first : first + together] = beyond
            if beyond == t.shape[0]:
                ends = OK
            elif _blew_up(n, R, limit, first):
                ends = BLEW_UP
        elif S[STEP, first] < smallest:
            ends = SINGULAR if S[FACTOR, first] < 1e300 else OUTSIDE_DOMAIN
        if ends == OUT_OF_STEPS:
            active += 1
        else:
            status[first : first + together] = ends
            S[ACTIVE, first : first + together] = 0.0
    return active


@njit(**INNER, fastmath=FAST)
def _advance(n, degree, y, S, K, R):
    """Move the lanes whose step is accepted to its end."""
    accepted = load(S, ACCEPTED, 0) > 0.5
    time = load(S, TIME, 0)
    store(S, where(accepted, time + load(S, TRIED, 0), time), TIME, 0)
    for d in range(n):
        store(y, where(accepted, load(R, 1 + d, 0), load(y, d, 0)), d, 0)
        store(K, where(accepted, load(K, 6, d, 0), load(K, 0, d, 0)), 0, d, 0)
    if degree != 1:
        for k in range(S.shape[1]):
            if S[ACCEPTED, k] > 0.5:
                remember_root(S, K, n, k, S[TIME, k])


@njit(**LINKED, fastmath=FAST)
def integrate(flow, constants, n_active, y, t, table, options, shared, with_highest, work):
    """Solve for all lanes; the trajectories go to work.Y, the return value is the number of steps tried.

    constants [p, lane] and y [n, lane], the initial states, which are used up, differ from lane to lane. With
    with_highest the highest derivatives are written as well.
    """
    N, n, degree = t.shape[0], flow.n, flow.degree
    code, outputs = flow.program.code, flow.program.outputs
    R, S, K, Y, reached, status = work.R, work.S, work.K, work.Y, work.reached, work.status
    window = t[N - 1] - t[0]
    largest_step, smallest, close = options.largest_step, 1e-9 * window, 1e-12 * (abs(t[N - 1]) + window)
    crossing = jump_width(table)
    together = LANES if shared else 1  # lanes that have the same steps, those of the first of them
    first_step = min(largest_step, max(0.2 * (t[min(1, N - 1)] - t[0]), 1e-4 * window))
    _begin(flow, constants, n_active, together, y, t, options, first_step, work)
    for _ in range(2):
        slopes_of_stages(code, outputs, degree, n, y, R, table, S, K, np.int64(0), np.int64(1))
        if not _leave_singular_start(n, n_active, y, window, options.nudge, S, K, R):
            break
    store(S, load(K, 0, n - 1, 0), LAST_ROOT, 0)
    store(S, load(S, TIME, 0), LAST_TIME, 0)
    steps = 0
    active = n_active if N > 1 else 0
    while steps < options.max_steps and active > 0:
        steps += 1
        _choose_steps(t[N - 1], together, table, crossing, S)
        slopes_of_stages(code, outputs, degree, n, y, R, table, S, K, np.int64(1), np.int64(7))
        _compare(n, y, S, K, R, options.rtol, options.atol)
        _judge(together, crossing, largest_step, S)
        active = _finish(together, n, t, close, smallest, options.limit, y, S, K, R, Y, reached, status)
        _advance(n, degree, y, S, K, R)
    if with_highest and degree == 1:
        _explicit_highest_derivatives(flow, n_active, t, table, constants.shape[0], work)
    elif with_highest:
        _highest_derivatives(flow, n_active, t, table, options, work)
    return steps


@njit(**INNER)
def _furthest(n_active, reached):
    """The most samples that a lane has reached."""
    furthest = 0
    for k in range(n_active):
        furthest = max(furthest, reached[k])
    return furthest


@njit(**INNER, fastmath=FAST)
def _explicit_highest_derivatives(flow, n_active, t, table, p, work):
    """Write the highest derivative of each state at the samples that were reached to Y[:, n:], several at a time."""
    W, Y, n = work.W, work.Y, flow.n
    together = WIDE // LANES
    furthest = _furthest(n_active, work.reached)
    at = flow.program.constants_at
    for j in range(at, at + p + flow.program.literals.shape[0]):
        for s in range(together):
            store(W, load(work.R, j, 0), j, s * LANES)
    for first in range(0, furthest, together):
        for s in range(together):
            i = min(first + s, furthest - 1)
            store(W, repeated(t[i]), 0, s * LANES)
            for d in range(n):
                store(W, load(Y, i, d, 0), 1 + d, s * LANES)
        execute(flow.program.code, W, table)
        for s in range(min(together, furthest - first)):
            for j in range(flow.rates.shape[0]):
                output = np.uint64(flow.program.outputs[flow.rates[j]])
                store(Y, load(W, output, s * LANES), first + s, n + j, 0)


@njit(**INNER, fastmath=FAST)
def _highest_derivatives(flow, n_active, t, table, options, work):
    """The same for an implicit equation, sample by sample."""
    R, S, K, Y, n = work.R, work.S, work.K, work.Y, flow.n
    code, outputs = flow.program.code, flow.program.outputs
    store(S, repeated(options.root), ROOT, 0)
    store(S, repeated(options.root_slope), ROOT_SLOPE, 0)
    store(S, repeated(t[0]), ROOT_TIME, 0)
    store(S, repeated(options.root), LAST_ROOT, 0)
    store(S, repeated(t[0] - 1.0), LAST_TIME, 0)
    for i in range(_furthest(n_active, work.reached)):
        store(R, repeated(t[i]), 0, 0)
        for d in range(n):
            store(R, load(Y, i, d, 0), 1 + d, 0)
        slopes_of_stages(code, outputs, flow.degree, n, R, R, table, S, K, np.int64(0), np.int64(1))
        for j in range(flow.rates.shape[0]):
            store(Y, load(K, 0, flow.rates[j], 0), i, n + j, 0)
        for k in range(LANES):
            remember_root(S, K, n, k, t[i])
            if i == 0:
                S[ROOT_SLOPE, k] = options.root_slope


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
