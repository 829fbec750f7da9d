"""Stability of a system: Lyapunov's indirect method, and a numerical test where it is inconclusive.

Stability is a property of the unforced system, so inputs are ignored. For an explicit autonomous system the
equilibria are the rest states, and the eigenvalues of the Jacobian of the first-order form decide. In all other cases
(explicit time, several branches, eigenvalues on the imaginary axis, no equilibrium in reach) trajectories from sampled
states must stay bounded.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from lgf.equation.system import System
from lgf.expression.tree import ZERO
from lgf.solver.kernels.integrator import BLEW_UP, OK, Options, integrate, make_workspace
from lgf.solver.kernels.machine import LANES, NO_TABLE, WIDE, evaluate_wide
from lgf.solver.program import CompiledSkeleton, compile_skeleton
from lgf.solver.solve import STATUSES, solve


class Verdict(StrEnum):
    """The three verdicts."""

    STABLE = "stable"
    UNSTABLE = "unstable"
    UNKNOWN = "unknown"

    def contradicts(self, known: bool | None) -> bool:
        """Whether the verdict contradicts the known stability."""
        return (known is True and self is Verdict.UNSTABLE) or (known is False and self is Verdict.STABLE)


@dataclass(frozen=True)
class Stability:
    """A verdict and its reason in one sentence."""

    verdict: Verdict
    reason: str

    def __bool__(self) -> bool:
        return self.verdict is Verdict.STABLE


@dataclass(frozen=True)
class StabilitySettings:
    """Limits of the search for equilibria and of the trajectories."""

    reach: float = 10.0  # in units of the size of the states
    n_points: int = 2001  # of the grid for the equilibria of one state
    n_starts: int = 200  # of Newton's method, for those of several states
    n_near: int = 40  # equilibria examined, nearest to zero
    growth: float = 10.0  # a trajectory that ends beyond this many times its start has grown
    max_steps: int = 4000


def assess(
    system: System,
    size: ArrayLike = 1.0,
    window: tuple[float, float] = (0.0, 20.0),
    settings: StabilitySettings = StabilitySettings(),
    box: ArrayLike | None = None,
) -> Stability:
    """Whether the unforced system is stable; `size` is a typical absolute value, of each variable of the state vector
    or of all, `window` the time of interest, and `box` [n, 2] the range from which trajectories start (if not given, up
    to the size, of both signs).

    >>> assess(System.read("u'' = -u' - 4*u")).verdict.value, assess(System.read("u'' - u = 0")).verdict.value
    ('stable', 'unstable')
    """
    free = replace(system, formulas=tuple((name, ZERO) for name in system.frame.inputs))
    compiled = compile_skeleton(system.skeleton, free.formulas)
    constants = np.asarray(system.values, float)
    sizes = np.broadcast_to(np.asarray(size, float), (system.frame.dimension,))
    if not system.skeleton.autonomous:
        return _by_trajectories(free, compiled, sizes, window, settings, box, "time appears in the equation")
    if compiled.flow.degree != 1:
        return _by_trajectories(free, compiled, sizes, window, settings, box, "the equation has several branches")
    find = _equilibria_of_one_state if len(system.frame.states) == 1 else _equilibria
    rests = find(compiled, constants, sizes, settings)
    if not len(rests):
        return _by_trajectories(free, compiled, sizes, window, settings, box, "no equilibrium was found")
    leading = np.array([_leading_eigenvalue(compiled, constants, rest, sizes) for rest in rests])
    usable = np.isfinite(leading)
    rests, leading = rests[usable], leading[usable]
    if len(leading) and leading.min() < -1e-6:
        at = _named(system, rests[np.argmin(leading)])
        return Stability(
            Verdict.STABLE,
            f"all eigenvalues at the equilibrium {at} have negative real part (largest {leading.min():.3g}).",
        )
    if len(leading) and leading.min() > 1e-6:
        at = _named(system, rests[np.argmin(leading)])
        return Stability(
            Verdict.UNSTABLE,
            f"every equilibrium has an eigenvalue with positive real part ({at}: {leading.min():.3g}).",
        )
    return _by_trajectories(free, compiled, sizes, window, settings, box, "eigenvalues lie on the imaginary axis")


def _named(system: System, rest: np.ndarray) -> str:
    """The states of an equilibrium, such as u = 0."""
    pairs = zip(system.frame.variables, rest, strict=True)
    return ", ".join(f"{v} = {value:.4g}" for v, value in pairs if v.derivative == 0)


def _rates(compiled: CompiledSkeleton, constants: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The rates of change [n, N] at these state vectors [n, N]."""
    program, frame = compiled.flow.program, compiled.frame
    N = states.shape[1]
    values = np.empty((len(program.outputs), N))
    columns = np.vstack([states, np.zeros((len(frame.states), N))])
    evaluate_wide(
        program, constants, np.zeros(N), columns, np.zeros((len(frame.inputs), N)),
        np.zeros((program.n_registers, WIDE)), values,
    )  # fmt: skip
    return values


