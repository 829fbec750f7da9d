"""Sharing: which constants of a system differ between experiments."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from lgf.fit.target import Target
from lgf.solver.kernels.trajectory_fit import Unknowns


@dataclass(frozen=True)
class Varying:
    """A constant with a value of its own in each experiment, normally distributed around a mean if that is known."""

    constant: int
    mean: float = 0.0
    deviation: float = np.inf  # infinite = nothing is known about the distribution


@dataclass(frozen=True)
class Sharing:
    """The constants that vary by experiment; the others are common to all experiments."""

    varying: tuple[Varying, ...] = ()


COMMON = Sharing()
_LEAST = 1e-3  # of the size of an unknown: smaller ones are moved as one of this size to find a derivative


@dataclass(frozen=True, eq=False)
class Layout:
    """The positions of constants and initial values among the unknowns of a fit."""

    source: np.ndarray  # [E, p] position of each constant
    owner: np.ndarray  # [free] the constant whose bounds and start a free constant has
    experiment: np.ndarray  # [free] the experiment in which it is used; -1 = all

    @property
    def n_free(self) -> int:
        """The number of free constants, each experiment's own ones included."""
        return len(self.owner)

    def by_experiment(self, x: np.ndarray) -> np.ndarray:
        """The constants [E, p] of the unknowns x."""
        return x[self.source]

    def free(self, by_experiment: np.ndarray) -> np.ndarray:
        """The free constants of the constants [E, p]."""
        return by_experiment[np.maximum(self.experiment, 0), self.owner]

    @cached_property
    def mean(self) -> np.ndarray:
        """The matrix [p, free] from the free constants to the constants, averaged over the experiments."""
        n_experiments, p = self.source.shape
        matrix = np.zeros((p, self.n_free))
        for row in self.source:
            matrix[np.arange(p), row] += 1.0 / n_experiments
        return matrix


@lru_cache(maxsize=256)
def layout_of(n_constants: int, n_experiments: int, sharing: Sharing = COMMON) -> Layout:
    """The layout: common constants first, then those of each experiment."""
    varying = [v.constant for v in sharing.varying]
    source = np.zeros((n_experiments, n_constants), np.int64)
    owner: list[int] = []
    experiment: list[int] = []
    for j in range(n_constants):
        if j not in varying:
            source[:, j] = len(owner)
            owner.append(j)
            experiment.append(-1)
    for j in varying:
        source[:, j] = len(owner) + np.arange(n_experiments)
        owner += [j] * n_experiments
        experiment += range(n_experiments)
    return Layout(source, np.array(owner, np.int64), np.array(experiment, np.int64))


def unknowns_of(layout: Layout, target: Target, sizes: np.ndarray, varying: Sequence[Varying] = ()) -> Unknowns:
    """The unknowns of a fit for the kernels, with the priors of initial values and of constants that vary.

    `sizes` [P] are typical absolute values of the unknowns.
    """
    mean = np.concatenate([np.zeros(layout.n_free), target.initial_guess()])
    error = np.concatenate([np.zeros(layout.n_free), target.initial_error])
    for v in varying:
        if np.isfinite(v.deviation):
            own = np.flatnonzero(layout.owner == v.constant)
            mean[own], error[own] = v.mean, v.deviation * np.sqrt(target.power)
    return Unknowns(layout.source, layout.n_free, mean, error, _LEAST * np.minimum(sizes, 1.0))
