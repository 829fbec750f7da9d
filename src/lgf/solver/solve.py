"""Solution of a system: the trajectory from an initial state, with a status."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lgf.equation.system import System
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame
from lgf.expression.tree import signal
from lgf.solver.forcing import Forcing, input_table, longest_step
from lgf.solver.kernels.integrator import Flow, Options, integrate, make_workspace
from lgf.solver.kernels.machine import LANES
from lgf.solver.program import compile_skeleton
from lgf.solver.trajectory import SolveStatus, Trajectory, read_only

_LARGEST, _TIMES_START = 1e12, 1e6
STATUSES = tuple(SolveStatus)  # in the order of the kernel's numbers

Initial = Sequence[float] | Mapping[str, float]
"""The state vector in the frame's order, or by name."""
Inputs = Mapping[str, Forcing | str] | Forcing | str | None
"""Known inputs, or their formulas, by name; for a frame with one input, that input itself."""


def solve(
    system: System,
    initial: Initial,
    t: ArrayLike,
    inputs: Inputs = None,
    *,
    branch: tuple[float, float] | None = None,
    rtol: float = 1e-8,
    limit: ArrayLike | None = None,
    max_steps: int = 200_000,
) -> Trajectory:
    """The trajectory of the system at the times t, from the initial state at t[0].

    Inputs replace those that the system has as formulas. An equation with several branches (a power of the highest
    derivative) follows the branch nearest to `branch` = (value, slope) of the highest derivative at t[0]; without it,
    the one that restores the state towards zero. A variable of the state vector beyond its `limit`, 1e12 or a million
    times the largest of the initial state, has blown up.
    Samples that were not reached are NaN, and the status says why.

    >>> import numpy as np
    >>> solve(System.read("u'' = -4*u"), (1, 0), np.linspace(0, np.pi, 3)).u.round(6).tolist()
    [1.0, -1.0, 1.0]
    >>> solve(System.read("x' = y; y' = -x"), {"x": 0, "y": 1}, [0, 1])["x"].round(6).tolist()
    [0.0, 0.841471]
    """
    times = _times(t)
    frame = system.frame
    start = state_vector(frame, initial)
    limit = largest_state(start) if limit is None else limit
    signals = known_inputs(system, inputs)
    formulas = tuple((name, s.formula) for name, s in signals.items() if s.formula is not None)
    compiled = compile_skeleton(system.skeleton, formulas)
    table = input_table([s if s and s.formula is None else None for s in map(signals.get, frame.inputs)])
    step = longest_step(signals.values(), np.inf)
    problem = _InitialValueProblem(compiled.flow, np.asarray(system.values, float), start, table, step)
    if branch is None:
        branch = (0.0, 0.0) if compiled.flow.degree == 1 else _restoring_branch(problem, times)
    values, status = _integrate(problem, times, branch, rtol, limit, max_steps)
    end = None if status is SolveStatus.OK else _end(problem, times, values, rtol, limit, max_steps)
    inputs_at = {name: s.values(times) for name, s in signals.items()}
    return Trajectory(times, values, frame.columns, inputs_at, status, end)


def largest_state(start: np.ndarray) -> float:
    """The absolute value beyond which a solution from this start has blown up."""
    return max(_LARGEST, _TIMES_START * float(np.max(np.abs(start), initial=0.0)))


def state_vector(frame: Frame, initial: Initial) -> np.ndarray:
    """The initial state in the frame's order; LgfError unless every variable has one finite value."""
    expected = ", ".join(map(str, frame.variables))
    if isinstance(initial, Mapping):
        named = {frame.variable(str(name)): float(value) for name, value in initial.items()}
        missing = [str(v) for v in frame.variables if v not in named]
        if missing or len(named) != frame.dimension:
            raise LgfError(f"the initial state gives {', '.join(map(str, initial)) or 'nothing'}; give {expected}.")
        return np.array([named[v] for v in frame.variables])
    if len(initial) != frame.dimension:
        raise LgfError(
            f"the initial state has {len(initial)} values but the system has {frame.dimension}; "
            f"give {expected} at the first time."
        )
    return np.asarray(initial, float)


