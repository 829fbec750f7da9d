"""Trajectory: the states of a system over time, solved or smoothed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from lgf.errors import LgfError, quoted
from lgf.expression.frame import Variable


class SolveStatus(StrEnum):
    """The outcome of a solve."""

    OK = "ok"
    BLEW_UP = "blew_up"
    OUT_OF_STEPS = "out_of_steps"
    SINGULAR = "singular"
    OUTSIDE_DOMAIN = "outside_domain"


def read_only(values: ArrayLike) -> np.ndarray:
    """A float copy that cannot be written to."""
    try:
        copy = np.array(values, dtype=float)
    except OverflowError as error:  # a whole number may have any size
        raise LgfError("a number is too large to compute with; rescale it.") from error
    copy.setflags(write=False)
    return copy


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Columns over time: `values` (N, K) holds one variable per column, NaN where it was not reached.

    `trajectory["prey"]` and `trajectory["x'"]` are columns by name; `.u`, `.du` and `.d2u` are the first state and its
    derivatives. `inputs` are the known inputs at the same times. `end` is the time at which a solution blew up, or
    ended early for another reason that its status names.
    """

    t: np.ndarray
    values: np.ndarray
    variables: tuple[Variable, ...]
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    status: SolveStatus = SolveStatus.OK
    end: float | None = None

    def __post_init__(self):
        for name in ("t", "values"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        n = len(self.t)
        if self.t.ndim != 1 or self.values.shape != (n, len(self.variables)):
            raise LgfError(
                f"t has shape {self.t.shape} and values {self.values.shape}; a trajectory of {len(self.variables)} "
                f"variables needs (N,) and (N, {len(self.variables)})."
            )
        object.__setattr__(self, "inputs", {name: read_only(column) for name, column in self.inputs.items()})
        for name, column in self.inputs.items():
            if column.shape != (n,):
                raise LgfError(f"the input {name} has shape {column.shape}; {n} times need ({n},).")

    def __getitem__(self, variable: str | Variable) -> np.ndarray:
        name = Variable.read(variable) if isinstance(variable, str) else variable
        if name not in self.variables:
            raise LgfError(
                f"{quoted(str(variable))} is not in this trajectory; it holds {', '.join(map(str, self.variables))}."
            )
        return self.values[:, self.variables.index(name)]

    @property
    def u(self) -> np.ndarray:
        """The first state."""
        return self[Variable(self.variables[0].name)]

    @property
    def du(self) -> np.ndarray:
        """The first derivative of the first state."""
        return self[Variable(self.variables[0].name, 1)]

    @property
    def d2u(self) -> np.ndarray:
        """The second derivative of the first state."""
        return self[Variable(self.variables[0].name, 2)]


def relative_l2(y: ArrayLike, estimate: ArrayLike) -> float:
    """||y - estimate|| / ||y||, infinite where the estimate is not finite."""
    y, estimate = np.asarray(y, dtype=float), np.asarray(estimate, dtype=float)
    if not np.all(np.isfinite(estimate)):
        return math.inf
    error, size = float(np.linalg.norm(y - estimate)), float(np.linalg.norm(y))
    if size == 0.0:
        return 0.0 if error == 0.0 else math.inf
    return error / size
