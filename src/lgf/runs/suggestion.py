"""Suggestion of the next experiment: the one on which the equations that the data cannot tell apart disagree most.

For two equations i and j and a planned record, d is the difference of their predictions and V the covariance of that
difference: the noise, and the uncertainty of the constants of both. The record is expected to change the difference of
their description lengths by D = d' V^-1 d. The sum over pairs of sqrt(w_i w_j) exp(-D / 8), with w the weights of the
equations, bounds the probability of a wrong choice (Bhattacharyya). The plan with the smallest sum is suggested, of
those that decide between the chosen equation and another one if there are any.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, takewhile
from typing import Any

import numpy as np

from lgf.data.problem import MOST_SAMPLES
from lgf.equation.system import System
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Variable
from lgf.expression.print import format_number
from lgf.runs.bands import make_mixture
from lgf.runs.posterior import Posterior, make_posterior
from lgf.runs.request import Run
from lgf.solver.forcing import Forcing
from lgf.solver.halton import halton
from lgf.solver.solve import solve
from lgf.solver.trajectory import Trajectory

DECISIVE = 6.0  # difference of description length that decides between two equations

_N_STARTS = 40  # initial states that are tried, for each duration and input
_N_NEAR = 24  # initial states that are tried near the best
_NEAR = 0.15  # their distance, in parts of the allowed range
_MOST_EQUATIONS = 8
_MOST_SAMPLES = 60  # samples of a plan that are compared; more of them change nothing but the time


@dataclass(frozen=True)
class Allowed:
    """What an experiment may be; None means as in the data.

    starts       (low, high) of the initial value of a variable, by name: {"u": (-1, 2)}; the range of the data
    durations    the lengths that are possible; that of the longest experiment
    samples      number of samples, evenly spaced; that of the longest experiment
    inputs       the inputs to choose from, each by name; those of the experiments
    """

    starts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    durations: tuple[float, ...] | None = None
    samples: int | None = None
    inputs: tuple[Mapping[str, Forcing], ...] | None = None


@dataclass(frozen=True, eq=False)
class Suggestion:
    """An experiment, with what the equations predict for it."""

    start: dict[Variable, float]
    t: np.ndarray
    inputs: dict[str, Forcing]
    equations: tuple[System, ...]  # the chosen one first
    trajectories: tuple[Trajectory, ...]
    noise: dict[Variable, float]
    disagreement: float  # largest difference of two predictions of a measured variable, in units of its noise
    gains: tuple[float, ...]  # expected change of description length between the chosen equation and each other one
    error: float  # bound of the probability of a wrong choice after the experiment

    @property
    def decided(self) -> int:
        """The number of other equations that the experiment is expected to tell from the chosen one."""
        return sum(gain > DECISIVE for gain in self.gains)

    def __str__(self) -> str:
        start = ", ".join(f"{v} = {format_number(value)}" for v, value in self.start.items())
        driven = "".join(f", with {name} = {f.describe()}" for name, f in self.inputs.items())
        length = format_number(float(self.t[-1] - self.t[0]))
        others = "the other equation"
        if len(self.gains) > 1:
            others = f"{self.decided or 'any'} of {len(self.gains)} other equations"
        verb = "is expected" if self.decided else "is not expected"
        return (
            f"Start at {start}{driven}, and take {len(self.t)} samples over {length}. The predictions differ by up to "
            f"{self.disagreement:.1f} times the noise. The record {verb} to tell the chosen equation from {others} (a "
            f"description length that changes by up to {max(self.gains):.0f}; {DECISIVE:.0f} decides)."
        )


def suggest(run: Run, n: int = 1, allowed: Allowed = Allowed()) -> list[Suggestion]:
    """The n experiments that together tell the equations apart best, most useful first; `useful` are those that decide.

    With a single equation in the set, it is compared with the best other one of the Pareto front.
    """
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
        raise LgfError(f"the number of experiments is {quoted(n)}; give a whole number from 1.")
    if run.request.problem.hidden:
        raise LgfError(
            f"equations with a hidden state mean different things by {run.request.problem.hidden[0]}, so no start can "
            f"be suggested for it; measure {run.request.problem.hidden[0]}, if only once."
        )
    rivals, weights = _rivals(run)
    if len(rivals) < 2:
        raise LgfError("there is only one equation to compare; no experiment can tell it from another.")
    variables = min((p.candidate.skeleton.frame for p in rivals), key=lambda f: f.dimension).variables
    box = _box(run, variables, allowed.starts)
    grid = [(times, inputs) for times in _times(run, allowed) for inputs in _inputs(run, allowed)]
    pairs = list(combinations(range(len(rivals)), 2))
    importance = np.array([math.sqrt(weights[i] * weights[j]) for i, j in pairs])
    others = np.array([i == 0 for i, _ in pairs])  # the pairs of the chosen equation and another one
    known = np.zeros(len(pairs))  # what the experiments suggested so far are expected to tell
    found: list[Suggestion] = []
    for number in range(n):
        best: tuple[tuple[bool, float], _Plan, np.ndarray] | None = None
        for round_ in range(2):
            for times, inputs in grid if best is None else [(best[1].t, best[1].inputs)]:
                for start in _starts(box, number, None if round_ == 0 or best is None else best[1].start):
                    plan = _Plan(variables, start, times, inputs)
                    separations = _separations(rivals, pairs, plan)
                    if separations is None:
                        continue
                    decides = bool(np.any((separations > DECISIVE)[others & (known <= DECISIVE)]))
                    rank = not decides, _error(importance, known + separations)
                    if best is None or rank < best[0]:
                        best = rank, plan, separations
        if best is None:
            raise LgfError("no experiment within what is allowed can be solved; allow other starts or durations.")
        (_, error), plan, separations = best
        found.append(_suggestion(run, rivals, plan, pairs, separations, math.exp(error)))
        known = known + separations
    return found


def useful(found: Sequence[Suggestion]) -> list[Suggestion]:
    """The suggestions before the first that is expected to decide nothing; LgfError if that is the first of all."""
    if found[0].decided == 0:
        n, most = len(found[0].gains), max(found[0].gains)
        others = "the other equation" if n == 1 else f"any of {n} other equations"
        raise LgfError(
            f"no experiment that is allowed is expected to tell the chosen equation from {others} (a description "
            f"length that changes by up to {most:.1f}; {DECISIVE:.0f} decides): measure more precisely or another "
            "state, or allow longer records, more samples or other starts."
        )
    return list(takewhile(lambda suggestion: suggestion.decided > 0, found))


@dataclass(frozen=True, eq=False)
class _Plan:
    """A planned experiment: the initial values of some variables, times and inputs."""

    variables: tuple[Variable, ...]
    start: np.ndarray
    t: np.ndarray
    inputs: Mapping[str, Forcing]


def _rivals(run: Run) -> tuple[list[Posterior], np.ndarray]:
    """The equations to tell apart with their weights, the chosen one first."""
    mixture = make_mixture(run)
    posteriors, weights = list(mixture.posteriors), list(mixture.weights)
    if len(posteriors) == 1:
        chosen = run.best.skeleton.structure
        others = sorted((c for c in run.front if c.skeleton.structure != chosen), key=lambda c: c.objective)
        other = next((p for c in others if (p := make_posterior(run, c)) is not None), None)
        return posteriors + ([] if other is None else [other]), np.array([0.5, 0.5])
    order = np.argsort(-np.array(weights), kind="stable")[:_MOST_EQUATIONS]
    return [posteriors[k] for k in order], np.array(weights)[order]


def _box(
    run: Run, variables: Sequence[Variable], allowed: Mapping[str, tuple[float, float]]
) -> list[tuple[float, float]]:
    """(low, high) of each initial value: as allowed, or the range of the solutions over the data."""
    named = {run.frame.variable(str(name)): limits for name, limits in allowed.items()}
    for variable, (low, high) in named.items():
        if variable not in variables:
            raise LgfError(f"{variable} has no initial value; the start is {', '.join(map(str, variables))}.")
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise LgfError(f"the start of {variable} lies between {low:g} and {high:g}; give a low and a high number.")
    solved = [run.trajectory(e) for e in range(len(run.request.problem.observations))]
    box = []
    for variable in variables:
        values = np.concatenate([trajectory[variable] for trajectory in solved])
        box.append(named.get(variable, (float(np.nanmin(values)), float(np.nanmax(values)))))
    return box


def _times(run: Run, allowed: Allowed) -> list[np.ndarray]:
    longest = max(run.request.problem.observations, key=lambda o: o.t[-1] - o.t[0])
    samples = len(longest) if allowed.samples is None else allowed.samples
    durations = (float(longest.t[-1] - longest.t[0]),) if allowed.durations is None else allowed.durations
    if isinstance(samples, str) or not hasattr(samples, "__index__") or not 2 <= samples <= MOST_SAMPLES:
        raise LgfError(f"an experiment of {quoted(samples)} samples is allowed; give from 2 to {MOST_SAMPLES}.")
    if not durations or not all(math.isfinite(d) and d > 0 for d in durations):
        raise LgfError(f"the durations are {', '.join(f'{d:g}' for d in durations) or 'none'}; give positive numbers.")
    begin = float(run.request.problem.observations[0].t[0])
    return [begin + np.linspace(0.0, duration, samples) for duration in durations]


def _inputs(run: Run, allowed: Allowed) -> list[Mapping[str, Forcing]]:
    if allowed.inputs is not None:
        return list(allowed.inputs)
    problem = run.request.problem
    if problem.formulas and len(problem.formulas) == len(problem.inputs):
        return [problem.signals(0)]
    return [problem.signals(e) for e in range(len(problem.observations))]


def allowed_starts(starts: Any) -> dict[str, tuple[float, float]]:
    """The ranges (low, high) by variable; LgfError if they cannot be read."""
    if not isinstance(starts, Mapping):
        raise LgfError(f'the starts are {quoted(starts)}; give ranges by variable, such as {{"u": (-1, 2)}}.')
    ranges = {}
    for name, limits in starts.items():
        try:
            low, high = (float(x) for x in limits)
        except (TypeError, ValueError) as error:
            raise LgfError(f"the start of {name} is {quoted(limits)}; give a low and a high number.") from error
        ranges[str(name)] = (low, high)
    return ranges


def _starts(box: Sequence[tuple[float, float]], number: int, near: np.ndarray | None) -> np.ndarray:
    """Initial states spread over the box, its corners' neighbourhood included; or near the given one."""
    low, high = np.array(box).T
    if near is None:
        points = halton(len(box), _N_STARTS + number)[number:]
        edges = np.array([np.zeros(len(box)), np.ones(len(box))])
        return low + np.vstack([edges, points]) * (high - low)
    moved = near + _NEAR * (2 * halton(len(box), _N_NEAR) - 1) * (high - low)
    return np.clip(moved, low, high)


