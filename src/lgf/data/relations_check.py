"""Relations between measured columns: a column that is the derivative of another, a sum that should not change."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from lgf.data.noise import rough_noise
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.data.row_knowledge import row_knowledge
from lgf.expression.frame import Variable

_LEAST_SAMPLES = 12
_SAME_SLOPE = 0.1  # largest deviation of the slope from 1
_SMALL = 0.05  # of the signal: the largest deviation of an integral, on a record whose noise is small
_NOISES = 4.0  # the same in units of the noise
_CHANGED = 2.0  # in units of the noise: a sum that varies more is not constant


def derivative_pairs(observation: Observation) -> Iterator[tuple[str, str]]:
    """(state, other state) for every state whose derivative another state seems to be.

    The integral of a rate is the state up to a constant. Integrals average the noise, which derivatives would amplify.
    """
    states = [v.name for v in observation.columns if v.derivative == 0]
    for state, rate in permutations(states, 2):
        columns = [observation.column(Variable(name)) for name in (state, rate)]
        x, v = (c for c in columns if c is not None)
        present = ~np.isnan(x) & ~np.isnan(v)
        t, x, v = observation.t[present], x[present], v[present]
        if len(t) < _LEAST_SAMPLES or np.std(x) == 0.0 or np.std(v) == 0.0:
            continue
        integral = np.concatenate([[0.0], np.cumsum(np.diff(t) * (v[1:] + v[:-1]) / 2)])
        design = np.column_stack([integral, np.ones_like(t)])
        (slope, _), *_ = np.linalg.lstsq(design, x, rcond=None)
        deviation = float(np.std(x - design @ np.linalg.lstsq(design, x, rcond=None)[0]))
        small = max(_SMALL * float(np.std(x)), _NOISES * min(rough_noise(t, x), 0.1 * float(np.std(x))))
        if abs(slope - 1.0) < _SAME_SLOPE and deviation < small:
            yield state, rate


def broken_laws(problem: Problem) -> Iterator[tuple[str, int, float, float]]:
    """(sum, experiment, its lowest, its highest value) for every conserved sum that changes by more than the noise."""
    frame = problem.frames[-1]
    laws = row_knowledge(problem.knowledge, frame).laws
    for text, law in zip(problem.knowledge.conserved or (), laws, strict=True):
        for number, observation in enumerate(problem.observations):
            columns = {row: observation.column(frame.variables[frame.rates[row]]) for row in law}
            measured = {row: column for row, column in columns.items() if column is not None}
            if len(measured) < len(law):
                continue
            total = np.sum([law[row] * column for row, column in measured.items()], axis=0)
            present = ~np.isnan(total)
            t, total = observation.t[present], total[present]
            if len(t) < _LEAST_SAMPLES:
                continue
            noise = rough_noise(t, total)
            size = max(float(np.std(law[row] * column[present])) for row, column in measured.items())
            if float(np.std(total)) > max(_CHANGED * noise, 2 * _SMALL * size):
                yield text, number, float(total.min()), float(total.max())
