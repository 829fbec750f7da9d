"""The operator form of a fitted equation, F alone on the right, with the errors that its constants have there."""

from dataclasses import replace

import numpy as np

from lgf.equation.skeleton import Equation


def in_operator_form(equation: Equation, covariance: np.ndarray) -> Equation:
    """The same equation with F alone on the right, errors carried over; unchanged where F is no clear term of its own.

    To first order the values of one form are linear in those of the other, and their covariance goes along.
    """
    if not equation.skeleton.forced:
        return equation
    try:
        turned = equation.operator_form()
        columns = []
        for i, value in enumerate(equation.values):
            step = 1e-6 * max(abs(value), 1e-6)
            moved = list(equation.values)
            moved[i] += step
            near = replace(equation, values=tuple(moved)).operator_form()
            if near.skeleton != turned.skeleton:
                return equation
            columns.append((np.array(near.values) - np.array(turned.values)) / step)
    except ValueError:
        return equation
    if not np.all(np.isfinite(turned.values)):
        return equation
    jacobian = np.array(columns).reshape(len(equation.values), len(turned.values)).T
    errors = _carried(jacobian, covariance)
    # The first coefficient is one over that of F: if the data hardly see F, dividing by it would blur everything.
    return replace(turned, errors=errors) if errors[0] < 0.5 * abs(turned.values[0]) else equation


def _carried(jacobian: np.ndarray, covariance: np.ndarray) -> tuple[float, ...]:
    """Standard errors of values that depend on others by this Jacobian; infinite where one of these is."""
    open_ = ~np.isfinite(np.diag(covariance))
    finite = np.where(open_[:, None] | open_[None, :], 0.0, covariance)
    errors = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", jacobian, finite, jacobian), 0.0))
    scale = np.abs(jacobian).max(axis=1, initial=0.0)
    lost = np.any((np.abs(jacobian) > 1e-9 * scale[:, None]) & open_, axis=1)
    return tuple(float(e) for e in np.where(lost, np.inf, errors))
