"""What predictions and residuals say about the chosen equation, in sentences, and the ladder as rows."""

import math
from typing import Any

import numpy as np

from lgf.expression.print import format_number
from lgf.report.constants import constant_rows, varying_terms
from lgf.report.percentages import percentage
from lgf.runs.request import Run
from lgf.search.candidate import Candidate
from lgf.search.decision import Trust, unexplained

_WEAK_TEST = 0.5  # error of confirmed predictions, in standard deviations of the data, above which they test little
_FAR_BETTER = 2.0  # times smaller is the error of another equation that is named beside a confirmed one
_BOUNDED = 3.0  # largest growth of a spread from the first half of a record to the second that is no growth


def verdict(run: Run) -> str:
    """One sentence on whether the equation predicts what its fit did not see."""
    prediction = run.best.prediction
    error = None if prediction is None else prediction.error
    limit = run.request.settings.prediction.unpredictable_above
    if prediction is not None and error is None and prediction.growth > limit:
        return "Untested: small errors grow so fast, as in chaos, that no part of the record tells the rest."
    if prediction is None or error is None:
        return "Untested: there are too few samples to see whether the equation predicts what its fit did not see."
    problem, settings = run.request.problem, run.request.settings.prediction
    if run.trust is Trust.UNTESTED and problem.wanders:
        return (
            "Untested: the record moves like a random walk, and of a random walk any equation predicts as little as "
            "this one."
        )
    left = unexplained(run.best, problem)
    if run.trust is Trust.UNTESTED and left > settings.unexplained_above:
        return (
            f"Untested: the equation leaves {percentage(left)} of the record's variation unexplained, so predictions "
            "within such residuals confirm nothing."
        )
    worse_than_mean = error > settings.worthless_above * problem.variation
    if run.trust is Trust.UNTESTED and left > settings.patterned_above and not worse_than_mean:
        return (
            f"Untested: the equation leaves {percentage(left)} of the record's variation unexplained, and that is more "
            "than noise: it has a pattern. Something is missing in the equation or wrong in the data."
        )
    if run.trust is Trust.UNTESTED:
        return (
            "Untested: a part of the data does not determine the solution well enough to predict the rest (off by "
            f"{percentage(error)} of its size)."
        )
    tested = {
        (True, False): "later samples",
        (False, True): "left-out experiments",
        (True, True): "later samples and left-out experiments",
    }[prediction.forecast is not None, prediction.left_out is not None]
    size = f"off by {percentage(error)} of their size"
    if run.trust is Trust.CONFIRMED:
        weak = error > _WEAK_TEST * problem.variation
        how = "Confirmed by a weak test" if weak else "Confirmed"
        bars = "its own error bars, which are wide" if weak else "its own error bars"
        return f"{how}: it predicts {tested} to within the noise and {bars} ({size}).{_better_forecast(run, error)}"
    return (
        f"Refuted: it misses {tested} by more than the noise ({size}). It is an approximation, the simplest of those "
        "tried that predict about as well as the best; do not quote it as the law behind the data."
    )


def _better_forecast(run: Run, error: float) -> str:
    """A sentence on the equation of the ladder that predicts best, if it is far better than the chosen one."""
    tested = [
        (c.prediction.error, c) for c in run.ladder if c.prediction is not None and c.prediction.error is not None
    ]
    best, candidate = min(tested, key=lambda pair: pair[0], default=(error, None))
    if candidate is None or best * _FAR_BETTER > error:
        return ""
    equation = "; ".join(str(run.display_system(candidate)).splitlines())
    return f" In these predictions {equation} is better (off by {percentage(best)}); more data would decide."


def residual_sentences(run: Run) -> list[str]:
    """Sentences on residuals that are not constant white noise, and on constants that vary by experiment."""
    sentences = []
    noise = run.best.noise
    if noise is not None:
        sentences.append(
            f"The residuals are not white noise: {percentage(noise.share)} of their variance is correlated over about "
            f"{format_number(noise.correlation_time)} units of time. The equation is an approximation at the "
            f"{percentage(run.best.loss**0.5)} level; the error bars allow for it."
        )
    pieces = run.best.fit.segments
    if pieces > 1:
        sentences.append(
            f"The error is that of {pieces} pieces of the record, each solved from a start of its own; no solution "
            "from the first sample alone was found that follows all of it as well."
        )
    tenfold = _tenfold_growth(run)
    if tenfold is not None:
        sentences.append(
            f"Small errors grow tenfold about every {tenfold:.2g} units of time, as in chaos: forecasts hold for a few "
            "times as long and no longer, however good the equations are."
        )
    if run.growth is not None:
        sentences.append("The noise grows with the signal, so large values count less in the fit.")
    for row in constant_rows(run):
        if row["spread"] is not None:
            sentences.append(
                f"The constant C of {row['term']} differs between experiments: mean {format_number(row['value'])}, "
                f"standard deviation {format_number(row['spread'])}."
            )
    return sentences


def _tenfold_growth(run: Run) -> float | None:
    """The time in which a small error grows tenfold; None if it grows little, or no more than the states themselves."""
    prediction, observations = run.best.prediction, run.request.problem.observations
    if prediction is None or not run.request.settings.prediction.sensitive_above < prediction.growth < math.inf:
        return None
    for observation in observations:
        half = len(observation.t) // 2
        first, second = (np.nanstd(part, axis=0) for part in (observation.values[:half], observation.values[half:]))
        if np.any(second > _BOUNDED * first):
            return None
    return max(float(o.t[-1] - o.t[0]) for o in observations) * math.log(10.0) / prediction.growth


def hidden_sentences(run: Run) -> list[str]:
    """Sentences on a state that was not measured: what the record determines, and what it does not."""
    return [] if run.hidden is None else list(run.hidden.sentences)


def ladder_rows(run: Run) -> list[dict[str, Any]]:
    """The ladder as table rows, simplest first: equation, error in sample, error of predictions, whether chosen.

    `varying` has the terms whose constant differs between experiments.
    """
    return [
        {
            "equation": str(run.display_system(c)),
            "constants": len(c.fit.values),
            "varying": varying_terms(c),
            "error": c.loss**0.5,
            "prediction": None if c.prediction is None else c.prediction.error,
            "chosen": is_best(run, c),
        }
        for c in run.ladder
    ]


def is_best(run: Run, candidate: Candidate) -> bool:
    """Whether the candidate is the chosen one."""
    best = run.best
    varying = [v.constant for v in best.fit.sharing.varying]
    return candidate.skeleton.structure == best.skeleton.structure and varying == [
        v.constant for v in candidate.fit.sharing.varying
    ]


def shortened_ladder(run: Run, most: int = 5) -> list[dict[str, Any]]:
    """At most this many steps of the ladder around the chosen one."""
    rows = ladder_rows(run)
    if len(rows) <= most:
        return rows
    at = next((i for i, row in enumerate(rows) if row["chosen"]), len(rows) - 1)
    first = min(max(at - most + 2, 0), len(rows) - most)
    return rows[first : first + most]
