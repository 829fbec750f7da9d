"""A tuned fit of a candidate with SciPy and SymPy: the reference for `speed`.

The right-hand side is lambdified once, solved by RK45 and its constants are searched by the paper's two stages of
Nelder-Mead from C = 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sympy
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from lgf.data.problem import Problem
from lgf.equation.skeleton import Skeleton
from lgf.expression.sympy_conversion import to_sympy
from lgf.expression.tree import signal, substitute
from lgf.fit.nelder_mead import COARSE, FINE
from lgf.fit.settings import FitSettings

RTOL = 1e-5
FAILED = 1e30


@dataclass(frozen=True)
class ScipyFit:
    """The result of Nelder-Mead: relative mean square error, constants, and number of solved trajectories."""

    loss: float
    values: tuple[float, ...]
    evaluations: int


def fit_by_scipy(skeleton: Skeleton, problem: Problem) -> ScipyFit:
    """The skeleton, of degree 1 in its highest derivative, fitted to the one measured column of a single experiment."""
    (observation,), settings = problem.observations, FitSettings()
    (measured,) = observation.columns
    data, t, frame = observation.values[:, 0], observation.t, skeleton.frame
    start = [observation.initial[variable] for variable in frame.variables]
    scalar, vector = _right_sides(skeleton, problem)
    power = float(np.mean(data**2))
    evaluations = 0

    def loss(constants: np.ndarray) -> float:
        nonlocal evaluations
        evaluations += 1
        values = constants.tolist()

        def slope(time: float, y: np.ndarray) -> list[float]:
            state = y.tolist()
            return [*state[1:], scalar(time, *state, *values)]

        try:
            solved = solve_ivp(slope, (t[0], t[-1]), start, method="RK45", t_eval=t, rtol=RTOL)
        except (OverflowError, ZeroDivisionError, ValueError):  # raised by math when the state has blown up
            return FAILED
        if not solved.success:
            return FAILED
        below = measured in frame.variables
        predicted = solved.y[frame.positions[measured]] if below else vector(t, *solved.y, *values)
        error = float(np.mean((predicted - data) ** 2)) / power
        return error if np.isfinite(error) else FAILED

    x = np.ones(skeleton.n_constants)
    stages = (
        COARSE,
        (settings.fine_iterations, *FINE),
    )
    reached = FAILED
    with np.errstate(all="ignore"):
        for iterations, xatol, fatol in stages:
            options = {"maxiter": iterations, "fatol": fatol, "xatol": xatol}
            found = minimize(loss, x, method="Nelder-Mead", options=options)
            x, reached = found.x, float(found.fun)
    return ScipyFit(reached, tuple(float(v) for v in x), evaluations)


def _right_sides(skeleton: Skeleton, problem: Problem) -> tuple[Callable, Callable]:
    """The highest derivative as a function of (t, u, u', ..., C0, C1, ...): for floats, and for arrays."""
    coefficients = skeleton.polynomial
    assert coefficients is not None
    right = -coefficients[0] / coefficients[1]
    right = substitute(right, {signal(name): formula for name, formula in problem.formulas})
    t = sympy.Symbol("t")
    (name, order) = skeleton.frame.states[0]
    u = sympy.Function(name)(t)
    states = sympy.symbols(f"y0:{order}")
    plain = to_sympy(right)
    for k in reversed(range(order)):
        plain = plain.subs(sympy.Derivative(u, (t, k)) if k else u, states[k])
    arguments = [t, *states, *sympy.symbols(f"C0:{skeleton.n_constants}")]
    return sympy.lambdify(arguments, plain, "math"), sympy.lambdify(arguments, plain, "numpy")
