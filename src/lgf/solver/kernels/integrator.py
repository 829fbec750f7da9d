"""Dormand-Prince 5(4) over eight lanes, with dense output at the sample times.

A lane is one vector of constants and one initial state. In free mode every lane has its own time and step; in shared
mode all lanes follow the steps of lane 0, so that differences between lanes are derivatives with respect to what was
perturbed, free of step-size noise.

Workspace rows of S: see the names below. K[stage, state, lane] are the slopes.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int32, int64, njit, types

from lgf.compilation import linked
from lgf.solver.kernels import FAST, INNER, INNER_ONLY, LINKED
from lgf.solver.kernels.elementary import exponential, logarithm
from lgf.solver.kernels.machine import LANES, PROGRAM, Program, execute_lanes

OK, BLEW_UP, OUT_OF_STEPS, SINGULAR, OUTSIDE_DOMAIN = range(5)

# Rows of the workspace S.
TIME, STEP, TRIED, ERROR, ACTIVE, ROOT, ROOT_SLOPE, ROOT_TIME, LAST_ROOT, LAST_TIME, NEWTON_VALUE, NEWTON_AT = range(12)
N_WORK = 12
N_STAGES = 8  # seven stages and one row of scratch


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
    S: np.ndarray  # [N_WORK, lane]
    K: np.ndarray  # [N_STAGES, n, lane]
    Y: np.ndarray  # [sample, column, lane] the trajectories: the state vector, then the highest derivatives
    reached: np.ndarray  # [lane] number of samples filled
    status: np.ndarray  # [lane] final status


def make_workspace(flow: Flow, samples: int) -> Workspace:
    """Memory for trajectories of this many samples."""
    return Workspace(
        np.zeros((flow.program.n_registers, LANES)),
        np.zeros((N_WORK, LANES)),
        np.zeros((N_STAGES, flow.n, LANES)),
        np.zeros((samples, flow.n + len(flow.rates), LANES)),
        np.zeros(LANES, np.int64),
        np.zeros(LANES, np.int64),
    )


@njit(**LINKED | INNER_ONLY, fastmath=FAST)
def slopes(code, outputs, degree, n, R, table, S, K, stage):
    """Write the derivative of every state of every lane, at what R holds, to K[stage].

    Where the degree is GENERAL Newton's method runs the program twice an iteration, the second time beside the point.
    """
    if degree != 1:
        for d in range(n - 1):
            for k in range(LANES):
                K[stage, d, k] = R[2 + d, k]
        for k in range(LANES):
            R[n + 1, k] = S[ROOT, k] + S[ROOT_SLOPE, k] * (R[0, k] - S[ROOT_TIME, k])
    for run in range(40):
        execute_lanes(code, R, table)
        if degree == 1:
            for d in range(n):
                o = np.uint64(outputs[d])
                for k in range(LANES):
                    K[stage, d, k] = R[o, k]
            return
        if degree >= 2:
            for k in range(LANES):
                K[stage, n - 1, k] = _polynomial_root(R, outputs, degree, k, R[n + 1, k])
            return
        if _newton(outputs[0], n, R, S, K, stage, run % 2 == 1):
            return


SLOPES = types.none(
    int32[:, ::1], int32[::1], int64, int64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, :, ::1],
    int64,
)  # fmt: skip
_slopes = linked(slopes, SLOPES)


@njit(**INNER)
def _polynomial_root(R, outputs, degree, k, guess):
    """The root next to the guess of the polynomial whose coefficients stand in the output registers of lane k."""
    if degree == 2:
        c = R[outputs[0], k]
        b = R[outputs[1], k]
        a = R[outputs[2], k]
        if abs(a) < 1e-14 * (abs(b) + 1e-300):
            return -c / b
        square = b * b - 4.0 * a * c
        if square < 0.0:
            # Rounding may make a double root slightly complex; otherwise there is no real root.
            if square < -1e-9 * (b * b + abs(4.0 * a * c)):
                return np.nan
            square = 0.0
        q = math.sqrt(square)
        one = (-b + q) / (2.0 * a)
        other = (-b - q) / (2.0 * a)
        return one if abs(one - guess) <= abs(other - guess) else other
    w = guess
    for _ in range(30):
        f = R[outputs[degree], k]
        slope = 0.0
        for j in range(degree - 1, -1, -1):
            slope = slope * w + f
            f = f * w + R[outputs[j], k]
        if slope == 0.0:
            slope = 1e-8 * (abs(f) + 1e-8)
        change = f / slope
        w -= change
        if abs(change) <= 1e-10 * (abs(w) + 1e-8):
            return w
    return np.nan


@njit(**INNER)
def _newton(out, n, R, S, K, stage, beside):
    """Half an iteration of Newton's method on the highest derivative, in all lanes; whether all have settled."""
    top = n + 1
    if not beside:
        for k in range(LANES):
            S[NEWTON_VALUE, k] = R[out, k]
            S[NEWTON_AT, k] = R[top, k]
            R[top, k] += 1e-6 * (abs(R[top, k]) + 1e-3)
        return False
    settled = True
    for k in range(LANES):
        slope = (R[out, k] - S[NEWTON_VALUE, k]) / (R[top, k] - S[NEWTON_AT, k])
        change = S[NEWTON_VALUE, k] / slope
        R[top, k] = S[NEWTON_AT, k] - change
        if abs(change) <= 1e-8 * (abs(R[top, k]) + 1e-6):
            K[stage, n - 1, k] = R[top, k]
        else:
            K[stage, n - 1, k] = np.nan
            settled = False
    return settled


