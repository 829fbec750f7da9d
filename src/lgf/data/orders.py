"""States whose rates are no functions of the states, so that their equations are of second order, as of masses."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lgf.data.noise import samples_per_swing
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.data.relations_check import derivative_pairs
from lgf.solver.forcing import Forcing

_UNEXPLAINED, _EXPLAINED = 0.2, 0.1  # shares of the power of rates, and of accelerations, that polynomials leave
_FEWEST_PER_SWING = 12.0  # samples of an oscillation, so that a window of a half has enough of them
_FEWEST_IN_WINDOW = 9
_WINDOWS_A_TERM = 2.0
_SHARPNESS = 4  # of the test function (1 - s^2)^4, whose first three derivatives vanish at the ends of a window


def with_likely_orders(problem: Problem) -> Problem:
    """The problem with order 2 for each state of a system that needs it, as far as no orders are known."""
    if problem.likely_orders or isinstance(problem.knowledge.order, int):
        return problem
    needing = [name for name in of_second_order(problem) if problem.knowledge.order_of(name) is None]
    return replace(problem, likely_orders=dict.fromkeys(needing, 2)) if needing else problem


def of_second_order(problem: Problem) -> tuple[str, ...]:
    """The states of a system whose accelerations are functions of states and rates, while rates are none of states.

    Both are tested in weak form, which takes no derivative of the data: the integrals of rates with test functions are
    fitted by those of polynomials of the states, and those of accelerations by those of states, cubes and rates.
    """
    states = problem.states
    if len(states) < 2 or problem.hidden or problem.knowledge.known:
        return ()
    if any(o.states != states or len(o.columns) > len(states) for o in problem.observations):
        return ()
    if any(v.derivative > 0 for o in problem.observations for v in o.columns):
        return ()
    parts = [_complete_rows(o, problem.signals(k)) for k, o in enumerate(problem.observations)]
    scale = np.std(np.concatenate([values for _, values, _ in parts]), axis=0)
    mean = np.mean(np.concatenate([values for _, values, _ in parts]), axis=0)
    if not np.all(scale > 0.0):
        return ()
    rows = [_integrals(t, (values - mean) / scale, inputs) for t, values, inputs in parts]
    rows = [row for row in rows if row is not None]
    if not rows:
        return ()
    rates, terms, accelerations, more_terms = (np.concatenate(blocks) for blocks in zip(*rows, strict=True))
    if len(rates) < _WINDOWS_A_TERM * max(terms.shape[1], more_terms.shape[1]):
        return ()
    first, second = _unexplained(terms, rates), _unexplained(more_terms, accelerations)
    failing = [k for k in range(len(states)) if first[k] > _UNEXPLAINED]
    rates_of_others = {rate for o in problem.observations for _, rate in derivative_pairs(o)}
    if any(second[k] > _EXPLAINED or states[k] in rates_of_others for k in failing):
        return ()
    return tuple(states[k] for k in failing)


def _complete_rows(
    observation: Observation, signals: Mapping[str, Forcing]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, states, inputs) of the samples at which every state was measured."""
    complete = ~np.any(np.isnan(observation.values), axis=1)
    t = observation.t[complete]
    inputs = [forcing.values(t) for forcing in signals.values()]
    return t, observation.values[complete], np.column_stack([np.empty((len(t), 0)), *inputs])


def _integrals(
    t: np.ndarray, states: np.ndarray, inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The integrals of rates, of terms of states, of accelerations, and of states, cubes and rates, window by window.

    None if the samples do not resolve the oscillations. Windows last half an oscillation of the fastest state.
    """
    if len(t) < 2 * _FEWEST_IN_WINDOW:
        return None
    swing = min(samples_per_swing(t, state) for state in states.T)
    if swing < _FEWEST_PER_SWING:
        return None
    width = int(np.clip(swing / 2, _FEWEST_IN_WINDOW, max(len(t) // 8, _FEWEST_IN_WINDOW)))
    degree = 3 if states.shape[1] == 2 else 2
    terms = np.column_stack([_monomials(states, degree), inputs])
    simple = np.column_stack([np.ones(len(t)), states, states**3, inputs])
    rows = []
    for begin in range(0, len(t) - width + 1, max(width // 4, 1)):
        window = slice(begin, begin + width)
        test, slope, bend = _test_functions(t[window])
        rates = -slope @ states[window]
        rows.append((rates, test @ terms[window], bend @ states[window], np.r_[test @ simple[window], rates]))
    rates, of_terms, accelerations, of_simple = zip(*rows, strict=True)
    return np.array(rates), np.array(of_terms), np.array(accelerations), np.array(of_simple)


def _monomials(states: np.ndarray, degree: int) -> np.ndarray:
    """(samples, terms): the products of up to `degree` states."""
    columns = range(states.shape[1])
    factors = [c for d in range(degree + 1) for c in itertools.combinations_with_replacement(columns, d)]
    return np.column_stack([np.prod(states[:, list(c)], axis=1) for c in factors])


def _test_functions(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(1 - s^2)^4 on the window and its two derivatives by time, times the weights of the trapezoidal rule."""
    half, n = (t[-1] - t[0]) / 2.0, _SHARPNESS
    s = (t - t[0]) / half - 1.0
    hill = 1.0 - s**2
    weight = np.r_[t[1] - t[0], t[2:] - t[:-2], t[-1] - t[-2]] / 2.0
    slope = -2.0 * n * s * hill ** (n - 1) / half
    bend = (4.0 * n * (n - 1) * s**2 * hill ** (n - 2) - 2.0 * n * hill ** (n - 1)) / half**2
    return weight * hill**n, weight * slope, weight * bend


def _unexplained(terms: np.ndarray, values: np.ndarray) -> Sequence[float]:
    """The share of the power of each column that its best combination of terms leaves, per degree of freedom."""
    size = np.linalg.norm(terms, axis=0)
    terms = terms / np.where(size > 0.0, size, 1.0)
    left = values - terms @ np.linalg.lstsq(terms, values, rcond=1e-8)[0]
    freedom = len(values) / (len(values) - terms.shape[1])
    power = np.sum(values**2, axis=0)
    return [float(v) for v in freedom * np.sum(left**2, axis=0) / np.where(power > 0.0, power, 1.0)]
