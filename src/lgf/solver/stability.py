"""Stability of a filled equation: Lyapunov's indirect method, and a numerical test where it is inconclusive.

The forcing does not count: stability is a property of the operator. For an autonomous equation that gives its highest
derivative directly the equilibria are the rest states u* with f(u*, 0, ...) = 0, and the eigenvalues of the Jacobian
of the first-order form decide. Everything else (explicit time, several branches, eigenvalues on the imaginary axis, no
equilibrium in reach) is left to trajectories from sampled states: they must stay bounded.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from lgf.equation.skeleton import Equation
from lgf.expression.tree import ZERO
from lgf.solver.kernels.integrator import BLEW_UP, N_STAGES, N_WORK, OK, integrate
from lgf.solver.kernels.machine import LANES, WIDE, evaluate_wide
from lgf.solver.program import CompiledSkeleton, compile_skeleton
from lgf.solver.solve import NO_TABLE, STATUSES, solve


class Verdict(StrEnum):
    """The three answers."""

    STABLE = "stable"
    UNSTABLE = "unstable"
    UNKNOWN = "unknown"

    def contradicts(self, known: bool | None) -> bool:
        """Whether it is the opposite of what is known, True being stable."""
        return (known is True and self is Verdict.UNSTABLE) or (known is False and self is Verdict.STABLE)


@dataclass(frozen=True)
class Stability:
    """A verdict and, in one sentence, why."""

    verdict: Verdict
    reason: str

    def __bool__(self) -> bool:
        return self.verdict is Verdict.STABLE


@dataclass(frozen=True)
class StabilitySettings:
    """How far equilibria are looked for, and how long trajectories are followed."""

    reach: float = 10.0  # in units of the size of u
    n_points: int = 2001
    n_near: int = 40  # equilibria examined
    growth: float = 10.0  # a trajectory that ends beyond this many times its start has grown
    max_steps: int = 4000


def assess(
    equation: Equation,
    size: float = 1.0,
    window: tuple[float, float] = (0.0, 20.0),
    settings: StabilitySettings = StabilitySettings(),
) -> Stability:
    """Whether the unforced system is stable; `size` is a typical |u| and `window` the time of interest.

    >>> assess(Equation.read("u'' = -u' - 4*u")).verdict.value, assess(Equation.read("u'' - u = 0")).verdict.value
    ('stable', 'unstable')
    """
    compiled = compile_skeleton(equation.skeleton, ZERO)
    constants = np.asarray(equation.values, float)
    if not equation.skeleton.autonomous:
        return _by_trajectories(equation, compiled, size, window, settings, "time appears in the equation")
    if compiled.degree != 1:
        return _by_trajectories(equation, compiled, size, window, settings, "the equation has several branches")
    rests = _equilibria(compiled, constants, size, settings)
    if not len(rests):
        return _by_trajectories(equation, compiled, size, window, settings, "no equilibrium was found")
    leading = np.array([_leading_eigenvalue(compiled, constants, u, size) for u in rests])
    usable = np.isfinite(leading)
    rests, leading = rests[usable], leading[usable]
    if len(leading) and leading.min() < -1e-6:
        at = rests[np.argmin(leading)]
        return Stability(
            Verdict.STABLE,
            f"all eigenvalues at the equilibrium u = {at:.4g} have negative real part (largest {leading.min():.3g}).",
        )
    if len(leading) and leading.min() > 1e-6:
        at = rests[np.argmin(leading)]
        return Stability(
            Verdict.UNSTABLE,
            f"every equilibrium has an eigenvalue with positive real part (u = {at:.4g}: {leading.min():.3g}).",
        )
    return _by_trajectories(equation, compiled, size, window, settings, "eigenvalues lie on the imaginary axis")


def _field(compiled: CompiledSkeleton, constants: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The highest derivative at these states [order, N]."""
    flow = compiled.flow
    n, N = compiled.order, states.shape[1]
    values = np.empty((len(flow.outputs), N))
    evaluate_wide(
        flow.code, flow.outputs, flow.literals, n, compiled.n_constants, constants, np.zeros(N),
        np.vstack([states, np.zeros((1, N))]), np.zeros(N), np.zeros((flow.n_registers, WIDE)), values,
    )  # fmt: skip
    return values[-1]


