"""Target: the data of a problem for one frame, as arrays for the kernels, to which constants are fitted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from lgf.data.noise import rounding_error
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.expression.frame import Frame, Variable
from lgf.expression.numeric import Known, evaluate_known, known_values
from lgf.expression.tree import SIGNAL, Expression
from lgf.smoothing.complete import Completion
from lgf.solver.forcing import Forcing, input_table, longest_step
from lgf.solver.kernels.trajectory_fit import Record
from lgf.solver.program import Formulas

_MOST_UNEVEN = 5.0  # between the noise of two columns, each in units of its signal
_LARGEST_ERROR = 100.0  # largest squared error that a sample counts, in units of the mean square of the signal
_ATOL = 1e-7  # absolute tolerance of the solver, in units of a variable's root mean square
_LARGEST_STATE = 20.0  # in units of the largest completed value; beyond it a solution has blown up
_LARGEST_DERIVATIVE = 1000.0  # the same for derivatives, which a smoother may underestimate


@dataclass(frozen=True, eq=False)
class Target:
    """A measured and completed record in arrays.

    loss = sum of weight * error^2 is relative: 1 is the loss of the answer 0. chi^2 = loss * power.
    """

    frame: Frame
    record: Record
    t: np.ndarray  # [N] all experiments, one after the other
    columns: np.ndarray  # [column, N] the completed columns of the frame
    inputs: np.ndarray  # [input, N]
    formulas: Formulas  # the inputs that are one formula for all experiments
    signals: tuple[dict[str, Forcing], ...] = field(repr=False)  # the inputs of each experiment
    measured: tuple[int, ...]  # columns
    power: float
    n_samples: int
    n_unknown: int  # initial values that must be fitted
    initial_error: np.ndarray = field(repr=False)  # [unknown] error of the first guess, a prior; 0 = no prior
    noise: np.ndarray = field(repr=False)  # [column] estimated standard deviation, NaN where not measured
    rounding: np.ndarray = field(repr=False)  # [column] error of the numbers as they are written, NaN likewise
    complete: np.ndarray = field(repr=False)  # [N] whether every state was measured in the experiment of the sample
    experiment: np.ndarray = field(repr=False)  # [E] the experiment of each segment; 0, 1, ... for whole experiments
    segments: int = 1  # into which each experiment is cut, at most
    cache: dict = field(default_factory=dict, repr=False)  # values, starts, windows

    @property
    def n_experiments(self) -> int:
        """The number of experiments."""
        return len(self.record.first) - 1

    @cached_property
    def first_segments(self) -> np.ndarray:
        """The first segment of each experiment."""
        return np.unique(self.experiment, return_index=True)[1]

    @cached_property
    def with_highest(self) -> bool:
        """Whether a highest derivative was measured."""
        return any(column >= self.frame.dimension for column in self.measured)

    @property
    def noise_loss(self) -> float:
        """The expected loss of the true equation, from the estimated noise."""
        return self.n_samples / self.power

    @cached_property
    def oscillations(self) -> float:
        """The most oscillations of an experiment: half the times that a highest derivative crosses its mean."""
        n, most = self.frame.dimension, 0
        for begin, end in pairwise(self.record.first):
            part = self.columns[n:, begin:end]
            above = part > part.mean(axis=1, keepdims=True)
            most = max(most, int(np.count_nonzero(np.diff(above, axis=1), axis=1).max()))
        return most / 2

    def floor(self, accuracy: float) -> float:
        """The loss due to the rounding of the data and to solutions of this relative error alone."""
        return accuracy**2 + self._rounding_loss

    @cached_property
    def _rounding_loss(self) -> float:
        return float(np.sum(self.record.weight * np.nan_to_num(self.rounding) ** 2))

    @cached_property
    def spacing(self) -> float:
        """The median time between two samples of the first experiment."""
        return float(np.median(np.diff(self.t[: self.record.first[1]])))

    @cached_property
    def scales(self) -> np.ndarray:
        """Root mean square of each completed column, never zero."""
        rms = np.sqrt(np.mean(self.columns**2, axis=1))
        return np.where(rms > 0, rms, 1.0)

    @property
    def sizes(self) -> np.ndarray:
        """A typical absolute value for each variable of the state vector: the root mean square of its state."""
        states = {name: self.scales[self.frame.positions[Variable(name)]] for name in self.frame.names}
        return np.array([states[v.name] for v in self.frame.variables])

    @property
    def box(self) -> np.ndarray | None:
        """The range [n, 2] of each variable of the state vector in the data; None for one state."""
        if len(self.frame.states) == 1:
            return None
        columns = self.columns[: self.frame.dimension]
        return np.column_stack([columns.min(axis=1), columns.max(axis=1)])

    @property
    def window(self) -> tuple[float, float]:
        """The first and the last time of all experiments."""
        return float(self.t.min()), float(self.t.max())

    @cached_property
    def initial_length(self) -> float:
        """Description length of the fitted initial values, each by the number of samples of its experiment."""
        each = np.log(np.maximum(self.experiment_samples, 1))
        return float(np.sum(np.count_nonzero(self.record.unknown >= 0, axis=1) * each))

    @cached_property
    def experiment_samples(self) -> np.ndarray:
        """The number of measured values of each experiment."""
        return np.add.reduceat(np.count_nonzero(self.record.weight, axis=1), self.record.first[:-1])

    @cached_property
    def column_counts(self) -> np.ndarray:
        """The number of measured values of each column."""
        return np.count_nonzero(self.record.weight, axis=0)

    @cached_property
    def column_powers(self) -> np.ndarray:
        """The loss of the answer 0 in each column."""
        return np.sum(self.record.weight * self.record.data**2, axis=0)

    def first_noise(self, experiment: int, column: int) -> float:
        """The standard deviation of the noise of the first measured value, by its weight among those of the column."""
        weight = self.record.weight[:, column]
        begin, end = self.record.first[experiment : experiment + 2]
        own = weight[begin:end][weight[begin:end] > 0]
        if not len(own):
            return float(self.noise[column])
        return float(self.noise[column] * np.sqrt(1.0 / own[0] / np.mean(1.0 / weight[weight > 0])))

    def windows(self, fraction: float = 1.0) -> np.ndarray:
        """The number of samples in the first `fraction` of each experiment (at least five)."""
        if ("windows", fraction) not in self.cache:
            lengths = np.diff(self.record.first)
            counts = np.minimum(lengths, np.maximum(np.ceil(fraction * lengths).astype(np.int64), 5))
            self.cache["windows", fraction] = counts
        return self.cache["windows", fraction]

    def signal(self, fraction: float) -> float:
        """The loss of the answer 0 on the first `fraction` of each experiment."""
        if ("signal", fraction) not in self.cache:
            pairs = zip(self.record.first[:-1], self.windows(fraction), strict=True)
            powers = np.sum(self.record.weight * self.record.data**2, axis=1)
            self.cache["signal", fraction] = sum(float(powers[begin : begin + n].sum()) for begin, n in pairs)
        return self.cache["signal", fraction]

    @property
    def environment(self) -> dict:
        """The completed record by symbol."""
        inputs = {(name, SIGNAL): values for name, values in zip(self.frame.inputs, self.inputs, strict=True)}
        return {"t": self.t, **inputs, **dict(zip(self.frame.columns, self.columns, strict=True))}

    @cached_property
    def known_values(self) -> Known:
        """The same for many evaluations."""
        return known_values(self.environment)

    @cached_property
    def ranges(self) -> dict[str | Variable, tuple[float, float]]:
        """The smallest and the largest value of time ("t") and of every variable, initial states included."""
        ranges: dict[str | Variable, tuple[float, float]] = {"t": self.window}
        for i, variable in enumerate(self.frame.columns):
            low, high = float(self.columns[i].min()), float(self.columns[i].max())
            if variable.derivative == 0:
                low = min(low, float(self.record.initial[:, i].min()))
            ranges[variable] = low, high
        return ranges

    def values(self, expression: Expression) -> np.ndarray:
        """The finite values of an expression without constants over the completed record."""
        if expression not in self.cache:
            values = np.broadcast_to(evaluate_known(expression, self.known_values), self.t.shape)
            self.cache[expression] = values[np.isfinite(values)]
        return self.cache[expression]

    def initial_guess(self) -> np.ndarray:
        """First guess of the unknown initial values."""
        guess = np.zeros(self.n_unknown)
        unknown = self.record.unknown
        guess[unknown[unknown >= 0]] = self.record.initial[unknown >= 0]
        return guess


def make_target(
    problem: Problem,
    frame: Frame,
    completions: Sequence[Completion],
    *,
    all_modes: bool = False,
    accuracy: float = 1e-3,
    noise: np.ndarray | None = None,
) -> Target:
    """The target for systems of this frame; `accuracy` is the relative error of solutions, the least noise assumed.

    `noise` [column] replaces the estimated noise.

    With all_modes the completed columns count as if they had been measured, each divided by its mean square: the
    solution loss of the paper.
    """
    observations = problem.observations
    signals = tuple(problem.signals(e) for e in range(len(observations)))
    states = [np.array([c.trajectory[v] for v in frame.columns]) for c in completions]
    complete = np.concatenate([np.full(s.shape[1], bool(np.isfinite(s).all())) for s in states])
    states = _filled(states, frame)
    rounding = _rounding(observations, frame)
    if noise is None:
        noise = _noise(observations, completions, frame, np.fmax(rounding, 0.0), accuracy)
    data, weight = zip(
        *(_weighted(o, s, noise, frame, all_modes) for o, s in zip(observations, states, strict=True)), strict=True
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
    n = frame.dimension
    initial, unknown, error = _initial(observations, states, noise, frame, power)
    formulas = problem.formulas
    tables = [_table(frame, s, o, dict(formulas)) for s, o in zip(signals, observations, strict=True)]
    counts = [len(o) for o in observations]
    pairs = list(zip(states, observations, strict=True))
    # A column of noise has a smoothed one near 0, so its own values count too.
    present = weights > 0
    measured_squares = np.sum(whole**2, axis=0, where=present) / np.maximum(np.count_nonzero(present, axis=0), 1)
    record = Record(
        t=np.concatenate([o.t for o in observations]),
        data=whole,
        weight=weights,
        ceiling=_LARGEST_ERROR * np.maximum(scales**2, measured_squares),
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        initial=initial,
        unknown=unknown,
        table=np.concatenate(tables),
        table_first=np.concatenate([[0], np.cumsum([len(table) for table in tables])]).astype(np.int64),
        root=np.array([s[n, 0] for s in states]),
        root_slope=np.array([np.diff(s[n, :2])[0] / np.diff(o.t[:2])[0] for s, o in pairs]),
        largest_step=np.array(
            [longest_step(s.values(), float(np.ptp(o.t)) / 20) for s, o in zip(signals, observations, strict=True)]
        ),
        limit=_limits(frame, smooth, initial),
        atol=_ATOL * scales[:n],
        nudge=np.array([1e-6 * scales[:n] * np.where(s[:n, :5].mean(axis=1) < 0, -1.0, 1.0) for s in states]),
    )
    measured = {frame.positions[v] for o in observations for v in o.columns if v in frame.positions}
    return Target(
        frame=frame,
        record=record,
        t=record.t,
        columns=np.ascontiguousarray(smooth),
        inputs=_sampled_inputs(frame, signals, observations),
        formulas=formulas,
        signals=signals,
        measured=tuple(range(len(frame.columns))) if all_modes else tuple(sorted(measured)),
        power=power,
        n_samples=int(np.count_nonzero(weights)),
        n_unknown=int(np.count_nonzero(unknown >= 0)),
        initial_error=error,
        noise=noise,
        rounding=rounding,
        complete=complete if complete.any() else np.ones(len(complete), bool),
        experiment=np.arange(len(observations)),
    )


def _filled(states: Sequence[np.ndarray], frame: Frame) -> list[np.ndarray]:
    """The completed columns; a state that an experiment does not measure rests at its mean of the others."""
    if all(np.isfinite(s).all() for s in states):
        return list(states)
    filled = [s.copy() for s in states]
    for i, variable in enumerate(frame.columns):
        values = np.concatenate([s[i] for s in states])
        level = float(np.nanmean(values)) if variable.derivative == 0 and np.isfinite(values).any() else 0.0
        for s in filled:
            s[i, np.isnan(s[i])] = level
    return filled


def _rounding(observations: Sequence[Observation], frame: Frame) -> np.ndarray:
    """The rounding error of each column; NaN where not measured."""
    errors = np.full(len(frame.columns), np.nan)
    for i, variable in enumerate(frame.columns):
        columns = [column for o in observations if (column := o.column(variable)) is not None]
        if columns:
            errors[i] = rounding_error(np.concatenate(columns))
    return errors


def _noise(
    observations: Sequence[Observation],
    completions: Sequence[Completion],
    frame: Frame,
    rounding: np.ndarray,
    accuracy: float,
) -> np.ndarray:
    """Standard deviation of the noise of each column, pooled over the experiments; NaN where not measured.

    It is not below the rounding error of the numbers and the relative error of a solution, and, in units of the signal,
    not below a fifth of that of another column.
    """
    pooled, spread = np.full(len(frame.columns), np.nan), np.full(len(frame.columns), np.nan)
    for i, variable in enumerate(frame.columns):
        measured = [
            (c.noise[variable], column)
            for o, c in zip(observations, completions, strict=True)
            if (column := o.column(variable)) is not None
        ]
        if measured:
            counts = np.array([np.count_nonzero(~np.isnan(column)) for _, column in measured])
            variance = np.average([deviation**2 for deviation, _ in measured], weights=counts)
            size = float(np.sqrt(np.nanmean(np.concatenate([column for _, column in measured]) ** 2)))
            pooled[i] = max(float(np.sqrt(variance)), float(rounding[i]), accuracy * size, 1e-300)
            spread[i] = float(np.nanstd(np.concatenate([column for _, column in measured])))
    # On a coarse record a smoother may take all noise of one state for signal; it would then outweigh the others.
    shares = pooled[spread > 0] / spread[spread > 0]
    return np.fmax(pooled, shares.max(initial=0.0) * spread / _MOST_UNEVEN)


def _weighted(
    observation: Observation, states: np.ndarray, noise: np.ndarray, frame: Frame, all_modes: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(data, weight), each [N, column]; weights are inverse variances, 0 where nothing was measured."""
    shape = len(observation), len(frame.columns)
    data, weight = np.zeros(shape), np.zeros(shape)
    if all_modes:
        data[:], weight[:] = states.T, 1.0
    for j, variable in enumerate(observation.columns):
        d = frame.positions[variable]
        column = observation.values[:, j]
        present = ~np.isnan(column)
        data[present, d] = column[present]
        weight[:, d] = np.where(present, 1.0, 0.0)
        if not all_modes:
            weight[:, d] /= noise[d] ** 2
        if observation.weights is not None:
            weight[:, d] *= observation.weights[:, j]
    return data, weight


