"""Completion of a record: every state and its derivatives at the sample times, from the measured columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lgf.data.noise import rough_noise
from lgf.data.observation import Observation
from lgf.errors import LgfError, quoted
from lgf.expression.frame import Frame, Variable
from lgf.smoothing.drift import Curve, least_motion, without_drift
from lgf.smoothing.gaussian_process import CLOCKS, MOST_ROWS, GaussianProcess, fit_gaussian_process
from lgf.smoothing.rows import Rows, rows_of
from lgf.solver.forcing import Forcing
from lgf.solver.trajectory import Trajectory
from lgf.threads import Spread, alone, one_blas_thread

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

# Splines and the network are imported where they are used: most records need neither, and SciPy's take long.
METHODS = ("auto", "gp", "whittaker", "mlp")
_MOST_SAMPLES = 5000  # for the network


@dataclass(frozen=True, eq=False)
class Completion:
    """A smooth record: `trajectory` holds every column of the frame at the sample times, NaN for states not measured.

    `noise` is the estimated standard deviation of each measured column; `methods` the smoother of each state; `notes`
    are sentences for the report.
    """

    trajectory: Trajectory
    noise: Mapping[Variable, float]
    methods: tuple[str, ...]
    notes: tuple[str, ...] = ()


def complete(
    observation: Observation,
    frame: Frame,
    method: str = "auto",
    signals: Mapping[str, Forcing] | None = None,
    spread: Spread = alone,
) -> Completion:
    """The record with every column of the frame, smoothed and, where needed, integrated; each state separately.

    "gp" is a Gaussian process, "whittaker" a penalised spline (both use every measured column and the initial state),
    "mlp" the paper's network (of the lowest measured derivative).
    "auto" takes the Gaussian process on the clock of the highest marginal likelihood, and the penalised spline for
    records that are too long for it. The states are smoothed side by side where `spread` has several threads.
    """
    if method not in METHODS:
        raise LgfError(f"the smoothing method is {quoted(method)}; choose from {', '.join(METHODS)}.")
    t = observation.t
    columns = {variable: np.full(len(t), np.nan) for variable in frame.columns}
    noise: dict[Variable, float] = {}
    methods, notes = [], []
    names = [name for name in frame.names if name in observation.states]
    with one_blas_thread():
        curves = dict(zip(names, spread(lambda name: _curve(observation, name, method), names), strict=True))
        for name, order in frame.states:
            if name not in curves:
                methods.append("none")
                continue
            rows, smooth = curves[name]
            curve = smooth.derivative if _starts_known(rows) else without_drift(smooth.derivative, t, rows.lead)
            columns |= {Variable(name, k): curve(t, k) for k in range(order + 1)}
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
    """A smooth curve, the noise of each measured column in ascending derivative, and the method."""

    derivative: Curve
    noise: tuple[float, ...]
    method: str


def _curve(observation: Observation, state: str, method: str) -> tuple[Rows, _Smooth]:
    """The known values of a state and the curve through them."""
    rows = rows_of(observation, state)
    return rows, _smooth(rows, method)


def _smooth(rows: Rows, method: str) -> _Smooth:
    if method in ("auto", "gp") and _can_be_thinned(rows):
        process = fit_gaussian_process(rows, CLOCKS if method == "auto" else (None,))
        if process is not None and _resolves(process, rows):
            return _Smooth(process.derivative, process.noise, "gp")
    if method in ("auto", "gp", "whittaker"):
        from lgf.smoothing.whittaker import fit_whittaker

        level, lowered = _lowered(rows)
        spline, noise = fit_whittaker(lowered)
        return _Smooth(_integrated(spline, level, rows), noise, "whittaker")
    return _smooth_by_network(rows)


def _starts_known(rows: Rows) -> bool:
    """Whether the initial values of all integrals of the lowest measured derivative are given."""
    return np.count_nonzero(rows.derivative[rows.group < 0] < rows.lead) == rows.lead


def _can_be_thinned(rows: Rows) -> bool:
    """Whether a thinned record still shows every oscillation, so that it suffices for the hyperparameters."""
    first = rows[rows.group == 0]
    step = -(-len(rows.t) // MOST_ROWS)
    return step == 1 or rough_noise(first.t[::step], first.y[::step]) < 3.0 * rough_noise(first.t, first.y)


def _resolves(process: GaussianProcess, rows: Rows) -> bool:
    """Whether the residuals are noise; a long record may oscillate faster than its thinned samples show."""
    if len(rows.t) <= MOST_ROWS:
        return True
    for group in range(rows.n_groups):
        column = rows[rows.group == group]
        residual = column.y - process.derivative(column.t, int(column.derivative[0]))
        if np.sqrt(np.mean(residual**2)) > 2.0 * rough_noise(column.t, column.y):
            return False
    return True


def _smooth_by_network(rows: Rows) -> _Smooth:
    """The smooth curve by a network through the lowest measured derivative, integrated and differentiated."""
    from lgf.smoothing.perceptron import fit_perceptron

    first = rows[rows.group == 0]
    level = float(np.mean(first.y))
    if not 5 <= len(first.t) <= _MOST_SAMPLES:
        raise LgfError(f"mlp takes 5 to {_MOST_SAMPLES} samples but there are {len(first.t)}; use auto or whittaker.")
    curve = _integrated(fit_perceptron(first.t, first.y - level, first.weight), level, rows)
    if rows.lead > 0:
        given = set(rows.derivative[rows.group < 0].tolist())
        known = next(k for k in range(rows.lead + 1) if k == rows.lead or k not in given)
        curve = least_motion(curve, first.t, first.y, rows.lead, known)
    columns = [rows[rows.group == g] for g in range(rows.n_groups)]
    return _Smooth(curve, tuple(rough_noise(c.t, c.y) for c in columns), "mlp")


def _lowered(rows: Rows) -> tuple[float, Rows]:
    """The mean level of the lowest measured derivative, and the rows as derivatives of it less this level.

    Lower derivatives are left to the integration.
    """
    measured = rows[rows.derivative >= rows.lead]
    level = float(np.mean(measured.y[measured.group == 0]))
    y = np.where(measured.derivative == rows.lead, measured.y - level, measured.y)
    return level, Rows(measured.t, y, measured.derivative - rows.lead, measured.group, measured.weight)


def _integrated(spline: "BSpline", level: float, rows: Rows) -> Curve:
    """The curve u whose lowest measured derivative is the spline plus the level.

    Each integration starts from the initial state; where that is unknown, the integral has mean zero.
    """
    from scipy.interpolate import BSpline

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
