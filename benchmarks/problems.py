"""The named problems of the benchmarks: their true trajectories, their noisy data, and how an equation is scored."""

import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from benchmarks.from_sympy import from_sympy
from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.equation.system import System
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame, Variable
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression
from lgf.expression.sympy_conversion import to_sympy
from lgf.expression.tree import Expression
from lgf.solver.forcing import Forcing
from lgf.solver.reference import solve_by_reference
from lgf.solver.trajectory import SolveStatus, Trajectory, relative_l2

CAP = 1.0


@dataclass(frozen=True)
class Score:
    """Relative L2 errors against the clean truth, each at most 1; `d2u` is None for first-order problems.

    An equation that cannot be solved over the whole window scores 1 throughout and is not `complete`.
    """

    u: float
    du: float
    d2u: float | None
    complete: bool


@dataclass(frozen=True)
class NamedProblem:
    """One problem of a benchmark, as `problems.toml` states it."""

    id: str
    index: int
    equation: str
    order: int
    window: tuple[float, float]
    samples: int
    initial: tuple[float, ...]
    observed: int
    known: tuple[str, ...]
    floor: tuple[float, ...]
    title: str = ""
    solution: str | None = None
    forcing: str | None = None
    published_initial: tuple[float, ...] | None = None
    other_initial: tuple[float, ...] | None = None
    own_other_initial: tuple[float, ...] | None = None
    stable: bool | None = None
    solve_from: int = 0

    @property
    def t(self) -> np.ndarray:
        """The grid of truth, data and prediction."""
        return np.linspace(*self.window, self.samples)

    @property
    def given_forcing(self) -> Forcing | None:
        """The input that drives the system, if one does."""
        return None if self.forcing is None else Forcing.from_formula(self.forcing)

    @property
    def inputs(self) -> dict[str, Forcing]:
        """The known inputs by name."""
        return {} if self.given_forcing is None else {"F": self.given_forcing}

    @property
    def formulas(self) -> dict[str, str]:
        """The formulas of the known inputs by name, as `System.read` takes them."""
        return {} if self.forcing is None else {"F": self.forcing}

    @property
    def columns(self) -> tuple[Variable, ...]:
        """The variables u, u', ... up to the order."""
        return Frame((("u", self.order),)).columns

    def true_equation(self) -> System:
        """The equation that generated the data; F is the forcing."""
        return System.read(self.equation, self.formulas)

    def truth(self) -> Trajectory:
        """The clean trajectory, u .. u^(order): analytic where a solution is known, else a tight SciPy solve."""
        return self._truth

    @cached_property
    def _truth(self) -> Trajectory:
        t = self.t
        if self.solution is None:
            solved = solve_by_reference(self.true_equation(), self.initial, t, self.inputs)
            assert solved.status is SolveStatus.OK, f"{self.id} does not solve: {solved.status}"
            states = solved.values
        else:
            states = np.column_stack([evaluate(e, {"t": t}) + 0.0 * t for e in _derivatives(self.solution, self.order)])
        return Trajectory(t, states, self.columns, {name: s.values(t) for name, s in self.inputs.items()})

    def observe(self, noise: float = 0.05, seed: int = 0) -> Problem:
        """The data of a method: the observed derivative with white noise of `noise` standard deviations, and the
        knowledge."""
        clean = self.truth().values[:, self.observed]
        rng = np.random.default_rng([self.index, seed])
        values = clean + noise * np.std(clean) * rng.standard_normal(len(clean))
        initial = self.initial if "initial" in self.known else {}
        observation = Observation(self.t, values, self.columns[self.observed], initial=initial, name=self.id)
        knowledge = Knowledge(
            order=self.order if "order" in self.known else None,
            stable=self.stable if "stability" in self.known else None,
            inputs=self.inputs if "forcing" in self.known else {},
        )
        return Problem((observation,), knowledge)

    def score(self, equation: System, initial: tuple[float, ...] | None = None) -> Score:
        """The errors of the equation's trajectory, solved from the initial state, against the truth."""
        truth = self.truth()
        solved = self._solve(equation, self.initial if initial is None else initial)
        if solved is None:
            return Score(CAP, CAP, CAP if self.order > 1 else None, False)
        errors = [min(CAP, relative_l2(truth.values[:, k], solved[:, k])) for k in range(self.order + 1)]
        return Score(errors[0], errors[1], errors[2] if self.order > 1 else None, True)

    def _solve(self, equation: System, initial: tuple[float, ...]) -> np.ndarray | None:
        """The states up to this problem's order, or None if the solve does not reach the end."""
        truth, first = self.truth(), self.solve_from
        order = equation.frame.orders[0]
        start = tuple(truth.values[first]) if first > 0 else (*initial, *truth.values[0, len(initial) :])
        if len(start) < order:
            return None
        highest = truth.values[first:, min(order, self.order)]
        t = truth.t[first:]
        branch = (float(highest[0]), float(np.gradient(highest[:3], t[:3])[0]))
        solved = solve_by_reference(equation, start[:order], t, self.inputs, branch)
        if solved.status is not SolveStatus.OK:
            return None
        states = solved.values
        for _ in range(self.order - order):
            states = np.column_stack([states, CubicSpline(t, states[:, -1])(t, 1)])
        return np.vstack([truth.values[:first], states[:, : self.order + 1]])


@cache
def problems() -> dict[str, NamedProblem]:
    """Every named problem by its id, in the order of the file."""
    with files("benchmarks").joinpath("problems.toml").open("rb") as file:
        entries = tomllib.load(file)["problem"]
    found = {}
    for index, entry in enumerate(entries):
        facts: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        found[entry["id"]] = NamedProblem(index=index, **facts)
    return found


def problem_named(name: str) -> NamedProblem:
    """The problem with this id, such as "b3/duffing"."""
    found = problems().get(name)
    if found is None:
        near = [known for known in problems() if name.lower() in known] or list(problems())[:3]
        raise LgfError(f"there is no problem named {quoted(name)}; did you mean {', '.join(near[:5])}?")
    return found


def frame_of(problem: Problem, order: int) -> Frame:
    """The frame of the problem's one state at this order, under its inputs."""
    (name,) = problem.states
    return Frame(((name, order),), problem.inputs)


def _derivatives(solution: str, order: int) -> list[Expression]:
    import sympy

    t = sympy.Symbol("t")
    formula = to_sympy(read_expression(solution))
    return [from_sympy(formula.diff(t, k)) for k in range(order + 1)]
