"""Predictions without an equation: the last value, the line, the mean curve, and a Gaussian process."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.real.protocol import LEFT_OUT, Piece, Trial, inner_trials

_LINE = 0.2  # of the samples, through which the line goes
_LEAST_LINE = 3


def naive(test: Trial) -> dict[str, list[np.ndarray]]:
    """The naive predictions of the test by name."""
    found = {"last value": [_last(p) for p in test.pieces], "line": [_line(p) for p in test.pieces]}
    if test.kind == LEFT_OUT:
        found["mean curve"] = [_mean_curve(test, p.rest.t) for p in test.pieces]
    return found


def chosen_in_advance(test: Trial) -> str:
    """The name of the naive prediction that a user would choose: the best one on the training part alone.

    It is the best in the same test made of the training experiments: a forecast of their last quarter, or each of
    them left out in turn.
    """
    inner = inner_trials(test)
    errors = {name: [t.error(values) for t, values in zip(inner, parts, strict=True)] for name, parts in _named(inner)}
    return min(errors, key=lambda name: np.sqrt(np.mean(np.square(errors[name]))))


def _named(trials: list[Trial]) -> list[tuple[str, list[list[np.ndarray]]]]:
    answers = [naive(test) for test in trials]
    return [(name, [answer[name] for answer in answers]) for name in answers[0]]


def gaussian_process(test: Trial) -> list[np.ndarray]:
    """The prediction of a Gaussian process for each state; prior mean: the mean curve, or the mean of the samples."""
    predictions = []
    for piece in test.pieces:
        seen, rest = piece.seen, piece.rest
        if test.kind == LEFT_OUT:
            base, ahead = _mean_curve(test, seen.t), _mean_curve(test, rest.t)
        else:
            base, ahead = seen.values.mean(axis=0), seen.values.mean(axis=0)
        deviations = seen.values - base
        columns = [_extrapolate(seen.t, deviations[:, k], rest.t) for k in range(deviations.shape[1])]
        predictions.append(ahead + np.column_stack(columns))
    return predictions


def _last(piece: Piece) -> np.ndarray:
    return np.tile(piece.seen.values[-1], (len(piece.rest.t), 1))


def _line(piece: Piece) -> np.ndarray:
    n = max(int(np.ceil(_LINE * len(piece.seen.t))), _LEAST_LINE)
    t, values = piece.seen.t[-n:], piece.seen.values[-n:]
    origin = t[-1]
    design = np.column_stack([np.ones(len(t)), t - origin])
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    return np.column_stack([np.ones(len(piece.rest.t)), piece.rest.t - origin]) @ coefficients


def _mean_curve(test: Trial, t: np.ndarray) -> np.ndarray:
    """The mean of the training experiments that reach these times, joined by lines; ends are held."""
    total, count = np.zeros((len(t), len(test.states))), np.zeros((len(t), 1))
    last = max(e.t[-1] for e in test.training)
    for experiment in test.training:
        reached = (t <= experiment.t[-1]) | (experiment.t[-1] == last)
        curve = np.column_stack([np.interp(t, experiment.t, column) for column in experiment.values.T])
        total[reached] += curve[reached]
        count[reached] += 1
    return total / count


def _extrapolate(t: np.ndarray, y: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    scale, window = float(np.std(y)) or 1.0, float(t[-1] - t[0])
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(0.2, (1e-2, 10.0)) + WhiteKernel(1e-2, (1e-8, 10.0))
    process = GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a hyperparameter at its bound is an answer too
        process.fit(((t - t[0]) / window)[:, None], y / scale)
    return np.asarray(process.predict(((ahead - t[0]) / window)[:, None])) * scale
