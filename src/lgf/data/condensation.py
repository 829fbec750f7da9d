"""Condensation of long records: the means of consecutive samples, or every k-th sample.

A search takes time in proportion to the number of samples, and a thousand of them per oscillation say no more than a
hundred of their means: the mean of k samples has k times less noise variance. A mean over a bin of width h differs from
the value at its middle by u'' h^2 / 24, which is taken off. Where what remains would show against the noise of the
means, every k-th sample is taken as it is; where these would not resolve the signal, k is halved.
"""

from dataclasses import replace

import numpy as np

from lgf.data.noise import rough_noise
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.solver.forcing import Forcing

SAMPLES = 2000  # of all experiments together; records with more are condensed to about this number
_MOST_BIAS = 0.25  # of a mean, in deviations of its noise; the noise itself looks like 0.13
_MOST_ROUGHNESS = 3.0  # of every k-th sample, in units of that of all
_SMOOTH = 1e-3  # or in deviations of the signal, if that is more


def condensed(problem: Problem, samples: int = SAMPLES) -> Problem:
    """The problem with long experiments condensed; the same problem if it has no more samples."""
    total = sum(len(o) for o in problem.observations)
    k = -(-total // samples)
    if k == 1:
        return problem
    observations = tuple(condensed_observation(o, k) for o in problem.observations)
    known = problem.knowledge
    inputs = {name: _mean_input(forcing, k) for name, forcing in known.inputs.items()}
    return replace(problem, observations=observations, knowledge=replace(known, inputs=inputs))


def condensation_sentence(problem: Problem, samples: int = SAMPLES) -> str | None:
    """One sentence on how a long record was condensed; None if it was not."""
    n = sum(len(o) for o in problem.observations)
    short = condensed(problem, samples)
    m = sum(len(o) for o in short.observations)
    if m == n:
        return None
    how = "as means of consecutive samples" if any(o.weights is not None for o in short.observations) else "by thinning"
    return f"The {n:,} samples were condensed to {m:,} {how}; the error of the equation is that on these."


def condensed_observation(observation: Observation, k: int) -> Observation:
    """The observation with about k times fewer samples, or with the least reduction that keeps what it shows.

    The first sample stays alone, because the initial state belongs to its time.
    """
    while k > 1:
        if len(observation) // k >= 5:
            means = _means(observation, k)
            if _unbiased(observation, means, k):
                return means
            thinned = _every(observation, k)
            if _resolves(observation, thinned):
                return thinned
        k //= 2
    return observation


def _means(observation: Observation, k: int) -> Observation:
    """The means of k consecutive samples, weighted by the number of samples in each."""
    first = _bins(observation.t, k)
    weight = np.ones_like(observation.values) if observation.weights is None else observation.weights
    weight = np.where(np.isnan(observation.values), 0.0, weight)
    mass = np.add.reduceat(weight, first)
    total = np.add.reduceat(weight * np.nan_to_num(observation.values), first)
    counts = np.diff(np.append(first, len(observation)))
    values = np.divide(total, mass, out=np.full_like(total, np.nan), where=mass > 0)
    inputs = {name: _mean_input(forcing, k) for name, forcing in observation.inputs.items()}
    t = np.add.reduceat(observation.t, first) / counts
    values -= _curvature(t, values) * (1.0 - 1.0 / k**2) / 24.0
    return replace(observation, t=t, values=values, weights=mass / mass[mass > 0].mean(), inputs=inputs)


def _curvature(t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """U'' h^2 of each bin, from the parabola through five bins of equal distances; 0 where there are none."""
    curvature = np.zeros_like(values)
    if len(t) < 5:
        return curvature
    weights = np.array([2.0, -1.0, -2.0, -1.0, 2.0]) / 7.0
    steps = np.lib.stride_tricks.sliding_window_view(np.diff(t), 4)
    equal = steps.max(axis=1) < 1.01 * steps.min(axis=1)
    inner = np.lib.stride_tricks.sliding_window_view(values, 5, axis=0) @ weights
    curvature[2:-2] = np.where(equal[:, None], np.nan_to_num(inner), 0.0)
    return curvature


def _bins(t: np.ndarray, k: int) -> np.ndarray:
    """The first sample of each bin; the first sample of all, and samples beside a gap, are alone in theirs."""
    steps = np.diff(t)
    begins = np.zeros(len(t), bool)
    begins[:2] = True
    begins[1::k] = True
    gap = np.flatnonzero(steps > k * np.median(steps))
    begins[gap] = begins[gap + 1] = True
    return np.flatnonzero(begins)


def _every(observation: Observation, k: int) -> Observation:
    """Every k-th sample."""
    inputs = {name: _mean_input(forcing, k) for name, forcing in observation.inputs.items()}
    weights = None if observation.weights is None else observation.weights[::k]
    return replace(observation, t=observation.t[::k], values=observation.values[::k], weights=weights, inputs=inputs)


def _mean_input(forcing: Forcing, k: int) -> Forcing:
    """The means of k samples of a sampled input; it is linear between them, and its ends stay."""
    if forcing.samples is None or len(forcing.samples) < 5 * k:
        return forcing
    samples = np.asarray(forcing.samples)
    first = _bins(samples[:, 0], k)
    counts = np.diff(np.append(first, len(samples)))[:, None]
    means = np.add.reduceat(samples, first) / counts
    if counts[-1] > 1:
        means = np.concatenate([means, samples[-1:]])
    return Forcing.from_samples(means[:, 0], means[:, 1])


def _unbiased(observation: Observation, means: Observation, k: int) -> bool:
    """Whether the means of every column differ from values of the signal by less than their noise."""
    for j in range(len(observation.columns)):
        t, y = _present(observation, j)
        _, mean = _present(means, j)
        bias = float(np.sqrt(np.mean(np.diff(mean[1:], 4) ** 2))) / 64.0 if len(mean) > 9 else np.inf
        if bias > _MOST_BIAS * rough_noise(t, y) / np.sqrt(k):
            return False
    return True


def _resolves(observation: Observation, thinned: Observation) -> bool:
    """Whether the thinned samples of every column lie on a curve that their neighbours show."""
    for j in range(len(observation.columns)):
        t, y = _present(observation, j)
        least = max(_MOST_ROUGHNESS * rough_noise(t, y), _SMOOTH * float(np.std(y)))
        if rough_noise(*_present(thinned, j)) > least:
            return False
    return True


def _present(observation: Observation, column: int) -> tuple[np.ndarray, np.ndarray]:
    y = observation.values[:, column]
    present = ~np.isnan(y)
    return observation.t[present], y[present]
