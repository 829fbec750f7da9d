"""Columns called rates that are not those of the column beside them: the speed of a motor beside its current."""

from collections.abc import Sequence

import numpy as np

from lgf.expression.frame import Variable

_EXPLAINED = 0.7  # of what a line in time leaves of a state: less is not due to the integral of its rate
_LINE = 1e-3  # of the variance of a state: what is left of a line does not tell


def contradicts_rates(t: np.ndarray, values: np.ndarray, variables: Sequence[Variable], rows: list[np.ndarray]) -> bool:
    """Whether a column of first derivatives is not that of its state in these experiments (rows of the samples).

    A state is a constant and the integral of its rate, in whatever units; an offset of the rate is a line in time.
    """
    positions = {variable: k for k, variable in enumerate(variables)}
    for variable, k in positions.items():
        state = positions.get(Variable(variable.name, variable.derivative - 1))
        if state is None or variable.derivative != 1:
            continue
        left = [_left(t[own], values[own, state], values[own, k]) for own in rows]
        variance, without, remaining = (sum(parts) for parts in zip(*left, strict=True))
        if without > _LINE * variance and remaining > (1.0 - _EXPLAINED) * without:
            return True
    return False


def _left(t: np.ndarray, state: np.ndarray, rate: np.ndarray) -> tuple[float, float, float]:
    """The squares of a state: about its mean, about a line in time, and about a line and the integral of the rate."""
    present = np.isfinite(t) & np.isfinite(state) & np.isfinite(rate)
    t, state, rate = t[present], state[present], rate[present]
    if len(t) < 5 or np.any(np.diff(t) <= 0.0):
        return 0.0, 0.0, 0.0
    integral = np.r_[0.0, np.cumsum(np.diff(t) * (rate[1:] + rate[:-1]) / 2.0)]
    columns = np.column_stack([np.ones(len(t)), t - t.mean(), integral - integral.mean()])
    columns /= np.maximum(np.linalg.norm(columns, axis=0), 1e-300)

    def squares(n: int) -> float:
        fitted = columns[:, :n] @ np.linalg.lstsq(columns[:, :n], state, rcond=1e-10)[0]
        return float(np.sum((state - fitted) ** 2))

    return squares(1), squares(2), squares(3)
