"""Choosing the equation: finalists refitted, simplified and solved independently, held-out experiments, and what the
data cannot tell apart."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from lgf.data.observation import Problem
from lgf.equation.simplification import SimplifySettings, simplify
from lgf.expression.frame import Frame
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitSettings
from lgf.fit.target import Target, make_target
from lgf.language.cheapest_derivation import encoding
from lgf.language.language import Language, explicit_form, linear_form
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.evaluate import Evaluator, bounds_of
from lgf.search.loop import Mapper
from lgf.search.objective import Criterion
from lgf.search.proposers.basic import propose
from lgf.settings.ranges import Count, Positive, Weight
from lgf.smoothing.complete import Completion
from lgf.solver.reference import solve_by_reference
from lgf.solver.solve import solve
from lgf.solver.trajectory import SolveStatus, relative_l2

PATIENT = FitSettings(
    n_starts=192, n_refined=8, iterations=60, tolerance=1e-6, rtol=1e-6, steps_per_solve=4000, steps_per_fit=40_000,
    rescue_above=1.5,
)  # fmt: skip


@dataclass(frozen=True)
class SelectionSettings:
    """How the equation is chosen from the best candidates.

    Two units of description length are by the scale of Kass and Raftery for differences of BIC: up to 2 a difference
    is "not worth more than a bare mention", above 6 it is "strong".
    """

    n_finalists: Count = 12
    refit: FitSettings = PATIENT  # of the finalists
    simplification: SimplifySettings = SimplifySettings()
    bare_mention: Weight = 2.0  # handicap of an equation in which time occurs
    indistinguishable: Weight = 6.0  # within these units the data cannot tell equations apart
    same: Positive = 0.01  # relative difference of two trajectories that count as one
    steady: Positive = 1.0  # relative difference above which a start within the noise leads somewhere else
    most_checked: Count = 6  # candidates that an independent solver solves
    most_groups: Annotated[int, Field(ge=2)] = 10  # of experiments to leave out in turn
    largest_held_out: Positive = 100.0  # the loss on an experiment left out counts at most so much


def finalists(
    population: Population,
    evaluator: Evaluator,
    mapper: Mapper,
    settings: SelectionSettings = SelectionSettings(),
    languages: Sequence[Language] = (),
) -> list[Candidate]:
    """The best candidates, refitted patiently, and what is left of them without negligible terms, best first.

    A refit that came out worse does not count. Without languages nothing is simplified.
    """
    chosen = population.best(settings.n_finalists)
    patient = replace(evaluator, fit=settings.refit, refining=True)
    again = mapper(patient, [c.proposal for c in chosen])
    polished = mapper(patient, [replace(c.proposal, start=c.fit.values) for c in chosen])
    best = [min(triple, key=lambda c: c.objective) for triple in zip(chosen, again, polished, strict=True)]
    by_frame = {language.frame: language for language in languages}
    simpler = [
        _simplified(c, evaluator.targets[c.skeleton.frame], by_frame.get(c.skeleton.frame), settings.simplification)
        for c in best
    ]
    # A structure that was fitted in haste and is no finalist gets the patient fit too.
    refitted = {c.skeleton.structure for c in best}
    fresh = {p.skeleton.structure: p for p in reversed(simpler) if p and p.skeleton.structure not in refitted}
    best += mapper(patient, list(fresh.values()))
    for candidate in best:
        population.add(candidate)
    return sorted(best, key=lambda c: c.objective)


def _simplified(
    candidate: Candidate, target: Target, language: Language | None, settings: SimplifySettings
) -> Proposal | None:
    """The proposal of what is left without negligible terms; None if all matter, or the language cannot say it."""
    if language is None or not math.isfinite(candidate.loss):
        return None
    system = candidate.fit.system(target)
    left = simplify(system, target.environment, settings)
    if left is system:
        return None
    try:
        said = encoding(language.grammar, linear_form(explicit_form(left.skeleton)), language.forced)
    except ValueError:
        return None
    found = None if said.derivation is None else propose(language, said.derivation, "simplified")
    return found if found is not None and math.isfinite(found.bits) else None


def confirmed(
    candidate: Candidate, problem: Problem, target: Target, settings: SelectionSettings = SelectionSettings()
) -> bool:
    """Whether an independent solver, fit for stiff equations, comes to the same trajectories as the kernels."""
    system = candidate.fit.system(target)
    for e, observation in enumerate(problem.observations):
        start, signals = tuple(candidate.fit.initial[e]), problem.signals(e)
        branch = float(target.record.root[e]), float(target.record.root_slope[e])
        ours = solve(system, start, observation.t, signals, branch=branch)
        theirs = solve_by_reference(system, start, observation.t, signals, branch)
        if theirs.status is not SolveStatus.OK or ours.status is not SolveStatus.OK:
            return False
        if not all(relative_l2(theirs[name], ours[name]) < settings.same for name in target.frame.names):
            return False
    return True


def steady(
    candidate: Candidate, problem: Problem, target: Target, settings: SelectionSettings = SelectionSettings()
) -> bool:
    """Whether the trajectories go the same way from starts that differ from the fitted ones by the noise.

    An equation that needs its start finer than anybody knows it predicts nothing. Starts that are given are not moved.
    """
    system, names = candidate.fit.system(target), target.frame.names
    n = target.frame.dimension
    for e, observation in enumerate(problem.observations):
        signals, start = problem.signals(e), candidate.fit.initial[e]
        branch = float(target.record.root[e]), float(target.record.root_slope[e])
        moved = [d for d in range(n) if target.record.unknown[e, d] >= 0 and np.isfinite(target.noise[d])]
        if not moved:
            continue
        fitted = solve(system, tuple(start), observation.t, signals, branch=branch)
        for d in moved:
            for sign in (-1.0, 1.0):
                other = start.copy()
                other[d] += sign * target.noise[d]
                near = solve(system, tuple(other), observation.t, signals, branch=branch)
                if near.status is not SolveStatus.OK:
                    return False
                if not all(relative_l2(near[name], fitted[name]) < settings.steady for name in names):
                    return False
    return True


def held_out_losses(
    candidates: Sequence[Candidate],
    problem: Problem,
    completions: Sequence[Completion],
    evaluator: Evaluator,
    settings: SelectionSettings = SelectionSettings(),
) -> list[Candidate]:
    """The candidates with the loss on each experiment in turn, fitted to the others (leave one out).

    More than a few experiments are left out in groups. The initial state of an experiment left out, where it is not
    given, is the only thing fitted to it.
    """
    n = len(problem.observations)
    groups = [list(range(first, n, settings.most_groups)) for first in range(min(n, settings.most_groups))]
    judged = []
    for candidate in candidates:
        frame = candidate.skeleton.frame
        total = power = 0.0
        for group in groups:
            others = [i for i in range(n) if i not in group]
            fit = fit_constants(
                candidate.skeleton, _part(problem, completions, frame, others), evaluator.fit,
                bounds=bounds_of(candidate.skeleton, evaluator.knowledge), start=candidate.fit.values,
            )  # fmt: skip
            target = _part(problem, completions, frame, group)
            fixed = np.array([[v, v] for v in fit.values]).reshape(-1, 2)
            held = fit_constants(candidate.skeleton, target, evaluator.fit, bounds=fixed, start=fit.values)
            total += min(held.loss, settings.largest_held_out) * target.power
            power += target.power
        judged.append(replace(candidate, held_out=total / power))
    return judged


def _part(problem: Problem, completions: Sequence[Completion], frame: Frame, experiments: Sequence[int]) -> Target:
    part = Problem(tuple(problem.observations[i] for i in experiments), problem.knowledge)
    return make_target(part, frame, [completions[i] for i in experiments])


def choose(
    candidates: Sequence[Candidate],
    n_samples: int,
    accept: Callable[[Candidate], bool],
    handicap: Callable[[Candidate], float] = lambda candidate: 0.0,
    settings: SelectionSettings = SelectionSettings(),
) -> Candidate:
    """The acceptable candidate of smallest objective; the loss on held-out experiments takes the place of the fit's.

    A handicap is what a candidate must be better by than one without. If none of the first few is acceptable the first
    one is it all the same.
    """

    def worth(candidate: Candidate) -> float:
        value = candidate.objective + handicap(candidate)
        if candidate.held_out is None or not math.isfinite(candidate.loss):
            return value
        return value + n_samples * math.log(max(candidate.held_out, 1e-16) / max(candidate.loss, 1e-16))

    ranked = sorted(candidates, key=worth)
    return next((c for c in ranked[: settings.most_checked] if accept(c)), ranked[0])


def handicap_of(
    candidate: Candidate,
    problem: Problem,
    target: Target,
    criterion: Criterion,
    settings: SelectionSettings = SelectionSettings(),
) -> float:
    """The units of description length by which the data must speak for what is not believed without them.

    That an equation needs its start finer than it is known; and that time occurs in it: over one record any smooth term
    can be traded for one in t, which is wrong from another start. The paper's criterion knows no such units.
    """
    if criterion is not Criterion.DESCRIPTION_LENGTH or not math.isfinite(candidate.loss):
        return 0.0
    unsteady = 0.0 if steady(candidate, problem, target, settings) else settings.indistinguishable
    return unsteady + (0.0 if candidate.skeleton.autonomous else settings.bare_mention)


def simplest_equal(
    candidates: Sequence[Candidate], best: Candidate, problem: Problem, targets: Mapping[Frame, Target], accuracy: float
) -> Candidate:
    """The candidate to prefer among those whose trajectories equal the best one's within the accuracy of a solution.

    No data from these experiments can tell them apart: equations without time come first, then lower orders, then the
    objective.
    """
    reference = _trajectories(best, problem, targets[best.skeleton.frame])
    if reference is None:
        return best

    def equal(candidate: Candidate) -> bool:
        if candidate is best:
            return True
        other = _trajectories(candidate, problem, targets[candidate.skeleton.frame])
        return other is not None and all(relative_l2(a, b) < accuracy for a, b in zip(reference, other, strict=True))

    return min(
        filter(equal, candidates),
        key=lambda c: (not c.skeleton.autonomous, sum(c.skeleton.frame.orders), c.objective),
        default=best,
    )


def _trajectories(candidate: Candidate, problem: Problem, target: Target) -> list[np.ndarray] | None:
    """Every state of every experiment over time; None if a solution does not reach the end."""
    if not math.isfinite(candidate.loss):
        return None
    system, columns = candidate.fit.system(target), []
    for e, observation in enumerate(problem.observations):
        branch = float(target.record.root[e]), float(target.record.root_slope[e])
        solved = solve(system, candidate.fit.initial[e], observation.t, problem.signals(e), branch=branch)
        if solved.status is not SolveStatus.OK:
            return None
        columns += [solved[name] for name in target.frame.names]
    return columns


def indistinguishable(
    candidates: Sequence[Candidate], best: Candidate, settings: SelectionSettings = SelectionSettings()
) -> list[Candidate]:
    """The candidates whose objective is within a few units of the best: the data cannot tell them apart."""
    return [c for c in candidates if c.objective <= best.objective + settings.indistinguishable]
