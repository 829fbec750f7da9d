"""Completing a record: every state and its derivatives at the sample times from whatever was measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline, make_smoothing_spline
from threadpoolctl import threadpool_limits

from lgf.data.noise import rough_noise
from lgf.data.observation import Observation
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame, Variable
from lgf.smoothing.gaussian_process import CLOCKS, MOST_ROWS, GaussianProcess, fit_gaussian_process
from lgf.smoothing.perceptron import fit_perceptron
from lgf.smoothing.rows import Rows, rows_of
from lgf.smoothing.whittaker import fit_whittaker
from lgf.solver.forcing import Forcing
from lgf.solver.trajectory import Trajectory

METHODS = ("auto", "gp", "whittaker", "spline", "mlp")
_MOST_SAMPLES = 5000  # for the methods that are slow beyond

Curve = Callable[[np.ndarray, int], np.ndarray]
"""(times, k) -> the k-th derivative of the state there."""


@dataclass(frozen=True, eq=False)
class Completion:
    """A smooth record: `trajectory` holds every column of the frame at the sample times.

    `noise` is the estimated standard deviation of each measured column; `methods` the smoother of each state; `notes`
    are sentences for the report.
    """

    trajectory: Trajectory
    noise: Mapping[Variable, float]
    methods: tuple[str, ...]
    notes: tuple[str, ...] = ()


def complete(
    observation: Observation, frame: Frame, method: str = "auto", signals: Mapping[str, Forcing] | None = None
) -> Completion:
    """The record with every column of the frame, smoothed and, where needed, integrated; each state on its own.

    "gp" is a Gaussian process, "whittaker" a penalised spline (both use every measured column and the initial state),
    "spline" SciPy's cubic smoothing spline, "mlp" the paper's network (both of the lowest measured derivative).
    "auto" takes the Gaussian process by its marginal likelihood, among several clocks, and the penalised spline for
    records that are too long for it.
    """
    if method not in METHODS:
        raise LgfError(f"the smoothing method is {quoted(method)}; choose from {', '.join(METHODS)}.")
    missing = [name for name in frame.names if name not in observation.states]
    if missing:
        where = f"experiment {quoted(observation.name)}" if observation.name else "the record"
        raise LgfError(f"{where} has no column of {missing[0]}; measure every state in every experiment.")
    t = observation.t
    columns: dict[Variable, np.ndarray] = {}
    noise: dict[Variable, float] = {}
    methods, notes = [], []
    # one thread: the matrices are small, and the number of threads would show in the last digits of the result
    with threadpool_limits(limits=1, user_api="blas"):
        for name, order in frame.states:
            rows = rows_of(observation, name)
            smooth = _smooth(rows, method)
            columns |= {Variable(name, k): smooth.derivative(t, k) for k in range(order + 1)}
            measured = sorted(v for v in observation.columns if v.name == name)
            noise |= dict(zip(measured, smooth.noise, strict=True))
            methods.append(smooth.method)
            notes += _notes(rows, observation, name)
    values = np.column_stack([columns[variable] for variable in frame.columns])
    inputs = {**(signals or {}), **observation.inputs}
    trajectory = Trajectory(t, values, frame.columns, {name: s.values(t) for name, s in inputs.items()})
    return Completion(trajectory, noise, tuple(methods), tuple(notes))


@dataclass(frozen=True, eq=False)
class _Smooth:
    """A smooth curve, the noise of each measured column in ascending derivative, and the method that made it."""

    derivative: Curve
    noise: tuple[float, ...]
    method: str


def _smooth(rows: Rows, method: str) -> _Smooth:
    if method in ("auto", "gp") and _can_be_thinned(rows):
        process = fit_gaussian_process(rows, CLOCKS if method == "auto" else (None,))
        if process is not None and _resolves(process, rows):
            return _Smooth(process.derivative, process.noise, "gp")
    if method in ("auto", "gp", "whittaker"):
        level, lowered = _lowered(rows)
        spline, noise = fit_whittaker(lowered)
        return _Smooth(_integrated(spline, level, rows), noise, "whittaker")
    return _of_the_lowest(rows, method)


def _can_be_thinned(rows: Rows) -> bool:
    """Whether the hyperparameters of a long record can be found on a part of its samples: no swing is lost."""
    first = rows[rows.group == 0]
    step = -(-len(rows.t) // MOST_ROWS)
    return step == 1 or rough_noise(first.t[::step], first.y[::step]) < 3.0 * rough_noise(first.t, first.y)


def _resolves(process: GaussianProcess, rows: Rows) -> bool:
    """Whether what is left over is noise: a long record, thinned, may swing faster than the samples that were kept."""
    if len(rows.t) <= MOST_ROWS:
        return True
    for group in range(rows.n_groups):
        column = rows[rows.group == group]
        left = column.y - process.derivative(column.t, int(column.derivative[0]))
        if np.sqrt(np.mean(left**2)) > 2.0 * rough_noise(column.t, column.y):
            return False
    return True


def _of_the_lowest(rows: Rows, method: str) -> _Smooth:
    """The methods that know one column only: the lowest measured derivative, integrated and differentiated."""
    first = rows[rows.group == 0]
    level = float(np.mean(first.y))
    if not 5 <= len(first.t) <= _MOST_SAMPLES:
        raise LgfError(
            f"{method} takes 5 to {_MOST_SAMPLES} samples but there are {len(first.t)}; use auto or whittaker."
        )
    if method == "spline":
        spline = make_smoothing_spline(first.t, first.y - level, first.weight)
    else:
        spline = fit_perceptron(first.t, first.y - level, first.weight)
    columns = [rows[rows.group == g] for g in range(rows.n_groups)]
    return _Smooth(_integrated(spline, level, rows), tuple(rough_noise(c.t, c.y) for c in columns), method)


def _lowered(rows: Rows) -> tuple[float, Rows]:
    """The same rows as derivatives of the lowest measured one, less its mean level, which comes first; what lies below
    it is left to the integration."""
    kept = rows[rows.derivative >= rows.lead]
    level = float(np.mean(kept.y[kept.group == 0]))
    y = np.where(kept.derivative == rows.lead, kept.y - level, kept.y)
    return level, Rows(kept.t, y, kept.derivative - rows.lead, kept.group, kept.weight)


def _integrated(spline: BSpline, level: float, rows: Rows) -> Curve:
    """The curve u whose lowest measured derivative is the spline plus the level.

    Each integration starts from the initial state; where that is unknown, the integral has mean zero.
    """
    lead, start = rows.lead, rows.t.min()
    known = {int(d): float(y) for d, y in zip(rows.derivative, rows.y, strict=True) if d < lead}
    window = np.linspace(start, rows.t.max(), 1001)
    spline = BSpline(spline.t, spline.c + level, spline.k)
    curves = {lead: spline}
    for k in range(lead - 1, -1, -1):
        primitive = curves[k + 1].antiderivative()
        shift = known[k] - float(primitive(start)) if k in known else -float(np.mean(primitive(window)))
        curves[k] = BSpline(primitive.t, primitive.c + shift, primitive.k)
    return lambda t, order: curves[order](t) if order < lead else spline(t, order - lead)


def _notes(rows: Rows, observation: Observation, state: str) -> tuple[str, ...]:
    unknown = [v for v in (Variable(state, k) for k in range(rows.lead)) if v not in observation.initial]
    if not unknown:
        return ()
    names = " and ".join(map(str, unknown))
    return (f"The level of {names} is a guess, because only a derivative was measured; give the initial state.",)