def _equilibria(
    compiled: CompiledSkeleton, constants: np.ndarray, size: float, settings: StabilitySettings
) -> np.ndarray:
    """Rest states within reach, those nearest to zero first."""

    def at_rest(u: np.ndarray) -> np.ndarray:
        states = np.zeros((compiled.order, len(u)))
        states[0] = u
        return _field(compiled, constants, states)

    # The odd number of points puts zero, the most common equilibrium, on the grid.
    grid = settings.reach * size * np.linspace(-1.0, 1.0, settings.n_points)
    values = at_rest(grid)
    scale = np.nanmedian(np.abs(np.where(np.isfinite(values), values, np.nan))) if np.isfinite(values).any() else 0.0
    exact = grid[np.abs(values) <= 1e-12 * scale] if scale > 0 else grid[:0]
    crossing = np.flatnonzero(
        np.isfinite(values[:-1]) & np.isfinite(values[1:]) & (np.sign(values[:-1]) * np.sign(values[1:]) < 0)
    )
    low, high = grid[crossing].copy(), grid[crossing + 1].copy()
    if len(low):
        sign = np.sign(values[crossing])
        for _ in range(50):
            middle = 0.5 * (low + high)
            left = np.sign(at_rest(middle)) == sign
            low, high = np.where(left, middle, low), np.where(left, high, middle)
        # A pole changes sign too, but grows instead of vanishing.
        middle = 0.5 * (low + high)
        middle = middle[np.abs(at_rest(middle)) <= 1e-6 * scale + 1e-300]
    else:
        middle = low
    found = np.concatenate([exact, middle])
    return found[np.argsort(np.abs(found), kind="stable")][: settings.n_near]


def _leading_eigenvalue(compiled: CompiledSkeleton, constants: np.ndarray, u: float, size: float) -> float:
    """The largest real part among the eigenvalues of the Jacobian at rest, relative to its size; NaN if undefined."""
    n = compiled.order
    steps = 1e-6 * np.full(n, max(size, abs(u)))
    base = np.zeros(n)
    base[0] = u
    states = np.column_stack([base + s * d for d in np.diag(steps) for s in (1.0, -1.0)])
    f = _field(compiled, constants, states)
    jacobian = np.diag(np.ones(n - 1), 1)
    jacobian[-1] = (f[0::2] - f[1::2]) / (2 * steps)
    if not np.all(np.isfinite(jacobian)):
        return np.nan
    return float(np.linalg.eigvals(jacobian).real.max())


def _by_trajectories(
    equation: Equation,
    compiled: CompiledSkeleton,
    size: float,
    window: tuple[float, float],
    settings: StabilitySettings,
    why: str,
) -> Stability:
    """The verdict of eight trajectories from sampled states of the given size."""
    t = np.linspace(*window, 201)
    starts = size * np.random.default_rng(0).uniform(-1.0, 1.0, (compiled.order, LANES))
    limit = 1e3 * settings.growth * size
    if compiled.degree == 1:
        u, status = _lanes(compiled, np.asarray(equation.values, float), starts, t, size, limit, settings.max_steps)
    else:
        free = replace(equation, forcing=ZERO)
        solved = [solve(free, y, t, rtol=1e-5, limit=limit, max_steps=settings.max_steps) for y in starts.T]
        u, status = np.column_stack([s.u for s in solved]), np.array([STATUSES.index(s.status) for s in solved])
    done = status == OK
    grown = (status == BLEW_UP) | (done & (np.abs(u[-1]) > settings.growth * np.abs(starts).max(axis=0)))
    if grown.any():
        return Stability(Verdict.UNSTABLE, f"{why}; {int(grown.sum())} of {LANES} sampled trajectories grew.")
    if done.sum() >= LANES // 2:
        early = np.abs(u[: len(t) // 4][:, done]).max(axis=0)
        late = np.abs(u[3 * len(t) // 4 :][:, done]).max(axis=0)
        word = "decayed" if np.all(late < 0.9 * early) else "stayed bounded"
        return Stability(Verdict.STABLE, f"{why}; {int(done.sum())} of {LANES} sampled trajectories {word}.")
    return Stability(Verdict.UNKNOWN, f"{why}; most sampled trajectories could not be followed.")


def _lanes(
    compiled: CompiledSkeleton,
    constants: np.ndarray,
    starts: np.ndarray,
    t: np.ndarray,
    size: float,
    limit: float,
    max_steps: int,
) -> tuple[np.ndarray, np.ndarray]:
    """(u [N, lane], status [lane]) of one trajectory per column of starts [order, lane]."""
    flow, n = compiled.flow, compiled.order
    reached, status = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    states = np.zeros((len(t), n + 1, LANES))
    integrate(
        flow.code, flow.outputs, 1, flow.literals, n, np.repeat(constants[:, None], LANES, axis=1), LANES,
        starts.copy(), t, *NO_TABLE, 1e-5, np.full(n, 1e-7 * size), (t[-1] - t[0]) / 20, limit,
        np.full(n, 1e-6 * size), max_steps, False, False, 0.0, 0.0, np.zeros((flow.n_registers, LANES)),
        np.zeros((N_WORK, LANES)), np.zeros((N_STAGES, n, LANES)), states, reached, status,
    )  # fmt: skip
    return states[:, 0], status