def _thinned(t: np.ndarray) -> np.ndarray:
    return t[:: -(-len(t) // _MOST_SAMPLES)]


def _separations(rivals: Sequence[Posterior], pairs: Sequence[tuple[int, int]], plan: _Plan) -> np.ndarray | None:
    """The expected change of description length of each pair; None if the chosen equation cannot be solved."""
    start = dict(zip(plan.variables, plan.start.tolist(), strict=True))
    made = [posterior.of_plan(start, _thinned(plan.t), plan.inputs, rivals[0].noise) for posterior in rivals]
    if np.isnan(made[0][0]).any():
        return None
    repeated = len(plan.t) / len(_thinned(plan.t))
    found = np.zeros(len(pairs))
    for k, (i, j) in enumerate(pairs):
        both = np.isfinite(made[i][0]) & np.isfinite(made[j][0])  # one may blow up on the way
        covariance = (made[i][1] + made[j][1])[np.ix_(both, both)]
        covariance[np.diag_indices(len(covariance))] += 1.0 / repeated
        difference = (made[i][0] - made[j][0])[both]
        found[k] = float(difference @ np.linalg.solve(covariance, difference))
    return found


def _error(importance: np.ndarray, separations: np.ndarray) -> float:
    """The logarithm of the bound of the probability of a wrong choice."""
    exponents = np.log(np.maximum(importance, 1e-300)) - separations / 8
    largest = float(exponents.max())
    return largest + math.log(float(np.sum(np.exp(exponents - largest))))


def _suggestion(
    run: Run, rivals: Sequence[Posterior], plan: _Plan, pairs: Sequence[tuple[int, int]], separations: np.ndarray,
    error: float,
) -> Suggestion:  # fmt: skip
    start, noise = dict(zip(plan.variables, plan.start.tolist(), strict=True)), dict(rivals[0].noise)
    solved = [
        solve(System(p.candidate.skeleton, p.candidate.fit.values), tuple(p.start_of(start)), plan.t, plan.inputs)
        for p in rivals
    ]
    shown = [np.column_stack([trajectory[v] / s for v, s in noise.items()]) for trajectory in solved]
    differences = [np.abs(a - b) for a, b in combinations(shown, 2)]
    return Suggestion(
        start=start,
        t=plan.t,
        inputs=dict(plan.inputs),
        equations=tuple(run.display_system(p.candidate) for p in rivals),
        trajectories=tuple(solved),
        noise=noise,
        disagreement=float(np.nanmax(differences)),
        gains=tuple(float(s) for s, (i, _) in zip(separations, pairs, strict=True) if i == 0),
        error=min(error, 1.0),
    )
