"""The known values of one state of an observation, the input of the smoothers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lgf.data.observation import Observation


@dataclass(frozen=True, eq=False)
class Rows:
    """Known values of a state: `y[i]` is its `derivative[i]`-th derivative at `t[i]`.

    `group[i]` numbers the measured column whose noise the row carries, -1 marks a row that is known exactly; the mean
    `weight` of the measured rows is 1.
    """

    t: np.ndarray
    y: np.ndarray
    derivative: np.ndarray
    group: np.ndarray
    weight: np.ndarray

    def __getitem__(self, keep: np.ndarray) -> "Rows":
        return Rows(self.t[keep], self.y[keep], self.derivative[keep], self.group[keep], self.weight[keep])

    @cached_property
    def lead(self) -> int:
        """The lowest measured derivative."""
        return int(self.derivative[self.group >= 0].min())

    @cached_property
    def n_groups(self) -> int:
        """The number of measured columns."""
        return int(self.group.max()) + 1

    @cached_property
    def members(self) -> list[np.ndarray]:
        """The rows of each measured column, and at the end those that are known exactly."""
        return [np.flatnonzero(self.group == g) for g in (*range(self.n_groups), -1)]

    @cached_property
    def deviations(self) -> np.ndarray:
        """The standard deviation of each measured column, never zero."""
        deviations = [float(np.std(self.y[self.group == g])) for g in range(self.n_groups)]
        return np.array([d if d > 0 else 1e-12 for d in deviations])

    @cached_property
    def orders(self) -> list[int]:
        """The derivatives that occur, in ascending order."""
        return np.unique(self.derivative).tolist()


def rows_of(observation: Observation, state: str) -> Rows:
    """The samples of the state with positive weight, by ascending derivative, then its initial values."""
    parts: list[tuple[np.ndarray, ...]] = []
    for group, variable in enumerate(sorted(v for v in observation.columns if v.name == state)):
        derivative, column = variable.derivative, observation.columns.index(variable)
        y = observation.values[:, column]
        weight = np.ones(len(y)) if observation.weights is None else observation.weights[:, column]
        present = ~np.isnan(y) & (weight > 0)
        n = int(present.sum())
        if n:
            weight = weight[present] / weight[present].mean()
            parts.append((observation.t[present], y[present], np.full(n, derivative), np.full(n, group), weight))
    known = sorted((v.derivative, value) for v, value in observation.initial.items() if v.name == state)
    k = len(known)
    initial, derivatives = np.array([value for _, value in known], float), np.array([d for d, _ in known], int)
    parts.append((np.full(k, observation.t[0]), initial, derivatives, np.full(k, -1), np.ones(k)))
    return Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
