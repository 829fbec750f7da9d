"""Columns that jump between levels, as switches, valves and pumps do."""

from collections.abc import Sequence

import numpy as np

from lgf.solver.forcing import Forcing

_ENOUGH = 20  # samples
_FEW_LEVELS = 3  # of which each is beside any other, up to one: more that change one by one are those of rounding


def jumps_between_levels(parts: Sequence[np.ndarray]) -> bool:
    """Whether a column changes by steps in every experiment in which it changes; False for a rounded curve.

    >>> steps, curve = np.repeat([0.0, 1.0, 0.5], 10), np.linspace(0.0, 1.0, 30)
    >>> jumps_between_levels([steps]), jumps_between_levels([curve]), jumps_between_levels([np.round(curve, 1)])
    (True, False, False)
    """
    parts = [part[~np.isnan(part)] for part in parts]
    parts = [part for part in parts if len(part)]
    if sum(map(len, parts)) < _ENOUGH:
        return False
    levels = np.unique(np.concatenate(parts))
    changes = [np.abs(np.diff(np.searchsorted(levels, part))) for part in parts]
    if len(levels) > _FEW_LEVELS and max(max(change, default=0) for change in changes) <= 1:
        return False
    changing = [part for part in parts if np.ptp(part) > 0.0]
    return all(Forcing(samples=np.column_stack([np.arange(len(part)), part])).has_steps for part in changing)
