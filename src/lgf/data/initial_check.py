"""Initial values that the first sample contradicts, such as one of another experiment or in another unit."""

from collections.abc import Iterator

import numpy as np

from lgf.data.noise import rough_noise
from lgf.data.observation import Observation
from lgf.expression.frame import Variable

_FEW_SAMPLES = 12  # fewer do not tell the noise
_NOISES = 8.0
_SHARE = 0.1  # of the range of the samples


def contradicted_initial(observation: Observation) -> Iterator[tuple[Variable, float, float]]:
    """(variable, given value, first sample) where the two differ by far more than the noise."""
    for variable, given in observation.initial.items():
        column = observation.column(variable)
        if column is None or np.isnan(column[0]):
            continue
        present = ~np.isnan(column)
        t, y = observation.t[present], column[present]
        noise = rough_noise(t, y) if len(y) >= _FEW_SAMPLES else 0.0
        if abs(given - y[0]) > max(_NOISES * noise, _SHARE * float(np.ptp(y))):
            yield variable, given, float(y[0])
