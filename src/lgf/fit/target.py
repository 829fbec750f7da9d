"""Target: the data of a problem for one frame, as arrays for the kernels, to which constants are fitted."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from lgf.expression.frame import Frame, Variable
from lgf.expression.numeric import Known, evaluate_known, known_values
from lgf.expression.tree import SIGNAL, Expression
from lgf.solver.forcing import Forcing
from lgf.solver.kernels.trajectory_fit import Record
from lgf.solver.program import Formulas

FINEST = 3e-10  # relative tolerance of the most accurate solutions: a record without noise asks for them
LEAST_ERROR = 10.0 * FINEST  # their relative error; no loss is trusted below its square


@dataclass(frozen=True, eq=False)
class Target:
    """A measured and completed record in arrays.

    loss = sum of weight * error^2 is relative: 1 is the loss of the answer 0. chi^2 = loss * power.
    """

    frame: Frame
    record: Record
    t: np.ndarray  # [N] all experiments, one after the other
    columns: np.ndarray  # [column, N] the completed columns of the frame
    inputs: np.ndarray  # [input, N]
    formulas: Formulas  # the inputs that are one formula for all experiments
    signals: tuple[dict[str, Forcing], ...] = field(repr=False)  # the inputs of each experiment
    measured: tuple[int, ...]  # columns
    power: float
    n_samples: int
    n_unknown: int  # initial values that must be fitted
    initial_error: np.ndarray = field(repr=False)  # [unknown] error of the first guess, a prior; 0 = no prior
    noise: np.ndarray = field(repr=False)  # [column] estimated standard deviation, NaN where not measured
    rounding: np.ndarray = field(repr=False)  # [column] error of the numbers as they are written, NaN likewise
    complete: np.ndarray = field(repr=False)  # [N] whether every state was measured in the experiment of the sample
    experiment: np.ndarray = field(repr=False)  # [E] the experiment of each segment; 0, 1, ... for whole experiments
    segments: int = 1  # into which each experiment is cut, at most
    cache: dict = field(default_factory=dict, repr=False)  # values, starts, windows

    @property
    def n_experiments(self) -> int:
        """The number of experiments."""
        return len(self.record.first) - 1

    @cached_property
    def first_segments(self) -> np.ndarray:
        """The first segment of each experiment."""
        return np.unique(self.experiment, return_index=True)[1]

    @cached_property
    def with_highest(self) -> bool:
        """Whether a highest derivative was measured."""
        return any(column >= self.frame.dimension for column in self.measured)

    @property
    def noise_loss(self) -> float:
        """The expected loss of the true equation, from the estimated noise."""
        return self.n_samples / self.power

    @cached_property
    def oscillations(self) -> float:
        """The most oscillations of an experiment: half the times that a highest derivative crosses its mean."""
        n, most = self.frame.dimension, 0
        for begin, end in pairwise(self.record.first):
            part = self.columns[n:, begin:end]
            above = part > part.mean(axis=1, keepdims=True)
            most = max(most, int(np.count_nonzero(np.diff(above, axis=1), axis=1).max()))
        return most / 2

    @property
    def floor(self) -> float:
        """The loss that the rounding of the data and the most accurate solutions leave; the same for all equations."""
        return LEAST_ERROR**2 + self.rounding_loss

    @cached_property
    def rounding_loss(self) -> float:
        """The loss due to the rounding of the data alone."""
        return float(np.sum(self.record.weight * np.nan_to_num(self.rounding) ** 2))

    @cached_property
    def spacing(self) -> float:
        """The median time between two samples of the first experiment."""
        return float(np.median(np.diff(self.t[: self.record.first[1]])))

    @cached_property
    def scales(self) -> np.ndarray:
        """Root mean square of each completed column, never zero."""
        rms = np.sqrt(np.mean(self.columns**2, axis=1))
        return np.where(rms > 0, rms, 1.0)

    @property
    def sizes(self) -> np.ndarray:
        """A typical absolute value for each variable of the state vector: the root mean square of its state."""
        states = {name: self.scales[self.frame.positions[Variable(name)]] for name in self.frame.names}
        return np.array([states[v.name] for v in self.frame.variables])

    @property
    def box(self) -> np.ndarray | None:
        """The range [n, 2] of each variable of the state vector in the data; None for one state."""
        if len(self.frame.states) == 1:
            return None
        columns = self.columns[: self.frame.dimension]
        return np.column_stack([columns.min(axis=1), columns.max(axis=1)])

    @property
    def window(self) -> tuple[float, float]:
        """The first and the last time of all experiments."""
        return float(self.t.min()), float(self.t.max())

    @cached_property
    def initial_length(self) -> float:
        """Description length of the fitted initial values, each by the number of samples of its experiment."""
        each = np.log(np.maximum(self.experiment_samples, 1))
        return float(np.sum(np.count_nonzero(self.record.unknown >= 0, axis=1) * each))

    @cached_property
    def experiment_samples(self) -> np.ndarray:
        """The number of measured values of each experiment."""
        return np.add.reduceat(np.count_nonzero(self.record.weight, axis=1), self.record.first[:-1])

    @cached_property
    def column_counts(self) -> np.ndarray:
        """The number of measured values of each column."""
        return np.count_nonzero(self.record.weight, axis=0)

    @cached_property
    def column_powers(self) -> np.ndarray:
        """The loss of the answer 0 in each column."""
        return np.sum(self.record.weight * self.record.data**2, axis=0)

    @cached_property
    def signals_squared(self) -> np.ndarray:
        """The mean square of the measured values of each column, 1 where nothing was measured."""
        present = self.record.weight > 0
        squares = np.sum(self.record.data**2, axis=0, where=present) / np.maximum(self.column_counts, 1)
        return np.where(squares > 0, squares, 1.0)

    @cached_property
    def weight_length(self) -> float:
        """The sum of the logarithms of the weights of all samples: inverse variances in units of their signal."""
        present = self.record.weight > 0
        relative = self.record.weight * self.power * self.signals_squared
        return float(np.sum(np.log(relative[present])))

    def first_noise(self, experiment: int, column: int) -> float:
        """The standard deviation of the noise of the first measured value, by its weight among those of the column."""
        weight = self.record.weight[:, column]
        begin, end = self.record.first[experiment : experiment + 2]
        own = weight[begin:end][weight[begin:end] > 0]
        if not len(own):
            return float(self.noise[column])
        return float(self.noise[column] * np.sqrt(1.0 / own[0] / np.mean(1.0 / weight[weight > 0])))

    def windows(self, fraction: float = 1.0) -> np.ndarray:
        """The number of samples in the first `fraction` of each experiment (at least five)."""
        if ("windows", fraction) not in self.cache:
            lengths = np.diff(self.record.first)
            counts = np.minimum(lengths, np.maximum(np.ceil(fraction * lengths).astype(np.int64), 5))
            self.cache["windows", fraction] = counts
        return self.cache["windows", fraction]

    def signal(self, fraction: float) -> float:
        """The loss of the answer 0 on the first `fraction` of each experiment."""
        if ("signal", fraction) not in self.cache:
            pairs = zip(self.record.first[:-1], self.windows(fraction), strict=True)
            powers = np.sum(self.record.weight * self.record.data**2, axis=1)
            self.cache["signal", fraction] = sum(float(powers[begin : begin + n].sum()) for begin, n in pairs)
        return self.cache["signal", fraction]

    @property
    def environment(self) -> dict:
        """The completed record by symbol."""
        inputs = {(name, SIGNAL): values for name, values in zip(self.frame.inputs, self.inputs, strict=True)}
        return {"t": self.t, **inputs, **dict(zip(self.frame.columns, self.columns, strict=True))}

    @cached_property
    def known_values(self) -> Known:
        """The same for many evaluations."""
        return known_values(self.environment)

    @cached_property
    def ranges(self) -> dict[str | Variable, tuple[float, float]]:
        """The smallest and the largest value of time ("t") and of every variable, initial states included."""
        ranges: dict[str | Variable, tuple[float, float]] = {"t": self.window}
        for i, variable in enumerate(self.frame.columns):
            low, high = float(self.columns[i].min()), float(self.columns[i].max())
            if variable.derivative == 0:
                low = min(low, float(self.record.initial[:, i].min()))
            ranges[variable] = low, high
        return ranges

    def values(self, expression: Expression) -> np.ndarray:
        """The finite values of an expression without constants over the completed record."""
        if expression not in self.cache:
            values = np.broadcast_to(evaluate_known(expression, self.known_values), self.t.shape)
            self.cache[expression] = values[np.isfinite(values)]
        return self.cache[expression]

    def initial_guess(self) -> np.ndarray:
        """First guess of the unknown initial values."""
        guess = np.zeros(self.n_unknown)
        unknown = self.record.unknown
        guess[unknown[unknown >= 0]] = self.record.initial[unknown >= 0]
        return guess
