"""Noise that grows with the signal: its deviation is proportional to sqrt(1 + (g y / rms y)^2), one g for all columns.

It is estimated from the smoothed record before a search, and once more from the solution of the best equation.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lgf.data.problem import Problem
from lgf.expression.frame import Frame
from lgf.smoothing.complete import Completion

# Distances to smoothed columns are noise and errors of smoothing, which are large where the signal is. So a growth must
# be clear and the noise larger than such errors; a larger growth would trust small values too much.
_GROWTHS = (0.5, 1.0, 1.5, 2.0, 3.0)
_CLEAR_GROWTH = 2.0
_LEAST_NOISE = 1e-3  # of the signal
_LEAST_SAMPLES = 40  # of a column


def growth_about(problem: Problem, frame: Frame, curves: np.ndarray, smoothed: bool) -> tuple[float, np.ndarray] | None:
    """(g, variances [N, column]) from the distances to the curves [N, column]; None if constant noise is as likely.

    The curves are `smoothed` ones, which must show a growth clearly, or the solution of an equation.
    """
    data, weights, begin = np.full(curves.shape, np.nan), np.ones(curves.shape), 0
    for observation in problem.observations:
        places = np.ix_(range(begin, begin + len(observation)), [frame.positions[v] for v in observation.columns])
        data[places] = observation.values
        if observation.weights is not None:
            weights[places] = observation.weights
        begin += len(observation)
    measured = np.isfinite(data) & np.isfinite(curves) & (weights > 0)
    powers = np.sum(curves**2, axis=0, where=measured) / np.maximum(measured.sum(axis=0), 1)
    sizes = np.where(powers > 0, np.sqrt(powers), np.inf)
    relative, squares = curves / sizes, weights * ((data - curves) / sizes) ** 2
    columns = [
        (relative[own, d], squares[own, d])
        for d, own in enumerate(measured.T)
        if np.count_nonzero(own) >= _LEAST_SAMPLES
    ]
    if not columns or any(np.mean(errors) < _LEAST_NOISE**2 for _, errors in columns):
        return None

    def length(growth: float) -> float:
        return sum(_length(*column, growth) for column in columns)

    growth = min(_GROWTHS, key=length)
    n = sum(len(errors) for _, errors in columns)
    if (smoothed and growth < _CLEAR_GROWTH) or not length(growth) + math.log(n) < length(0.0):
        return None
    return growth, 1.0 + (growth * np.nan_to_num(relative)) ** 2


def smoothed_curves(completions: Sequence[Completion], frame: Frame) -> np.ndarray:
    """The smoothed columns [N, column] of all experiments."""
    return np.concatenate([np.column_stack([c.trajectory[v] for v in frame.columns]) for c in completions])


def reweighted(problem: Problem, frame: Frame, variances: np.ndarray) -> Problem:
    """The problem with weights for noise of these relative variances [N, column of the frame]."""
    observations, begin = [], 0
    for observation in problem.observations:
        part = variances[begin : begin + len(observation)]
        weights = 1.0 / part[:, [frame.positions[v] for v in observation.columns]]
        if observation.weights is not None:
            weights = weights * observation.weights
        observations.append(replace(observation, weights=weights))
        begin += len(observation)
    return replace(problem, observations=tuple(observations))


def _length(relative: np.ndarray, squares: np.ndarray, growth: float) -> float:
    """N ln(weighted sum of the squared distances) + the sum of ln(variance); `relative` are signals of power 1."""
    variances = 1.0 + (growth * relative) ** 2
    return len(squares) * math.log(max(float(np.sum(squares / variances)), 1e-300)) + float(np.sum(np.log(variances)))
