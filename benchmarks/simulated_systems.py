"""Simulated systems of several states, on which is learned how a search for systems ranks its right-hand sides.

The right-hand side of each row is drawn from the grammar for systems. Constants are drawn against a rough picture of
the solution, as for one state (`lgf.training.simulation`): every state oscillates about some level, and a coefficient
is drawn by the share that its term has of the slope of its row. A system is returned only if its solution stays finite,
every state moves, and each term contributes to it what the others of its row cannot say.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.system import System
from lgf.expression.frame import Frame, Variable
from lgf.expression.monomials import n_constants
from lgf.expression.numeric import evaluate
from lgf.expression.tree import Expression, T
from lgf.grammar import Grammar
from lgf.language.row_structure import RowStructure
from lgf.language.system_language import SystemLanguage, unrestricted
from lgf.solver.constant_roles import Role, role_of
from lgf.solver.solve import solve
from lgf.solver.trajectory import SolveStatus

WINDOW = 10.0
_EXPONENTS = (0.5, 1.5, 2.0, 2.5, 3.0, -0.5, -1.0)
_TRIES = 12  # constants and starts of one drawn structure
_PICTURE = 60
_STATES = {2: 0.65, 3: 0.25, 4: 0.1}  # how often systems of so many states are drawn
_CYCLES = 0.15, 6.0  # fewest and most in a record
_SAMPLES = 60, 250
_NOISE = 0.1  # the largest standard deviation, relative to that of the state
_POSITIVE = 0.5  # share of the systems in which all states are positive
_LEAST_SHARE, _LARGEST_SHARE = 0.03, 10.0  # of a term's root mean square, relative to the slope of its row
_LEAST_OWN_SHARE = 0.02  # of the part of it that the other terms of the row cannot express


@dataclass(frozen=True, eq=False)
class SimulatedSystem:
    """A record, and the structure of each row of the system that made it."""

    problem: Problem
    rows: tuple[RowStructure, ...]
    system: System


def simulate_system(grammar: Grammar, rng: np.random.Generator) -> SimulatedSystem:
    """A system drawn by `rng`, measured with noise."""
    counts, chances = list(_STATES), list(_STATES.values())
    language = _language(grammar, int(rng.choice(counts, p=chances)))
    while True:
        rows = _draw_rows(language, rng)
        for _ in range(_TRIES):
            system, starts = _with_constants(language, rows, rng)
            states = _solution(system, starts, rng)
            if states is not None:
                return SimulatedSystem(_measured(language.frame, *states, rng), rows, system)


@lru_cache(maxsize=8)
def _language(grammar: Grammar, n: int) -> SystemLanguage:
    return unrestricted(grammar, Frame(tuple((f"x{i}", 1) for i in range(n))))


def _draw_rows(language: SystemLanguage, rng: np.random.Generator) -> tuple[RowStructure, ...]:
    rows = []
    for row in language.rows:
        headers = [h for group in row.headers.values() for h in group]
        chances = np.array([h.probability for h in headers])
        header = headers[rng.choice(len(headers), p=chances / chances.sum())]
        weights = 2.0 ** -np.array([term.bits for term in row.terms])
        chosen = rng.choice(len(weights), header.count, replace=False, p=weights / weights.sum())
        terms = row.ordered({*header.own, *(row.terms[i].expression for i in chosen)})
        rows.append(RowStructure(terms, header.divisor))
    return tuple(rows)


def _with_constants(
    language: SystemLanguage, rows: tuple[RowStructure, ...], rng: np.random.Generator
) -> tuple[System, np.ndarray]:
    """(the system with constants, an initial state)."""
    n = len(rows)
    rate = 2 * np.pi * np.exp(rng.uniform(*np.log(_CYCLES))) / WINDOW
    sizes = np.exp(rng.normal(0.0, 1.0) + rng.normal(0.0, 0.5, n))
    positive = rng.random() < _POSITIVE
    level, amplitude = (1.0, 0.7) if positive else (rng.normal(0.0, 0.3), 1.0)
    t = np.linspace(0.0, WINDOW, _PICTURE)
    angles = rate * t + rng.uniform(0, 2 * np.pi, (n, 1))
    states = sizes[:, None] * (level + amplitude * np.sin(angles))
    environment: dict = {"t": t} | {f"x{i}": states[i] for i in range(n)}
    values: list[float] = []
    for i, row in enumerate(rows):
        inner = [_draw_inside(term, environment, rate, rng) for term in row.terms]
        others = _draw_inside(row.divisor, environment, rate, rng)
        with np.errstate(all="ignore"):
            below = np.broadcast_to(evaluate(row.divisor, environment, others), t.shape)
            columns = [
                np.broadcast_to(evaluate(e, environment, v), t.shape) / below
                for e, v in zip(row.terms, inner, strict=True)
            ]
        own = states[i] - states[i].mean()
        for column, inside in zip(columns, inner, strict=True):
            finite = column[np.isfinite(column)]
            with np.errstate(all="ignore"):
                size = max(float(np.sqrt(np.mean(finite**2))) if len(finite) else 1.0, 1e-12)
                along = float(np.nan_to_num(column) @ own) / (size * np.sqrt(_PICTURE) * np.linalg.norm(own))
            sign = rng.choice([-1.0, 1.0])
            if abs(along) > 0.4:  # mostly restoring
                sign = np.sign(along) * (-1.0 if rng.random() < 0.65 else 1.0)
            share = np.exp(rng.uniform(np.log(0.1), np.log(1.5)))
            values += [float(sign * share * sizes[i] * rate / size), *inside]
        values += others
    starts = sizes * np.exp(rng.normal(0.0, 0.5, n)) * (1.0 if positive else rng.choice([-1.0, 1.0], n))
    return System(language.skeleton(rows), tuple(values)), starts


def _draw_inside(expression: Expression, environment: dict, rate: float, rng: np.random.Generator) -> tuple[float, ...]:
    """The constants inside an expression."""
    return tuple(
        _draw_inner(role_of(expression, i), environment, rate, rng) for i in range(n_constants(expression))
    )  # fmt: skip


def _draw_inner(role: Role, environment: dict, rate: float, rng: np.random.Generator) -> float:
    if role.place == "exponent":
        return float(rng.choice(_EXPONENTS))
    if role.place == "offset":
        return float(rng.uniform(0, 2 * np.pi))
    if role.cofactor == T:
        return rate * float(np.exp(rng.uniform(np.log(0.3), np.log(2.0))))
    size = 1.0
    if role.cofactor is not None and not n_constants(role.cofactor):
        with np.errstate(all="ignore"):
            seen = np.abs(evaluate(role.cofactor, environment))
        seen = seen[np.isfinite(seen)] if np.ndim(seen) else np.array([float(seen)])
        size = (float(np.median(seen)) if len(seen) else 1.0) or 1.0
    if role.place in ("sin", "cos"):
        return float(np.exp(rng.uniform(np.log(0.7), np.log(4.0)))) / size
    if role.place in ("exp", "tanh"):
        return float(rng.choice([-1.0, 1.0]) * np.exp(rng.uniform(np.log(0.4), np.log(3.0)))) / size
    return float(np.exp(rng.uniform(np.log(0.2), np.log(8.0)))) / size


def _solution(system: System, starts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray] | None:
    """(times, states [N, n]) of a solution that can be used; None if it cannot."""
    low, high = _SAMPLES
    t = np.linspace(0.0, WINDOW, int(np.exp(rng.uniform(np.log(low), np.log(high)))))
    limit = 40.0 * np.abs(starts).max()
    solved = solve(system, starts.tolist(), t, rtol=1e-6, limit=limit, max_steps=4000)
    n = len(starts)
    if solved.status is not SolveStatus.OK:
        return None
    states, slopes = solved.values[:, :n], solved.values[:, n:]
    spread, size = states.std(0), np.sqrt((states**2).mean(0))
    rate = np.sqrt((slopes**2).mean(0))
    late = states[len(t) // 4 :].std(0)
    moves = (spread > 0.04 * size) & (spread > 1e-6) & (late > 0.02 * spread) & (np.abs(slopes).max(0) < 12.5 * rate)
    if not moves.all() or not _every_term_matters(system, t, states, slopes):
        return None
    return t, states


def _every_term_matters(system: System, t: np.ndarray, states: np.ndarray, slopes: np.ndarray) -> bool:
    environment: dict = {"t": t} | {f"x{i}": states[:, i] for i in range(states.shape[1])}
    for i, (_, right) in enumerate(system.skeleton.sides):
        summands = right.args if right.head == "+" else (right,)
        columns = np.array([np.broadcast_to(evaluate(s, environment, system.values), t.shape) for s in summands])
        if not np.all(np.isfinite(columns)):
            return False
        sizes = np.sqrt((columns**2).mean(1))
        shares = sizes / np.sqrt((slopes[:, i] ** 2).mean())
        if not (shares.min() >= _LEAST_SHARE and shares.max() <= _LARGEST_SHARE):
            return False
        unit = columns / sizes[:, None]
        gram = unit @ unit.T / len(t) + 1e-10 * np.eye(len(unit))
        own = 1.0 / np.sqrt(np.diag(np.linalg.inv(gram)))
        if (own * shares).min() < _LEAST_OWN_SHARE:
            return False
    return True


def _measured(frame: Frame, t: np.ndarray, states: np.ndarray, rng: np.random.Generator) -> Problem:
    level = rng.uniform(0.0, _NOISE) if rng.random() < 0.7 else _NOISE * 10 ** rng.uniform(-2.0, 0.0)
    values = states + level * states.std(0) * rng.standard_normal(states.shape)
    return Problem((Observation(t, values, tuple(Variable(name) for name in frame.names)),))
