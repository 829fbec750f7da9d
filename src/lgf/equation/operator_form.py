"""Forms in which a fitted system is shown, with the errors of their constants: operator form, untied constants."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.equation.structure import canonical_sides, shifted
from lgf.equation.system import System
from lgf.equation.terms import term_of
from lgf.errors import LgfError
from lgf.expression.monomials import renumber
from lgf.expression.tree import Expression, add, constant, factors, mul, summands


def in_operator_form(system: System, covariance: np.ndarray) -> System:
    """The equation with its input alone on the right and propagated errors; unchanged if the input is no clear term.

    Systems of several states or inputs stay as they are, up to constants that stand in several places (see `untied`).
    """
    system, covariance = untied(system, covariance)
    if not system.skeleton.forced:
        return system
    try:
        turned, jacobian = _converted(system, System.operator_form)
    except LgfError:
        return system
    if not np.all(np.isfinite(turned.values)):
        return system
    errors = _propagated_errors(jacobian, covariance)
    # The first coefficient is one over that of F: if F is poorly determined, dividing by it would spoil all others.
    return replace(turned, errors=errors) if errors[0] < 0.5 * abs(turned.values[0]) else system


def untied(system: System, covariance: np.ndarray) -> tuple[System, np.ndarray]:
    """The system with a constant of its own in every place, like terms joined, and the covariance of its constants."""
    if not system.skeleton.tied:
        return system, covariance
    try:
        joined, jacobian = _converted(system, _with_joined_terms)
    except LgfError:
        return system, covariance
    errors = _propagated_errors(jacobian, covariance)
    finite = np.where(np.isfinite(covariance), covariance, 0.0)
    spread = jacobian @ finite @ jacobian.T
    spread[np.diag_indices(len(spread))] = np.square(errors)
    return replace(joined, errors=errors), spread


def _with_joined_terms(system: System) -> System:
    rows, values = [], ()
    for left, right in system.skeleton.sides:
        terms = [term_of(s) for s in summands(right)]
        if len(set(terms)) == len(terms):
            right, own = _with_single_coefficients(right, system.values)
        else:
            left, right, own = canonical_sides(left, right, system.values)
        rows.append((shifted(left, len(values)), shifted(right, len(values))))
        values += own
    return System(Skeleton(system.frame, tuple(rows)), values, formulas=system.formulas, units=system.units)


def _with_single_coefficients(right: Expression, values: tuple[float, ...]) -> tuple[Expression, tuple[float, ...]]:
    """The sum with one constant in front of each summand, otherwise as it is written."""
    pool, parts = list(values), []
    for summand in summands(right):
        scales = [f for f in factors(summand) if f.head in ("number", "constant")]
        pool.append(math.prod(f.args[0] if f.head == "number" else values[f.args[0]] for f in scales))
        rest = (f for f in factors(summand) if f not in scales)
        parts.append(mul(constant(len(pool) - 1), *rest) if any(f.head == "constant" for f in scales) else summand)
    return renumber(add(*parts), pool)


def _converted(system: System, convert: Callable[[System], System]) -> tuple[System, np.ndarray]:
    """The converted system and the derivative of its values by those of the system; LgfError if its form changes.

    To first order the values of one form are linear in those of the other, which gives their covariance.
    """
    turned = convert(system)
    columns = []
    for i, value in enumerate(system.values):
        step = 1e-6 * max(abs(value), 1e-6)
        moved = list(system.values)
        moved[i] += step
        near = convert(replace(system, values=tuple(moved)))
        if near.skeleton != turned.skeleton:
            raise LgfError("the form of the equation depends on its constants.")
        columns.append((np.array(near.values) - np.array(turned.values)) / step)
    return turned, np.array(columns).reshape(len(system.values), len(turned.values)).T


def _propagated_errors(jacobian: np.ndarray, covariance: np.ndarray) -> tuple[float, ...]:
    """Standard errors of values with this Jacobian; infinite where an error that they depend on is."""
    open_ = ~np.isfinite(np.diag(covariance))
    finite = np.where(open_[:, None] | open_[None, :], 0.0, covariance)
    errors = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", jacobian, finite, jacobian), 0.0))
    scale = np.abs(jacobian).max(axis=1, initial=0.0)
    lost = np.any((np.abs(jacobian) > 1e-9 * scale[:, None]) & open_, axis=1)
    return tuple(float(e) for e in np.where(lost, np.inf, errors))
