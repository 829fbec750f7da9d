"""Observation: the measurements of one experiment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lgf.errors import LgfError, quoted
from lgf.expression.frame import HIGHEST_ORDER, Variable, check_name
from lgf.settings.ranges import Array
from lgf.solver.forcing import Forcing
from lgf.solver.trajectory import read_only

LEAST_SAMPLES = 3


@dataclass(frozen=True, eq=False)
class Observation:
    """One experiment: `values` (N, K) at strictly increasing times `t` (N,), NaN where a sample is missing.

    Column j holds the variable `columns[j]`: ("u",) is the state u alone, ("u''",) its acceleration alone, ("prey",
    "predator") two states. `weights` (N, K) multiply the squared errors. `initial` holds the state vector at t[0] by
    variable, as far as it is known; for one state it may be a sequence u(t[0]), u'(t[0]), ... `inputs` are the known
    inputs of this experiment by name, where it has its own.
    """

    t: Array
    values: Array
    columns: tuple[Variable, ...] = (Variable("u"),)
    weights: Array | None = None
    initial: Mapping[Variable, float] = field(default_factory=dict)
    inputs: Mapping[str, Forcing] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self):
        set_ = object.__setattr__
        set_(self, "t", _numbers(self.t, "t"))
        set_(self, "values", _columns(_numbers(self.values, "the measured values")))
        _check_times(self.t)
        check_shape(self.values.shape, len(self.t))
        set_(self, "columns", _variables(self.columns, self.values.shape))
        _check_values(self.values, self.columns)
        if self.weights is not None:
            set_(self, "weights", _weights(self.weights, self.values.shape))
        set_(self, "initial", _initial(self.initial, self.states))
        set_(self, "inputs", dict(self.inputs or {}))
        for name, forcing in self.inputs.items():
            check_name(name)
            if not isinstance(forcing, Forcing):
                raise LgfError(f"the input {name} is a {type(forcing).__name__}; make it a Forcing first.")

    def __len__(self) -> int:
        return len(self.t)

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the states of which values or derivatives were measured."""
        return tuple(dict.fromkeys(variable.name for variable in self.columns))

    @property
    def window(self) -> tuple[float, float]:
        """The first and the last time."""
        return float(self.t[0]), float(self.t[-1])

    @property
    def n_samples(self) -> int:
        """The number of measured values; missing ones do not count."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    def column(self, variable: Variable) -> np.ndarray | None:
        """The measured values of this variable, or None."""
        return self.values[:, self.columns.index(variable)] if variable in self.columns else None


def _numbers(values: Any, what: str) -> np.ndarray:
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise LgfError(f"{what} hold complex numbers; give real ones.")
        return read_only(array)
    except (TypeError, ValueError) as error:
        if isinstance(error, LgfError):
            raise
        raise LgfError(f"{what} cannot be read as an array of numbers ({error}).") from error


def _columns(values: np.ndarray) -> np.ndarray:
    if values.ndim not in (1, 2):
        raise LgfError(
            f"the measured values have shape {values.shape}; give one value per time, or one column per measured "
            "derivative."
        )
    return read_only(values[:, None] if values.ndim == 1 else values)


def _variables(columns: Any, shape: tuple[int, ...]) -> tuple[Variable, ...]:
    names = (columns,) if isinstance(columns, (str, Variable)) else tuple(columns)
    variables = tuple(v if isinstance(v, Variable) else Variable.read(str(v)) for v in names)
    for variable in variables:
        check_name(variable.name)
        if not 0 <= variable.derivative <= HIGHEST_ORDER:
            raise LgfError(
                f"the measured derivative is {quoted(variable.derivative)}; give 0 for the state, 1 for its first "
                f"derivative (at most {HIGHEST_ORDER})."
            )
    if len(variables) != shape[1]:
        raise LgfError(f"there are {shape[1]} measured columns but {len(variables)} names; name each column.")
    if len(set(variables)) != len(variables):
        raise LgfError(
            f"the measured columns {', '.join(map(str, variables))} repeat; give repeated measurements as experiments."
        )
    return variables


def _check_times(t: np.ndarray) -> None:
    if t.ndim != 1:
        raise LgfError(f"t has shape {t.shape}; give one time per sample.")
    if len(t) < LEAST_SAMPLES:
        what = "is 1 sample" if len(t) == 1 else f"are {len(t)} samples"
        raise LgfError(f"there {what}; at least {LEAST_SAMPLES} are needed.")
    if not np.all(np.isfinite(t)):
        at = int(np.flatnonzero(~np.isfinite(t))[0])
        raise LgfError(f"the time of sample {at + 1} is {t[at]}; every sample needs a finite time.")
    steps = np.diff(t)
    if np.all(steps > 0):
        _check_spacing(t, steps)
        return
    at = int(np.flatnonzero(steps <= 0)[0])
    if steps[at] == 0:
        raise LgfError(
            f"time {t[at]:.6g} stands twice (samples {at + 1} and {at + 2}); average the two, remove one, or name the "
            "columns that tell experiments apart."
        )
    raise LgfError(
        f"time goes back from {t[at]:.6g} to {t[at + 1]:.6g} at sample {at + 2}; sort the rows by time, or name the "
        "columns that tell experiments apart."
    )


def _check_spacing(t: np.ndarray, steps: np.ndarray) -> None:
    """Raises LgfError if powers of the spacing or the window, by which derivatives divide, overflow or vanish."""
    length = float(t[-1]) - float(t[0])
    if not 1e-30 <= length <= 1e30:
        raise LgfError(
            f"the record is {length:.1g} long; give the times in a unit in which that is between 1e-30 and 1e30."
        )
    at = int(np.argmin(steps))
    if steps[at] < 1e-15 * length:
        raise LgfError(
            f"samples {at + 1} and {at + 2} are {steps[at]:.1g} apart in a record that is {length:.1g} long; average "
            "the two, or remove one."
        )


def check_shape(shape: tuple[int, ...], n: int) -> None:
    """Raises LgfError unless values of this shape (N, K) have one row for each of the n times."""
    if shape[0] != n and shape[1] == n:
        raise LgfError(
            f"the values have shape {shape} but there are {n} times; give one row per time and one column per state: "
            "transpose them."
        )
    if shape[0] != n:
        raise LgfError(f"there are {shape[0]} values but {n} times; give one value per time, NaN where missing.")


def _check_values(values: np.ndarray, columns: tuple[Variable, ...]) -> None:
    if np.any(np.isinf(values)):
        row = int(np.flatnonzero(np.any(np.isinf(values), axis=1))[0])
        raise LgfError(f"sample {row + 1} is infinite; remove it or write NaN for a missing value.")
    for variable, column in zip(columns, values.T, strict=True):
        n_present = int(np.count_nonzero(~np.isnan(column)))
        if n_present < LEAST_SAMPLES:
            raise LgfError(
                f"the measured {variable} has {n_present} value{'s' * (n_present != 1)} not missing; "
                f"at least {LEAST_SAMPLES} are needed."
            )
    largest = float(np.nanmax(np.abs(values)))
    if largest > 1e150:
        raise LgfError("the measured values exceed 1e150; give them in another unit.")
    if 0.0 < largest < 1e-150:
        raise LgfError("the measured values are all below 1e-150; give them in another unit.")


def _weights(weights: object, shape: tuple[int, ...]) -> np.ndarray:
    array = _columns(_numbers(weights, "the weights"))
    if array.shape != shape:
        raise LgfError(f"the weights have shape {array.shape} but the measured values {shape}; give one for each.")
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise LgfError("the weights must be finite and not negative; give 0 to leave a sample out.")
    if not np.any(array > 0):
        raise LgfError("all weights are zero; give at least some samples a positive weight.")
    return array


def _initial(initial: Any, states: tuple[str, ...]) -> dict[Variable, float]:
    """The known part of the initial state by variable; a sequence is (u, u', ...) or one value for each state."""
    if initial is None:
        return {}
    if isinstance(initial, Mapping):
        named = {k if isinstance(k, Variable) else Variable.read(str(k)): v for k, v in initial.items()}
    else:
        array = np.atleast_1d(_numbers(initial, "the initial state"))
        single = len(states) == 1
        most = HIGHEST_ORDER if single else len(states)
        if array.ndim != 1 or not 1 <= len(array) <= most:
            raise LgfError(
                f"the initial state has shape {array.shape}; give {states[0]}(t0), or {states[0]}(t0) and "
                f"{states[0]}'(t0), as numbers."
                if single
                else f"the initial state has shape {array.shape}; give one number for each of {', '.join(states)}."
            )
        variables = [Variable(states[0], d) if single else Variable(states[d]) for d in range(len(array))]
        named = dict(zip(variables, array, strict=True))
    values = {variable: float(_numbers(value, "the initial state")) for variable, value in named.items()}
    if not all(np.isfinite(value) for value in values.values()):
        raise LgfError("the initial state is not finite; give numbers, or leave it out to have it estimated.")
    return values
