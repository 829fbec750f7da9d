"""Forcing: a known input as a function of time, by formula or by samples."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import PlainSerializer, PlainValidator

from lgf.errors import LgfError
from lgf.expression.numeric import evaluate
from lgf.expression.parse import read_expression
from lgf.expression.print import plain
from lgf.expression.tree import Expression, T
from lgf.settings.ranges import Array
from lgf.solver.trajectory import read_only

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

FUNCTION_SAMPLES = 4097
_MOST_TABLE_ROWS = 1 << 17
_LEAST_STEP = 0.1  # of the range of the values: smaller changes are those of a rounded signal
_LONE_SHARE = 0.8  # of the changes that have none beside them, if a signal has steps
_LEAST_SHARE = 0.1  # of the samples at the rarer level of a signal with two: a blow or two are fewer
_ROUNDED = 0.01  # of a step: how far rounded times may lie off equally spaced ones
_ROUNDING = 1e-9  # of a step: a sample that is held begins at its time, whatever the rounding of the time
_LARGEST = 1e75  # of forcing samples, so that their spline stays finite


@dataclass(frozen=True, eq=False)
class Forcing:
    """A known input: a formula in t, or samples joined by a cubic table.

    Exactly one of `formula` and `samples` (M, 2: time, value) is set. Samples that change by steps (a valve, a switch)
    are held until the next one instead, and so are all samples if `held` says it. Outside its samples the first and the
    last value are held. Build one by `from_formula`, `from_samples` or `from_function`.
    """

    formula: Annotated[Expression, PlainValidator(read_expression), PlainSerializer(plain)] | None = None
    samples: Array | None = None
    held: bool = False

    def __post_init__(self):
        if (self.formula is None) == (self.samples is None):
            raise LgfError("a forcing is either a formula or samples; give exactly one of the two.")
        if self.formula is not None:
            _check_formula(self.formula)
        if self.samples is not None:
            object.__setattr__(self, "samples", read_only(self.samples))
            _check_samples(self.samples)

    @classmethod
    def from_formula(cls, formula: str | Expression) -> "Forcing":
        """The forcing given by a formula in t, such as "2*sin(0.5*t)"."""
        return cls(formula=read_expression(formula) if isinstance(formula, str) else formula)

    @classmethod
    def from_samples(cls, t: ArrayLike, values: ArrayLike, held: bool = False) -> "Forcing":
        """The forcing through these samples; missing values (NaN) are bridged by the interpolation.

        If `held`, each value is held until the next one; otherwise it is if the samples change by steps.
        """
        t, values = np.asarray(t, dtype=float), np.asarray(values, dtype=float)
        if t.ndim != 1 or values.shape != t.shape:
            raise LgfError(
                f"forcing has {values.size} samples but t has {t.size}; "
                "give a function, a formula, or one value per time."
            )
        return cls(samples=np.column_stack([t, values])[~np.isnan(values) | ~np.isfinite(t)], held=held)

    @classmethod
    def from_function(
        cls, function: Callable[[float], float], start: float, stop: float, n: int = FUNCTION_SAMPLES
    ) -> "Forcing":
        """The forcing by a Python function of one time, sampled at `n` times of the window."""
        t = np.linspace(start, stop, n)
        try:
            values = np.array([float(function(float(x))) for x in t])
        except Exception as error:  # the function is the user's, so any error of it is shown
            raise LgfError(
                f"the forcing function failed ({type(error).__name__}: {error}); call it on t first."
            ) from error
        if not np.all(np.isfinite(values)):
            at = t[~np.isfinite(values)][0]
            raise LgfError(f"the forcing function is not finite at t = {at:.6g}; it must be finite on the window.")
        return cls.from_samples(t, values)

    @cached_property
    def has_steps(self) -> bool:
        """Whether the samples are levels with steps between them, as of a valve or a switch.

        Two levels are those of a switch, which may be thrown at every sample. Of more levels the changes are lone ones,
        and large: those of a pulse follow each other, and those of a slow signal that was rounded are small.
        """
        if self.samples is None or self.held:
            return self.held
        values = self.samples[:, 1]
        low = np.count_nonzero(values == values.min())
        if low + np.count_nonzero(values == values.max()) == len(values):
            rarer = min(low, len(values) - low)
            if rarer > 1 and rarer >= _LEAST_SHARE * len(values):
                return True
        changes = np.diff(values)
        changing = changes != 0.0
        if not 1 <= np.count_nonzero(changing) <= len(changes) / 2:
            return False
        lone = changing & ~np.r_[False, changing[:-1]] & ~np.r_[changing[1:], False]
        large = np.median(np.abs(changes[changing])) >= _LEAST_STEP * np.ptp(self.samples[:, 1])
        return bool(lone.sum() >= _LONE_SHARE * changing.sum() and large)

    @cached_property
    def _table(self) -> tuple[np.ndarray, float, float]:
        """(coefficients (M, 4), t0, 1/dt): with x = (t - t0)/dt, i = floor(x), s = x - i, F = sum_k c[i, k] s^k."""
        assert self.samples is not None, "a formula has no table; call sampled(start, stop) first"
        t, values = self.samples[:, 0], self.samples[:, 1]
        if self.has_steps:
            return _held_pieces(t, values)
        steps = np.diff(t)
        if np.ptp(steps) > 1e-6 * steps.mean():
            # four cells per short step keep the resampling error far below that of the spline
            uniform = np.linspace(t[0], t[-1], _cells(t, 4) + 1)
            t, values = uniform, _spline(t, values)(uniform)
        coefficients = np.ascontiguousarray(_spline(t, values).c[::-1].T)
        dt = (t[-1] - t[0]) / (len(t) - 1)
        coefficients *= dt ** np.arange(coefficients.shape[1])
        if coefficients.shape[1] < 4:
            coefficients = np.pad(coefficients, ((0, 0), (0, 4 - coefficients.shape[1])))
        coefficients.setflags(write=False)
        return coefficients, float(t[0]), float(1.0 / dt)

    def sampled(self, start: float, stop: float, n: int = FUNCTION_SAMPLES) -> "Forcing":
        """The same forcing as samples on a window; samples stay as they are."""
        if self.samples is not None:
            return self
        t = np.linspace(start, stop, n)
        return Forcing.from_samples(t, self.values(t))

    def values(self, t: ArrayLike) -> np.ndarray:
        """The input at these times."""
        t = np.asarray(t, dtype=float)
        if self.formula is not None:
            return np.broadcast_to(np.asarray(evaluate(self.formula, {"t": t}), dtype=float), t.shape).copy()
        coefficients, t0, rate = self._table
        x = np.clip((t - t0) * rate, 0.0, len(coefficients))
        i = np.minimum(x.astype(int), len(coefficients) - 1)
        s = x - i
        c = coefficients[i]
        return ((c[..., 3] * s + c[..., 2]) * s + c[..., 1]) * s + c[..., 0]

    def jumps(self) -> np.ndarray:
        """The times at which the input jumps."""
        if not self.has_steps:
            return np.empty(0)
        pieces, start, rate = self._table
        return start + (1 + np.flatnonzero(np.diff(pieces[:, 0]))) / rate

    def covers(self, start: float, stop: float) -> bool:
        """Whether the window lies within the samples (a formula covers every window)."""
        if self.samples is None:
            return True
        slack = 1e-9 * (stop - start)
        return bool(self.samples[0, 0] <= start + slack and self.samples[-1, 0] >= stop - slack)

    def describe(self) -> str:
        """The formula, or the number of samples and their window."""
        if self.formula is not None:
            return plain(self.formula)
        assert self.samples is not None
        t = self.samples[:, 0]
        return f"{len(t)} samples from t = {t[0]:.6g} to {t[-1]:.6g}"


def _cells(t: np.ndarray, each: int) -> int:
    """The number of equal cells that puts so many of them into a short step of irregular times."""
    short = (t[-1] - t[0]) / np.quantile(np.diff(t), 0.05)
    return int(np.clip(each * short, each * len(t), max(_MOST_TABLE_ROWS, len(t))))


def _held_pieces(t: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float, float]:
    """As `Forcing._table`, with every value held until the next sample.

    Times that were rounded to a few digits count as equally spaced. Otherwise a step lies up to 1/64 of a short
    interval between samples off its time.
    """
    uniform = np.linspace(t[0], t[-1], len(t))
    if np.max(np.abs(t - uniform)) > _ROUNDED * (uniform[1] - uniform[0]):
        uniform = np.linspace(t[0], t[-1], _cells(t, 64) + 1)
        nearest = np.searchsorted(t, uniform + 0.5 * (uniform[1] - uniform[0]), side="right") - 1
        values = values[nearest]
    dt = uniform[1] - uniform[0]
    pieces = np.pad(values[:, None], ((0, 0), (0, 3)))
    pieces.setflags(write=False)
    return pieces, float(t[0] - _ROUNDING * dt), float(1.0 / dt)


def _spline(t: np.ndarray, values: np.ndarray) -> "CubicSpline":
    from scipy.interpolate import CubicSpline  # imported late: it takes a third of the time of a first solve

    return CubicSpline(t, values, bc_type="not-a-knot" if len(t) > 3 else "natural")


def longest_step(signals: Iterable[Forcing], longest: float) -> float:
    """The longest step of an integrator that does not miss a pulse of a sampled input, and at most `longest`."""
    for forcing in signals:
        if forcing.samples is not None and not forcing.has_steps:  # steps end where such an input jumps
            longest = min(longest, 4.0 * float(np.median(np.diff(forcing.samples[:, 0]))))
    return longest


def input_table(signals: Sequence[Forcing | None]) -> np.ndarray:
    """The sampled inputs of one experiment as the register machine reads them (see `kernels.machine`).

    None stands for an input that is compiled into the program or does not occur; it is 0 in the table.
    """
    headers = np.zeros((len(signals), 4))
    rows = [headers]
    held = [forcing is not None and forcing.has_steps for forcing in signals]
    first = len(signals)
    for i, forcing in enumerate(signals):
        pieces, start, rate = (np.zeros((1, 4)), 0.0, 0.0) if forcing is None else forcing._table
        headers[i] = start, rate, first, len(pieces) + 0.5 * held[i]
        rows.append(pieces)
        first += len(pieces)
    return np.concatenate(rows)


def _check_formula(formula: Expression) -> None:
    for node in formula.nodes():
        if node.head == "constant":
            raise LgfError("a forcing formula has no open constants; write numbers in place of C.")
        if node.head == "symbol" and node != T:
            raise LgfError(f"a forcing formula depends on t only, but {plain(node)} stands in it.")


def _check_samples(samples: np.ndarray) -> None:
    if samples.ndim != 2 or samples.shape[1] != 2:
        raise LgfError(f"forcing samples have shape {samples.shape}; give a time and a value for each.")
    t, values = samples.T
    if not np.all(np.isfinite(samples)):
        raise LgfError("forcing samples contain infinite values or times; remove those rows.")
    if len(t) < 2:
        raise LgfError(f"forcing has {len(t)} usable samples; at least 2 are needed.")
    if np.any(np.diff(t) <= 0):
        raise LgfError("the times of the forcing samples do not increase; sort them and remove duplicates.")
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = np.diff(values) / np.diff(t)
    if not all(np.max(np.abs(x)) <= _LARGEST for x in (t, values, slopes)):
        raise LgfError(f"the forcing samples, their times or their slopes exceed {_LARGEST:g}; change the units.")
