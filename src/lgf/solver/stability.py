"""Stability of a system: Lyapunov's indirect method, and a numerical test where it is inconclusive.

Stability is a property of the unforced system, so inputs are ignored. For an explicit autonomous system the
equilibria are the rest states, and the eigenvalues of the Jacobian of the first-order form decide. In all other cases
(explicit time, several branches, eigenvalues on the imaginary axis, no equilibrium in reach) trajectories from sampled
states must stay bounded. So they must where no equilibrium attracts: then there is a limit cycle, or chaos.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from lgf.equation.system import System
from lgf.expression.tree import ZERO
from lgf.solver.equilibria import equilibria
from lgf.solver.kernels.integrator import BLEW_UP, OK, Options, integrate, make_workspace
from lgf.solver.kernels.machine import LANES, NO_TABLE
from lgf.solver.program import CompiledSkeleton, compile_skeleton
from lgf.solver.solve import STATUSES, solve


class StabilityKind(StrEnum):
    """What becomes of the unforced system."""

    STABLE = "stable"
    BOUNDED = "bounded"  # no equilibrium attracts, but trajectories stay bounded, as on a limit cycle or in chaos
    UNSTABLE = "unstable"
    UNKNOWN = "unknown"

    def contradicts(self, known: bool | None) -> bool:
        """Whether it contradicts the known stability; a limit cycle does not, whatever is known."""
        return (known is True and self is StabilityKind.UNSTABLE) or (known is False and self is StabilityKind.STABLE)


@dataclass(frozen=True)
class Stability:
    """The kind of stability and its reason in one sentence."""

    kind: StabilityKind
    reason: str

    def __bool__(self) -> bool:
        return self.kind is StabilityKind.STABLE


_FOLDS = 20.0  # e-folding times of the slowest instability after which a trajectory that runs away is far
_LONGER = 5  # times as many steps for that
_GROWN = 10.0  # a trajectory that ends beyond this many times its start has grown
_MOST_STEPS = 4000  # of a trajectory


def assess(
    system: System,
    size: ArrayLike = 1.0,
    window: tuple[float, float] = (0.0, 20.0),
    box: ArrayLike | None = None,
) -> Stability:
    """Whether the unforced system is stable; `size` is a typical absolute value, of each variable of the state vector
    or of all, `window` the time of interest, and `box` [n, 2] the range from which trajectories start (if not given, up
    to the size, of both signs).

    >>> assess(System.read("u'' = -u' - 4*u")).kind.value, assess(System.read("u'' - u = 0")).kind.value
    ('stable', 'unstable')
    """
    free = replace(system, formulas=tuple((name, ZERO) for name in system.frame.inputs))
    compiled = compile_skeleton(system.skeleton, free.formulas)
    sizes = np.broadcast_to(np.asarray(size, float), (system.frame.dimension,))
    if not system.skeleton.autonomous:
        return _by_trajectories(free, compiled, sizes, window, box, "time appears in the equation")
    if compiled.flow.degree != 1:
        return _by_trajectories(free, compiled, sizes, window, box, "the equation has several branches")
    rests = equilibria(system, sizes)
    if not rests:
        return _by_trajectories(free, compiled, sizes, window, box, "no equilibrium was found")
    least = min(rests, key=lambda rest: rest.leading)
    if least.leading < -1e-6:
        return Stability(
            StabilityKind.STABLE,
            f"all eigenvalues at the equilibrium {least} have negative real part (largest {least.leading:.3g}).",
        )
    if least.leading > 1e-6:
        why = f"every equilibrium has an eigenvalue with positive real part ({least}: {least.leading:.3g})"
        t = np.linspace(window[0], max(window[1], window[0] + _FOLDS / least.leading), 201)
        grown, _, done = _growth(free, compiled, sizes, t, _LONGER * _MOST_STEPS, box, 1.0)
        if done.all() and not grown.any():
            return Stability(StabilityKind.BOUNDED, f"{why}, but all sampled trajectories stayed bounded.")
        return Stability(StabilityKind.UNSTABLE, f"{why}.")
    return _by_trajectories(free, compiled, sizes, window, box, "eigenvalues lie on the imaginary axis")


def _by_trajectories(
    system: System,
    compiled: CompiledSkeleton,
    sizes: np.ndarray,
    window: tuple[float, float],
    box: ArrayLike | None,
    why: str,
) -> Stability:
    """The kind from eight trajectories of the unforced system that start at sampled states of this size."""
    t = np.linspace(*window, 201)
    # From a small population within the data, growth up to the size of the data is no instability.
    grown, size, done = _growth(system, compiled, sizes, t, _MOST_STEPS, box, 0.0 if box is None else 1.0)
    if grown.any():
        return Stability(StabilityKind.UNSTABLE, f"{why}; {int(grown.sum())} of {LANES} sampled trajectories grew.")
    if done.sum() >= LANES // 2:
        early = size[: len(t) // 4][:, done].max(axis=0)
        late = size[3 * len(t) // 4 :][:, done].max(axis=0)
        word = "decayed" if np.all(late < 0.9 * early) else "stayed bounded"
        return Stability(StabilityKind.STABLE, f"{why}; {int(done.sum())} of {LANES} sampled trajectories {word}.")
    return Stability(StabilityKind.UNKNOWN, f"{why}; most sampled trajectories could not be followed.")


def _growth(
    system: System,
    compiled: CompiledSkeleton,
    sizes: np.ndarray,
    t: np.ndarray,
    max_steps: int,
    box: ArrayLike | None,
    least: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(has grown [lane], size of the largest state [N, lane], was followed [lane]) of trajectories from sampled states.

    A trajectory that ends below `least` times the sizes has not grown.
    """
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (compiled.flow.n, LANES))
    starts = sizes[:, None] * draws
    if box is not None:
        low, high = np.asarray(box, float).T[:, :, None]
        starts = 0.5 * (low + high + (high - low) * draws)
    limit = 1e3 * _GROWN * float(sizes.max())
    if compiled.flow.degree == 1:
        y, status = _lanes(compiled, np.asarray(system.values, float), starts, t, sizes, limit, max_steps)
    else:
        solved = [solve(system, state, t, rtol=1e-5, limit=limit, max_steps=max_steps) for state in starts.T]
        y = np.stack([s.values[:, : compiled.flow.n] for s in solved], axis=2)
        status = np.array([STATUSES.index(s.status) for s in solved])
    first = [i for i, v in enumerate(compiled.frame.variables) if v.derivative == 0]
    size = np.abs(y[:, first] / sizes[first][:, None]).max(axis=1)  # [N, lane], of the largest state
    done = status == OK
    grown = (status == BLEW_UP) | (
        done & (size[-1] > _GROWN * np.maximum(np.abs(starts / sizes[:, None]).max(axis=0), least))
    )
    return grown, size, done


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
