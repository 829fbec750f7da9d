"""A few experiments that stand for many: those on which equations are searched."""

from dataclasses import replace

import numpy as np

from lgf.data.problem import Problem


def representatives(problem: Problem, most: int) -> list[int]:
    """At most so many experiments, spread evenly over the order of their mean values; all, if these differ in columns.

    >>> from lgf.data import Observation
    >>> wells = [Observation([0.0, 1.0, 2.0], [level] * 3) for level in (5.0, 1.0, 4.0, 2.0, 3.0)]
    >>> representatives(Problem(wells), 3)
    [0, 1, 4]
    """
    observations = problem.observations
    if len(observations) <= most or len({o.columns for o in observations}) > 1:
        return list(range(len(observations)))
    order = np.argsort([float(np.nanmean(o.values[:, 0])) for o in observations], kind="stable")
    return sorted(order[np.linspace(0, len(order) - 1, most).round().astype(int)].tolist())


def part_of(problem: Problem, experiments: list[int]) -> Problem:
    """The problem with these experiments only."""
    return replace(problem, observations=tuple(problem.observations[e] for e in experiments))
