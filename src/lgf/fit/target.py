"""What the constants of a candidate are fitted to: a problem, for one order, as arrays for the kernels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lgf.data.observation import Observation, Problem
from lgf.expression.numeric import evaluate
from lgf.expression.tree import Expression
from lgf.smoothing.complete import Completion
from lgf.solver.kernels.trajectory_fit import Record
from lgf.solver.solve import NO_TABLE
from lgf.solver.trajectory import Forcing

_LARGEST_ERROR = 100.0  # squared, in units of the mean square of the signal: what a sample counts at most


@dataclass(frozen=True, eq=False)
class Target:
    """A measured and completed record in arrays.

    loss = sum of weight * error^2 is relative: 1 is the loss of the answer 0. chi^2 = loss * power.
    """

    order: int
    record: Record
    t: np.ndarray  # [N] all experiments, one after the other
    states: np.ndarray  # [order + 1, N] completed u .. u^(order)
    forcing: np.ndarray  # [N]
    formula: Expression | None  # the forcing, where it is one formula for all experiments
    measured: tuple[int, ...]
    power: float
    n_samples: int
    n_unknown: int  # initial values that must be fitted
    noise: np.ndarray = field(repr=False)  # [order + 1] estimated standard deviation, NaN where not measured
    kept: dict = field(default_factory=dict, repr=False)  # a cache: values, starts, windows

    @property
    def n_experiments(self) -> int:
        """How many experiments there are."""
        return len(self.record.first) - 1

    @property
    def with_top(self) -> bool:
        """Whether the highest derivative is among what was measured."""
        return self.order in self.measured

    @property
    def noise_loss(self) -> float:
        """The loss to be expected of the true equation, by the estimate of the noise."""
        return self.n_samples / self.power

    @cached_property
    def spacing(self) -> float:
        """The usual time between two samples."""
        return float(np.median(np.diff(self.t[: self.record.first[1]])))

    @cached_property
    def scales(self) -> np.ndarray:
        """Root mean square of each completed derivative, never zero."""
        rms = np.sqrt(np.mean(self.states**2, axis=1))
        return np.where(rms > 0, rms, 1.0)

    @cached_property
    def initial_length(self) -> float:
        """Units of description length for the initial values that are fitted, each told by its own experiment."""
        samples = np.add.reduceat(np.count_nonzero(self.record.weight, axis=1), self.record.first[:-1])
        return float(np.sum(np.count_nonzero(self.record.unknown >= 0, axis=1) * np.log(np.maximum(samples, 1))))

    def windows(self, fraction: float = 1.0) -> np.ndarray:
        """How many samples of each experiment lie in the first `fraction` of it (at least five)."""
        if ("windows", fraction) not in self.kept:
            lengths = np.diff(self.record.first)
            counts = np.minimum(lengths, np.maximum(np.ceil(fraction * lengths).astype(np.int64), 5))
            self.kept["windows", fraction] = counts
        return self.kept["windows", fraction]

    def signal(self, fraction: float) -> float:
        """The loss of the answer 0 on the first `fraction` of each experiment."""
        if ("signal", fraction) not in self.kept:
            pairs = zip(self.record.first[:-1], self.windows(fraction), strict=True)
            powers = np.sum(self.record.weight * self.record.data**2, axis=1)
            self.kept["signal", fraction] = sum(float(powers[begin : begin + n].sum()) for begin, n in pairs)
        return self.kept["signal", fraction]

    @property
    def environment(self) -> dict:
        """The completed record by symbol."""
        return {"t": self.t, "F": self.forcing} | {("u", d): self.states[d] for d in range(self.order + 1)}

    def values(self, expression: Expression) -> np.ndarray:
        """An expression without constants over the completed record; only its finite values."""
        if expression not in self.kept:
            values = np.broadcast_to(evaluate(expression, self.environment), self.t.shape)
            self.kept[expression] = values[np.isfinite(values)]
        return self.kept[expression]

    def initial_guess(self) -> np.ndarray:
        """First guess of the unknown initial values."""
        guess = np.zeros(self.n_unknown)
        unknown = self.record.unknown
        guess[unknown[unknown >= 0]] = self.record.initial[unknown >= 0]
        return guess


def make_target(
    problem: Problem, order: int, completions: Sequence[Completion], *, all_modes: bool = False, rtol: float = 1e-5
) -> Target:
    """The target for equations of this order.

    With all_modes the completed derivatives count as if they had been measured, each divided by its mean square: the
    solution loss of the paper.
    """
    observations = problem.observations
    forcings = [problem.forcing(e) for e in range(len(observations))]
    states = [c.trajectory.states[:, : order + 1].T for c in completions]
    noise = _noise(observations, completions, order)
    data, weight = zip(
        *(_weighted(o, s, noise, order, all_modes) for o, s in zip(observations, states, strict=True)), strict=True
    )
    whole, weights = np.concatenate(data), np.concatenate(weight)
    if all_modes:
        weights /= np.mean(whole**2, axis=0) * len(whole)
        power = float(len(whole))
    else:
        power = float(np.sum(weights * whole**2))
        weights /= power
    smooth = np.concatenate(states, axis=1)
    scales = np.sqrt(np.mean(smooth**2, axis=1))
    scales = np.where(scales > 0, scales, 1.0)
    initial, unknown, error = _initial(observations, states, noise, order, power)
    formulas = {f.formula for f in forcings if f is not None and f.formula is not None}
    formula = formulas.pop() if len(formulas) == 1 and all(f is not None and f.formula for f in forcings) else None
    tables = [_table(f, o) if formula is None else NO_TABLE for f, o in zip(forcings, observations, strict=True)]
    counts = [len(o) for o in observations]
    pairs = list(zip(states, observations, strict=True))
    record = Record(
        t=np.concatenate([o.t for o in observations]),
        data=whole,
        weight=weights,
        ceiling=_LARGEST_ERROR * np.maximum(np.nanmean(np.where(weights > 0, whole**2, np.nan), axis=0), 1e-300)
        if np.all((weights > 0).any(axis=0))
        else _LARGEST_ERROR * scales**2,
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        initial=initial,
        unknown=unknown,
        initial_error=error,
        table=np.concatenate([table for table, _, _ in tables]),
        table_first=np.concatenate([[0], np.cumsum([len(table) for table, _, _ in tables])]).astype(np.int64),
        table_start=np.array([start for _, start, _ in tables]),
        table_rate=np.array([rate for _, _, rate in tables]),
        root=np.array([s[order, 0] for s in states]),
        root_slope=np.array([np.diff(s[order, :2])[0] / np.diff(o.t[:2])[0] for s, o in pairs]),
        largest_step=np.array([_largest_step(f, o) for f, o in zip(forcings, observations, strict=True)]),
        limit=20.0 * max(float(np.max(np.abs(smooth[0]))), float(np.max(np.abs(initial[:, 0]))), 1e-12),
        atol=1e-2 * rtol * scales[:order],
        nudge=np.array([1e-6 * scales[:order] * np.where(s[:order, :5].mean(axis=1) < 0, -1.0, 1.0) for s in states]),
    )
    return Target(
        order=order,
        record=record,
        t=record.t,
        states=np.ascontiguousarray(smooth),
        forcing=np.concatenate(
            [np.zeros(len(o)) if f is None else f.values(o.t) for f, o in zip(forcings, observations, strict=True)]
        ),
        formula=formula,
        measured=tuple(range(order + 1)) if all_modes else problem.measured,
        power=power,
        n_samples=int(np.count_nonzero(weights)),
        n_unknown=int(np.count_nonzero(unknown >= 0)),
        noise=noise,
    )


def _noise(observations: Sequence[Observation], completions: Sequence[Completion], order: int) -> np.ndarray:
    """Standard deviation of the noise of each derivative, pooled over the experiments; NaN where not measured."""
    pooled = np.full(order + 1, np.nan)
    for d in range(order + 1):
        found = [
            (c.noise[o.measured.index(d)], o.values[:, o.measured.index(d)])
            for o, c in zip(observations, completions, strict=True)
            if d in o.measured
        ]
        if found:
            counts = np.array([np.count_nonzero(~np.isnan(column)) for _, column in found])
            variance = np.average([deviation**2 for deviation, _ in found], weights=counts)
            # A record without visible noise still has rounding; it must not outweigh everything else.
            least = 1e-6 * float(np.nanstd(np.concatenate([column for _, column in found]))) + 1e-300
            pooled[d] = max(float(np.sqrt(variance)), least)
    return pooled


def _weighted(
    observation: Observation, states: np.ndarray, noise: np.ndarray, order: int, all_modes: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(data, weight), each [N, order + 1]; weights are inverse variances, 0 where nothing was measured."""
    n = len(observation)
    data, weight = np.zeros((n, order + 1)), np.zeros((n, order + 1))
    if all_modes:
        data[:], weight[:] = states.T, 1.0
    for j, d in enumerate(observation.measured):
        column = observation.values[:, j]
        seen = ~np.isnan(column)
        data[seen, d] = column[seen]
        weight[:, d] = np.where(seen, 1.0, 0.0)
        if not all_modes:
            weight[:, d] /= noise[d] ** 2
        if observation.weights is not None:
            weight[:, d] *= observation.weights[:, j]
    return data, weight


