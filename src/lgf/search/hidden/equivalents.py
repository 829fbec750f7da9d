"""Systems that give exactly the same measured states with another hidden state, and the one of them that is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lgf.data.row_knowledge import divisible
from lgf.equation.terms import rows_of, term_of
from lgf.expression.frame import Frame, Variable
from lgf.fit.constants import fit_constants
from lgf.fit.segments import Shooting
from lgf.fit.settings import FitSettings
from lgf.fit.target import Target
from lgf.search.candidate import Candidate
from lgf.search.decision import simplicity
from lgf.search.prediction import PredictionSettings
from lgf.search.sensitivity import solved_columns

_SAME = 1e-8  # relative mean square difference of what is measured, after a fit of one system to the other
_NOISE = 1e-3  # relative noise that the fit assumes
_MOST = 12  # systems compared with the best one


def preferred(
    candidates: Sequence[Candidate],
    best: Candidate,
    targets: Mapping[Frame, Target],
    fit: FitSettings,
    margin: float,
    prediction: PredictionSettings = PredictionSettings(),
) -> Candidate:
    """The system to be shown: the simplest that the data cannot tell from the best one, in its most natural form.

    Some thousand systems with a path to choose are compared, so a dearer one needs strong evidence. Of exact
    equivalents one in which every right-hand side is divisible by its own state is preferred: its hidden state keeps
    its sign.
    """
    near = [c for c in candidates if c.objective <= best.objective + margin and c.skeleton.frame == best.skeleton.frame]
    if not near:
        return best
    best = min(near, key=lambda c: (simplicity(c, prediction), c.objective))
    if keeps_signs(best):
        return best
    target = targets[best.skeleton.frame]
    natural = [c for c in near if keeps_signs(c) and c.skeleton.n_constants == best.skeleton.n_constants]
    return next((c for c in natural[:_MOST] if equivalent(c, best, target, fit)), best)


def keeps_signs(candidate: Candidate) -> bool:
    """Whether every right-hand side is divisible by its own state."""
    names = candidate.skeleton.frame.names
    return all(divisible(term_of(s), Variable(names[row]).symbol) for row, s in rows_of(candidate.skeleton))


def equivalents_of(
    best: Candidate, candidates: Sequence[Candidate], target: Target, fit: FitSettings
) -> list[Candidate]:
    """The candidates that give exactly what the best one gives, apart from the hidden state."""
    others = [c for c in candidates if c.skeleton.structure != best.skeleton.structure]
    return [c for c in others[:_MOST] if equivalent(c, best, target, fit)]


def equivalent(one: Candidate, other: Candidate, target: Target, fit: FitSettings) -> bool:
    """Whether each of the two, fitted to the noise-free solution of the other, gives it exactly."""
    return _reproduces(one, other, target, fit) and _reproduces(other, one, target, fit)


def _reproduces(candidate: Candidate, model: Candidate, target: Target, fit: FitSettings) -> bool:
    columns = solved_columns(model, target)
    if columns is None or candidate.fit.segments != 1 or model.fit.segments != 1:
        return False
    record, measured = target.record, list(target.measured)
    data = np.where(record.weight > 0, columns.T, 0.0)
    noise = target.noise.copy()
    noise[measured] = _NOISE * target.scales[measured]
    weight = np.where(record.weight > 0, 1.0 / np.where(np.isfinite(noise), noise, 1.0) ** 2, 0.0)
    power = float(np.sum(weight * data**2))
    clean = replace(
        target,
        record=record._replace(data=data, weight=weight / power),
        power=power,
        noise=noise,
        initial_error=np.zeros_like(target.initial_error),
        cache={},
    )
    unknown = record.unknown
    start = np.zeros(target.n_unknown)
    start[unknown[unknown >= 0]] = candidate.fit.initial[unknown >= 0]
    refit = fit_constants(
        candidate.skeleton, clean, fit, start=candidate.fit.values,
        shooting=Shooting((1,), tuple(float(v) for v in start)),
    )  # fmt: skip
    return bool(refit.loss < _SAME)
