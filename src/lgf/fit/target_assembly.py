"""Assembly of a target from a problem and its completions: weights, initial values, limits, tables of the inputs."""

from collections.abc import Mapping, Sequence

import numpy as np

from lgf.data.noise import rounding_error
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.expression.frame import Frame, Variable
from lgf.expression.tree import Expression
from lgf.fit.target import Target
from lgf.smoothing.complete import Completion
from lgf.solver.forcing import Forcing, input_table, longest_step
from lgf.solver.kernels.trajectory_fit import Record

_MOST_UNEVEN = 5.0  # between the noise of two columns, each in units of its signal
_LARGEST_ERROR = 100.0  # largest squared error that a sample counts, in units of the mean square of the signal
_ATOL = 1e-7  # absolute tolerance of the solver, in units of a variable's root mean square
_LARGEST_STATE = 20.0  # in units of the largest completed value; beyond it a solution has blown up
_LARGEST_DERIVATIVE = 1000.0  # the same for derivatives, which a smoother may underestimate
_AS_MEASURED = 0.01  # of the noise: a smoothed value so near to the sample is replaced by it


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
            values[e, d] = _first_value(observation, variable, state[d, 0], _AS_MEASURED * noise[d])
            unknown[e, d] = len(errors)
            # Wide enough not to bias the fit, narrow enough to keep it near the data.
            deviation = noise[d] / np.sqrt(_first_weight(observation, variable))
            errors.append(5.0 * deviation * np.sqrt(power) if variable in observation.columns else 0.0)
    return values, unknown, np.array(errors)


def _first_value(observation: Observation, variable: Variable, smooth: float, near: float) -> float:
    """The guess of an initial value: the smoothed one, or the sample if that is so near that it has no noise."""
    column = observation.column(variable)
    return float(column[0]) if column is not None and abs(column[0] - smooth) < near else float(smooth)


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
