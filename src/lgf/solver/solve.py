"""solve(equation, initial, t, forcing) -> Trajectory with a status."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lgf.equation.skeleton import Equation
from lgf.errors import LgfError
from lgf.expression.tree import Expression
from lgf.solver.kernels.integrator import N_STAGES, N_WORK, integrate
from lgf.solver.kernels.machine import LANES
from lgf.solver.program import Program, compile_skeleton, compile_system
from lgf.solver.trajectory import Forcing, SolveStatus, Trajectory, read_only

STATUSES = tuple(SolveStatus)  # in the order of the kernel's numbers
NO_TABLE = (np.zeros((1, 4)), 0.0, 0.0)


def solve(
    equation: Equation,
    initial: Sequence[float],
    t: ArrayLike,
    forcing: "Forcing | str | None" = None,
    *,
    branch: tuple[float, float] | None = None,
    rtol: float = 1e-8,
    limit: float = 1e12,
    max_steps: int = 200_000,
) -> Trajectory:
    """The trajectory of the equation at the times t, from initial = (u, u', ...) at t[0].

    The forcing replaces the one that the equation carries. An equation with several branches (a power of the highest
    derivative) follows the branch nearest to `branch` = (value, slope) of the highest derivative at t[0]; without it,
    the one that pulls u back towards zero. Samples that were not reached are NaN, and the status says why.

    >>> import numpy as np
    >>> solve(Equation.read("u'' = -4*u"), (1, 0), np.linspace(0, np.pi, 5)).u.round(6).tolist()
    [1.0, 0.0, -1.0, -0.0, 1.0]
    """
    times = _times(t)
    order = equation.order
    if len(initial) != order:
        raise LgfError(
            f"the initial state has {len(initial)} values but the equation is of order {order}; "
            f"give {', '.join('u' + chr(39) * k for k in range(order))} at the first time."
        )
    given = Forcing.from_formula(forcing) if isinstance(forcing, str) else forcing
    formula = given.formula if given is not None else equation.forcing
    if equation.skeleton.forced and given is None and equation.forcing is None:
        raise LgfError("the equation contains the forcing F but none was given; give a formula, samples or a Forcing.")
    compiled = compile_skeleton(equation.skeleton, formula)
    table = given.table() if given is not None and given.formula is None else NO_TABLE
    problem = _InitialValueProblem(
        compiled.flow, order, compiled.degree, np.asarray(equation.values, float), np.asarray(initial, float), table
    )
    if branch is None:
        branch = (0.0, 0.0) if compiled.degree == 1 else _restoring_branch(problem, times)
    states, status = _integrate(problem, times, branch, rtol, limit, max_steps, True)
    values = given.values(times) if given is not None else None
    return Trajectory(times, states, values, status)


def solve_system(
    right_sides: Sequence[Expression],
    initial: Sequence[float],
    t: ArrayLike,
    *,
    rtol: float = 1e-8,
    limit: float = 1e12,
    max_steps: int = 200_000,
) -> tuple[np.ndarray, SolveStatus]:
    """The states (N, n) of x0' = right_sides[0], x1' = right_sides[1], ... at the times t, and how the solve ended."""
    times = _times(t)
    if len(initial) != len(right_sides):
        raise LgfError(f"the initial state has {len(initial)} values but there are {len(right_sides)} equations.")
    n = len(right_sides)
    problem = _InitialValueProblem(
        compile_system(list(right_sides)), n, 1, np.zeros(0), np.asarray(initial, float), NO_TABLE
    )
    states, status = _integrate(problem, times, (0.0, 0.0), rtol, limit, max_steps, False)
    return states[:, :n], status


def _times(t: ArrayLike) -> np.ndarray:
    times = read_only(t)
    if times.ndim != 1 or len(times) < 1 or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0):
        raise LgfError("t must be a list of finite, strictly increasing times.")
    return times


class _InitialValueProblem(NamedTuple):
    """The flow of the states, compiled, with the numbers that go into it."""

    flow: Program
    n: int  # states
    degree: int  # in the highest derivative
    constants: np.ndarray
    start: np.ndarray
    table: tuple[np.ndarray, float, float]  # of the forcing


def _integrate(
    problem: _InitialValueProblem,
    t: np.ndarray,
    branch: tuple[float, float],
    rtol: float,
    limit: float,
    max_steps: int,
    with_top: bool,
) -> tuple[np.ndarray, SolveStatus]:
    """One trajectory: states (N, n + 1), NaN where not reached."""
    flow, n, degree, constants, start, table = problem
    scale = float(np.max(np.abs(start), initial=0.0)) or 1.0
    lanes = (np.repeat(x[:, None], LANES, axis=1) for x in (constants, start))
    trajectories = np.full((len(t), n + 1, LANES), np.nan)
    reached, status = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    C, y = lanes
    window = float(t[-1] - t[0])
    integrate(
        flow.code, flow.outputs, degree, flow.literals, n, C, 1, y, np.array(t), *table, rtol,
        np.full(n, rtol * 1e-2 * scale), window / 20 if window > 0 else 1.0, limit, np.full(n, 1e-6 * scale), max_steps,
        False, with_top, *branch, np.zeros((flow.n_registers, LANES)), np.zeros((N_WORK, LANES)),
        np.zeros((N_STAGES, n, LANES)), trajectories, reached, status,
    )  # fmt: skip
    states = trajectories[:, :, 0].copy()
    states[reached[0] :] = np.nan
    return states, STATUSES[status[0]]


def _restoring_branch(problem: _InitialValueProblem, t: np.ndarray) -> tuple[float, float]:
    """(value, slope) of the highest derivative on the branch that pulls u back, by a short trial of several guesses."""
    step = 1e-3 * float(t[-1] - t[0]) if len(t) > 1 else 1e-3
    ahead = t[0] + step * np.array([0.0, 0.5, 1.0])
    size = float(np.max(np.abs(problem.start))) or 1.0
    best, found = np.inf, (0.0, 0.0)
    for value in size * np.array([0.0, -1.0, 1.0, -30.0, 30.0, -1000.0, 1000.0]):
        for slope in size / step * np.array([0.0, -1.0, 1.0]):
            states, status = _integrate(problem, ahead, (value, slope), 1e-6, 1e12, 2000, True)
            top = states[:, problem.n]
            if status is not SolveStatus.OK or not np.all(np.isfinite(top)):
                continue
            pull = float(top[-1] * states[-1, 0])
            if pull < best - 1e-12 * abs(pull):
                best, found = pull, (float(top[0]), float(top[-1] - top[0]) / step)
    return found