@njit(**INNER, fastmath=FAST)
def _stage_state(s, n, y, S, K, R):
    """Put time and states of stage s into the registers."""
    for k in range(LANES):
        c = 0.2 if s == 1 else 0.3 if s == 2 else 0.8 if s == 3 else 8 / 9 if s == 4 else 1.0
        R[0, k] = S[TIME, k] + c * S[TRIED, k]
    for d in range(n):
        if s == 1:
            for k in range(LANES):
                R[1 + d, k] = y[d, k] + S[TRIED, k] * (0.2 * K[0, d, k])
        elif s == 2:
            for k in range(LANES):
                R[1 + d, k] = y[d, k] + S[TRIED, k] * (3 / 40 * K[0, d, k] + 9 / 40 * K[1, d, k])
        elif s == 3:
            for k in range(LANES):
                R[1 + d, k] = y[d, k] + S[TRIED, k] * (
                    44 / 45 * K[0, d, k] - 56 / 15 * K[1, d, k] + 32 / 9 * K[2, d, k]
                )
        elif s == 4:
            for k in range(LANES):
                R[1 + d, k] = y[d, k] + S[TRIED, k] * (
                    19372 / 6561 * K[0, d, k]
                    - 25360 / 2187 * K[1, d, k]
                    + 64448 / 6561 * K[2, d, k]
                    - 212 / 729 * K[3, d, k]
                )
        elif s == 5:
            for k in range(LANES):
                R[1 + d, k] = y[d, k] + S[TRIED, k] * (
                    9017 / 3168 * K[0, d, k]
                    - 355 / 33 * K[1, d, k]
                    + 46732 / 5247 * K[2, d, k]
                    + 49 / 176 * K[3, d, k]
                    - 5103 / 18656 * K[4, d, k]
                )
        else:
            for k in range(LANES):
                R[1 + d, k] = y[d, k] + S[TRIED, k] * (
                    35 / 384 * K[0, d, k]
                    + 500 / 1113 * K[2, d, k]
                    + 125 / 192 * K[3, d, k]
                    - 2187 / 6784 * K[4, d, k]
                    + 11 / 84 * K[5, d, k]
                )


@njit(**INNER, fastmath=FAST)
def _step_factor(n, y, S, K, R, rtol, atol):
    """Write to S[ERROR] the factor 0.9 err^(-1/5) by which each lane's step may change (>= 0.9: accepted)."""
    for k in range(LANES):
        S[ERROR, k] = 0.0
    for d in range(n):
        for k in range(LANES):
            e = (
                -71 / 57600 * K[0, d, k]
                + 71 / 16695 * K[2, d, k]
                - 71 / 1920 * K[3, d, k]
                + 17253 / 339200 * K[4, d, k]
                - 22 / 525 * K[5, d, k]
                + 1 / 40 * K[6, d, k]
            )
            old = abs(y[d, k])
            new = abs(R[1 + d, k])
            q = e * S[TRIED, k] / (atol[d] + rtol * (old if old > new else new))
            S[ERROR, k] += q * q
    for k in range(LANES):
        S[ERROR, k] = 0.9 * exponential(-0.1 * logarithm(S[ERROR, k] / n + 1e-20))


