"""Solving one equation slowly and tightly with SciPy: the judge of every result, independent of the kernels."""

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from scipy.integrate import DOP853, LSODA, Radau

from lgf.equation.skeleton import Equation
from lgf.expression.tree import Expression, F, substitute, symbol
from lgf.expression.tree import polynomial as polynomial_in
from lgf.solver.trajectory import Forcing, SolveStatus, Trajectory

RTOL, ATOL = 1e-9, 1e-11
MOST_EVALUATIONS = 40_000
_LARGEST = 1e12
_SOLVERS = (LSODA, Radau, DOP853)

Scalar = Callable[[Sequence[float]], float]
"""(t, F, u, u', ..., highest derivative) -> value."""


class _OutOfEvaluations(Exception):
    """Raised inside a solver to end it."""


def solve_by_reference(
    equation: Equation,
    initial: Sequence[float],
    t: np.ndarray,
    forcing: Forcing | None = None,
    branch: tuple[float, float] = (0.0, 0.0),
) -> Trajectory:
    """The trajectory with u .. u^(order) at the times t by LSODA, else by Radau, else by DOP853.

    Where the equation has several solutions for its highest derivative, the first one is nearest to `branch`
    (its value and slope at t[0]); from there it is followed by continuity. Samples not reached are NaN.
    """
    tried = None
    for solver in _SOLVERS:
        tried = _attempt(solver, _Highest(equation, forcing, float(t[0]), branch), initial, t)
        if tried.status in (SolveStatus.OK, SolveStatus.BLEW_UP):
            break
    assert tried is not None
    return tried


def _attempt(solver_class: Callable, highest: "_Highest", initial: Sequence[float], t: np.ndarray) -> Trajectory:
    order = highest.order
    states = np.full((len(t), order + 1), np.nan)
    evaluations = 0

    def slope(time: float, y: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        evaluations += 1
        if evaluations > MOST_EVALUATIONS:
            raise _OutOfEvaluations
        return np.append(y[1:], highest(time, y))

    start = np.array(initial, dtype=float)
    states[0] = np.append(start, highest(float(t[0]), start))
    if not np.all(np.isfinite(states[0])):
        return Trajectory(t, states, status=SolveStatus.SINGULAR)
    reached, status = 1, SolveStatus.OK
    # a branch is told from its neighbours by extrapolation, so steps must be short against the record
    max_step = float(np.ptp(t)) / 400 if highest.has_branches else np.inf
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            solver = solver_class(slope, float(t[0]), start, float(t[-1]), rtol=RTOL, atol=ATOL, max_step=max_step)
            while reached < len(t):
                solver.step()
                if solver.status == "failed" or not np.all(np.isfinite(solver.y)):
                    status = SolveStatus.SINGULAR
                    break
                dense = solver.dense_output()
                while reached < len(t) and t[reached] <= solver.t:
                    y = np.atleast_1d(dense(t[reached]))
                    states[reached] = np.append(y, highest(float(t[reached]), y))
                    reached += 1
                highest.accept(solver.t, solver.y)
                if np.max(np.abs(solver.y)) > _LARGEST:
                    status = SolveStatus.BLEW_UP
                    break
        except _OutOfEvaluations:
            status = SolveStatus.OUT_OF_STEPS
        except (ValueError, FloatingPointError):  # what SciPy raises when a slope is not finite
            status = SolveStatus.SINGULAR
    if status is SolveStatus.OK and not np.all(np.isfinite(states)):
        status = SolveStatus.OUTSIDE_DOMAIN
    return Trajectory(t, states, status=status)


class _Highest:
    """The highest derivative as a function of (t, state), on the branch that the accepted steps have followed."""

    def __init__(self, equation: Equation, forcing: Forcing | None, start: float, branch: tuple[float, float]):
        self.order = equation.order
        residual = equation.left - equation.right
        formula = forcing.formula if forcing is not None else equation.forcing
        if formula is not None:
            residual = substitute(residual, {F: formula})
        self._input = forcing if forcing is not None and forcing.formula is None else None
        slots = {("t", 0): 0, ("F", 0): 1} | {("u", k): k + 2 for k in range(self.order + 1)}
        coefficients = polynomial_in(residual, symbol("u", self.order))
        self._residual = scalar_function(residual, slots)
        self._coefficients = None if coefficients is None else [scalar_function(c, slots) for c in coefficients]
        self.has_branches = coefficients is None or len(coefficients) > 2
        self._time, (self._value, self._rate) = start, branch

    def __call__(self, t: float, y: np.ndarray) -> float:
        values = [t, 0.0 if self._input is None else float(self._input.values(t)), *map(float, y), 0.0]
        near = self._value + self._rate * (t - self._time)
        try:
            if self._coefficients is None:
                return _newton(self._residual, values, near)
            return _nearest_root([c(values) for c in self._coefficients], near)
        except (ValueError, ZeroDivisionError, OverflowError):
            return math.nan

    def accept(self, t: float, y: np.ndarray) -> None:
        """Take this point as the one from which the branch goes on."""
        if self.has_branches and t > self._time:
            value = self(t, y)
            self._rate = (value - self._value) / (t - self._time)
            self._time, self._value = t, value


def _nearest_root(coefficients: list[float], near: float) -> float:
    if len(coefficients) == 2:
        return -coefficients[0] / coefficients[1]
    roots = np.roots(coefficients[::-1])
    real = roots.real[np.abs(roots.imag) <= 1e-7 * (1.0 + np.abs(roots.real))]
    return float(real[np.argmin(np.abs(real - near))]) if len(real) else math.nan


def _newton(residual: Scalar, values: list[float], near: float) -> float:
    h = near
    for _ in range(50):
        step = 1e-7 * (1.0 + abs(h))
        values[-1] = h + step
        above = residual(values)
        values[-1] = h
        here = residual(values)
        change = here * step / (above - here)
        h -= change
        if abs(change) <= 1e-11 * (1.0 + abs(h)):
            return h
    return math.nan


_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
    "tanh": math.tanh,
}


def scalar_function(expression: Expression, slots: dict[tuple[str, int], int]) -> Scalar:
    """A plain Python function of a list of numbers; `slots` says where each symbol stands in it.

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
    function, argument = _FUNCTIONS[head], parts[0]
    return lambda values: function(argument(values))