def _initial(
    observations: Sequence[Observation], states: Sequence[np.ndarray], noise: np.ndarray, order: int, power: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(values, positions among the unknown or -1, standard errors in units of the loss), each [E, order]."""
    shape = (len(observations), order)
    values, unknown, error = np.zeros(shape), np.full(shape, -1, np.int64), np.zeros(shape)
    count = 0
    for e, (observation, state) in enumerate(zip(observations, states, strict=True)):
        given = observation.initial or ()
        for d in range(order):
            if d < len(given):
                values[e, d] = given[d]
                continue
            values[e, d] = state[d, 0]
            unknown[e, d] = count
            count += 1
            if d in observation.measured:
                # Wide enough not to pull the fit, narrow enough to keep it from leaving the data.
                error[e, d] = 5.0 * noise[d] * np.sqrt(power)
    return values, unknown, error


def _table(forcing: Forcing | None, observation: Observation) -> tuple[np.ndarray, float, float]:
    if forcing is None:
        return NO_TABLE
    return forcing.sampled(*observation.window).table()


def _largest_step(forcing: Forcing | None, observation: Observation) -> float:
    """A twentieth of the window, and no step that could jump over a pulse of a sampled forcing."""
    start, stop = observation.window
    step = (stop - start) / 20
    if forcing is not None and forcing.samples is not None:
        step = min(step, 4.0 * float(np.median(np.diff(forcing.samples[:, 0]))))
    return step
