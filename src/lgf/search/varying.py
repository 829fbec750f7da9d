"""Equations with one constant, or one factor of all terms, that varies by experiment, where the data ask for it.

Wells, trees and patients obey one equation with constants of their own. With common constants only, the free initial
values of a higher order take their place. Which constant of which candidate should vary is estimated by one
Gauss-Newton step at the common fit; the most promising are fitted.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lgf.fit.jacobian import solve_with_jacobian
from lgf.fit.random_effects import distribution, random_length
from lgf.fit.settings import FitSettings, make_fitting
from lgf.fit.sharing import Sharing, Varying
from lgf.fit.target import Target
from lgf.search.candidate import Candidate
from lgf.search.common_factor import with_common_factor
from lgf.search.decision import simplicity
from lgf.search.evaluate import Evaluator, unknowns_at
from lgf.search.loop import Mapper

_LEAST_EXPERIMENTS = 3
_FITTED = 16  # the most promising pairs of candidate and constant
_PLAIN = 8  # the simplest candidates, each with its most promising constant


def vary_one(candidates: Sequence[Candidate], evaluator: Evaluator, mapper: Mapper) -> list[Candidate]:
    """The candidates with one constant varying that are better than with common constants, best first."""
    estimated: list[tuple[float, int, int, Candidate]] = []
    for rank, candidate in enumerate(candidates):
        target = evaluator.targets[candidate.skeleton.frame]
        if target.n_experiments < _LEAST_EXPERIMENTS or candidate.fit.sharing.varying:
            continue
        lengths = estimated_lengths(candidate, target)
        estimated += [(length, rank, j, candidate) for j, length in enumerate(lengths) if math.isfinite(length)]
        factored = with_common_factor(candidate)
        if factored is not None and math.isfinite(length := estimated_lengths(factored, target)[0]):
            estimated.append((length, rank, -1, factored))
    estimated.sort(key=lambda entry: entry[:3])
    best: dict[str, tuple[float, int, int, Candidate]] = {}  # of every equation
    for entry in estimated:
        best.setdefault(entry[3].skeleton.structure, entry)
    plain = sorted(best.values(), key=lambda entry: simplicity(entry[3]))[:_PLAIN]
    chosen = dict.fromkeys([*estimated[:_FITTED], *plain])
    proposals = [
        replace(c.proposal, start=c.fit.values, sharing=Sharing((Varying(max(j, 0)),)), origin="varying")
        for _, _, j, c in chosen
    ]
    common = {c.skeleton.structure: c.objective for c in candidates}
    fitted = mapper(replace(evaluator, refining=True), proposals)
    better = [c for c in fitted if c.objective < common[c.skeleton.structure]]
    return sorted(better, key=lambda c: c.objective)


def estimated_lengths(candidate: Candidate, target: Target) -> list[float]:
    """The objective expected if each constant varies, in turn; infinite where it cannot be estimated."""
    p, n = candidate.skeleton.n_constants, target.n_samples
    if not p or not math.isfinite(candidate.loss):
        return [math.inf] * p
    fitting = make_fitting(candidate.skeleton, target, FitSettings())
    solved = solve_with_jacobian(fitting, unknowns_at(candidate.fit, fitting))
    if not solved.reached.all():
        return [math.inf] * p
    measured = target.record.weight > 0
    root = np.sqrt(target.record.weight[measured] * target.power)
    residual = (target.record.data - solved.values)[measured] * root
    jacobian = solved.jacobian[:, measured] * root
    sizes = np.maximum(np.abs(jacobian).max(axis=1), 1e-300)  # slopes of an unstable solution may be 1e200
    if not np.isfinite(sizes).all():
        return [math.inf] * p
    jacobian /= sizes[:, None]
    owner = np.repeat(np.arange(target.n_experiments), np.diff(target.record.first))
    experiment = np.broadcast_to(owner[:, None], measured.shape)[measured]
    masks = experiment == np.arange(target.n_experiments)[:, None]
    total, lengths = float(residual @ residual), []
    for j in range(p):
        others = np.delete(jacobian, j, axis=0)
        design = np.concatenate([masks * jacobian[j], others])
        gram = design @ design.T
        scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        inverse = np.linalg.pinv(gram / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)
        step = inverse @ (design @ residual)
        left = max(total - float(step @ (design @ residual)), 1e-12 * total)
        variance = left / max(n - len(design), 1)
        own = slice(0, target.n_experiments)
        values = candidate.fit.values[j] + step[own] / sizes[j]
        individual = np.concatenate([design[own], jacobian[p:]])  # for given common constants
        spread = np.diag(np.linalg.pinv(individual @ individual.T, hermitian=True))[own]
        errors = np.sqrt(np.maximum(spread, 0.0) * variance) / sizes[j]
        mean, deviation = distribution(values, np.where(errors > 0, errors, np.inf))
        gain = n * math.log(left / total) + math.log(target.n_experiments)
        random = random_length(values, errors, mean, deviation, target.experiment_samples)
        lengths.append(candidate.objective + gain + random)
    return lengths