@njit(**INNER, fastmath=FAST)
def _dense_coefficient(h, K, d, k):
    return h * (
        -12715105075 / 11282082432 * K[0, d, k]
        + 87487479700 / 32700410799 * K[2, d, k]
        - 10690763975 / 1880347072 * K[3, d, k]
        + 701980252875 / 199316789632 * K[4, d, k]
        - 1453857185 / 822651844 * K[5, d, k]
        + 69997945 / 29380423 * K[6, d, k]
    )


@njit(**INNER, fastmath=FAST)
def _remember_root(S, K, n, k, time):
    """Keep the highest derivative at an accepted time, and its slope, for the next guess of the branch."""
    w = K[0, n - 1, k]
    if time > S[LAST_TIME, k]:
        S[ROOT_SLOPE, k] = (w - S[LAST_ROOT, k]) / (time - S[LAST_TIME, k])
    S[ROOT, k] = w
    S[ROOT_TIME, k] = time
    S[LAST_ROOT, k] = w
    S[LAST_TIME, k] = time


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
    R, S, K, Y, reached, status = work.R, work.S, work.K, work.Y, work.reached, work.status
    rtol, atol, limit = options.rtol, options.atol, options.limit
    largest_step = options.largest_step
    root, root_slope = options.root, options.root_slope
    at = flow.program.constants_at
    for j in range(p):
        for k in range(LANES):
            R[at + j, k] = constants[j, k]
    for j in range(literals.shape[0]):
        for k in range(LANES):
            R[at + p + j, k] = literals[j]
    first = min(largest_step, max(0.2 * (t[min(1, N - 1)] - t[0]), 1e-4 * window))
    for k in range(LANES):
        S[TIME, k] = t[0]
        S[STEP, k] = first
        S[ACTIVE, k] = 1.0 if k < n_active else 0.0
        S[ROOT, k] = root
        S[ROOT_SLOPE, k] = root_slope
        S[ROOT_TIME, k] = t[0]
        reached[k] = 1
        status[k] = OUT_OF_STEPS
        R[0, k] = t[0]
        R[1 + n, k] = root
    for d in range(n):
        for k in range(LANES):
            R[1 + d, k] = y[d, k]
            Y[0, d, k] = y[d, k]
    for _ in range(2):
        _slopes(code, outputs, degree, n, R, table, S, K, np.int64(0))
        if not _leave_singular_start(n, n_active, y, window, options.nudge, S, K, R):
            break
    for k in range(LANES):
        S[LAST_ROOT, k] = K[0, n - 1, k]
        S[LAST_TIME, k] = S[TIME, k]
        if N == 1:
            S[ACTIVE, k] = 0.0
            status[k] = OK
    smallest = 1e-9 * window
    close = 1e-12 * (abs(end) + window)
    steps = 0
    active = n_active if N > 1 else 0
    while steps < options.max_steps and active > 0:
        steps += 1
        if shared:
            h = min(S[STEP, 0], end - S[TIME, 0])
            for k in range(LANES):
                S[TRIED, k] = h
        else:
            for k in range(LANES):
                left = end - S[TIME, k]
                h = S[STEP, k] if S[STEP, k] < left else left
                S[TRIED, k] = h * S[ACTIVE, k]
        for s in range(1, 7):
            _stage_state(s, n, y, S, K, R)
            _slopes(code, outputs, degree, n, R, table, S, K, s)
        _step_factor(n, y, S, K, R, rtol, atol)
        if shared:
            factor = S[ERROR, 0]
            finite = factor < 1e300
            h = S[TRIED, 0]
            if finite and factor >= 0.9:
                now = S[TIME, 0] + h
                i = reached[0]
                if i < N and t[i] <= now + close:
                    last = i
                    for d in range(n):
                        for k in range(LANES):
                            S[ERROR, k] = _dense_coefficient(h, K, d, k)
                        last = i
                        while last < N and t[last] <= now + close:
                            x = (t[last] - S[TIME, 0]) / h
                            for k in range(LANES):
                                rise = R[1 + d, k] - y[d, k]
                                bend = h * K[0, d, k] - rise
                                Y[last, d, k] = y[d, k] + x * (
                                    rise
                                    + (1.0 - x) * (bend + x * (rise - h * K[6, d, k] - bend + (1.0 - x) * S[ERROR, k]))
                                )
                            last += 1
                    for k in range(LANES):
                        reached[k] = last
                for k in range(LANES):
                    S[TIME, k] = now
                    S[STEP, k] = min(h * min(max(factor, 0.2), 6.0), largest_step)
                for d in range(n):
                    for k in range(LANES):
                        y[d, k] = R[1 + d, k]
                        K[0, d, k] = K[6, d, k]
                if degree != 1:
                    for k in range(LANES):
                        _remember_root(S, K, n, k, now)
                if reached[0] >= N:
                    status[0] = OK
                    active = 0
                elif _blew_up(n, y, limit, 0):
                    status[0] = BLEW_UP
                    active = 0
            else:
                h *= min(max(factor, 0.2), 0.9) if finite else 0.25
                for k in range(LANES):
                    S[STEP, k] = h
                if h < smallest:
                    status[0] = SINGULAR if finite else OUTSIDE_DOMAIN
                    active = 0
        else:
            active = 0
            for k in range(LANES):
                if S[ACTIVE, k] == 0.0:
                    continue
                factor = S[ERROR, k]
                finite = factor < 1e300
                h = S[TRIED, k]
                if finite and factor >= 0.9:
                    now = S[TIME, k] + h
                    i = reached[k]
                    if i < N and t[i] <= now + close:
                        last = i
                        for d in range(n):
                            rise = R[1 + d, k] - y[d, k]
                            bend = h * K[0, d, k] - rise
                            turn = rise - h * K[6, d, k] - bend
                            dense = _dense_coefficient(h, K, d, k)
                            last = i
                            while last < N and t[last] <= now + close:
                                x = (t[last] - S[TIME, k]) / h
                                Y[last, d, k] = y[d, k] + x * (
                                    rise + (1.0 - x) * (bend + x * (turn + (1.0 - x) * dense))
                                )
                                last += 1
                        reached[k] = last
                    S[TIME, k] = now
                    S[STEP, k] = min(h * min(max(factor, 0.2), 6.0), largest_step)
                    for d in range(n):
                        y[d, k] = R[1 + d, k]
                        K[0, d, k] = K[6, d, k]
                    if degree != 1:
                        _remember_root(S, K, n, k, now)
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
        for k in range(1, LANES):
            status[k] = status[0]
    if with_highest:
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