def _initial(
    observations: Sequence[Observation], states: Sequence[np.ndarray], noise: np.ndarray, frame: Frame, power: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(values [E, n], positions among the unknown or -1 [E, n], standard errors of these in units of the loss)."""
    shape = (len(observations), frame.dimension)
    values, unknown = np.zeros(shape), np.full(shape, -1, np.int64)
    errors: list[float] = []
    for e, (observation, state) in enumerate(zip(observations, states, strict=True)):
        for d, variable in enumerate(frame.variables):
            if variable in observation.initial:
                values[e, d] = observation.initial[variable]
                continue
            values[e, d] = state[d, 0]
            unknown[e, d] = len(errors)
            # Wide enough not to bias the fit, narrow enough to keep it near the data.
            deviation = noise[d] / np.sqrt(_first_weight(observation, variable))
            errors.append(5.0 * deviation * np.sqrt(power) if variable in observation.columns else 0.0)
    return values, unknown, np.array(errors)


def _first_weight(observation: Observation, variable: Variable) -> float:
    """The weight of the first sample of the variable that counts, relative to the inverse variance of the noise."""
    if observation.weights is None or variable not in observation.columns:
        return 1.0
    weights = observation.weights[:, observation.columns.index(variable)]
    return float(weights[weights > 0][0]) if np.any(weights > 0) else 1.0


def _limits(frame: Frame, smooth: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """The absolute value of each variable of the state vector beyond which a solution has blown up."""
    limits = np.empty(frame.dimension)
    for d, variable in enumerate(frame.variables):
        largest = max(float(np.max(np.abs(smooth[d]))), float(np.max(np.abs(initial[:, d]))), 1e-12)
        limits[d] = largest * (_LARGEST_STATE if variable.derivative == 0 else _LARGEST_DERIVATIVE)
    return limits


def _table(
    frame: Frame, signals: Mapping[str, Forcing], observation: Observation, formulas: Mapping[str, Expression]
) -> np.ndarray:
    """The table of the inputs that are not compiled into the program, for one experiment."""
    sampled = [None if name in formulas else signals.get(name) for name in frame.inputs]
    return input_table([None if s is None else s.sampled(*observation.window) for s in sampled])


def _sampled_inputs(
    frame: Frame, signals: Sequence[Mapping[str, Forcing]], observations: Sequence[Observation]
) -> np.ndarray:
    """The inputs [input, N] at the samples; 0 where an experiment lacks one."""
    parts = [
        np.array([s[name].values(o.t) if name in s else np.zeros(len(o)) for name in frame.inputs]).reshape(-1, len(o))
        for s, o in zip(signals, observations, strict=True)
    ]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))
