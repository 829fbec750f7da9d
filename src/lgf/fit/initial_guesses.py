"""Initial guesses of the constants inside functions, in ranges that the data can determine."""

import numpy as np

from lgf.expression.tree import Expression, T
from lgf.fit.target import Target
from lgf.solver.constant_roles import Role
from lgf.solver.halton import halton
from lgf.solver.program import CompiledEquation


def starting_points(equation: CompiledEquation, target: Target, n_starts: int) -> np.ndarray:
    """Starts [s, nonlinear] for the nonlinear constants: a grid for one, diagonals and a Halton set for several."""
    lists = [choices(role, target, n_starts) for role in equation.roles]
    if not lists:
        return np.ones((1, 0))
    if len(lists) == 1:
        return lists[0][:, None]
    # Equal roles first share one value: sin(C*t)/cos(C*t) has one frequency more often than two.
    same = [(r.place in ("sin", "cos"), r.cofactor) for r in equation.roles]
    shared = max(n_starts // 2, 8)
    draws = halton(len(lists), n_starts + shared).copy()
    draws[:shared] = draws[:shared, [same.index(key) for key in same]]
    return np.column_stack([c[(x * len(c)).astype(np.int64)] for c, x in zip(lists, draws.T, strict=True)])


def choices(role: Role, target: Target, n_starts: int) -> np.ndarray:
    """Initial guesses for a constant in this role; cached, because a search repeats the same few roles."""
    key = role, n_starts
    if key not in target.cache:
        target.cache[key] = _choices(role, target, n_starts)
    return target.cache[key]


def _choices(role: Role, target: Target, n_starts: int) -> np.ndarray:
    if role.place == "exponent":
        return np.array([0.5, 1.5, 2.5, -1.0, 3.0, 0.25, -0.5, 1.2, 0.8, 2.0, -2.0, 4.0])
    if role.place == "offset":
        return np.linspace(0.0, 2 * np.pi, 9)[:-1]
    size = _size(role.cofactor, target)
    if role.place in ("sin", "cos"):
        if role.cofactor == T:
            return _frequencies(target, n_starts)
        return np.geomspace(0.1, 30.0, 24) / size
    if role.place in ("exp", "tanh"):
        positive = np.geomspace(0.03, 10.0, 12) / size
        return np.concatenate([positive, -positive])
    positive = np.geomspace(1e-3, 1e3, 16) / size
    return np.concatenate([positive, -positive[::2]])


def _size(cofactor: Expression | None, target: Target) -> float:
    """The median absolute value of the cofactor of the constant over the data."""
    if cofactor is None:
        return 1.0
    if any(node.head == "constant" for node in cofactor.nodes()):
        return 1.0
    values = np.abs(target.values(cofactor))
    size = float(np.median(values)) if len(values) else 0.0
    return size if size > 0 else 1.0


def _frequencies(target: Target, n_starts: int) -> np.ndarray:
    """A grid of angular frequencies: steps of pi/2T first, then logarithmic up to a third of Nyquist."""
    first = target.record.first
    window = max(float(target.t[first[e + 1] - 1] - target.t[first[e]]) for e in range(target.n_experiments))
    step = np.pi / (2 * window)
    highest = max(np.pi / target.spacing / 3, 4 * step)
    even = step * np.arange(1, n_starts // 2 + 1)
    even = even[even <= highest]
    if even[-1] < highest:
        even = np.concatenate([even, np.geomspace(even[-1], highest, n_starts - len(even) + 1)[1:]])
    return even
