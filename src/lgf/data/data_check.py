"""Checks of the data before a search; the findings are short sentences."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lgf.data.initial_check import contradicted_initial
from lgf.data.noise import is_random_walk, neighbour_distances, rough_noise, samples_per_swing
from lgf.data.observation import Observation
from lgf.data.orders import of_second_order
from lgf.data.problem import Problem, shaken
from lgf.data.relations_check import broken_laws, derivative_pairs
from lgf.expression.frame import Variable
from lgf.solver.forcing import Forcing

Severity = Literal["error", "warning", "note"]
_Found = tuple[str, Severity, str]  # kind, severity and sentence

_NINES = re.compile(r"-?99+(\.9+)?")

_FEW_SAMPLES = 5
_SHORT_RECORD = 25
_SAMPLES_PER_SWING = 5.0
_WIDE_GAP = 8.0  # in usual steps
_OUTLIER = 8.0  # in standard deviations of the noise
_AROUND = 21  # samples whose noise counts for the one in their middle
_FAR_MARK = 3.0  # ranges of all other samples between these and a value that marks missing ones
_MOST_MARKED = 0.3  # of the samples
_CLIPPED_ROW = 6  # samples in a row of the largest value
_SELDOM_TWICE = 0.7  # of the other values are different
_STEEP = 0.3  # of the median step: a curve that comes to rest has smaller ones before it
_JUMP = 0.05  # of an input from the curve through its neighbours, in its standard deviations
_MANY_OSCILLATIONS = 10
_AT_REST = 0.8  # of the record
_NOISE_ALONE = (0.7, 1.35)  # noise by neighbours in standard deviations; more is an oscillation sampled too slowly


@dataclass(frozen=True)
class Finding:
    """One sentence about the data; an error stops the run, a warning does not."""

    severity: Severity
    sentence: str


def check(problem: Problem) -> tuple[Finding, ...]:
    """The findings on the data of this problem, errors first."""
    by_kind: dict[tuple[str, Severity], list[tuple[str, str]]] = {}
    for number, observation in enumerate(problem.observations):
        for kind, severity, sentence in _observation_findings(observation, problem.signals(number), problem):
            name = observation.name or f"experiment {number + 1}"
            by_kind.setdefault((kind, severity), []).append((sentence, name))
    findings = [*_problem_findings(problem)]
    for (_, severity), occurrences in by_kind.items():
        where = "" if len(problem.observations) == 1 else f" ({_where(occurrences)})"
        findings.append(Finding(severity, occurrences[0][0][:-1] + where + "."))
    rank = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(findings, key=lambda finding: rank[finding.severity]))


def _where(occurrences: list[tuple[str, str]]) -> str:
    """The experiments of these (sentence, experiment); if the sentences differ, only the first one is exact."""
    (first, name), *others = occurrences
    if all(sentence == first for sentence, _ in others):
        return _shortened_list([name for _, name in occurrences])
    return f"{name}; similar in {_shortened_list([experiment for _, experiment in others])}"


def _shortened_list(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _problem_findings(problem: Problem) -> Iterator[Finding]:
    n = problem.n_samples
    if n < _FEW_SAMPLES:
        yield Finding(
            "error", f"There are {n} samples in all, too few for any equation; measure at least {_SHORT_RECORD}."
        )
    elif n < _SHORT_RECORD:
        yield Finding("warning", f"There are only {n} samples in all; expect a simple equation with wide error bars.")
    yield from _order_findings(problem)
    if not isinstance(problem.knowledge.vary, str) and len(problem.observations) == 1:
        yield Finding("error", "A constant is said to vary between experiments, but there is one; drop that.")
    for text, number, low, high in broken_laws(problem):
        where = f" in {problem.observations[number].name}" if problem.observations[number].name else ""
        yield Finding(
            "error",
            f"{text} is said to be conserved but goes from {low:.4g} to {high:.4g}{where}, more than its noise; "
            "correct the sum or the data.",
        )


def _order_findings(problem: Problem) -> Iterator[Finding]:
    """What is taken for the orders of states whose rates are no functions of the states."""
    needing = of_second_order(problem)
    first = [name for name in needing if problem.knowledge.order_of(name) == 1]
    rates = _listed([f"{name}'" for name in needing])
    why = f"{rates} {'is' if len(needing) == 1 else 'are'} not determined by the states"
    if first:
        yield Finding("warning", f"{why}; leave the order open, or set it to 2 for {_listed(first)}.")
    elif needing:
        equations = "a second-order equation is" if len(needing) == 1 else "second-order equations are"
        yield Finding("note", f"{why}, so {equations} used for {_listed(needing)}.")


def _listed(names: Sequence[str]) -> str:
    *others, last = names or ("",)
    return f"{', '.join(others)} and {last}" if others else last


def _observation_findings(observation: Observation, signals: dict[str, Forcing], problem: Problem) -> Iterator[_Found]:
    """What is found in one experiment."""
    if problem.forced and not signals:
        yield "forcing", "error", "The system is said to be forced but no forcing is given; give one."
    for name in problem.inputs if signals else ():
        if name not in signals:
            yield f"{name} given", "error", f"The forcing {name} is not given; give it in every experiment."
    for name, forcing in signals.items():
        yield from _forcing_findings(observation, name, forcing)
    steps = np.diff(observation.t)
    usual = float(np.median(steps))
    if np.ptp(steps) > 0.05 * usual:
        yield "irregular", "note", "Samples are not equally spaced in time; this is taken into account."
    for variable, column in zip(observation.columns, observation.values.T, strict=True):
        present = ~np.isnan(column)
        t, y = observation.t[present], column[present]
        name = str(variable)
        for kind, severity, sentence in _column_findings(name, t, y, usual, signals):
            yield f"{name} {kind}", severity, sentence
        missing = int(np.count_nonzero(~present))
        if missing:
            is_or_are = "is" if missing == 1 else "are"
            sentence = f"{missing} of {len(column)} samples of {name} {is_or_are} missing."
            yield f"{name} missing", "note", sentence
    for variable, given, measured in contradicted_initial(observation):
        yield (
            f"{variable} start",
            "warning",
            f"The initial state gives {variable} = {given:.6g}, but its first sample is {measured:.6g}; correct "
            "the value, or leave it out to have it fitted.",
        )
    known = {Variable.read(row).name for row in problem.knowledge.known or ()}
    for state, rate in derivative_pairs(observation):
        if state not in known:
            yield (
                f"{rate} rate of {state}",
                "note",
                f'{rate} looks like the derivative of {state}; if it is, say so: --known "{state}\' = {rate}", or '
                f'known={{"{state}": "{rate}"}} in Python.',
            )
    for state in observation.states:
        lowest = min(v.derivative for v in observation.columns if v.name == state)
        if any(Variable(state, d) not in observation.initial for d in range(lowest)):
            yield (
                f"{state} initial",
                "note",
                f"Only a derivative of {state} was measured and its initial state is not given in full; give it "
                "if you know it.",
            )
        if lowest > 0:
            yield from _offset_findings(observation, Variable(state, lowest))


def _offset_findings(observation: Observation, variable: Variable) -> Iterator[_Found]:
    """The mean of a measured derivative, if no bounded motion has it: that of oscillations falls with their number."""
    column = observation.column(variable)
    assert column is not None
    present = ~np.isnan(column)
    t, y = observation.t[present], column[present]
    if len(y) < 12 or np.ptp(y) == 0.0:
        return
    mean, oscillations = float(np.mean(y)), len(y) / samples_per_swing(t, y)
    if oscillations >= _MANY_OSCILLATIONS and abs(mean) > 2.0 * np.max(np.abs(y - mean)) / (np.pi * oscillations):
        share = 100 * abs(mean) / float(np.std(y))
        yield (
            f"{variable} offset",
            "note",
            f"The mean of {variable} over many oscillations is {mean:.3g}, {share:.0f} % of its deviation: "
            "an offset of the sensor? If it is, subtract it, because no equation explains it.",
        )


def _forcing_findings(observation: Observation, name: str, forcing: Forcing) -> Iterator[_Found]:
    start, stop = observation.window
    if not forcing.covers(start, stop):
        yield (
            f"{name} window",
            "error",
            f"The forcing {name} ({forcing.describe()}) does not cover the record from t = {start:.6g} to "
            f"{stop:.6g}; extend it or cut the record.",
        )
        return
    values = forcing.values(observation.t)
    if not np.all(np.isfinite(values)):
        at = observation.t[~np.isfinite(values)][0]
        yield f"{name} finite", "error", f"The forcing {name} is not finite at t = {at:.6g}; correct it there."
    elif np.ptp(values) <= 1e-12 * max(1e-300, float(np.max(np.abs(values)))):
        yield (
            f"{name} constant",
            "warning",
            f"The forcing {name} is constant, so its effect cannot be told from a constant in the equation.",
        )


def _column_findings(
    name: str, t: np.ndarray, y: np.ndarray, usual: float, signals: Mapping[str, Forcing]
) -> Iterator[_Found]:
    size = float(np.std(y))
    if size <= 1e-12 * float(np.max(np.abs(y))):
        yield (
            "constant",
            "error",
            f"The measured {name} is constant ({y[0]:.6g}); start away from rest, excite the system, or leave the "
            "column out.",
        )
        return
    gaps = np.diff(t)
    widest = int(np.argmax(gaps))
    if gaps[widest] > _WIDE_GAP * usual:
        yield (
            "gap",
            "warning",
            f"{name} has a gap from t = {t[widest]:.6g} to {t[widest + 1]:.6g}; what happens there is not seen.",
        )
    if len(y) < 12:
        return
    yield from _mark_findings(name, y)
    yield from _clipping_findings(name, t, y)
    if shaken(signals, t):
        return  # the effect of such an input would be taken for noise
    noise = rough_noise(t, y)
    swing = samples_per_swing(t, y)
    if _NOISE_ALONE[0] * size < noise < _NOISE_ALONE[1] * size:
        yield (
            "noise",
            "warning",
            f"{name} looks like noise alone: neighbouring samples are hardly alike. No equation will be found in "
            "it; sample faster, average, measure what moves more, or leave the column out.",
        )
        return
    if swing < _SAMPLES_PER_SWING:
        yield (
            "sampling",
            "warning",
            f"{name} is sampled {swing:.1f} times per oscillation of its fastest part; sample at least "
            f"{_SAMPLES_PER_SWING:.0f} times, or the derivatives are lost.",
        )
    elif noise > 0.2 * size:
        yield (
            "noise",
            "warning",
            f"The noise of {name} is about {100 * noise / size:.0f} % of its variation; average or filter first.",
        )
    else:
        yield "noise", "note", f"The noise of {name} is about {100 * noise / size:.2g} % of its variation."
    if is_random_walk(y):
        yield (
            "walk",
            "warning",
            f"{name} moves like a random walk: its steps have nothing to do with each other. An equation that fits "
            "it will not predict it; the last value is the best forecast.",
        )
    if swing > 2 * _SAMPLES_PER_SWING:
        yield from _outlier_findings(name, t, y, noise, size, signals)
    yield from _level_findings(name, t, y, noise, size, bool(signals))


def _mark_findings(name: str, y: np.ndarray) -> Iterator[_Found]:
    """A value such as -999 that stands for missing samples: far from all others, and the same several times."""
    for value in (np.min(y), np.max(y)):
        others = y[y != value]
        times = len(y) - len(others)
        if not 1 <= times <= _MOST_MARKED * len(y) or (times == 1 and not _NINES.fullmatch(f"{value:g}")):
            continue
        if np.min(np.abs(others - value)) > _FAR_MARK * np.ptp(others):
            yield (
                "mark",
                "warning",
                f"{name} is {value:g} at {times} of {len(y)} samples, far from all others; if that marks missing "
                "values, leave these cells empty.",
            )


def _clipping_findings(name: str, t: np.ndarray, y: np.ndarray) -> Iterator[_Found]:
    """The largest or smallest value if it stands many times in a row, cut off from a curve that is steep beside it."""
    for value, what in ((np.max(y), "largest"), (np.min(y), "smallest")):
        at_end = y == value
        others = y[~at_end]
        if value == 0.0 or len(np.unique(others)) < _SELDOM_TWICE * len(others):
            continue  # nothing is below zero in counts, and values of few digits repeat
        changes = np.flatnonzero(np.diff(np.concatenate(([False], at_end, [False]))))
        begin, end = max(changes.reshape(-1, 2).tolist(), key=lambda row: row[1] - row[0])
        steps = np.abs(np.diff(y))
        beside = [steps[k] for k in (begin - 2, end) if 0 <= k < len(steps)]
        usual = float(np.median(steps[steps > 0.0]))
        if end - begin >= _CLIPPED_ROW and beside and min(beside) > _STEEP * usual:
            yield (
                "clipping",
                "warning",
                f"{name} is {value:.6g}, its {what} value, at {end - begin} samples in a row from t = "
                f"{t[begin]:.6g}; if the sensor was at the end of its range, leave these cells empty.",
            )


def _outlier_findings(
    name: str, t: np.ndarray, y: np.ndarray, noise: float, size: float, signals: Mapping[str, Forcing]
) -> Iterator[_Found]:
    distances = np.abs(neighbour_distances(t, y))
    for forcing in signals.values():
        # What jumps with an input, as under a hammer, is its effect.
        values = forcing.values(t)
        if not np.all(np.isfinite(values)):
            continue
        distances[np.abs(neighbour_distances(t, values)) > _JUMP * np.std(values)] = 0.0
    windows = sliding_window_view(np.pad(distances, _AROUND // 2, mode="edge"), _AROUND)
    around = np.median(windows, axis=1) / 0.6745  # noise may grow with the signal
    far = np.flatnonzero(distances > _OUTLIER * np.maximum(around, max(noise, 1e-3 * size)))
    if 0 < len(far) <= 0.05 * len(y):
        at = t[(len(y) - len(distances)) // 2 + far[np.argmax(distances[far])]]
        yield (
            "outliers",
            "warning",
            f"{name} has outliers, the largest at t = {at:.6g}; check or remove them.",
        )


def _level_findings(
    name: str, t: np.ndarray, y: np.ndarray, noise: float, size: float, forced: bool
) -> Iterator[_Found]:
    if len(np.unique(y)) <= 8 and len(y) >= 40:
        yield (
            "resolution",
            "warning",
            f"{name} takes only {len(np.unique(y))} different values; the sensor may be too coarse or clipped.",
        )
        return  # few values look like rest
    late = y[-max(len(y) // 10, 3) :]
    moving = np.abs(y - np.median(late)) > max(4 * noise, 0.01 * float(np.ptp(y)))
    last = int(np.flatnonzero(moving)[-1]) if moving.any() else len(y) - 1  # all of it may be within the noise
    rest = (t[-1] - t[last]) / (t[-1] - t[0])
    if rest > _AT_REST and not forced:
        yield (
            "rest",
            "warning",
            f"{name} is at rest for the last {100 * rest:.0f} % of the record; cut it after t = {t[last]:.6g}, or "
            "excite the system more.",
        )
    if not 1e-6 < size < 1e6:
        yield "scale", "note", f"{name} has a size of {size:.1g}; a unit in which it is near 1 reads better."
