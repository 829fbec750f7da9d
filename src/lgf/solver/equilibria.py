"""Equilibria of an autonomous system: rest states, the eigenvalues of the Jacobian there, and their kind."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from lgf.equation.system import System
from lgf.expression.frame import Variable
from lgf.expression.tree import ZERO
from lgf.solver.kernels.machine import WIDE, evaluate_wide
from lgf.solver.program import CompiledSkeleton, compile_skeleton

_ON_AXIS = 1e-5  # real part in units of the largest eigenvalue: below it Lyapunov's indirect method is inconclusive
_REACH = 10.0  # in units of the size of the states, in which equilibria are looked for
_POINTS = 2001  # of the grid for those of one state; odd, so that zero, the most common one, is on it
_STARTS = 200  # of Newton's method, for those of several states
_MOST = 40  # equilibria examined, nearest to zero


@dataclass(frozen=True)
class Equilibrium:
    """A rest state, as values of the state vector, with the eigenvalues of the Jacobian there, largest real part first.

    >>> [str(e) + ": " + e.kind for e in equilibria(System.read("u' = u - u^2"))]
    ['u = 0: unstable node', 'u = 1: stable node']
    """

    variables: tuple[Variable, ...]
    state: tuple[float, ...]
    eigenvalues: tuple[complex, ...]

    def __str__(self) -> str:
        pairs = zip(self.variables, self.state, strict=True)
        return ", ".join(f"{v} = {value:.4g}" for v, value in pairs if v.derivative == 0)

    @property
    def leading(self) -> float:
        """The largest real part of an eigenvalue."""
        return self.eigenvalues[0].real

    @property
    def kind(self) -> str:
        """The kind of the linearised system: stable node, unstable focus, saddle, centre, degenerate."""
        real, imaginary = np.real(self.eigenvalues), np.imag(self.eigenvalues)
        limit = _ON_AXIS * float(np.abs(self.eigenvalues).max())
        turns, on_axis = np.abs(imaginary) > limit, np.abs(real) <= limit
        if np.any(on_axis & ~turns) or (on_axis.any() and not on_axis.all()):
            return "degenerate"
        if on_axis.all():
            return "centre"
        if real[0] > 0 > real[-1]:
            return "saddle focus" if turns.any() else "saddle"
        return f"{'stable' if real[0] < 0 else 'unstable'} {'focus' if turns.any() else 'node'}"

    @property
    def stable(self) -> bool | None:
        """Whether small deviations decay; None where the linearised system does not decide."""
        kind = self.kind
        return None if kind in ("centre", "degenerate") else kind.startswith("stable")


def equilibria(system: System, size: ArrayLike = 1.0) -> tuple[Equilibrium, ...]:
    """The equilibria of the system without its inputs, those nearest to zero first; empty if time occurs in it.

    `size` is a typical absolute value of each variable of the state vector, or of all.
    """
    free = tuple((name, ZERO) for name in system.frame.inputs)
    compiled = compile_skeleton(system.skeleton, free)
    if not system.skeleton.autonomous or compiled.flow.degree != 1:
        return ()
    constants = np.asarray(system.values, float)
    sizes = np.array(np.broadcast_to(np.asarray(size, float), (system.frame.dimension,)))
    find = _equilibria_of_one_state if len(system.frame.states) == 1 else _equilibria_of_several_states
    found = []
    for rest in find(compiled, constants, sizes):
        (jacobian,) = _jacobians(compiled, constants, rest[None], np.maximum(sizes, np.abs(rest).max()))
        if np.all(np.isfinite(jacobian)):
            values = sorted(np.linalg.eigvals(jacobian).tolist(), key=lambda z: (-z.real, -z.imag))
            state = tuple(np.where(np.abs(rest) < 1e-9 * sizes, 0.0, rest).tolist())
            found.append(Equilibrium(system.frame.variables, state, tuple(complex(z) for z in values)))
    return tuple(found)


def rates_at(system: System, states: np.ndarray) -> np.ndarray:
    """The rates of change [n, N] of the system without its inputs at these state vectors [n, N], at time 0."""
    free = replace(system, formulas=tuple((name, ZERO) for name in system.frame.inputs))
    compiled = compile_skeleton(system.skeleton, free.formulas)
    return _rates(compiled, np.asarray(system.values, float), states)


def _rates(compiled: CompiledSkeleton, constants: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The rates of change [n, N] at these state vectors [n, N]."""
    program, frame = compiled.flow.program, compiled.frame
    N = states.shape[1]
    values = np.empty((len(program.outputs), N))
    columns = np.ascontiguousarray(np.vstack([states, np.zeros((len(frame.states), N))]))
    evaluate_wide(
        program, constants, np.zeros(N), columns, np.zeros((len(frame.inputs), N)),
        np.zeros((program.n_registers, WIDE)), values,
    )  # fmt: skip
    return values


def _equilibria_of_one_state(compiled: CompiledSkeleton, constants: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Rest states [rest, n] within reach, those nearest to zero first, by sign changes on a grid."""

    def at_rest(u: np.ndarray) -> np.ndarray:
        states = np.zeros((compiled.flow.n, len(u)))
        states[0] = u
        return _rates(compiled, constants, states)[-1]

    grid = _REACH * sizes[0] * np.linspace(-1.0, 1.0, _POINTS)
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
    return rests[np.argsort(np.abs(u), kind="stable")][:_MOST]


def _equilibria_of_several_states(compiled: CompiledSkeleton, constants: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Rest states [rest, n] within reach, those nearest to zero first, by Newton's method from sampled states."""
    n = compiled.flow.n
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (n, _STARTS - 1))
    y = np.hstack([np.zeros((n, 1)), draws * sizes[:, None] * np.geomspace(0.1, _REACH, draws.shape[1])])
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
        np.abs(y) <= 2 * _REACH * sizes[:, None], axis=0
    )
    rests: list[np.ndarray] = []
    for rest in sorted(y[:, still].T, key=lambda r: float(np.sum((r / sizes) ** 2))):
        if all(np.max(np.abs(rest - other) / sizes) > 1e-6 for other in rests):
            rests.append(rest)
    return np.array(rests[:_MOST]).reshape(-1, n)


def _jacobians(compiled: CompiledSkeleton, constants: np.ndarray, rests: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The derivative [rest, n, n] of the rates by the state vector at each of the states [rest, n]."""
    n = rests.shape[1]
    steps = 1e-6 * np.maximum(sizes, np.abs(rests))
    moves = steps[:, :, None] * np.eye(n)
    states = np.stack([rests[:, None] + moves, rests[:, None] - moves]).reshape(-1, n)
    above, below = _rates(compiled, constants, states.T).reshape(n, 2, *steps.shape).swapaxes(0, 1)
    return ((above - below) / (2 * steps)).swapaxes(0, 1)