def _equilibria_of_one_state(
    compiled: CompiledSkeleton, constants: np.ndarray, sizes: np.ndarray, settings: StabilitySettings
) -> np.ndarray:
    """Rest states [rest, n] within reach, those nearest to zero first, by sign changes on a grid."""

    def at_rest(u: np.ndarray) -> np.ndarray:
        states = np.zeros((compiled.flow.n, len(u)))
        states[0] = u
        return _rates(compiled, constants, states)[-1]

    # The odd number of points puts zero, the most common equilibrium, on the grid.
    grid = settings.reach * sizes[0] * np.linspace(-1.0, 1.0, settings.n_points)
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
    u = np.concatenate([exact, middle])
    rests = np.zeros((len(u), compiled.flow.n))
    rests[:, 0] = u
    return rests[np.argsort(np.abs(u), kind="stable")][: settings.n_near]


def _equilibria(
    compiled: CompiledSkeleton, constants: np.ndarray, sizes: np.ndarray, settings: StabilitySettings
) -> np.ndarray:
    """Rest states [rest, n] within reach, those nearest to zero first, by Newton's method from sampled states."""
    n = compiled.flow.n
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (n, settings.n_starts - 1))
    y = np.hstack([np.zeros((n, 1)), draws * sizes[:, None] * np.geomspace(0.1, settings.reach, draws.shape[1])])
    moving = [v.derivative > 0 for v in compiled.frame.variables]
    y[moving] = 0.0
    with np.errstate(all="ignore"):
        typical = np.nanmedian(np.abs(_rates(compiled, constants, y)), axis=1)
        for _ in range(30):
            f = _rates(compiled, constants, y)
            jacobian = _jacobians(compiled, constants, y.T, sizes)
            sound = np.isfinite(jacobian).all(axis=(1, 2)) & np.isfinite(f).all(axis=0)
            step = np.zeros_like(y)
            step[:, sound] = -np.einsum("rij,jr->ir", np.linalg.pinv(jacobian[sound]), f[:, sound])
            y = y + step
        f = _rates(compiled, constants, y)
    scale = np.where(np.isfinite(typical) & (typical > 0), typical, 1.0)
    still = np.all(np.abs(f) <= 1e-9 * scale[:, None], axis=0) & np.all(
        np.abs(y) <= 2 * settings.reach * sizes[:, None], axis=0
    )
    rests: list[np.ndarray] = []
    for rest in sorted(y[:, still].T, key=lambda r: float(np.sum((r / sizes) ** 2))):
        if all(np.max(np.abs(rest - other) / sizes) > 1e-6 for other in rests):
            rests.append(rest)
    return np.array(rests[: settings.n_near]).reshape(-1, n)


