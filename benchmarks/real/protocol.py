"""The tests of Benchmark 5: which samples a method sees, which it must predict, and the score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.real.records import Experiment, RealRecord

FORECAST, LEFT_OUT = "forecast", "left out"
WORST = 100.0  # the ratio of a prediction that is not finite

_SEEN_WINDOW = 0.75  # of the window, in a forecast
_EARLY = 0.3  # of the samples of a left-out experiment
_LEAST_EARLY = 3
_LEAST_EXPERIMENTS = 3
_EVERY = 3  # every third experiment is left out


@dataclass(frozen=True, eq=False)
class Piece:
    """Samples to predict: those of `rest`, after the samples `seen` of the same experiment.

    `index` is the experiment's position among the training experiments; None if it is left out.
    """

    seen: Experiment
    rest: Experiment
    index: int | None


@dataclass(frozen=True, eq=False)
class Trial:
    """One test: the training experiments, and the pieces to predict."""

    record: str
    kind: str
    states: tuple[str, ...]
    training: tuple[Experiment, ...]
    pieces: tuple[Piece, ...]
    inputs: tuple[Experiment, ...]  # whole experiments, for their inputs, in the order of training

    @property
    def scales(self) -> np.ndarray:
        """Root mean square of each state in the training part."""
        values = np.concatenate([e.values for e in self.training])
        return np.maximum(np.sqrt(np.mean(values**2, axis=0)), 1e-300)

    def error(self, predictions: Sequence[np.ndarray]) -> float:
        """Root mean square error of the predicted samples, each state in units of its scale; NaN if not finite."""
        squares = [
            ((prediction - piece.rest.values) / self.scales) ** 2
            for piece, prediction in zip(self.pieces, predictions, strict=True)
        ]
        with np.errstate(over="ignore"):
            value = math.sqrt(float(np.mean(np.concatenate(squares))))
        return value if math.isfinite(value) else math.nan


def trials_of(record: RealRecord) -> list[Trial]:
    """The forecast, and the left-out experiments if there are enough."""
    states, experiments = record.experiments()
    made = [_forecast(record.id, states, experiments)]
    if len(experiments) >= _LEAST_EXPERIMENTS:
        made.append(_left_out(record.id, states, experiments))
    return made


def _forecast(name: str, states: tuple[str, ...], experiments: tuple[Experiment, ...]) -> Trial:
    pieces = []
    for index, whole in enumerate(experiments):
        end = whole.t[0] + _SEEN_WINDOW * (whole.t[-1] - whole.t[0])
        pieces.append(Piece(whole.part(whole.t <= end), whole.part(whole.t > end), index))
    return Trial(name, FORECAST, states, tuple(p.seen for p in pieces), tuple(pieces), experiments)


def _left_out(name: str, states: tuple[str, ...], experiments: tuple[Experiment, ...]) -> Trial:
    kept = [whole for number, whole in enumerate(experiments, start=1) if number % _EVERY]
    pieces = [_early_piece(whole) for number, whole in enumerate(experiments, start=1) if not number % _EVERY]
    return Trial(name, LEFT_OUT, states, tuple(kept), tuple(pieces), tuple(kept))


def _early_piece(whole: Experiment) -> Piece:
    early = np.arange(len(whole.t)) < max(math.ceil(_EARLY * len(whole.t)), _LEAST_EARLY)
    return Piece(whole.part(early), whole.part(~early), None)


def inner_trials(test: Trial) -> list[Trial]:
    """The same test made of the training experiments alone; of left-out experiments, one trial for each."""
    if test.kind == FORECAST:
        return [_forecast(test.record, test.states, test.training)]
    trials = []
    for e, whole in enumerate(test.training):
        others = (*test.training[:e], *test.training[e + 1 :])
        piece = _early_piece(whole)
        if others and len(piece.rest.t):
            trials.append(Trial(test.record, LEFT_OUT, test.states, others, (piece,), others))
    return trials
