"""Typical sizes of the constants of a skeleton, from the sizes of what they multiply in the data."""

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.expression.tree import Expression, number, substitute
from lgf.fit.target import Target
from lgf.solver.constant_roles import linear_columns
from lgf.solver.program import CompiledSkeleton

_USUAL = 1e2  # columns of the record between this and its inverse need no sizes of their own


def constant_sizes(skeleton: Skeleton, compiled: CompiledSkeleton, target: Target) -> np.ndarray:
    """The size [p] that each constant would have if its term alone were as large as the highest derivative.

    A constant in a function has the inverse of the size of what it multiplies there. All are 1 for records of usual
    size, of which 1 is a fair guess.
    """
    sizes = np.ones(compiled.n_constants)
    if _is_usual(target):
        return sizes
    highest = target.scales[target.frame.dimension :]
    for row, equation in enumerate(compiled.equations):
        for index, role in zip(equation.nonlinear, equation.roles, strict=True):
            if role.cofactor is not None and role.place not in ("exponent", "offset"):
                sizes[index] = 1.0 / _size(role.cofactor, sizes, target)
        columns, _ = linear_columns(skeleton.residuals[row])
        for index, column in columns:
            sizes[index] = highest[row] / _size(column, sizes, target)
    return sizes


def start_sizes(target: Target) -> np.ndarray:
    """Typical absolute values of the unknown initial values; all are 1 for records of usual size."""
    sizes = np.ones(target.n_unknown)
    if not _is_usual(target):
        unknown = target.record.unknown
        _, variable = np.nonzero(unknown >= 0)
        sizes[unknown[unknown >= 0]] = target.scales[variable]
    return sizes


def _is_usual(target: Target) -> bool:
    return bool(np.all((target.scales < _USUAL) & (target.scales > 1 / _USUAL)))


def _size(expression: Expression, sizes: np.ndarray, target: Target) -> float:
    """The root mean square of the expression over the record, with constants of these sizes; 1 if it is 0."""
    constants = {n: number(float(sizes[n.args[0]])) for n in expression.nodes() if n.head == "constant"}
    values = target.values(substitute(expression, constants) if constants else expression)
    largest = float(np.max(np.abs(values), initial=0.0))
    return largest * float(np.sqrt(np.mean((values / largest) ** 2))) if largest > 0.0 else 1.0