def known_inputs(system: System, inputs: Inputs) -> dict[str, Forcing]:
    """The inputs of the system by name: those in `inputs`, else its own formulas."""
    frame = system.frame
    forcings: Mapping[str, Forcing]
    if inputs is None:
        forcings = {}
    elif isinstance(inputs, Mapping):
        forcings = {name: Forcing.from_formula(s) if isinstance(s, str) else s for name, s in inputs.items()}
    else:
        if len(frame.inputs) > 1:
            raise LgfError(f"the system has the inputs {', '.join(frame.inputs)}; say which one is given, by name.")
        forcing = Forcing.from_formula(inputs) if isinstance(inputs, str) else inputs
        forcings = {frame.inputs[0]: forcing} if frame.inputs else {}
    own = {name: Forcing.from_formula(formula) for name, formula in system.formulas}
    signals = {name: forcings.get(name) or own.get(name) for name in frame.inputs}
    missing = [name for name, s in signals.items() if s is None and signal(name) in system.skeleton.symbols]
    if missing:
        raise LgfError(
            f"the equation contains the input {quoted(missing[0])} but it was not given; give a formula, samples or a "
            "Forcing."
        )
    return {name: s for name, s in signals.items() if s is not None}


def _times(t: ArrayLike) -> np.ndarray:
    times = read_only(t)
    if times.ndim != 1 or len(times) < 1 or not np.all(np.isfinite(times)) or np.any(np.diff(times) <= 0):
        raise LgfError("t must be a list of finite, strictly increasing times.")
    return times


class _InitialValueProblem(NamedTuple):
    flow: Flow
    constants: np.ndarray
    start: np.ndarray
    table: np.ndarray
    longest_step: float


def _integrate(
    problem: _InitialValueProblem,
    t: np.ndarray,
    branch: tuple[float, float],
    rtol: float,
    limit: ArrayLike,
    max_steps: int,
) -> tuple[np.ndarray, SolveStatus]:
    """The values (N, column) of one trajectory, NaN where not reached, and its status."""
    flow, constants, start, table, longest = problem
    n = flow.n
    scale = _scale(start, flow.rates)
    window = float(t[-1] - t[0])
    options = Options(
        rtol, rtol * 1e-2 * scale, min(window / 20, longest) if window > 0 else 1.0,
        np.array(np.broadcast_to(limit, n), float), 1e-6 * scale, max_steps, *branch,
    )  # fmt: skip
    work = make_workspace(flow, len(t))
    C, y = (np.repeat(x[:, None], LANES, axis=1) for x in (constants, start))
    integrate(flow, C, 1, y, np.array(t), table, options, False, True, work)
    values = work.Y[:, :, 0].copy()
    values[work.reached[0] :] = np.nan
    return values, STATUSES[work.status[0]]


def _end(
    problem: _InitialValueProblem, t: np.ndarray, values: np.ndarray, rtol: float, limit: ArrayLike, max_steps: int
) -> float:
    """The time at which a solution ends that did not reach every time, to a millionth of the step between two."""
    n = problem.flow.n
    for _ in range(4):
        reached = int(np.count_nonzero(np.isfinite(values[:, :n]).all(axis=1)))
        if reached in (0, len(t)):
            return float(t[max(reached - 1, 0)])
        last = values[reached - 1]
        t = np.linspace(t[reached - 1], t[reached], 101)
        values, _ = _integrate(problem._replace(start=last[:n].copy()), t, (last[n], 0.0), rtol, limit, max_steps)
    return float(t[0])


def _scale(start: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """A typical absolute value of each variable: the largest of its state at the start, else of any state."""
    sizes = np.abs(start)
    largest = float(sizes.max(initial=0.0)) or 1.0
    return np.concatenate([np.full(len(s), s.max() or largest) for s in np.split(sizes, rates[:-1] + 1)])


def _restoring_branch(problem: _InitialValueProblem, t: np.ndarray) -> tuple[float, float]:
    """(value, slope) of the highest derivative on the branch that restores the state, the best of several guesses."""
    step = 1e-3 * float(t[-1] - t[0]) if len(t) > 1 else 1e-3
    ahead = t[0] + step * np.array([0.0, 0.5, 1.0])
    size = float(np.max(np.abs(problem.start))) or 1.0
    least_pull, best_branch = np.inf, (0.0, 0.0)
    for value in size * np.array([0.0, -1.0, 1.0, -30.0, 30.0, -1000.0, 1000.0]):
        for slope in size / step * np.array([0.0, -1.0, 1.0]):
            values, status = _integrate(problem, ahead, (value, slope), 1e-6, 1e12, 2000)
            top = values[:, problem.flow.n]
            if status is not SolveStatus.OK or not np.all(np.isfinite(top)):
                continue
            pull = float(top[-1] * values[-1, 0])
            if pull < least_pull - 1e-12 * abs(pull):
                least_pull, best_branch = pull, (float(top[0]), float(top[-1] - top[0]) / step)
    return best_branch
