"""The solved columns of a fit at all samples, and their derivatives with respect to the unknowns."""

from typing import NamedTuple

import numpy as np

from lgf.fit.settings import Fitting, steps_needed
from lgf.solver.kernels.integrator import Options, integrate, make_workspace
from lgf.solver.kernels.machine import LANES

_STEP = 1e-6  # relative step of the finite differences, as in the kernels
_MAX_STEPS = 4000


class Solved(NamedTuple):
    """The solution at some unknowns."""

    values: np.ndarray  # [N, column], NaN where not reached
    jacobian: np.ndarray  # [P, N, column], 0 where not reached
    reached: np.ndarray  # [N] whether the solution got there


def solve_with_jacobian(fitting: Fitting, x: np.ndarray, rtol: float = 1e-6) -> Solved:
    """The solution of every experiment at the unknowns x, with its derivatives on a shared step sequence."""
    compiled, target, record = fitting.compiled, fitting.target, fitting.target.record
    unknowns, flow = fitting.unknowns, compiled.flow
    n_columns = len(target.frame.columns)
    most_steps = max(_MAX_STEPS, steps_needed(target.oscillations, rtol))
    values = np.full((len(target.t), n_columns), np.nan)
    jacobian = np.zeros((len(x), len(target.t), n_columns))
    steps = _STEP * np.maximum(np.abs(x), unknowns.least)
    for e in range(target.n_experiments):
        begin, end = int(record.first[e]), int(record.first[e + 1])
        own = record.unknown[e][record.unknown[e] >= 0] + unknowns.n_free
        moved = np.unique(np.concatenate([unknowns.source[e], own])).astype(np.int64)
        options = Options(
            rtol, record.atol, float(record.largest_step[e]), record.limit, record.nudge[e], most_steps,
            float(record.root[e]), float(record.root_slope[e]),
        )  # fmt: skip
        table = record.table[record.table_first[e] : record.table_first[e + 1]]
        work = make_workspace(flow, end - begin)
        for first in range(0, max(len(moved), 1), LANES - 1):
            part = moved[first : first + LANES - 1]
            lanes = np.tile(x[:, None], LANES)
            lanes[part, np.arange(1, len(part) + 1)] += steps[part]
            constants = lanes[unknowns.source[e]]
            initial = np.tile(record.initial[e][:, None], LANES)
            free = record.unknown[e] >= 0
            initial[free] = lanes[unknowns.n_free + record.unknown[e][free]]
            integrate(
                flow, np.ascontiguousarray(constants), len(part) + 1, np.ascontiguousarray(initial),
                record.t[begin:end], table, options, True, True, work,
            )  # fmt: skip
            n = int(work.reached[0])
            values[begin : begin + n] = work.Y[:n, :, 0]
            with np.errstate(invalid="ignore"):  # a quotient whose denominator vanishes is infinite in both
                difference = work.Y[:n, :, 1 : len(part) + 1] - work.Y[:n, :, :1]
            jacobian[part, begin : begin + n] = np.moveaxis(difference, 2, 0) / steps[part, None, None]
    return Solved(values, np.nan_to_num(jacobian, posinf=0.0, neginf=0.0), np.all(np.isfinite(values), axis=1))
