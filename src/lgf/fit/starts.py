"""The distribution of initial states over experiments: what is expected of the start of a new one.

The first samples of a new experiment determine its initial slope poorly. The starts of the other experiments say what
is usual: a prior, normally distributed, for each variable of the state vector.
"""

from dataclasses import dataclass

import numpy as np

from lgf.fit.target import Target
from lgf.solver.kernels.trajectory_fit import Unknowns

LEAST_EXPERIMENTS = 3  # fewer do not show a spread


@dataclass(frozen=True, eq=False)
class Starts:
    """Mean and standard deviation [n] of the initial states."""

    mean: np.ndarray
    deviation: np.ndarray


def starts_of(initial: np.ndarray, least: np.ndarray) -> Starts | None:
    """The distribution of these initial states [E, n]; None if there are too few.

    The deviation is that of a new experiment, whose mean is uncertain too. It is at least `least` [n].
    """
    n = len(initial)
    if n < LEAST_EXPERIMENTS:
        return None
    deviation = np.std(initial, axis=0, ddof=1) * np.sqrt(1.0 + 1.0 / n)
    return Starts(initial.mean(axis=0), np.maximum(deviation, least))


def with_starts(unknowns: Unknowns, target: Target, starts: Starts, variance: float) -> Unknowns:
    """The unknowns with this prior of the initial values; `variance` is that of the residuals in units of the noise."""
    mean, error = unknowns.mean.copy(), unknowns.error.copy()
    experiment, variable = np.nonzero(target.record.unknown >= 0)
    at = unknowns.n_free + target.record.unknown[experiment, variable]
    mean[at] = starts.mean[variable]
    error[at] = starts.deviation[variable] * np.sqrt(target.power / variance)
    return unknowns._replace(mean=mean, error=error)
