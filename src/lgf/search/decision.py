"""The decision between description length and prediction, and the front of equations by prediction.

The description length chooses, unless the predictions of its choice are refuted, another equation predicts much
better, or nothing tests the choice and it blows up soon after the record: then the simplest equation whose
predictions are within 10 % of the best ones is chosen. Of a single record a better forecast is hardly a reason, because
the constants of a true equation may not be determined by its first part, unless it is that of a simpler equation and
many times better.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lgf.equation.time_dependence import foreseeable
from lgf.search.candidate import Candidate, Population
from lgf.search.prediction import PredictionSettings
from lgf.search.verdict import is_refuted, is_tested, worthless


class Tools(NamedTuple):
    """What a decision needs of the problem at hand."""

    predict: Callable[[Sequence[Candidate]], list[Candidate]]  # the candidates with their predictions
    refine: Callable[[Sequence[Candidate]], list[Candidate]]  # refits candidates that are no finalists
    accept: Callable[[Candidate], bool]  # the check by an independent solver
    window: tuple[float, float]  # first and last time of the data
    variation: float  # standard deviation of the measured data, relative to their root mean square
    leaves_pattern: Callable[[Candidate], bool] = lambda candidate: False  # whether its residuals are more than noise
    continues: Callable[[Candidate], bool] = lambda candidate: True  # whether it does not blow up after the record


@dataclass(frozen=True)
class Decision:
    """The chosen candidate, its equals, and the simplest equation at each level of prediction error."""

    best: Candidate
    indistinguishable: tuple[Candidate, ...]  # equations that are about as good, the best one among them
    prediction_front: tuple[Candidate, ...]


def decide(
    best: Candidate,
    finalists: Sequence[Candidate],
    others: Sequence[Candidate],
    tools: Tools,
    settings: PredictionSettings = PredictionSettings(),
    width: float = 6.0,
) -> Decision:
    """The decision, given the choice of the description length among the finalists. The others are simpler equations.

    `width` is the largest difference of description length that the data cannot resolve.
    """
    others = [c for c in others if not _among(c, finalists)]
    predicted = tools.predict([best, *(c for c in finalists if c.fit is not best.fit), *others])
    best, rest = predicted[0], iter(predicted[1:])
    predicted_finalists = [best if c.fit is best.fit else next(rest) for c in finalists]
    everything = [*predicted_finalists, *rest]
    simpler = outdone_by(best, everything, settings)
    if simpler and not (worthless(best, settings, tools.variation) or tools.leaves_pattern(best)):
        simpler = [c for c in simpler if settings.far_outpredicted_above * _error(c) < _error(best)]
    if simpler and not is_refuted(best, settings):
        refitted = tools.predict(tools.refine(simpler))
        best = next((c for c in sorted(refitted, key=_error) if tools.accept(c)), best)
        predicted_finalists = [best, *predicted_finalists]
    blows_up = not is_tested(best, settings, tools.variation) and not tools.continues(best)
    if not (is_refuted(best, settings) or blows_up or outpredicted(best, everything, tools, settings)):
        pool = unique([best, *everything])
        equals = tuple(c for c in predicted_finalists if c.objective <= best.objective + width)
        return Decision(best, equals, prediction_front(pool, best, settings))
    pool = unique([best, *predicted_finalists, *tools.predict(tools.refine(others))])
    near = sorted(best_predictors(pool, tools, settings), key=lambda c: simplicity(c, settings))
    chosen = next((c for c in near if tools.accept(c)), best)
    equals = tuple(near) if chosen in near else (chosen, *near)
    return Decision(chosen, equals, prediction_front(pool, chosen, settings))


def outpredicted(
    best: Candidate, others: Sequence[Candidate], tools: Tools, settings: PredictionSettings = PredictionSettings()
) -> bool:
    """Whether another equation predicts left-out experiments and later samples much better than the best one.

    A left-out experiment is like the others, so its prediction is a fair test. The later part of a single record is
    not, because its first part may not determine the constants of a true equation. It counts for an equation whose
    dependence on time cannot be foreseen, if the mean of the data would have been a better prediction.
    """
    if best.prediction is None:
        return False
    if best.prediction.left_out is None:
        foreseen = foreseeable(best.skeleton, best.fit.values, tools.window)
        if foreseen or not worthless(best, settings, tools.variation):
            return False
    return _error(best) > settings.outpredicted_above * min(map(_error, others), default=math.inf)


def outdone_by(
    best: Candidate, others: Sequence[Candidate], settings: PredictionSettings = PredictionSettings()
) -> list[Candidate]:
    """The simpler equations that fit about as well as the best one and predict much better.

    If the best one leaves more than noise, or predicts worse than the mean of the data, or if the simpler one predicts
    many times better, it is the better one: what a longer one gains in the fit is paid for in every forecast.
    """
    return [
        c
        for c in others
        if simplicity(c, settings) < simplicity(best, settings)
        and _predicts(c)
        and c.loss <= settings.about_as_well**2 * best.loss
        and settings.outpredicted_above * _error(c) < _error(best)
    ]


def best_predictors(pool: Sequence[Candidate], tools: Tools, settings: PredictionSettings) -> list[Candidate]:
    """The equations whose predictions count as equal to the best ones.

    Those that predict nothing, because their errors grow as in chaos, count only if none predicts anything. Those whose
    dependence on time can be foreseen, such as those without time, and that do not blow up soon after the record are
    preferred if the best of them is not much worse.
    """
    pool = [c for c in pool if _predicts(c)] or pool
    tame = [c for c in pool if foreseeable(c.skeleton, c.fit.values, tools.window) and tools.continues(c)]
    smallest = min(map(_error, pool))
    if min(map(_error, tame), default=math.inf) <= settings.foreseeable_within * smallest:
        pool, smallest = tame, min(map(_error, tame))
    return [c for c in pool if _error(c) <= settings.near_best * smallest]


def simplicity(candidate: Candidate, settings: PredictionSettings = PredictionSettings()) -> float:
    """The bits of the equation, with some for every constant and order; smaller is simpler."""
    constants = len(candidate.fit.values) + len(candidate.fit.sharing.varying)
    return (
        candidate.proposal.bits
        + settings.bits_per_constant * constants
        + settings.bits_per_order * candidate.skeleton.frame.dimension
    )


def simple_candidates(
    population: Population, n_samples: int, settings: PredictionSettings = PredictionSettings()
) -> list[Candidate]:
    """The Pareto front, the best autonomous equations of first order, and the best if samples count less.

    Samples with correlated residuals hold less information: the fit then counts as if there were fewer samples.
    """
    solved = sorted((c for c in population if math.isfinite(c.objective)), key=lambda c: c.objective)
    first = [c for c in solved if max(c.skeleton.frame.orders) == 1 and c.skeleton.autonomous]

    def discounted(candidate: Candidate, discount: float) -> float:
        return candidate.objective - (1.0 - 1.0 / discount) * n_samples * math.log(max(candidate.loss, 1e-16))

    rest = [
        c
        for discount in settings.discounts
        for c in sorted(solved, key=lambda c: discounted(c, discount))[: settings.n_discounted]
    ]
    front = [c for c in population.front() if math.isfinite(c.objective)]
    return unique([*front, *first[: settings.n_first_order], *rest])


def prediction_front(
    pool: Sequence[Candidate], best: Candidate, settings: PredictionSettings = PredictionSettings()
) -> tuple[Candidate, ...]:
    """The simplest equation at each level of prediction error, simplest first; the chosen one is among them.

    A step must predict better than all simpler ones by more than the factor within which predictions count as equal,
    and fit better than the answer 0.
    """
    steps: list[Candidate] = []
    for candidate in sorted(pool, key=lambda c: simplicity(c, settings)):
        if _same(candidate, best):
            steps.append(best)
        elif candidate.loss <= 1.0:
            simpler = min(map(_error, steps), default=math.inf)
            if _error(candidate) * settings.near_best < simpler:
                steps.append(candidate)
    return tuple(steps)


def _error(candidate: Candidate) -> float:
    """The error of predictions, or of the fit where nothing can be predicted."""
    error = None if candidate.prediction is None else candidate.prediction.error
    return math.sqrt(candidate.loss) if error is None else error


def _predicts(candidate: Candidate) -> bool:
    return candidate.prediction is not None and candidate.prediction.error is not None


def _same(one: Candidate, other: Candidate) -> bool:
    return one.skeleton.structure == other.skeleton.structure and _varying(one) == _varying(other)


def _varying(candidate: Candidate) -> tuple[str, ...]:
    """The constants that vary by experiment, and how the equation is written with them."""
    varying = tuple(str(v.constant) for v in candidate.fit.sharing.varying)
    return (*varying, str(candidate.skeleton)) if varying else ()


def _among(candidate: Candidate, others: Sequence[Candidate]) -> bool:
    return any(_same(candidate, other) for other in others)


def unique(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without repeated equations; the first of equals stays."""
    unique: dict[tuple[str, tuple[str, ...]], Candidate] = {}
    for candidate in candidates:
        unique.setdefault((candidate.skeleton.structure, _varying(candidate)), candidate)
    return list(unique.values())
