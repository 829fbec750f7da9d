"""The slopes of the stages of a step: explicit rates, or the highest derivative of an implicit equation.

Rows of the workspace S: see the names below. K[stage, state, lane] are the slopes.
"""

import math

import numpy as np
from numba import float64, int32, int64, types

from lgf.compilation import linked, njit
from lgf.solver.kernels import FAST, INLINED, INNER, INNER_ONLY, LINKED
from lgf.solver.kernels.lanes import load, store
from lgf.solver.kernels.machine import LANES, execute_lanes

# Rows of the workspace S.
TIME, STEP, TRIED, FACTOR, ACCEPTED, ACTIVE = range(6)
ROOT, ROOT_SLOPE, ROOT_TIME, LAST_ROOT, LAST_TIME, NEWTON_VALUE, NEWTON_AT = range(6, 13)
N_WORK = 13
DENSE = 7  # row of K after the seven stages: the last coefficient of the dense output
N_STAGES = 8

# The tableau of Dormand and Prince: times of the stages; weights of the slopes before each stage, whose last row is the
# step itself, of the error, and of the last coefficient of the dense output.
_NODES = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_STAGES = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
ERROR_WEIGHTS = np.array([-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40])
DENSE_WEIGHTS = np.array(
    [
        -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072,
        701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
    ]
)  # fmt: skip


@njit(**LINKED | INNER_ONLY, fastmath=FAST)
def slopes(code, outputs, degree, n, y, R, table, S, K, first, beyond):
    """Write the derivative of every state of every lane to K[stage] for the stages first .. beyond - 1 of a step.

    Stage 0 is at what R holds, the others are at the states that follow from the stages before.
    """
    for stage in range(first, beyond):
        if stage > 0:
            _stage_state(stage, n, y, S, K, R)
        _slopes_of_stage(code, outputs, degree, n, R, table, S, K, stage)


@njit(**INNER, fastmath=FAST)
def _slopes_of_stage(code, outputs, degree, n, R, table, S, K, stage):
    """Write the derivative of every state at what R holds to K[stage].

    Where the degree is GENERAL Newton's method runs the program twice an iteration, the second time beside the point.
    """
    if degree != 1:
        for d in range(n - 1):
            store(K, load(R, 2 + d, 0), stage, d, 0)
        ahead = load(R, 0, 0) - load(S, ROOT_TIME, 0)
        store(R, load(S, ROOT, 0) + load(S, ROOT_SLOPE, 0) * ahead, n + 1, 0)
    for run in range(40):
        execute_lanes(code, R, table)
        if degree == 1:
            for d in range(n):
                store(K, load(R, np.uint64(outputs[d]), 0), stage, d, 0)
            return
        if degree >= 2:
            for k in range(LANES):
                K[stage, n - 1, k] = _polynomial_root(R, outputs, degree, k, R[n + 1, k])
            return
        if _newton(outputs[0], n, R, S, K, stage, run % 2 == 1):
            return


SLOPES = types.none(
    int32[:, ::1], int32[::1], int64, int64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1],
    float64[:, :, ::1], int64, int64,
)  # fmt: skip
slopes_of_stages = linked(slopes, SLOPES)


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


@njit(**INLINED)
def weighted(weights, stages, K, d):
    """The weighted sum of the slopes of state d at the first stages."""
    total = weights[0] * load(K, 0, d, 0)
    for j in range(1, stages):
        total = total + weights[j] * load(K, j, d, 0)
    return total


@njit(**INNER, fastmath=FAST)
def _stage_state(s, n, y, S, K, R):
    """Put time and states of stage s into the registers."""
    h = load(S, TRIED, 0)
    store(R, load(S, TIME, 0) + _NODES[s] * h, 0, 0)
    for d in range(n):
        store(R, load(y, d, 0) + h * weighted(_STAGES[s], s, K, d), 1 + d, 0)


@njit(**INNER, fastmath=FAST)
def remember_root(S, K, n, k, time):
    """Keep the highest derivative at an accepted time, and its slope, for the next guess of the branch."""
    w = K[0, n - 1, k]
    if time > S[LAST_TIME, k]:
        S[ROOT_SLOPE, k] = (w - S[LAST_ROOT, k]) / (time - S[LAST_TIME, k])
    S[ROOT, k] = w
    S[ROOT_TIME, k] = time
    S[LAST_ROOT, k] = w
    S[LAST_TIME, k] = time
