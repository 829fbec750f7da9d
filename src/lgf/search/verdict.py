"""The verdict on the chosen equation: what its predictions say, for which reason, and the numbers behind it.

It is made once, where the choice is made, and stored in the run. Sentences are made of it last (`report.sentences`).
"""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from lgf.data.problem import Problem
from lgf.search.candidate import Candidate
from lgf.search.prediction import PredictionSettings

_WEAK_TEST = 0.5  # error of confirmed predictions, in standard deviations of the data, above which they test little


class Trust(StrEnum):
    """What predictions say about the chosen equation."""

    CONFIRMED = "confirmed"  # it predicts what it has not seen to within the noise
    REFUTED = "refuted"  # it does not: the equation is an approximation
    INCONCLUSIVE = "inconclusive"  # predictions say nothing
    NO_LAW = "no law found"  # a naive forecast describes the record as well


class Reason(StrEnum):
    """Why the equation is trusted as far as it is."""

    PREDICTS = "predicts"
    PREDICTS_WITHIN_WIDE_ERRORS = "predicts within wide errors"
    MISSES = "misses"
    NOT_TESTED = "not tested"  # nothing was predicted, because another criterion chose
    UNSOLVED = "unsolved"
    CHAOS = "chaos"
    FEW_SAMPLES = "few samples"
    NAIVE = "naive"  # the last value, a line or a local line is as likely
    UNEXPLAINED = "unexplained"
    PATTERN = "pattern"
    UNDETERMINED = "undetermined"  # a part of the data does not determine the rest


class Verdict(NamedTuple):
    """The trust in the chosen equation, the reason, and the numbers behind it."""

    trust: Trust
    reason: Reason
    values: Mapping[str, float] = {}  # error, forecast, left_out of predictions, and unexplained, as far as they exist


def is_refuted(candidate: Candidate, settings: PredictionSettings = PredictionSettings()) -> bool:
    """Whether its predictions miss by more than noise and error bars."""
    prediction = candidate.prediction
    return prediction is not None and prediction.surprise > settings.refuted_above


def is_tested(
    candidate: Candidate, settings: PredictionSettings = PredictionSettings(), variation: float = 1.0
) -> bool:
    """Whether its predictions test the candidate: there are some, and the mean of the data would not be better ones."""
    prediction = candidate.prediction
    if prediction is None or math.isnan(prediction.surprise):
        return False
    return is_refuted(candidate, settings) or not worthless(candidate, settings, variation)


def worthless(candidate: Candidate, settings: PredictionSettings, variation: float) -> bool:
    """Whether the mean of the data would have been a better prediction.

    `variation` is the standard deviation of the data, relative to their root mean square.
    """
    error = None if candidate.prediction is None else candidate.prediction.error
    return error is not None and error > settings.worthless_above * variation


def verdict_on(
    candidate: Candidate,
    measured: Problem,
    leaves_pattern: Callable[[Candidate], bool] = lambda candidate: False,
    naive: bool = False,
    settings: PredictionSettings = PredictionSettings(),
) -> Verdict:
    """The verdict on the candidate by its predictions and by the problem as it was measured, before condensation.

    No law is found if a `naive` forecast is as likely. Predictions within the residuals confirm nothing if these are
    most of the record, or if they are much of it and more than noise.
    """
    prediction, values = candidate.prediction, {}
    if not math.isfinite(candidate.loss):
        return Verdict(Trust.INCONCLUSIVE, Reason.UNSOLVED)
    values["unexplained"] = unexplained = math.sqrt(candidate.loss) / max(measured.variation, 1e-12)
    if naive:
        return Verdict(Trust.NO_LAW, Reason.NAIVE, values)
    if prediction is None:
        return Verdict(Trust.INCONCLUSIVE, Reason.NOT_TESTED, values)
    parts = {"error": prediction.error, "forecast": prediction.forecast, "left_out": prediction.left_out}
    values |= {name: value for name, value in parts.items() if value is not None}
    if prediction.error is None:
        chaos = prediction.growth > settings.unpredictable_above
        return Verdict(Trust.INCONCLUSIVE, Reason.CHAOS if chaos else Reason.FEW_SAMPLES, values)
    if is_refuted(candidate, settings):
        return Verdict(Trust.REFUTED, Reason.MISSES, values)
    empty = {
        Reason.UNEXPLAINED: lambda: unexplained > settings.unexplained_above,
        Reason.UNDETERMINED: lambda: not is_tested(candidate, settings, measured.variation),
        Reason.PATTERN: lambda: unexplained > settings.patterned_above and leaves_pattern(candidate),
    }
    reason = next((reason for reason, holds in empty.items() if holds()), None)
    if reason is not None:
        return Verdict(Trust.INCONCLUSIVE, reason, values)
    weak = prediction.error > _WEAK_TEST * measured.variation
    return Verdict(Trust.CONFIRMED, Reason.PREDICTS_WITHIN_WIDE_ERRORS if weak else Reason.PREDICTS, values)