@njit(**INNER, fastmath=FAST)
def _highest_derivatives(
    code, outputs, degree, n, rates, n_active, t, table, root, root_slope, R, S, K, Y, reached
):  # fmt: skip
    """Write the highest derivative of each state at the samples that were reached to Y[:, n:]."""
    furthest = 0
    for k in range(n_active):
        furthest = max(furthest, reached[k])
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
        _slopes(code, outputs, degree, n, R, table, S, K, np.int64(0))
        for j in range(rates.shape[0]):
            for k in range(LANES):
                Y[i, n + j, k] = K[0, rates[j], k]
        if degree != 1:
            for k in range(LANES):
                _remember_root(S, K, n, k, t[i])
                if i == 0:
                    S[ROOT_SLOPE, k] = root_slope


FLOW = types.NamedTuple((PROGRAM, int64, int64, int64[::1]), Flow)
_OPTIONS = types.NamedTuple(
    (float64, float64[::1], float64, float64[::1], float64[::1], int64, float64, float64), Options
)
_WORKSPACE = types.NamedTuple(
    (float64[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, :, ::1], int64[::1], int64[::1]), Workspace
)
INTEGRATE = int64(
    FLOW, float64[:, ::1], int64, float64[:, ::1], float64[::1], float64[:, ::1], _OPTIONS, boolean, boolean, _WORKSPACE
)
solve_lanes = linked(integrate, INTEGRATE)
