"""The integral form of the equations along a smooth trajectory: what is measured, and how its noise is whitened."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lgf.expression.frame import Variable
from lgf.fit.target import Target
from lgf.solver.kernels.integral_form import NODES, Grid, Rows, integrate_terms, whiten
from lgf.solver.kernels.machine import LARGEST_VALUE, Programs

_USUAL_SAMPLES = 150  # of the records for which the kappas were chosen


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """The measured values of one state, each with its sample and how often a term is integrated to reach it."""

    sample: np.ndarray
    depth: np.ndarray
    scale: np.ndarray
    block: np.ndarray  # (measured column, experiment) as a number
    values: np.ndarray  # [depth, sample] what was measured, 0 elsewhere

    @cached_property
    def pattern(self) -> bytes:
        """Equal for states of which the same samples were measured."""
        return b"".join(np.ascontiguousarray(a).tobytes() for a in (self.sample, self.depth, self.scale))


def make_grid(target: Target, columns: np.ndarray) -> Grid:
    """The nodes of the trajectory with these columns [column, sample], by Hermite interpolation between samples."""
    frame, first = target.frame, target.record.first
    n_depths = 1 + max(frame.orders)
    times, parts, node, inputs = [], [], [], []
    total = 0
    for e in range(target.n_experiments):
        own = slice(int(first[e]), int(first[e + 1]))
        t = target.t[own]
        nodes = _subdivided(t)
        values = np.empty((len(frame.columns), len(nodes)))
        for j, variable in enumerate(frame.columns):
            slope = frame.positions.get(Variable(variable.name, variable.derivative + 1))
            if slope is None:
                values[j] = np.interp(nodes, t, columns[j, own])
            else:
                values[j] = _hermite(t, columns[j, own], columns[slope, own])
        times.append(nodes)
        parts.append(values)
        node.append(total + NODES * np.arange(len(t)))
        total += len(nodes)
        signals = target.signals[e]
        inputs.append(
            np.array([signals[n].values(nodes) if n in signals else np.zeros(len(nodes)) for n in frame.inputs])
            .reshape(-1, len(nodes))
        )  # fmt: skip
    return Grid(
        np.concatenate(times),
        np.ascontiguousarray(np.concatenate(parts, axis=1)),
        np.ascontiguousarray(np.concatenate(inputs, axis=1)),
        first,
        np.concatenate(node),
        _weights(n_depths),
        n_depths,
    )


def measured_rows(target: Target, most_rows: int) -> list[MeasuredRows]:
    """The measured values of each state; long records are thinned to about `most_rows`."""
    frame, record = target.frame, target.record
    result = []
    for name, order in frame.states:
        columns = [frame.positions[Variable(name, d)] for d in range(order + 1)]
        measured = [c for c in columns if c in target.measured]
        count = sum(int(np.count_nonzero(record.weight[target.complete, c])) for c in measured)
        stride = max(1, -(-count // most_rows))
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        values = np.zeros((1 + max(frame.orders), len(target.t)))
        # A single column needs no scale, so that states measured at the same times share one Gram matrix.
        largest = record.weight[:, measured].max()
        for c in measured:
            depth = order - frame.columns[c].derivative
            values[depth] = record.data[:, c]
            for e in range(target.n_experiments):
                begin, end = int(record.first[e]), int(record.first[e + 1])
                if not target.complete[begin]:  # terms cannot be evaluated where a state was not measured
                    continue
                present = begin + np.flatnonzero(record.weight[begin:end, c] > 0)[::stride]
                # Errors of the smooth trajectory do not shrink where the noise does: samples of a column count alike.
                scale = np.full(len(present), np.sqrt(np.median(record.weight[present, c]) / largest))
                block = np.full(len(present), len(parts))
                parts.append((present, np.full(len(present), depth), scale, block))
        sample, depth, scale, block = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        result.append(MeasuredRows(sample, depth, scale, block, values))
    return result


def whitening(target: Target, rows: MeasuredRows, kappa: float) -> tuple[Rows, float]:
    """(the rows with the filter of white noise plus a random walk, the logarithm of the determinant).

    The random walk has kappa times the variance of the noise at the end of the longest experiment, and more in a long
    record: it stands for the error of the smooth trajectory, which adds up from sample to sample.
    """
    first = target.record.first
    longest = max(target.t[first[e + 1] - 1] - target.t[first[e]] for e in range(target.n_experiments))
    kappa *= max(1.0, float(np.diff(first).max()) / _USUAL_SAMPLES)
    n = len(rows.sample)
    restart = np.diff(rows.block, prepend=-1) != 0
    t = target.t[rows.sample]
    experiment = np.searchsorted(first, rows.sample, side="right") - 1
    gap = np.where(restart, t - target.t[first[experiment]], np.diff(t, prepend=t[0])) / longest
    added, starts = (kappa * gap).tolist(), restart.tolist()
    variances, spreads = np.empty(n), np.empty(n)
    variance = 0.0
    for r in range(n):
        variance = (0.0 if starts[r] else variance) + added[r]
        variances[r], spreads[r] = variance, variance + 1.0
        variance /= variance + 1.0
    gain, precision = variances / spreads, 1.0 / np.sqrt(spreads)
    log_determinant = float(np.log(spreads).cumsum()[-1])
    filtered = Rows(
        rows.sample.astype(np.int64), rows.depth.astype(np.int64), rows.scale, restart, gain, precision,
        np.zeros((0, n)),
    )  # fmt: skip
    return filtered._replace(nuisance=_nuisance(target, rows, filtered, experiment)), log_determinant


def _nuisance(target: Target, rows: MeasuredRows, filtered: Rows, experiment: np.ndarray) -> np.ndarray:
    """The whitened effects of the unknown initial values of each experiment, orthonormal."""
    t, first = target.t, target.record.first
    order = int(rows.depth.max())
    effects = []
    for e in range(target.n_experiments):
        own = (np.arange(len(t)) >= first[e]) & (np.arange(len(t)) < first[e + 1])
        elapsed = np.where(own, t - t[first[e]], 0.0)
        for k in range(order):  # the derivative order - 1 - k of the state at the start
            integrals = np.zeros((rows.values.shape[0], len(t)))
            for depth in range(1, order + 1):
                if depth > k:
                    integrals[depth] = own * elapsed ** (depth - 1 - k)
            effects.append(integrals)
    if not effects:
        return np.zeros((0, len(rows.sample)))
    out = np.empty((len(effects), len(rows.sample)))
    whiten(np.array(effects), filtered, out)
    # The effects have different units, so each is compared with itself.
    out = out[np.linalg.norm(out, axis=1) > 1e-9 * np.abs(effects).max(axis=(1, 2))]
    _, s, basis = np.linalg.svd(out / np.linalg.norm(out, axis=1)[:, None], full_matrices=False)
    return np.ascontiguousarray(basis[s > 1e-9 * s[0]])


class Needed(NamedTuple):
    """The places of integrals that some state was measured at; the others need not be stored."""

    depth: np.ndarray
    sample: np.ndarray

    def of(self, integrals: np.ndarray) -> np.ndarray:
        """The integrals [column, depth, sample] at these places."""
        return np.ascontiguousarray(integrals[:, self.depth[:, None], self.sample])  # NumPy would put columns last

    def rows(self, rows: Rows) -> Rows:
        """The rows for integrals at these places."""
        return rows._replace(
            depth=np.searchsorted(self.depth, rows.depth), sample=np.searchsorted(self.sample, rows.sample)
        )


def needed_places(rows: Sequence[MeasuredRows]) -> Needed:
    """The places of the rows of all states."""
    depth, sample = np.concatenate([r.depth for r in rows]), np.concatenate([r.sample for r in rows])
    return Needed(np.unique(depth), np.unique(sample))


def integrals_of(
    programs: Programs, owner: np.ndarray, values: np.ndarray, grid: Grid, needed: Needed
) -> tuple[np.ndarray, np.ndarray]:
    """(integrals of the terms along the trajectory at the needed places, largest absolute value [column] anywhere).

    A term that is not below LARGEST_VALUE has the integral zero and an infinite value.
    """
    found = np.empty((len(owner), len(needed.depth), len(needed.sample)))
    sizes = np.empty(len(owner))
    integrate_terms(programs, owner, values, grid, LARGEST_VALUE, needed.depth, needed.sample, found, sizes)
    return found, sizes


def whitened(integrals: np.ndarray, rows: Rows) -> np.ndarray:
    """The whitened rows [column, row] of integrals [column, depth, sample]."""
    out = np.empty((len(integrals), len(rows.sample)))
    whiten(integrals, rows, out)
    return out


def _subdivided(t: np.ndarray) -> np.ndarray:
    parts = np.arange(NODES) / NODES
    return np.append((t[:-1, None] + np.diff(t)[:, None] * parts).ravel(), t[-1])


def _hermite(t: np.ndarray, y: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The cubic through values and slopes, at the nodes."""
    h = np.diff(t)[:, None]
    s = np.arange(NODES) / NODES
    a, b = y[:-1, None], y[1:, None]
    da, db = h * slope[:-1, None], h * slope[1:, None]
    values = a * (1 + 2 * s) * (1 - s) ** 2 + b * s**2 * (3 - 2 * s) + da * s * (1 - s) ** 2 - db * s**2 * (1 - s)
    return np.append(values.ravel(), y[-1])


def _weights(n_depths: int) -> np.ndarray:
    """Weights [depth, node] of the repeated integrals over one interval, exact for polynomials through the nodes."""
    s = np.linspace(0.0, 1.0, NODES + 1)
    powers = np.vander(s, increasing=True).T  # [power, node]
    weights = []
    factorial = 1.0
    for m in range(max(n_depths - 1, 1)):
        factorial *= max(m, 1)
        # The integral of (1 - s)^m s^p / m! over [0, 1] is a beta function.
        moments = [_beta(p, m) / factorial for p in range(NODES + 1)]
        weights.append(np.linalg.solve(powers, moments))
    return np.array(weights)


def _beta(p: int, m: int) -> float:
    value = 1.0 / (p + m + 1)
    for k in range(1, m + 1):
        value *= k / (p + m + 1 - k)
    return value