def _jacobians(compiled: CompiledSkeleton, constants: np.ndarray, rests: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The derivative [rest, n, n] of the rates by the state vector at each of the states [rest, n]."""
    n = rests.shape[1]
    steps = 1e-6 * np.maximum(sizes, np.abs(rests))
    moves = steps[:, :, None] * np.eye(n)
    states = np.stack([rests[:, None] + moves, rests[:, None] - moves]).reshape(-1, n)
    above, below = _rates(compiled, constants, states.T).reshape(n, 2, *steps.shape).swapaxes(0, 1)
    return ((above - below) / (2 * steps)).swapaxes(0, 1)


def _leading_eigenvalue(
    compiled: CompiledSkeleton, constants: np.ndarray, rest: np.ndarray, sizes: np.ndarray
) -> float:
    """The largest real part among the eigenvalues of the Jacobian at rest; NaN if undefined."""
    (jacobian,) = _jacobians(compiled, constants, rest[None], np.maximum(sizes, np.abs(rest).max()))
    if not np.all(np.isfinite(jacobian)):
        return np.nan
    return float(np.linalg.eigvals(jacobian).real.max())


def _by_trajectories(
    system: System,
    compiled: CompiledSkeleton,
    sizes: np.ndarray,
    window: tuple[float, float],
    settings: StabilitySettings,
    box: ArrayLike | None,
    why: str,
) -> Stability:
    """The verdict from eight trajectories of the unforced system that start at sampled states of this size."""
    t = np.linspace(*window, 201)
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (compiled.flow.n, LANES))
    if box is None:
        starts, least = sizes[:, None] * draws, 0.0
    else:  # from a small population within the data, growth up to the size of the data is no instability
        low, high = np.asarray(box, float).T[:, :, None]
        starts, least = 0.5 * (low + high + (high - low) * draws), 1.0
    limit = 1e3 * settings.growth * float(sizes.max())
    if compiled.flow.degree == 1:
        y, status = _lanes(compiled, np.asarray(system.values, float), starts, t, sizes, limit, settings.max_steps)
    else:
        solved = [solve(system, state, t, rtol=1e-5, limit=limit, max_steps=settings.max_steps) for state in starts.T]
        y = np.stack([s.values[:, : compiled.flow.n] for s in solved], axis=2)
        status = np.array([STATUSES.index(s.status) for s in solved])
    first = [i for i, v in enumerate(compiled.frame.variables) if v.derivative == 0]
    size = np.abs(y[:, first] / sizes[first][:, None]).max(axis=1)  # [N, lane], of the largest state
    done = status == OK
    grown = (status == BLEW_UP) | (
        done & (size[-1] > settings.growth * np.maximum(np.abs(starts / sizes[:, None]).max(axis=0), least))
    )
    if grown.any():
        return Stability(Verdict.UNSTABLE, f"{why}; {int(grown.sum())} of {LANES} sampled trajectories grew.")
    if done.sum() >= LANES // 2:
        early = size[: len(t) // 4][:, done].max(axis=0)
        late = size[3 * len(t) // 4 :][:, done].max(axis=0)
        word = "decayed" if np.all(late < 0.9 * early) else "stayed bounded"
        return Stability(Verdict.STABLE, f"{why}; {int(done.sum())} of {LANES} sampled trajectories {word}.")
    return Stability(Verdict.UNKNOWN, f"{why}; most sampled trajectories could not be followed.")


def _lanes(
    compiled: CompiledSkeleton,
    constants: np.ndarray,
    starts: np.ndarray,
    t: np.ndarray,
    sizes: np.ndarray,
    limit: float,
    max_steps: int,
) -> tuple[np.ndarray, np.ndarray]:
    """(states [N, n, lane], status [lane]) of one trajectory per column of starts [n, lane]."""
    flow = compiled.flow
    watched = np.where([v.derivative == 0 for v in compiled.frame.variables], limit, np.inf)
    options = Options(1e-5, 1e-7 * sizes, (t[-1] - t[0]) / 20, watched, 1e-6 * sizes, max_steps, 0.0, 0.0)
    work = make_workspace(flow, len(t))
    C = np.repeat(constants[:, None], LANES, axis=1)
    integrate(flow, C, LANES, starts.copy(), t, NO_TABLE, options, False, False, work)
    return work.Y[:, : flow.n], work.status
