"""What was measured in one experiment, what is known beforehand, and the two together: a problem."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lgf.data.knowledge import Knowledge
from lgf.errors import LgfError, quoted
from lgf.solver.trajectory import Forcing, read_only

LEAST_SAMPLES = 3
MOST_SAMPLES = 200_000  # of all experiments: a fit of more takes seconds, and they add nothing
HIGHEST_DERIVATIVE = 4


@dataclass(frozen=True, eq=False)
class Observation:
    """One experiment: `values` (N, K) at strictly increasing times `t` (N,), NaN where a sample is missing.

    Column j holds the derivative `measured[j]` of u: (0,) is u alone, (2,) the acceleration alone, (0, 2) both.
    `weights` (N, K) multiply the squared errors. `initial` holds u(t[0]), u'(t[0]), ... as far as they are known.
    `forcing` is the input of this experiment where it has its own.
    """

    t: np.ndarray
    values: np.ndarray
    measured: tuple[int, ...] = (0,)
    weights: np.ndarray | None = None
    initial: tuple[float, ...] | None = None
    forcing: Forcing | None = None
    name: str = ""

    def __post_init__(self):
        set_ = object.__setattr__
        set_(self, "t", _numbers(self.t, "t"))
        set_(self, "values", _columns(_numbers(self.values, "the measured values")))
        _check_times(self.t)
        set_(self, "measured", _measured(self.measured, self.values.shape[1]))
        _check_values(self.values, len(self.t))
        if self.weights is not None:
            set_(self, "weights", _weights(self.weights, self.values.shape))
        if self.initial is not None:
            set_(self, "initial", _initial(self.initial))
        if self.forcing is not None and not isinstance(self.forcing, Forcing):
            raise LgfError(f"forcing is a {type(self.forcing).__name__}; make it a Forcing first.")

    def __len__(self) -> int:
        return len(self.t)

    @property
    def window(self) -> tuple[float, float]:
        """The first and the last time."""
        return float(self.t[0]), float(self.t[-1])

    @property
    def n_samples(self) -> int:
        """How many numbers were measured; missing ones do not count."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    def column(self, derivative: int) -> np.ndarray | None:
        """The measured values of this derivative, or None."""
        return self.values[:, self.measured.index(derivative)] if derivative in self.measured else None


@dataclass(frozen=True, eq=False)
class Problem:
    """One or more experiments of the same system, and what is known about it."""

    observations: tuple[Observation, ...]
    knowledge: Knowledge = field(default_factory=Knowledge)

    def __post_init__(self):
        if isinstance(self.observations, Observation):
            object.__setattr__(self, "observations", (self.observations,))
        object.__setattr__(self, "observations", tuple(self.observations))
        if not self.observations:
            raise LgfError("there is no experiment in the data; give at least one.")
        if self.n_samples > MOST_SAMPLES:
            every = -(-self.n_samples // MOST_SAMPLES)
            raise LgfError(
                f"there are {self.n_samples:,} samples but at most {MOST_SAMPLES:,} are searched; "
                f"average every {every}, or keep one of them."
            )
        order, known = self.knowledge.order, self.knowledge
        for observation in self.observations:
            where = f"experiment {quoted(observation.name)}" if observation.name else "the data"
            highest = max(observation.measured)
            if order is not None and highest > order:
                raise LgfError(
                    f"{where}: derivative {highest} of u was measured but order {order} is said to be known; "
                    f"leave the order open or set it to at least {highest}."
                )
            if order is not None and observation.initial is not None and len(observation.initial) > order:
                raise LgfError(
                    f"{where}: the initial state has {len(observation.initial)} values but an equation of "
                    f"order {order} takes {order}; give u(t0) and its derivatives below the order."
                )
            if known.forced is False and observation.forcing is not None:
                raise LgfError(f"{where} has a forcing but the system is said to be unforced; drop one of the two.")

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders an equation may have: the known one, else 1 and 2 as far as the measured derivatives allow."""
        if self.knowledge.order is not None:
            return (self.knowledge.order,)
        least = max(1, *(max(o.measured) for o in self.observations))
        return tuple(range(least, max(2, least) + 1))

    @property
    def forced(self) -> bool | None:
        """Whether a given forcing drives the system; None when nobody said."""
        if any(o.forcing is not None for o in self.observations):
            return True
        return self.knowledge.forced

    @property
    def n_samples(self) -> int:
        """How many numbers were measured in all experiments together."""
        return sum(o.n_samples for o in self.observations)

    @property
    def measured(self) -> tuple[int, ...]:
        """Every derivative measured in some experiment, ascending."""
        return tuple(sorted({k for o in self.observations for k in o.measured}))

    def forcing(self, experiment: int = 0) -> Forcing | None:
        """The input of this experiment: its own, else the one known for all."""
        return self.observations[experiment].forcing or self.knowledge.forcing


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


def _measured(measured: Any, columns: int) -> tuple[int, ...]:
    orders = tuple(measured) if isinstance(measured, Sequence) else (measured,)
    for order in orders:
        if isinstance(order, (bool, str)) or not hasattr(order, "__index__") or not 0 <= order <= HIGHEST_DERIVATIVE:
            raise LgfError(
                f"the measured derivative is {quoted(order)}; give 0 for u, 1 for u', 2 for u'' "
                f"(at most {HIGHEST_DERIVATIVE})."
            )
    orders = tuple(int(order) for order in orders)
    if len(orders) != columns:
        raise LgfError(
            f"there are {columns} measured columns but {len(orders)} derivatives are named; name one for each column."
        )
    if len(set(orders)) != len(orders):
        raise LgfError(f"the measured derivatives {orders} repeat; give repeated measurements as experiments.")
    return orders


def _check_times(t: np.ndarray) -> None:
    if t.ndim != 1:
        raise LgfError(f"t has shape {t.shape}; give one time per sample.")
    if len(t) < LEAST_SAMPLES:
        raise LgfError(f"there are {len(t)} samples; at least {LEAST_SAMPLES} are needed.")
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
            "column that tells experiments apart."
        )
    raise LgfError(
        f"time goes back from {t[at]:.6g} to {t[at + 1]:.6g} at sample {at + 2}; sort the rows by time, or name the "
        "column that tells experiments apart."
    )


def _check_spacing(t: np.ndarray, steps: np.ndarray) -> None:
    """Derivatives divide by powers of these lengths, which must neither overflow nor vanish."""
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


def _check_values(values: np.ndarray, n: int) -> None:
    if len(values) != n:
        raise LgfError(f"there are {len(values)} values but {n} times; give one value per time, NaN where missing.")
    if np.any(np.isinf(values)):
        row = int(np.flatnonzero(np.any(np.isinf(values), axis=1))[0])
        raise LgfError(f"sample {row + 1} is infinite; remove it or write NaN for a missing value.")
    for column in range(values.shape[1]):
        found = int(np.count_nonzero(~np.isnan(values[:, column])))
        if found < LEAST_SAMPLES:
            raise LgfError(
                f"measured column {column + 1} has {found} values that are not missing; "
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


def _initial(initial: object) -> tuple[float, ...]:
    array = np.atleast_1d(_numbers(initial, "the initial state"))
    if array.ndim != 1 or not 1 <= len(array) <= HIGHEST_DERIVATIVE:
        raise LgfError(f"the initial state has shape {array.shape}; give u(t0), or u(t0) and u'(t0), as numbers.")
    if not np.all(np.isfinite(array)):
        raise LgfError("the initial state is not finite; give numbers, or leave it out to have it estimated.")
    return tuple(float(x) for x in array if not math.isnan(x))
