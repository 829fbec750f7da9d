"""The linear response of the measured record to a term added to a fitted system.

A small term g(t, y) added to one equation of y' = f(t, y) changes the solved trajectory by d, where
d' = A(t) d + e g. A is the Jacobian of f along the trajectory and e the unit vector of that equation. Projecting the
residual of the fit on these responses shows which terms are missing, in units of the noise. No derivative of noisy data
is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lgf.fit.settings import steps_needed
from lgf.fit.target import Target
from lgf.search.candidate import Candidate
from lgf.solver.kernels.machine import BLOCK, LARGEST_VALUE, WIDE, Program, Programs, evaluate_wide
from lgf.solver.kernels.response import add_products, respond
from lgf.solver.program import CompiledEquation, compile_skeleton
from lgf.solver.solve import solve
from lgf.solver.trajectory import SolveStatus

_STEP = 1e-5
_LARGEST_GROWTH = 30.0  # exponent over the window above which the linear response is meaningless


class _Part(NamedTuple):
    """One experiment: its samples begin .. end - 1, and the transition matrices between samples."""

    begin: int
    end: int
    transition: np.ndarray  # [N - 1, n, n]
    sensitivity: np.ndarray  # [N, state, n] of the highest derivatives by the state vector
    steps: np.ndarray
    scale: np.ndarray  # [measured, N] one over the noise


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A fitted system linearised along its trajectories."""

    t: np.ndarray
    columns: np.ndarray  # [column, N] the trajectory
    inputs: np.ndarray  # [input, N]
    residual: np.ndarray  # [row] measured - solved, in units of the noise
    own: np.ndarray  # [constant, row] the response to a change of each constant, in the order of `constants`
    constants: tuple[int, ...]
    rates: tuple[int, ...]  # position in the state vector that each equation drives
    measured: np.ndarray  # columns
    parts: tuple[_Part, ...]

    @cached_property
    def initial(self) -> np.ndarray:
        """Responses [experiment and variable, row] to a change of each initial value."""
        n = self.parts[0].transition.shape[1]
        out, first = np.zeros((n * len(self.parts), len(self.residual))), 0
        for e, part in enumerate(self.parts):
            count = part.end - part.begin
            moved = np.empty((count, n, n))
            moved[0] = np.eye(n)
            for i in range(count - 1):
                moved[i + 1] = part.transition[i] @ moved[i]
            for m, column in enumerate(self.measured):
                change = (
                    moved[:, column] if column < n else np.einsum("ij,ijk->ik", part.sensitivity[:, column - n], moved)
                )
                rows = slice(first + m * count, first + (m + 1) * count)
                out[e * n : (e + 1) * n, rows] = (change * part.scale[m][:, None]).T
            first += len(self.measured) * count
        return out

    def responses(self, terms: np.ndarray, equation: int = 0) -> np.ndarray:
        """Responses [block, row, BLOCK] to terms [block, N, BLOCK], along the trajectory, in this equation."""
        out = np.empty((len(terms), len(self.residual), BLOCK))
        first = 0
        for part in self.parts:
            respond(
                part.transition, part.sensitivity, part.steps, terms, part.begin, equation, self.rates[equation],
                self.measured, part.scale, out, first,
            )  # fmt: skip
            first += len(self.measured) * (part.end - part.begin)
        return out

    def products(
        self, programs: Programs, owner: np.ndarray, values: np.ndarray, vectors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(squares [c], inner products [c, k] with the vectors [k, row]) of responses to terms in the only equation.

        Term c is program owner[c] with the constants values[c]; one that is not below LARGEST_VALUE has zeros.
        """
        squares, products = np.zeros(len(owner)), np.zeros((len(owner), len(vectors)))
        sound, first = np.ones(len(owner), bool), 0
        for part in self.parts:
            along = slice(part.begin, part.end)
            last = first + len(self.measured) * (part.end - part.begin)
            add_products(
                programs, owner, values, self.t[along], np.ascontiguousarray(self.columns[:, along]),
                np.ascontiguousarray(self.inputs[:, along]), LARGEST_VALUE, part.transition, part.sensitivity,
                part.steps, 0, self.rates[0], self.measured, part.scale, np.ascontiguousarray(vectors[:, first:last].T),
                sound, squares, products,
            )  # fmt: skip
            first = last
        squares[~sound] = 0.0
        products[~sound] = 0.0
        return squares, products


def linearise(candidate: Candidate, target: Target) -> Linearisation | None:
    """The linearisation of the candidate along its trajectories; None if it is implicit or unsolved.

    A candidate that was fitted in segments takes the target with these segments.
    """
    skeleton, fit = candidate.skeleton, candidate.fit
    if skeleton.right_sides is None or not np.isfinite(fit.loss):
        return None
    compiled = compile_skeleton(skeleton)
    values = np.array(fit.values)
    frame, record = target.frame, target.record
    n, rates = frame.dimension, frame.rates
    solved = solved_columns(candidate, target)
    if solved is None:
        return None
    t, inputs = target.t, target.inputs
    outputs = [run(e.basis, values, t, solved, inputs) for e in compiled.equations]
    slopes = slopes_along(compiled.equations, values, t, solved, inputs, n)
    parts, residuals = [], []
    measured = np.array(target.measured, np.int64)
    for e in range(target.n_experiments):
        begin, end = int(record.first[e]), int(record.first[e + 1])
        steps = np.diff(t[begin:end])
        A = jacobian(slopes[:, :, begin:end], rates)
        if not np.all(np.isfinite(A)) or float(np.abs(A).max(axis=(1, 2))[:-1] @ steps) > 1e4:
            return None
        middle = 0.5 * (A[1:] + A[:-1])
        growth = np.linalg.eigvals(middle).real.max(axis=1)
        if float(np.maximum(growth, 0.0) @ steps) > _LARGEST_GROWTH:
            return None
        weight = record.weight[begin:end][:, measured].T * target.power
        transition = exponential(middle * steps[:, None, None])
        parts.append(_Part(begin, end, transition, np.ascontiguousarray(A[:, rates, :]), steps, np.sqrt(weight)))
        error = record.data[begin:end][:, measured].T - solved[measured, begin:end]
        residuals.append((error * np.sqrt(weight)).ravel())
    line = Linearisation(
        t, solved, inputs, np.concatenate(residuals), np.zeros((0, 0)), (), rates, measured, tuple(parts)
    )
    own, constants = [], []
    for i, (equation, out) in enumerate(zip(compiled.equations, outputs, strict=True)):
        changes = _changes(equation, values, t, solved, inputs, out)
        along = in_blocks(np.nan_to_num(changes.reshape(-1, len(t)), posinf=0.0, neginf=0.0))
        responses = line.responses(along, i).swapaxes(1, 2).reshape(-1, len(line.residual))
        own.append(responses[: len(changes)])
        constants += [*equation.linear.tolist(), *equation.nonlinear.tolist()]
    return Linearisation(
        t, solved, inputs, line.residual, np.concatenate(own), tuple(constants), rates, measured, tuple(parts)
    )


def slopes_along(
    equations: Sequence[CompiledEquation], values: np.ndarray, t: np.ndarray, columns: np.ndarray, inputs: np.ndarray,
    n: int,
) -> np.ndarray:  # fmt: skip
    """The derivatives [state, n, N] of the residuals with respect to the state vector, along a trajectory."""
    return np.array(
        [
            [_slope(e, values, t, columns, inputs, out, d) for d in range(n)]
            for e in equations
            for out in [run(e.basis, values, t, columns, inputs)]
        ]
    )


def jacobian(slopes: np.ndarray, rates: tuple[int, ...]) -> np.ndarray:
    """The Jacobian [N, n, n] of the flow from the slopes of the residuals."""
    _, n, N = slopes.shape
    A = np.zeros((N, n, n))
    shifts = [d for d in range(n) if d not in rates]
    A[:, shifts, [d + 1 for d in shifts]] = 1.0
    A[:, rates, :] = -slopes.transpose(2, 0, 1)
    return A


def _changes(
    equation: CompiledEquation, values: np.ndarray, t: np.ndarray, columns: np.ndarray, inputs: np.ndarray,
    out: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The derivative [constant, N] of the right-hand side with respect to each constant, linear ones first."""
    changes = [-column for column in out[:-1]]
    weights = values[equation.linear]
    total = weights @ out[:-1] + out[-1]
    for index in equation.nonlinear:
        moved = values.copy()
        step = _STEP * max(abs(values[index]), 1e-3)
        moved[index] += step
        other = run(equation.basis, moved, t, columns, inputs)
        changes.append(-((weights @ other[:-1] + other[-1]) - total) / step)
    return np.array(changes).reshape(len(changes), len(t))


def in_blocks(columns: np.ndarray) -> np.ndarray:
    """Columns [c, N] as [block, N, BLOCK], the last block padded with zeros."""
    c, n = columns.shape
    blocks = np.zeros((-(-c // BLOCK), BLOCK, n))
    blocks.reshape(-1, n)[:c] = columns
    return np.ascontiguousarray(blocks.swapaxes(1, 2))


def run(program: Program, values: np.ndarray, t: np.ndarray, columns: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """The outputs [output, N] of a program along a trajectory."""
    out, registers = np.empty((len(program.outputs), len(t))), np.zeros((program.n_registers, WIDE))
    evaluate_wide(program, np.asarray(values, float), t, np.ascontiguousarray(columns), inputs, registers, out)
    return out


def exponential(matrices: np.ndarray) -> np.ndarray:
    """The exponential of each matrix [N, n, n], by scaling and squaring; not finite where it overflows.

    SciPy's is slow for many small matrices.
    """
    squarings = max(0, int(np.ceil(np.log2(max(float(np.abs(matrices).sum(axis=2).max()), 1e-300)))) + 2)
    scaled = matrices / 2.0**squarings
    result = term = np.broadcast_to(np.eye(matrices.shape[1]), matrices.shape)
    for k in range(1, 9):
        term = term @ scaled / k
        result = result + term
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(squarings):
            result = result @ result
    return np.ascontiguousarray(result)


def _slope(
    equation: CompiledEquation, values: np.ndarray, t: np.ndarray, columns: np.ndarray, inputs: np.ndarray,
    out: np.ndarray, d: int,
) -> np.ndarray:  # fmt: skip
    """The derivative of the residual with respect to the d-th state variable, along the trajectory."""
    step = _STEP * (float(np.abs(columns[d]).max()) or 1.0)
    moved = columns.copy()
    moved[d] += step
    other = run(equation.basis, values, t, moved, inputs)
    weights = values[equation.linear]
    return ((weights @ other[:-1] + other[-1]) - (weights @ out[:-1] + out[-1])) / step


def solved_columns(candidate: Candidate, target: Target) -> np.ndarray | None:
    """The solved columns [column, N] at the samples of all experiments."""
    record, parts = target.record, []
    states = candidate.fit.initial if candidate.fit.segment_states is None else candidate.fit.segment_states
    for e in range(target.n_experiments):
        system = candidate.fit.system(target, int(target.experiment[e]))
        begin, end = int(record.first[e]), int(record.first[e + 1])
        solution = solve(
            system, states[e], target.t[begin:end], target.signals[e], rtol=1e-5,
            limit=record.limit, max_steps=max(4000, steps_needed(target.oscillations, 1e-5)),
        )  # fmt: skip
        if solution.status is not SolveStatus.OK or not np.all(np.isfinite(solution.values)):
            return None
        parts.append(solution.values.T)
    return np.ascontiguousarray(np.concatenate(parts, axis=1))
