"""The operator form of a fitted equation, with its input alone on the right, and the errors of its constants."""

from dataclasses import replace

import numpy as np

from lgf.equation.system import System
from lgf.errors import LgfError


def in_operator_form(system: System, covariance: np.ndarray) -> System:
    """The equation with its input alone on the right and propagated errors; unchanged if the input is no clear term.

    Systems of several states or inputs stay as they are.

    To first order the values of one form are linear in those of the other, which gives their covariance.
    """
    if not system.skeleton.forced:
        return system
    try:
        turned = system.operator_form()
        columns = []
        for i, value in enumerate(system.values):
            step = 1e-6 * max(abs(value), 1e-6)
            moved = list(system.values)
            moved[i] += step
            near = replace(system, values=tuple(moved)).operator_form()
            if near.skeleton != turned.skeleton:
                return system
            columns.append((np.array(near.values) - np.array(turned.values)) / step)
    except LgfError:
        return system
    if not np.all(np.isfinite(turned.values)):
        return system
    jacobian = np.array(columns).reshape(len(system.values), len(turned.values)).T
    errors = _propagated_errors(jacobian, covariance)
    # The first coefficient is one over that of F: if F is poorly determined, dividing by it would spoil all others.
    return replace(turned, errors=errors) if errors[0] < 0.5 * abs(turned.values[0]) else system


def _propagated_errors(jacobian: np.ndarray, covariance: np.ndarray) -> tuple[float, ...]:
    """Standard errors of values with this Jacobian; infinite where an error that they depend on is."""
    open_ = ~np.isfinite(np.diag(covariance))
    finite = np.where(open_[:, None] | open_[None, :], 0.0, covariance)
    errors = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", jacobian, finite, jacobian), 0.0))
    scale = np.abs(jacobian).max(axis=1, initial=0.0)
    lost = np.any((np.abs(jacobian) > 1e-9 * scale[:, None]) & open_, axis=1)
    return tuple(float(e) for e in np.where(lost, np.inf, errors))
