"""The record of a problem with a hidden state: its column in the completions, and the smooth curves between samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from lgf.data.problem import Problem
from lgf.expression.frame import Frame, Variable
from lgf.fit.segments import segmented
from lgf.fit.target import Target
from lgf.search.candidate import Candidate
from lgf.search.sensitivity import solved_columns
from lgf.smoothing.complete import Completion
from lgf.solver.trajectory import Trajectory

_WIDE = 50.0  # a hidden state may exceed its guessed size by this factor before a solution counts as blown up


def with_guessed_path(problem: Problem, frame: Frame, completions: Sequence[Completion]) -> tuple[Completion, ...]:
    """The completions with the hidden state at rest, at a typical size."""
    size = _typical_size(completions, frame, given_starts(problem))
    return with_paths(
        completions, frame, problem.hidden[0], [np.full((1, len(c.trajectory.t)), size) for c in completions]
    )


def given_starts(problem: Problem) -> list[float]:
    """The initial values of the hidden state that are known."""
    return [value for o in problem.observations for v, value in o.initial.items() if v.name in problem.hidden]


def with_path_of(
    candidate: Candidate, frame: Frame, completions: Sequence[Completion], targets: Mapping[Frame, Target], hidden: str
) -> tuple[Completion, ...]:
    """The completions with the hidden path of this candidate; unchanged if it cannot be solved."""
    target = targets[frame]
    columns = solved_columns(candidate, segmented(target, candidate.fit.segments))
    if columns is None:
        return tuple(completions)
    own = [i for i, v in enumerate(frame.columns) if v.name == hidden]
    parts = [columns[own, begin:end] for begin, end in pairwise(target.record.first)]
    return with_paths(completions, frame, hidden, parts)


def with_paths(
    completions: Sequence[Completion], frame: Frame, hidden: str, paths: Sequence[np.ndarray]
) -> tuple[Completion, ...]:
    """The completions with the columns of the hidden state in each experiment, [1, N] at rest or with derivatives."""
    own = [i for i, v in enumerate(frame.columns) if v.name == hidden]
    filled = []
    for completion, path in zip(completions, paths, strict=True):
        trajectory = completion.trajectory
        values = trajectory.values.copy()
        values[:, own] = 0.0
        values[:, own[: len(path)]] = path.T
        filled.append(
            replace(completion, trajectory=Trajectory(trajectory.t, values, trajectory.variables, trajectory.inputs))
        )
    return tuple(filled)


def widened(target: Target, hidden: str) -> Target:
    """The target in which the hidden state may become much larger than guessed."""
    own = np.array([v.name == hidden for v in target.frame.variables])
    limit = np.where(own, _WIDE * target.record.limit, target.record.limit)
    return replace(target, record=target.record._replace(limit=limit), cache={})


def _typical_size(completions: Sequence[Completion], frame: Frame, given: Sequence[float]) -> float:
    """A typical size of the hidden state: that of its given initial values, or of the measured states."""
    sizes = [abs(value) for value in given if value != 0.0]
    if sizes:
        return float(np.median(sizes))
    values = np.concatenate([c.trajectory.values for c in completions])
    states = [i for i, v in enumerate(frame.columns) if v.derivative == 0 and np.isfinite(values[:, i]).all()]
    size = float(np.sqrt(np.mean(values[:, states] ** 2))) if states else 0.0
    return size if size > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class Curves:
    """The smooth curves of the measured states at the samples and between them."""

    t: np.ndarray  # [N]
    columns: dict[Variable, np.ndarray]  # measured states and their derivatives
    inputs: dict[tuple[str, int], np.ndarray]
    first: np.ndarray  # [E + 1]
    weight: dict[int, np.ndarray]  # by row: 1 in experiments that measured the state

    @cached_property
    def environment(self) -> dict:
        """The curves by symbol."""
        return {"t": self.t, **self.columns, **self.inputs}

    def integral(self, values: np.ndarray) -> np.ndarray:
        """The integrals of values [..., N] from the start of each experiment."""
        steps = np.zeros(len(self.t))
        steps[1:] = np.diff(self.t)
        steps[self.first[:-1]] = 0.0
        middle = np.zeros(np.shape(values))
        middle[..., 1:] = 0.5 * (values[..., 1:] + values[..., :-1]) * steps[1:]
        total = np.cumsum(middle, axis=-1)
        owner = np.repeat(self.first[:-1], np.diff(self.first))
        return total - total[..., owner]

    def centred(self, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Values [..., N] less their weighted mean [..., N] in each experiment."""
        out = np.array(values, float)
        for begin, end in pairwise(self.first):
            w = weight[..., begin:end]
            total = np.maximum(w.sum(axis=-1, keepdims=True), 1e-300)
            out[..., begin:end] -= (out[..., begin:end] * w).sum(axis=-1, keepdims=True) / total
        return out


def curves_of(target: Target, hidden: str, least: int) -> Curves:
    """The curves of the target's measured states, with at least so many points in each experiment."""
    from scipy.interpolate import CubicHermiteSpline, CubicSpline  # imported late: a search starts sooner

    frame, record = target.frame, target.record
    variables = [v for v in frame.columns if v.name != hidden]
    times, values, inputs, weights = [], [], [], []
    firsts = [0]
    for begin, end in pairwise(record.first):
        t = target.t[begin:end]
        parts = max(-(-least // len(t)), 1)
        fine = np.append((t[:-1, None] + np.diff(t)[:, None] * np.arange(parts) / parts).ravel(), t[-1])
        rows = []
        for v in variables:
            y = target.columns[frame.positions[v], begin:end]
            rate = Variable(v.name, v.derivative + 1)
            slope = target.columns[frame.positions[rate], begin:end] if rate in frame.positions else None
            curve = CubicSpline(t, y) if slope is None else CubicHermiteSpline(t, y, slope)
            rows.append(curve(fine))
        values.append(np.array(rows))
        inputs.append(np.array([np.interp(fine, t, u[begin:end]) for u in target.inputs]).reshape(-1, len(fine)))
        present = [
            any(record.weight[begin:end, frame.positions[v]].any() for v in frame.columns if v.name == name)
            for name in frame.names
        ]
        weights.append(np.tile(np.array(present, float)[:, None], len(fine)))
        times.append(fine)
        firsts.append(firsts[-1] + len(fine))
    columns, signals, weight = (np.concatenate(part, axis=1) for part in (values, inputs, weights))
    return Curves(
        np.concatenate(times),
        dict(zip(variables, columns, strict=True)),
        {(name, -1): row for name, row in zip(frame.inputs, signals, strict=True)},
        np.array(firsts),
        dict(enumerate(weight)),
    )
