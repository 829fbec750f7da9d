"""The reference solver: slow, accurate, by SciPy and independent of the kernels; it judges every result."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.expression.functions import FUNCTIONS
from lgf.expression.tree import SIGNAL, Expression, T, signal, substitute
from lgf.expression.tree import polynomial as polynomial_in
from lgf.solver.forcing import longest_step
from lgf.solver.solve import Initial, Inputs, known_inputs, largest_state, state_vector
from lgf.solver.trajectory import SolveStatus, Trajectory

RTOL, ATOL = 1e-9, 1e-11
MOST_EVALUATIONS = 40_000  # or as many as these for each sample: a measured input may jump at every one
_EVALUATIONS_PER_SAMPLE = 200

Scalar = Callable[[Sequence[float]], float]
"""(t, columns of the frame, inputs) -> value."""


class _OutOfEvaluations(Exception):
    """The solver has used up its evaluations."""


def solve_by_reference(
    system: System,
    initial: Initial,
    t: np.ndarray,
    inputs: Inputs = None,
    branch: tuple[float, float] = (0.0, 0.0),
) -> Trajectory:
    """The trajectory of every column at the times t by LSODA, else by Radau, else by DOP853.

    Where one equation has several solutions for its highest derivative, the first one is nearest to `branch`
    (its value and slope at t[0]); from there it is followed by continuity. Samples not reached are NaN.
    """
    from scipy.integrate import DOP853, LSODA, Radau  # imported late: a search starts sooner

    start = state_vector(system.frame, initial)
    trajectory = None
    for solver in (LSODA, Radau, DOP853):
        trajectory = _attempt(solver, _Rates(system, inputs, float(t[0]), branch), start, t)
        if trajectory.status in (SolveStatus.OK, SolveStatus.BLEW_UP):
            break
    assert trajectory is not None
    return trajectory


def _attempt(solver_class: Callable, rates: "_Rates", start: np.ndarray, t: np.ndarray) -> Trajectory:
    columns, largest = rates.frame.columns, largest_state(start)
    values = np.full((len(t), len(columns)), np.nan)
    evaluations, most = 0, max(MOST_EVALUATIONS, _EVALUATIONS_PER_SAMPLE * len(t))

    def slope(time: float, y: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        evaluations += 1
        if evaluations > most:
            raise _OutOfEvaluations
        return rates.slope(y, rates(time, y))

    values[0] = [*start, *rates(float(t[0]), start)]
    if not np.all(np.isfinite(values[0])):
        return Trajectory(t, values, columns, status=SolveStatus.SINGULAR)
    reached, status = 1, SolveStatus.OK
    # extrapolation distinguishes a branch from its neighbours, so steps must be short against the record
    max_step = longest_step(rates.sampled, float(np.ptp(t)) / 400 if rates.has_branches else np.inf)
    ends = [*rates.jumps(float(t[0]), float(t[-1])), float(t[-1])]
    rates.latest = np.nextafter(ends[0], -np.inf) if len(ends) > 1 else np.inf
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            solver = solver_class(slope, float(t[0]), start, ends.pop(0), rtol=RTOL, atol=ATOL, max_step=max_step)
            while reached < len(t):
                if solver.status == "finished":  # an input jumps: nothing of before it is used after it
                    rates.latest = np.nextafter(ends[0], -np.inf) if len(ends) > 1 else np.inf
                    solver = solver_class(
                        slope, solver.t, solver.y, ends.pop(0), rtol=RTOL, atol=ATOL, max_step=max_step
                    )
                solver.step()
                if solver.status == "failed" or not np.all(np.isfinite(solver.y)):
                    status = SolveStatus.SINGULAR
                    break
                dense = solver.dense_output()
                while reached < len(t) and t[reached] <= solver.t:
                    y = np.atleast_1d(dense(t[reached]))
                    values[reached] = [*y, *rates(float(t[reached]), y, at_sample=True)]
                    reached += 1
                rates.accept(solver.t, solver.y)
                if np.max(np.abs(solver.y)) > largest:
                    status = SolveStatus.BLEW_UP
                    break
        except _OutOfEvaluations:
            status = SolveStatus.OUT_OF_STEPS
        except (ValueError, FloatingPointError):  # SciPy raises these if a slope is not finite
            status = SolveStatus.SINGULAR
    if status is SolveStatus.OK and not np.all(np.isfinite(values)):
        status = SolveStatus.OUTSIDE_DOMAIN
    return Trajectory(t, values, columns, status=status)


class _Rates:
    """The highest derivative of every state as a function of (t, state vector).

    That of an implicit equation lies on the branch that the accepted steps have followed.
    """

    def __init__(self, system: System, inputs: Inputs, start: float, branch: tuple[float, float]):
        self.frame = frame = system.frame
        signals = known_inputs(system, inputs)
        formulas = {signal(name): s.formula for name, s in signals.items() if s.formula is not None}
        self.sampled = [s for s in signals.values() if s.formula is None]
        self._sampled = [signals.get(name) for name in frame.inputs]
        self._sampled = [None if s is None or s.formula is not None else s for s in self._sampled]
        slots = {T.args: 0} | {v: 1 + i for v, i in frame.positions.items()}
        slots |= {(name, SIGNAL): 1 + len(frame.columns) + i for i, name in enumerate(frame.inputs)}
        sides = [(substitute(left, formulas), substitute(right, formulas)) for left, right in system.sides]
        self._explicit: list[Scalar] | None = None
        self._coefficients: list[Scalar] | None = None
        self.has_branches = False
        if system.skeleton.right_sides is not None:
            self._explicit = [scalar_function(right, slots) for _, right in sides]
        else:
            residual = sides[0][0] - sides[0][1]
            coefficients = polynomial_in(residual, system.skeleton.highest)
            self._residual = scalar_function(residual, slots)
            self._coefficients = None if coefficients is None else [scalar_function(c, slots) for c in coefficients]
            self.has_branches = coefficients is None or len(coefficients) > 2
        self._top = slots[frame.highest[0]]
        self.latest = np.inf  # inputs have the values of before this time until the next piece is solved
        self._time, (self._value, self._rate) = start, branch
        self._driven = frame.rates
        self._shifts = [
            (frame.positions[v], frame.positions[Variable(v.name, v.derivative + 1)])
            for v in frame.variables
            if frame.positions[v] not in frame.rates
        ]

    def slope(self, y: np.ndarray, highest: list[float]) -> np.ndarray:
        """The rate of change of the state vector."""
        rate = np.empty(len(y))
        for at, source in self._shifts:
            rate[at] = y[source]
        rate[list(self._driven)] = highest
        return rate

    def jumps(self, start: float, stop: float) -> list[float]:
        """The times between these two at which an input jumps."""
        times = np.unique(np.concatenate([np.empty(0), *(s.jumps() for s in self.sampled)]))
        return [float(time) for time in times if start < time < stop]

    def __call__(self, t: float, y: np.ndarray, at_sample: bool = False) -> list[float]:
        time = t if at_sample else min(t, self.latest)
        inputs = [0.0 if s is None else float(s.values(time)) for s in self._sampled]
        values = [t, *map(float, y), *([0.0] * len(self.frame.states)), *inputs]
        near = self._value + self._rate * (t - self._time)
        try:
            if self._explicit is not None:
                return [f(values) for f in self._explicit]
            if self._coefficients is None:
                return [_newton(self._residual, values, self._top, near)]
            return [_nearest_root([c(values) for c in self._coefficients], near)]
        except (ValueError, ZeroDivisionError, OverflowError):
            return [math.nan] * len(self.frame.states)

    def accept(self, t: float, y: np.ndarray) -> None:
        """Extrapolates the branch from this point on."""
        if self.has_branches and t > self._time:
            (value,) = self(t, y)
            self._rate = (value - self._value) / (t - self._time)
            self._time, self._value = t, value


def _nearest_root(coefficients: list[float], near: float) -> float:
    if len(coefficients) == 2:
        return -coefficients[0] / coefficients[1]
    roots = np.roots(coefficients[::-1])
    real = roots.real[np.abs(roots.imag) <= 1e-7 * (1.0 + np.abs(roots.real))]
    return float(real[np.argmin(np.abs(real - near))]) if len(real) else math.nan


def _newton(residual: Scalar, values: list[float], top: int, near: float) -> float:
    h = near
    for _ in range(50):
        step = 1e-7 * (1.0 + abs(h))
        values[top] = h + step
        above = residual(values)
        values[top] = h
        here = residual(values)
        change = here * step / (above - here)
        h -= change
        if abs(change) <= 1e-11 * (1.0 + abs(h)):
            return h
    return math.nan


def scalar_function(expression: Expression, slots: Mapping[tuple[str, int], int]) -> Scalar:
    """A plain Python function of a list of numbers; `slots` maps each symbol to its index.

    It raises ValueError, ZeroDivisionError or OverflowError where the expression is undefined.
    """
    head = expression.head
    if head == "number":
        value = expression.args[0]
        return lambda values: value
    if head == "symbol":
        if expression.args not in slots:
            raise ValueError(f"{expression.args[0]} stands in the equation but has no value.")
        slot = slots[expression.args]
        return lambda values: values[slot]
    if head == "constant":
        raise ValueError("the equation has open constants; fill them in first.")
    parts = [scalar_function(child, slots) for child in expression.args]
    if head == "+":
        return lambda values: math.fsum([part(values) for part in parts])
    if head == "*":
        return lambda values: math.prod([part(values) for part in parts])
    if head == "^":
        base, exponent = parts
        return lambda values: math.pow(base(values), exponent(values))
    function, argument = FUNCTIONS[head].scalar, parts[0]
    return lambda values: function(argument(values))
