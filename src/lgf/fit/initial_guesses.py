"""Initial guesses of the constants inside functions, in ranges that the data can determine."""

from functools import lru_cache

import numpy as np

from lgf.expression.tree import Expression, T
from lgf.fit.target import Target
from lgf.solver.constant_roles import Role
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


@lru_cache(maxsize=128)
def halton(dimensions: int, n: int) -> np.ndarray:
    """Points of the Halton set in the unit cube, without the first (all zeros)."""
    return np.column_stack([_van_der_corput(base, n) for base in _primes(dimensions)])


def _van_der_corput(base: int, n: int) -> np.ndarray:
    """The numbers 1 to n, their digits mirrored at the point. SciPy has it, in a module that takes long to import."""
    left, total, weight = np.arange(1, n + 1), np.zeros(n), 1 / base
    while left.any():
        left, digit = np.divmod(left, base)
        total += digit * weight
        weight /= base
    return total


def _primes(n: int) -> list[int]:
    """The first n primes."""
    primes: list[int] = []
    number = 2
    while len(primes) < n:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return primes


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
