"""The record of a target on the common grid, as a conditional flow reads it."""

import numpy as np

from lgf.fit.target import Target
from lgf.language.projections import GridRecord
from lgf.smoothing.common_grid import GRID, TAU, on_grid, smooth_records

_MOST_SAMPLES = 1000  # of an experiment; longer ones are averaged
_LEAST_SAMPLES = 8
_MOST_EXPERIMENTS = 6


def grid_record(target: Target) -> GridRecord | None:
    """The record of one state; None if it has too few samples, or its experiments measure different derivatives.

    The lowest measured derivative is smoothed, and the others are its derivatives and integrals.
    """
    order = target.frame.orders[0]
    observed = min(target.measured)
    record = target.record
    columns, forcing, noise, samples, starts, windows = [], [], [], 0, [], []
    for e in range(min(target.n_experiments, _MOST_EXPERIMENTS)):
        rows = slice(int(record.first[e]), int(record.first[e + 1]))
        present = record.weight[rows, observed] > 0
        t, y = target.t[rows][present], record.data[rows, observed][present]
        if len(t) < _LEAST_SAMPLES:
            return None
        samples += len(t)
        t, y = _thinned(t, y)
        window = float(t[-1] - t[0])
        tau = (t - t[0]) / window
        coefficients, sigma = smooth_records(tau, y[None])
        initial = record.initial[e][None]
        columns.append(on_grid(tau, coefficients, observed, order, np.array([window]), initial, sigma)[0])
        noise.append(float(sigma[0]) / max(float(y.std()), 1e-30))
        starts.append(t[0])
        windows.append(window)
        grid = t[0] + window * TAU
        total = np.zeros(GRID)
        for signal in target.signals[int(target.experiment[e])].values():
            values = signal.values(grid)
            total += values / max(float(np.sqrt(np.mean(values**2))), 1e-30)
        forcing.append(total)
    return GridRecord(
        np.array(columns), np.array(forcing), np.array(starts), np.array(windows), order, bool(target.frame.inputs),
        observed, float(np.mean(noise)), float(samples),
    )  # fmt: skip


def _thinned(t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The record with consecutive samples averaged, if it has too many."""
    step = -(-len(t) // _MOST_SAMPLES)
    if step == 1:
        return t, y
    n = len(t) // step * step
    return t[:n].reshape(-1, step).mean(1), y[:n].reshape(-1, step).mean(1)
