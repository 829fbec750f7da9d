"""The likelihood of a system under disturbances, and the constants, starts and disturbances that make it largest.

    dx = f(x, t) dt + g(x) sigma dW,   y = x + e

with g = 1 or x, and noise e of the form that the target's weights have. A Kalman filter gives an innovation and its
variance for every sample; Fisher scoring climbs the likelihood. Without disturbances the innovations are the residuals
of the solution, and the likelihood is that of the usual fit.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lgf.expression.frame import Variable
from lgf.fit.settings import Fitting, steps_needed
from lgf.fit.target import Target
from lgf.solver.kernels.integrator import OK
from lgf.solver.kernels.kalman import MOST_VARIABLES, filter_record
from lgf.solver.kernels.machine import LANES

_ITERATIONS = 8, 30  # of Fisher scoring, in a search and for finalists
_TOLERANCE = 0.5, 0.05  # of -2 log L: a step that gains less is the last one, likewise
_LEAST_DAMPING, _FREE = 1e-6, 0.1  # of a step; below the second it is about a whole one
_STEP = 1e-5  # of difference quotients, relative
_LEAST_SCALE, _LARGEST_SCALE = 1e-3, 1e3  # of the noise, in units of the estimated
_RTOL = 1e-5
_LEAST_LOSS = 1e-16  # of a column: solutions of one system differ by as much
_SCALES = 1.0, 0.2  # of the noise, with which a climb begins


class Disturbance(NamedTuple):
    """The random force on a state."""

    deviation: float  # sigma
    error: float  # its standard error
    proportional: bool  # to the state


class Filtered(NamedTuple):
    """A record as the filter follows it, at the likeliest parameters."""

    length: float  # -2 log L; see `undisturbed_length` for the units
    x: np.ndarray  # free constants, then unknown initial values
    disturbances: tuple[Disturbance, ...]  # of each state
    innovations: np.ndarray  # [N, column]
    variances: np.ndarray  # [N, column] of the innovations, 0 where nothing was measured


def undisturbed_length(target: Target, losses: np.ndarray) -> float:
    """-2 log L without disturbances, from the losses [column] of a fit; each column has noise of its own.

    Variances count in units of the mean square of what was measured, so targets with other weights compare.
    """
    measured = list(target.measured)
    counts = target.column_counts[measured]
    least = max(target.floor, _LEAST_LOSS) * target.column_powers[measured]
    squares = np.maximum(losses[measured], least) * target.power
    return float(np.sum(counts * (np.log(np.maximum(squares / counts, 1e-300)) + 1.0))) - target.weight_length


def can_be_disturbed(fitting: Fitting) -> bool:
    """Whether the filter follows such a system: explicit, with a state vector that fits into its lanes."""
    return fitting.compiled.flow.degree == 1 and fitting.target.frame.dimension <= MOST_VARIABLES


def likeliest(fitting: Fitting, starts: Sequence[np.ndarray], proportional: bool) -> Filtered | None:
    """The likeliest unknowns, noise and disturbances, from the best of the starts; None if none can be filtered."""
    record = _Filter(fitting, proportional)
    tried = []
    for number, x in enumerate(starts):
        for share in _SCALES if number == 0 else _SCALES[:1]:
            z = np.concatenate([x, np.full(len(record.columns), math.log(share)), record.first_deviations(1.0 / share)])
            run = record.run(z)
            if run is not None:
                tried.append((_length(fitting.target, run), len(tried), z, run))
    if not tried:
        return None
    _, _, z, run = min(tried, key=lambda entry: entry[:2])
    return record.climb(z, run)


_Run = tuple[np.ndarray, np.ndarray]
"""(innovations [N, column], their variances), for several parameters [group, N, column]."""


class _Filter:
    """The filter of one fitting.

    Parameters z: the unknowns, logarithms of the scales of the measured columns, logarithms of the deviations.
    """

    def __init__(self, fitting: Fitting, proportional: bool):
        self.fitting, self.target = fitting, fitting.target
        frame = self.target.frame
        self.columns = list(self.target.measured)
        self.P = len(fitting.unknowns.mean)
        self.groups = LANES // (frame.dimension + 1)
        self.states = np.array([frame.positions[Variable(name)] for name in frame.names], np.int64)
        self.proportional = np.full(len(self.states), proportional)
        (lower, upper), noise, forces = fitting.unknown_limits, len(self.columns), len(self.states)
        self.lower = np.concatenate([lower, np.full(noise, math.log(_LEAST_SCALE)), np.full(forces, -700.0)])
        self.upper = np.concatenate([upper, np.full(noise, math.log(_LARGEST_SCALE)), np.full(forces, 700.0)])
        self.steps = np.concatenate([fitting.unknowns.least, np.ones(noise + forces)])
        self.longest = np.concatenate([np.full(self.P, np.inf), np.full(noise + forces, 1.0)])  # step of a logarithm
        self.max_steps = max(fitting.settings.steps_per_solve, steps_needed(self.target.oscillations, _RTOL))

    def first_deviations(self, ratio: float) -> np.ndarray:
        """Logarithms of deviations that move a state by `ratio` times its noise from sample to sample."""
        target, frame = self.target, self.target.frame
        deviations = []
        for s in range(len(self.states)):
            name, order = frame.states[s]
            column = next((c for c in self.columns if frame.columns[c].name == name), self.columns[0])
            size = target.scales[self.states[s]]
            shift = order - frame.columns[column].derivative
            value = ratio * target.noise[column] / target.spacing ** (max(shift, 1) - 0.5)
            deviations.append(value / size if self.proportional[s] else value)
        return np.log(np.maximum(deviations, 1e-300))

    def run(self, z: np.ndarray) -> _Run | None:
        """The record filtered at z; None if a solution ends early."""
        parts = [self._experiment(e, z[None, :]) for e in range(self.target.n_experiments)]
        whole = [part for part in parts if part is not None]
        if len(whole) < len(parts):
            return None
        return np.concatenate([v[0] for v, _ in whole]), np.concatenate([s[0] for _, s in whole])

    def _experiment(self, e: int, Z: np.ndarray) -> _Run | None:
        """The same of one experiment, at each row of Z."""
        fitting, target, record = self.fitting, self.target, self.target.record
        groups, columns = len(Z), len(target.frame.columns)
        N, noise = int(record.first[e + 1] - record.first[e]), len(self.columns)
        start, free = np.tile(record.initial[e], (groups, 1)), record.unknown[e] >= 0
        start[:, free] = Z[:, fitting.unknowns.n_free + record.unknown[e][free]]
        scale = np.zeros((groups, columns))
        scale[:, self.columns] = np.exp(Z[:, self.P : self.P + noise]) / math.sqrt(target.power)
        sigma = np.exp(Z[:, self.P + noise :])
        v, s = np.zeros((groups, N, columns)), np.zeros((groups, N, columns))
        status = filter_record(
            fitting.compiled.flow, record, e, N, np.ascontiguousarray(Z[:, fitting.unknowns.source[e]]), start, sigma,
            self.proportional, self.states, scale, target.sizes, target.spacing, _RTOL, self.max_steps, v, s,
        )  # fmt: skip
        sound = status == OK and np.all(np.isfinite(v)) and np.all(np.isfinite(s)) and not np.any(s < 0.0)
        return (v, s) if sound else None

    def _scored(self, z: np.ndarray, base: _Run) -> tuple[np.ndarray, np.ndarray] | None:
        """(gradient of -log L, Fisher information) at z."""
        target, record = self.target, self.target.record
        size = len(z)
        gradient, information = np.zeros(size), np.zeros((size, size))
        noise = np.arange(self.P, size)
        for e in range(target.n_experiments):
            rows = slice(int(record.first[e]), int(record.first[e + 1]))
            own = record.unknown[e][record.unknown[e] >= 0] + self.fitting.unknowns.n_free
            active = np.concatenate([np.unique(self.fitting.unknowns.source[e]), own, noise]).astype(int)
            present = base[1][rows] > 0
            v, s = base[0][rows][present], base[1][rows][present]
            dv, ds = np.zeros((len(active), len(v))), np.zeros((len(active), len(v)))
            h = _STEP * np.maximum(np.abs(z[active]), self.steps[active])
            h = np.where(z[active] + h > self.upper[active], -h, h)
            together = max(self.groups - 1, 1)
            for first in range(0, len(active), together):
                part = np.arange(first, min(first + together, len(active)))
                Z = _moved(z, active[part], h[part])
                there = self._experiment(e, Z if self.groups > 1 else Z[1:])
                if there is None:
                    return None
                at_v, at_s = (there[0][0], there[1][0]) if self.groups > 1 else (base[0][rows], base[1][rows])
                dv[part] = (there[0][-len(part) :] - at_v)[:, present] / h[part, None]
                ds[part] = (there[1][-len(part) :] - at_s)[:, present] / h[part, None]
            dv, ds = dv / np.sqrt(s), ds / s
            unit = v / np.sqrt(s)
            gradient[active] += dv @ unit + 0.5 * ds @ (1.0 - unit**2)
            information[np.ix_(active, active)] += dv @ dv.T + 0.5 * ds @ ds.T
        return gradient, information

    def climb(self, z: np.ndarray, base: _Run) -> Filtered | None:
        """The likeliest parameters from z by Fisher scoring with damping."""
        length, damping = _length(self.target, base), 1e-2
        information = np.zeros((len(z), len(z)))
        for _ in range(_ITERATIONS[self.fitting.settings.patient]):
            scored = self._scored(z, base)
            if scored is None or not all(np.all(np.isfinite(part)) for part in scored):
                break
            gradient, information = scored
            gained = 0.0
            while damping < 1e6:
                low, high = np.maximum(self.lower - z, -self.longest), np.minimum(self.upper - z, self.longest)
                moved = z + _damped_step(information, gradient, damping, low, high)
                there = self.run(moved)
                new = math.inf if there is None else _length(self.target, there)
                if there is not None and new < length:
                    gained, z, base, length = length - new, moved, there, new
                    damping = max(0.1 * damping, _LEAST_DAMPING)
                    break
                damping *= 10.0
            if gained < _TOLERANCE[self.fitting.settings.patient] and (damping < _FREE or not gained):
                break
            damping = min(damping, 1e3)
        return self._result(z, base, information)

    def _result(self, z: np.ndarray, run: _Run, information: np.ndarray) -> Filtered:
        deviations = np.exp(z[self.P + len(self.columns) :])
        variances = np.diag(np.linalg.pinv(information, hermitian=True))[self.P + len(self.columns) :]
        errors = deviations * np.sqrt(np.maximum(variances, 0.0))
        disturbances = map(Disturbance, deviations.tolist(), errors.tolist(), self.proportional.tolist())
        return Filtered(_length(self.target, run), z[: self.P], tuple(disturbances), *run)


def _moved(z: np.ndarray, parts: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Rows: the parameters z, and z with each of these moved by its h."""
    Z = np.tile(z, (len(parts) + 1, 1))
    Z[1 + np.arange(len(parts)), parts] += h
    return Z


def _damped_step(A: np.ndarray, g: np.ndarray, damping: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The step -(A + damping diag A)^-1 g within low .. high; what would leave them stays there, the rest follows."""
    step, free = np.zeros(len(g)), np.diag(A) > 0
    while free.any():
        size = np.sqrt(np.diag(A)[free])
        scaled = A[np.ix_(free, free)] / np.outer(size, size) + (damping + 1e-12) * np.eye(len(size))
        step[free] = -np.linalg.solve(scaled, (g[free] + A[np.ix_(free, ~free)] @ step[~free]) / size) / size
        outside = free & ((step < low) | (step > high))
        if not outside.any():
            break
        step[outside] = np.clip(step, low, high)[outside]
        free &= ~outside
    return step


def _length(target: Target, run: _Run) -> float:
    """-2 log L; see `undisturbed_length` for the units."""
    innovations, variances = run
    present = variances > 0
    relative = (variances / target.signals_squared)[present]
    return float(np.sum(np.log(relative) + innovations[present] ** 2 / variances[present]))
