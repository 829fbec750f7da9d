"""How the measured record would answer if a term were added to a fitted equation, to first order.

Along the solved trajectory x(t) of u^(n) = f(t, x) a small added term g(t, x) moves the states by the linear equation
d' = A(t) d + e_n g, A being the Jacobian of f. What is measured moves with them. The residual of the fit projected on
such answers tells what is missing, in units of the noise and without a derivative of noisy data.
"""

from dataclasses import dataclass

import numpy as np

from lgf.fit.target import Target
from lgf.search.candidate import Candidate
from lgf.solver.kernels.machine import BLOCK, WIDE, evaluate_wide
from lgf.solver.kernels.response import respond
from lgf.solver.program import Program, compile_skeleton
from lgf.solver.solve import solve
from lgf.solver.trajectory import Forcing, SolveStatus

_STEP = 1e-5
_LARGEST_GROWTH = 30.0  # exponent over the window beyond which a linear answer means nothing


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A fitted equation linearised along its trajectories, one part per experiment."""

    t: np.ndarray
    states: np.ndarray  # [n + 1, N]
    forcing: np.ndarray
    residual: np.ndarray  # [row] measured - solved, in units of the noise
    own: np.ndarray  # [constant, row] the answer to a change of each constant
    _parts: tuple

    def answers(self, columns: np.ndarray) -> np.ndarray:
        """The answers [block, row, BLOCK] to terms given along the trajectory [block, N, BLOCK]."""
        out = np.empty((len(columns), len(self.residual), BLOCK))
        first = 0
        for begin, end, transition, sensitivity, steps, measured, scale in self._parts:
            respond(transition, sensitivity, steps, columns, begin, measured, scale, out, first)
            first += len(measured) * (end - begin)
        return out


def linearise(candidate: Candidate, target: Target) -> Linearisation | None:
    """The candidate linearised along its own trajectories; None if it has none or is not explicit."""
    skeleton, fit = candidate.skeleton, candidate.fit
    if skeleton.explicit is None or not np.isfinite(fit.loss):
        return None
    compiled = compile_skeleton(skeleton)
    values = np.array(fit.values)
    n, record = target.order, target.record
    states = _solved(candidate, target)
    if states is None:
        return None
    t, forcing = target.t, target.forcing
    out = run(compiled.basis, n, values, t, states, forcing)
    jacobian = np.array(
        [_slope(compiled.basis, compiled.linear, n, values, t, states, forcing, out, d) for d in range(n)]
    )
    parts, residuals = [], []
    measured = np.array([d for d in target.measured if d <= n], np.int64)
    for e in range(target.n_experiments):
        begin, end = int(record.first[e]), int(record.first[e + 1])
        steps = np.diff(t[begin:end])
        A = np.zeros((end - begin, n, n))
        A[:, np.arange(n - 1), np.arange(1, n)] = 1.0
        A[:, -1, :] = -jacobian[:, begin:end].T
        if not np.all(np.isfinite(A)) or float(np.abs(A).max(axis=(1, 2))[:-1] @ steps) > 1e4:
            return None
        middle = 0.5 * (A[1:] + A[:-1])
        growth = np.linalg.eigvals(middle).real.max(axis=1)
        if float(np.maximum(growth, 0.0) @ steps) > _LARGEST_GROWTH:
            return None
        weight = record.weight[begin:end][:, measured].T * target.power
        parts.append((begin, end, _exponential(middle * steps[:, None, None]), np.ascontiguousarray(A[:, -1, :]), steps,
                      measured, np.sqrt(weight)))  # fmt: skip
        error = record.data[begin:end][:, measured].T - states[measured, begin:end]
        residuals.append((error * np.sqrt(weight)).ravel())
    line = Linearisation(t, states, forcing, np.concatenate(residuals), np.zeros((0, 0)), tuple(parts))
    columns = [-column for column in out[:-1]]
    weights = values[compiled.linear]
    total = weights @ out[:-1] + out[-1]
    for index in compiled.nonlinear:
        moved = values.copy()
        step = _STEP * max(abs(values[index]), 1e-3)
        moved[index] += step
        other = run(compiled.basis, n, moved, t, states, forcing)
        columns.append(-((weights @ other[:-1] + other[-1]) - total) / step)
    along = in_blocks(np.nan_to_num(np.array(columns).reshape(-1, len(t)), posinf=0.0, neginf=0.0))
    own = line.answers(along).swapaxes(1, 2).reshape(-1, len(line.residual))[: len(columns)]
    return Linearisation(t, states, forcing, line.residual, own, tuple(parts))


def in_blocks(columns: np.ndarray) -> np.ndarray:
    """Columns [c, N] as [block, N, BLOCK], the last block filled up with zeros."""
    c, n = columns.shape
    blocks = np.zeros((-(-c // BLOCK), BLOCK, n))
    blocks.reshape(-1, n)[:c] = columns
    return np.ascontiguousarray(blocks.swapaxes(1, 2))


def run(
    program: Program, order: int, values: np.ndarray, t: np.ndarray, states: np.ndarray, forcing: np.ndarray
) -> np.ndarray:
    """The outputs [output, N] of a program along a trajectory."""
    out = np.empty((len(program.outputs), len(t)))
    evaluate_wide(
        program.code, program.outputs, program.literals, order, len(values), np.asarray(values, float), t, states,
        forcing, np.zeros((program.n_registers, WIDE)), out,
    )  # fmt: skip
    return out


def _exponential(matrices: np.ndarray) -> np.ndarray:
    """Exp of each matrix [N, n, n], by scaling, Taylor's series and squaring (SciPy's is slow on many small ones)."""
    squarings = max(0, int(np.ceil(np.log2(max(float(np.abs(matrices).sum(axis=2).max()), 1e-300)))) + 2)
    scaled = matrices / 2.0**squarings
    result = term = np.broadcast_to(np.eye(matrices.shape[1]), matrices.shape)
    for k in range(1, 9):
        term = term @ scaled / k
        result = result + term
    for _ in range(squarings):
        result = result @ result
    return np.ascontiguousarray(result)


def _slope(program, linear, n, values, t, states, forcing, out, d) -> np.ndarray:
    """The derivative of the residual by the d-th state, along the trajectory."""
    step = _STEP * max(float(np.abs(states[d]).max()), 1e-9)
    moved = states.copy()
    moved[d] += step
    other = run(program, n, values, t, moved, forcing)
    weights = values[linear]
    return ((weights @ other[:-1] + other[-1]) - (weights @ out[:-1] + out[-1])) / step


def _solved(candidate: Candidate, target: Target) -> np.ndarray | None:
    """The solved states [n + 1, N] at the samples of all experiments."""
    record, parts = target.record, []
    equation = candidate.fit.equation(target)
    for e in range(target.n_experiments):
        begin, end = int(record.first[e]), int(record.first[e + 1])
        t = target.t[begin:end]
        forcing = None
        if target.formula is None and candidate.skeleton.forced:
            forcing = Forcing.from_samples(t, target.forcing[begin:end])
        solution = solve(equation, candidate.fit.initial[e], t, forcing, rtol=1e-5, limit=record.limit, max_steps=4000)
        if solution.status is not SolveStatus.OK or not np.all(np.isfinite(solution.states)):
            return None
        parts.append(solution.states.T)
    return np.ascontiguousarray(np.concatenate(parts, axis=1))
