"""Multiple shooting: an experiment is cut into segments, each with an initial state of its own.

A segment is an experiment for the kernels. Short segments let a fit converge from rough constants and follow chaotic
records; the fit then goes on with fewer and longer segments.
"""

from dataclasses import dataclass, replace

import numpy as np

from lgf.fit.target import Target

_LEAST_SAMPLES = 5  # of a segment
_MOST_INITIAL_VALUES = 400  # of all segments: the cost of a step grows with their third power


@dataclass(frozen=True)
class Shooting:
    """How a fit with given initial guesses of the constants proceeds."""

    segments: tuple[int, ...]  # segments of each experiment, one stage of the fit after the other
    initial: tuple[float, ...] | None = None  # guesses of the unknown initial values in the first stage
    noise: tuple[float, ...] | None = None  # deviation of each measured column, in place of the smoother's
    whole: bool = False  # whether the last stage counts, whatever the ones before it reached


def segmented(target: Target, count: int) -> Target:
    """The target with each experiment cut into `count` segments, fewer if they become too short or too many."""
    count = max(1, min(count, _MOST_INITIAL_VALUES // (target.n_experiments * target.frame.dimension)))
    key = "segments", count
    if key not in target.cache:
        target.cache[key] = target if count == 1 else _segmented(target, count)
    return target.cache[key]


def _segmented(target: Target, count: int) -> Target:
    record, n = target.record, target.frame.dimension
    firsts, owners = [], []
    for e in range(target.n_experiments):
        begin, end = int(record.first[e]), int(record.first[e + 1])
        # A state that was not measured has no values to start a segment from.
        parts = max(1, min(count, (end - begin) // _LEAST_SAMPLES)) if target.complete[begin] else 1
        firsts.append(begin + np.round(np.linspace(0, end - begin, parts + 1)[:-1]).astype(np.int64))
        owners.append(np.full(parts, e))
    first, owner = np.concatenate(firsts), np.concatenate(owners)
    own = np.isin(first, record.first[:-1])  # segments at the start of an experiment
    initial = np.where(own[:, None], record.initial[owner], target.columns[:n, first].T)
    unknown, errors = np.full(initial.shape, -1, np.int64), []
    for s, e in enumerate(owner):
        for d in range(n):
            given = record.unknown[e, d]
            if own[s] and given < 0:
                continue
            unknown[s, d] = len(errors)
            errors.append(_prior(target, e, d))
    tables = [record.table[record.table_first[e] : record.table_first[e + 1]] for e in owner]
    highest, spacing = target.columns[n], np.gradient(target.t)
    return replace(
        target,
        record=record._replace(
            first=np.append(first, len(target.t)),
            initial=initial,
            unknown=unknown,
            table=np.concatenate(tables),
            table_first=np.concatenate([[0], np.cumsum([len(table) for table in tables])]).astype(np.int64),
            root=np.where(own, record.root[owner], highest[first]),
            root_slope=np.where(own, record.root_slope[owner], np.gradient(highest)[first] / spacing[first]),
            largest_step=record.largest_step[owner],
            nudge=record.nudge[owner],
        ),
        signals=tuple(target.signals[e] for e in owner),
        n_unknown=len(errors),
        initial_error=np.array(errors),
        experiment=target.experiment[owner],
        segments=count,
        cache={},
    )


def _prior(target: Target, e: int, d: int) -> float:
    """Standard error of a smoothed value as the first guess of an initial value, in units of the loss; 0 = no prior.

    A smoother may take the noise of a coarse record for signal, so the error is not below a tenth of the signal.
    """
    begin, end = target.record.first[e : e + 2]
    if not target.record.weight[begin:end, d].any():
        return 0.0
    return max(5.0 * float(target.noise[d]), 0.1 * float(target.scales[d])) * float(np.sqrt(target.power))


def joined(states: np.ndarray, before: Target, after: Target) -> np.ndarray:
    """The unknown initial values of `after`: those of `before` [segment, n] at the same samples, guesses elsewhere."""
    guess = after.initial_guess()
    place = {int(sample): s for s, sample in enumerate(before.record.first[:-1])}
    for s, sample in enumerate(after.record.first[:-1]):
        for d in range(after.frame.dimension):
            if after.record.unknown[s, d] >= 0 and int(sample) in place:
                guess[after.record.unknown[s, d]] = states[place[int(sample)], d]
    return guess


def reweighed(target: Target, noise: tuple[float, ...]) -> Target:
    """The target with the deviations `noise` of the measured columns, in the order of `target.measured`."""
    key = "noise", noise
    if key not in target.cache:
        deviation = target.noise.copy()
        deviation[list(target.measured)] = noise
        old, new = (np.where(np.isfinite(v), v, 1.0) for v in (target.noise, deviation))
        weight = target.record.weight * target.power * (old / new) ** 2
        power = float(np.sum(weight * target.record.data**2))
        states = np.argwhere(target.record.unknown >= 0)
        ratio = np.array([new[d] / old[d] for _, d in states]) * np.sqrt(power / target.power)
        target.cache[key] = replace(
            target,
            record=target.record._replace(weight=weight / power),
            power=power,
            initial_error=target.initial_error * ratio,
            noise=deviation,
            cache={},
        )
    return target.cache[key]
