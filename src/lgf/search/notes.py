"""Notes: what else there is to say about the chosen equation, as kinds and numbers; sentences are made of them last."""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from lgf.data.problem import Problem
from lgf.equation.system import System
from lgf.search.candidate import Candidate
from lgf.search.prediction import PredictionSettings
from lgf.search.verdict import Trust, Verdict

_FAR_BETTER = 2.0  # times smaller is the error of another equation that is named beside a confirmed one
_BOUNDED = 3.0  # largest growth of a spread from the first half of a record to the second that is no growth


class NoteKind(StrEnum):
    """What a note is about."""

    BETTER_FORECAST = "better forecast"  # of the equation `subject`: error
    CORRELATED_RESIDUALS = "correlated residuals"  # share, time, error
    PIECES = "pieces"  # of the record, each solved from a start of its own: pieces
    TENFOLD_GROWTH = "tenfold growth"  # of small errors: time
    NOISE_GROWS = "noise grows"
    GIVEN = "given"  # the user's equation `subject`: error unless it was not solved, chosen_error unless it was chosen
    VARIES = "varies"  # the constant of the term `subject`: mean, deviation
    HIDDEN = "hidden"  # the state `subject`: measured
    HIDDEN_UNEXPLAINED = "hidden, unexplained"  # times the noise: ratio
    HIDDEN_UNEXPLAINED_EXPERIMENTS = "hidden, unexplained experiments"  # the same, of several experiments
    FREE_SCALE = "free scale"
    LINEAR = "linear"  # measured
    EQUIVALENTS = "equivalents"  # number, measured
    RIVALS = "rivals"  # number
    OPEN_DIRECTIONS = "open directions"  # number, unknowns


class Note(NamedTuple):
    """One thing to say: its kind, what it is about, the numbers, and the measured states, if they are named."""

    kind: NoteKind
    subject: str = ""
    values: Mapping[str, int | float] = {}
    measured: str = ""


def notes_on(
    best: Candidate,
    prediction_front: Sequence[Candidate],
    verdict: Verdict,
    measured: Problem,
    growth: float | None,
    settings: PredictionSettings,
) -> list[Note]:
    """The notes on the chosen equation: a better forecast, its residuals, and the constants that vary."""
    notes = []
    if verdict.trust is Trust.CONFIRMED:
        notes += _better_forecast(verdict.values["error"], prediction_front, measured)
    if best.noise is not None and verdict.trust is not Trust.NO_LAW:
        values = {"share": best.noise.share, "time": best.noise.correlation_time, "error": math.sqrt(best.loss)}
        notes.append(Note(NoteKind.CORRELATED_RESIDUALS, values=values))
    if best.fit.segments > 1:
        notes.append(Note(NoteKind.PIECES, values={"pieces": best.fit.segments}))
    tenfold = _tenfold_growth(best, measured, settings)
    if tenfold is not None:
        notes.append(Note(NoteKind.TENFOLD_GROWTH, values={"time": tenfold}))
    if growth is not None:
        notes.append(Note(NoteKind.NOISE_GROWS))
    terms = System(best.fit.skeleton, best.fit.values).terms
    for v in best.fit.sharing.varying:
        values = {"mean": best.fit.values[v.constant], "deviation": v.deviation}
        notes.append(Note(NoteKind.VARIES, terms[v.constant], values))
    return notes


def notes_on_given(given: Sequence[Candidate], best: Candidate, measured: Problem) -> list[Note]:
    """How each of the user's equations did, whichever was chosen."""
    notes = []
    for candidate in given:
        chosen = candidate.skeleton.structure == best.skeleton.structure
        errors = {"error": candidate.loss} | ({} if chosen else {"chosen_error": best.loss})
        values = {name: math.sqrt(loss) for name, loss in errors.items() if math.isfinite(loss)}
        equation = "; ".join(str((best if chosen else candidate).shown(measured)).splitlines())
        notes.append(Note(NoteKind.GIVEN, equation, values))
    return notes


def _better_forecast(error: float, prediction_front: Sequence[Candidate], measured: Problem) -> list[Note]:
    """A note on the equation that predicts best, if it is far better than the chosen one."""
    predicted = [(c.prediction.error, c) for c in prediction_front if c.prediction and c.prediction.error is not None]
    smallest, candidate = min(predicted, key=lambda pair: pair[0], default=(error, None))
    if candidate is None or smallest * _FAR_BETTER > error:
        return []
    equation = "; ".join(str(candidate.shown(measured)).splitlines())
    return [Note(NoteKind.BETTER_FORECAST, equation, {"error": smallest})]


def _tenfold_growth(best: Candidate, measured: Problem, settings: PredictionSettings) -> float | None:
    """The time in which a small error grows tenfold; None if it grows little, or no more than the states themselves."""
    prediction, observations = best.prediction, measured.observations
    if prediction is None or not settings.sensitive_above < prediction.growth < math.inf:
        return None
    for observation in observations:
        half = len(observation.t) // 2
        first, second = (np.nanstd(part, axis=0) for part in (observation.values[:half], observation.values[half:]))
        if np.any(second > _BOUNDED * first):
            return None
    return max(float(o.t[-1] - o.t[0]) for o in observations) * math.log(10.0) / prediction.growth
