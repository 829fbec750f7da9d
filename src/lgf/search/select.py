"""Selection by description length: finalists are refitted, simplified and solved independently."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lgf.data.problem import Problem
from lgf.equation.simplification import SimplifySettings, simplify
from lgf.equation.skeleton import Skeleton, numbered
from lgf.equation.structure import canonical_sides
from lgf.expression.canonical import canonical
from lgf.expression.frame import Frame
from lgf.expression.functions import FUNCTIONS
from lgf.expression.numeric import has_values
from lgf.expression.tree import ZERO, Expression, T, add, constant, mul, substitute, summands
from lgf.fit.constants import initial_values
from lgf.fit.target import Target
from lgf.language.language import Language, explicit_form, linear_form
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.evaluate import Evaluator
from lgf.search.loop import Mapper
from lgf.search.objective import Criterion
from lgf.search.proposers.basic import propose
from lgf.search.round_constants import RoundSettings, with_round_constants, without_phases
from lgf.settings.ranges import Count, Positive, Weight
from lgf.solver.reference import solve_by_reference
from lgf.solver.solve import solve
from lgf.solver.trajectory import SolveStatus, relative_l2

_DETERMINED = 1.0  # standard errors: a smaller constant is left out, if the description is then no longer
_MOST_UNBOUNDED = 4  # constants without any error that are left out in turn
_ROUNDS = 3  # of leaving out


@dataclass(frozen=True)
class SelectionSettings:
    """How the equation is selected from the best candidates.

    Differences of description length follow Kass and Raftery's scale for BIC: up to 2 is "not worth more than a bare
    mention", above 6 is "strong", above 10 "very strong". With correlated residuals, whose process is fitted too, terms
    that are not there gain more than under white noise.
    """

    n_finalists: Count = 12
    dear_above: Count = 15_000  # steps of the best fit; there are then half as many finalists
    simplification: SimplifySettings = SimplifySettings()
    rounding: RoundSettings = RoundSettings()
    bare_mention: Weight = 2.0  # penalty of an equation that contains t
    indistinguishable: Weight = 6.0  # largest difference that the data cannot resolve
    correlated: Weight = 10.0  # the same if the residuals are correlated in time
    same: Positive = 0.01  # relative difference below which two trajectories are equal
    steady: Positive = 1.0  # relative difference above which a trajectory is sensitive to its initial state
    fully_explained: Positive = 2.0  # times the loss that rounding and the solver leave by themselves
    most_checked: Count = 6  # candidates checked by the independent solver


def finalists(
    population: Population,
    evaluator: Evaluator,
    mapper: Mapper,
    settings: SelectionSettings = SelectionSettings(),
    languages: Sequence[Language | SystemLanguage] = (),
) -> list[Candidate]:
    """The best candidates, refitted with more effort, and their simplified versions, best first.

    A refit is used only if it is better. Without languages nothing is simplified.
    """
    patient = evaluator.patient
    dear = population.best()[0].fit.steps > settings.dear_above
    n_finalists = max(settings.n_finalists // 2, 1) if dear else settings.n_finalists
    best = refined(population.best(n_finalists), evaluator, mapper)
    by_frame = {language.frame: language for language in languages}
    simpler: list[Proposal | None] = [p for c in best for p in _simplified(c, evaluator, by_frame, settings)]
    for c in best:
        language = by_frame.get(c.skeleton.frame)
        simpler += _without_functions_of_time(c, language)
        for rounded in (with_round_constants(c, settings.rounding), without_phases(c)):
            if rounded is not None and isinstance(language, Language):
                simpler.append(_proposed(rounded, language))
    for _ in range(_ROUNDS):
        # Simplified structures are refitted too, even if the search fitted them before, and from the better start.
        refitted = {c.skeleton.structure for c in best}
        possible = [p for p in simpler if p is not None and evaluator.admit(p) is not None]
        unrefined = {
            p.skeleton.structure: p
            for p in reversed(possible)
            if p.start is not None or p.skeleton.structure not in refitted
        }
        if not unrefined:
            break
        fresh = mapper(patient, list(unrefined.values()))
        best = sorted([*best, *fresh], key=lambda c: c.objective)
        best = list({c.skeleton.structure: c for c in reversed(best)}.values())[::-1]
        simpler = [p for c in fresh if c in best[:n_finalists] for p in _simplified(c, evaluator, by_frame, settings)]
    for candidate in best:
        population.add(candidate)
    return sorted(best, key=lambda c: c.objective)


def refined(
    candidates: Sequence[Candidate],
    evaluator: Evaluator,
    mapper: Mapper,
) -> list[Candidate]:
    """The candidates, refitted with more effort from new starts and from their own constants, where that is better.

    A fit in segments has a start of its own, and is only refitted from its constants.
    """
    anew = [c.proposal for c in candidates if c.proposal.shooting is None]
    further = [_polished(c, evaluator.targets[c.skeleton.frame]) for c in candidates]
    refitted = mapper(evaluator.patient, [*anew, *further])
    again, polished = iter(refitted[: len(anew)]), refitted[len(anew) :]
    pairs = zip(candidates, polished, strict=True)
    fits = [(c, p) if c.proposal.shooting is not None else (c, next(again), p) for c, p in pairs]
    return [min(own, key=lambda c: c.objective) for own in fits]


def _polished(candidate: Candidate, target: Target) -> Proposal:
    """The proposal, started from the candidate's fit; a fit in segments goes on to longer ones."""
    proposal = replace(candidate.proposal, start=candidate.fit.values)
    if proposal.shooting is None:
        return proposal
    segments = [candidate.fit.segments]
    while segments[-1] > 1:
        segments.append(segments[-1] // 2)
    initial = initial_values(candidate.fit, target, segments[0])
    return replace(proposal, shooting=replace(proposal.shooting, segments=tuple(segments), initial=initial))


def _simplified(
    candidate: Candidate,
    evaluator: Evaluator,
    languages: Mapping[Frame, Language | SystemLanguage],
    settings: SelectionSettings,
) -> list[Proposal]:
    """The proposals without terms that are negligible by the criterion; none if there are none to leave out."""
    target, language = evaluator.targets[candidate.skeleton.frame], languages.get(candidate.skeleton.frame)
    if language is None or not math.isfinite(candidate.loss):
        return []
    if isinstance(language, SystemLanguage) or evaluator.objective.criterion is not Criterion.PAPER:
        return without_undetermined(candidate, target, language)
    system = candidate.fit.system(target)
    simpler = simplify(system, target.environment, settings.simplification)
    proposed = None if simpler is system else _proposed(simpler.skeleton, language)
    return [] if proposed is None else [proposed]


def without_undetermined(candidate: Candidate, target: Target, language: Language | SystemLanguage) -> list[Proposal]:
    """The candidate with the constants that the data do not determine at 0, started from the others' values.

    A constant below its standard error is left out, the least certain first; the others move as their covariance says.
    Of those without any error, which the data leave open together, each may be the one to leave out.
    """
    fit = candidate.fit
    values, covariance = np.array(fit.values), np.array(fit.covariance)
    unbounded = np.flatnonzero(~np.isfinite(np.diag(covariance)))
    if fit.sharing.varying or len(unbounded) == len(values):
        return []
    covariance[unbounded], covariance[:, unbounded] = 0.0, 0.0
    dropped: list[int] = []
    while True:
        errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        certain = np.divide(np.abs(values), errors, out=np.full(len(values), np.inf), where=errors > 0.0)
        certain[dropped] = np.inf
        least = int(np.argmin(certain))
        if certain[least] >= _DETERMINED:
            break
        along = covariance[least] / covariance[least, least]
        values, covariance = values - values[least] * along, covariance - np.outer(along, covariance[least])
        dropped.append(least)
    sets = [dropped, *([*dropped, int(i)] for i in unbounded[:_MOST_UNBOUNDED])]
    proposals = [_without(candidate, own, values, target, language) for own in sets if own]
    return [p for p in proposals if p is not None]


def _without(
    candidate: Candidate,
    dropped: Sequence[int],
    values: np.ndarray,
    target: Target,
    language: Language | SystemLanguage,
) -> Proposal | None:
    """The candidate's equations with these constants at 0, started at the values; None if the language lacks them."""
    frame, zero = candidate.skeleton.frame, {constant(i): ZERO for i in dropped}
    sides = [(substitute(left, zero), substitute(right, zero)) for left, right in candidate.skeleton.sides]
    nodes = [node for pair in sides for side in pair for node in side.nodes()]
    if not all(v.symbol in nodes for v in frame.highest) or not all(has_values(left - right) for left, right in sides):
        return None
    start = tuple(float(values[i]) for i in dict.fromkeys(n.args[0] for n in nodes if n.head == "constant"))
    skeleton = numbered(frame, sides)
    if any(node.head in FUNCTIONS and node.args[0].head == "number" for node in nodes):  # cos(0*t) is 1
        if skeleton.tied or len(sides) > 1:
            return None
        left, right, start = canonical_sides(*skeleton.sides[0], start)
        skeleton = Skeleton(frame, ((left, right),))
    bits = language.price(skeleton)
    if not math.isfinite(bits):
        return None
    polished = _polished(candidate, target)
    return replace(polished, skeleton=skeleton, start=start, bits=bits, derivation=None, origin="simplified")


def _without_functions_of_time(candidate: Candidate, language: Language | SystemLanguage | None) -> list[Proposal]:
    """The equation with C, and with C + C*t, in place of its functions of time alone.

    Over a short window exp(C*t) or cos(C*t) is a dear way to write them; the description length decides.
    """
    skeleton = candidate.skeleton
    if not isinstance(language, Language) or skeleton.right_sides is None or skeleton.autonomous:
        return []
    parts = summands(skeleton.right)
    waves = [s for s in parts if any(n.head in FUNCTIONS for n in s.nodes()) and _symbols(s) == {T}]
    if not waves:
        return []
    rest = [s for s in parts if s not in waves]
    unused = constant(1_000_000), constant(1_000_001)  # renumbered below
    proposals = []
    for line in ((unused[0],), (unused[0], mul(unused[1], T))):
        right, _ = canonical(add(*rest, *line))
        proposals.append(_proposed(numbered(skeleton.frame, ((skeleton.left, right),)), language))
    return [p for p in proposals if p is not None]


def _symbols(expression: Expression) -> set[Expression]:
    return {n for n in expression.nodes() if n.head == "symbol"}


def _proposed(skeleton: Skeleton, language: Language) -> Proposal | None:
    """The skeleton as a proposal of the grammar; None if it cannot derive it."""
    try:
        encoded = language.encoding(linear_form(explicit_form(skeleton)))
    except ValueError:
        return None
    return None if encoded.derivation is None else propose(language, encoded.derivation, "simplified")


def confirmed(
    candidate: Candidate, problem: Problem, target: Target, settings: SelectionSettings = SelectionSettings()
) -> bool:
    """Whether an independent stiff solver gives the same trajectories as the kernels."""
    for e, observation in enumerate(problem.observations):
        system = candidate.fit.system(target, e)
        start, signals = tuple(candidate.fit.initial[e]), problem.signals(e)
        branch = float(target.record.root[e]), float(target.record.root_slope[e])
        solution = solve(system, start, observation.t, signals, branch=branch)
        reference = solve_by_reference(system, start, observation.t, signals, branch)
        if reference.status is not SolveStatus.OK or solution.status is not SolveStatus.OK:
            return False
        if not all(relative_l2(reference[name], solution[name]) < settings.same for name in target.frame.names):
            return False
    return True


def steady(
    candidate: Candidate, problem: Problem, target: Target, settings: SelectionSettings = SelectionSettings()
) -> bool:
    """Whether the trajectories stay similar when the fitted initial values are moved by the noise of the first sample.

    An equation that is more sensitive than that cannot predict. Initial values given by the user are not moved.
    """
    n, names = target.frame.dimension, target.frame.names
    for e, observation in enumerate(problem.observations):
        system = candidate.fit.system(target, e)
        signals, start = problem.signals(e), candidate.fit.initial[e]
        branch = float(target.record.root[e]), float(target.record.root_slope[e])
        moved = [d for d in range(n) if target.record.unknown[e, d] >= 0 and np.isfinite(target.noise[d])]
        if not moved:
            continue
        fitted = solve(system, tuple(start), observation.t, signals, branch=branch)
        for d in moved:
            noise = target.first_noise(e, d)
            for sign in (-1.0, 1.0):
                perturbed = start.copy()
                perturbed[d] += sign * noise
                nearby = solve(system, tuple(perturbed), observation.t, signals, branch=branch)
                if nearby.status is not SolveStatus.OK:
                    return False
                if not all(relative_l2(nearby[name], fitted[name]) < settings.steady for name in names):
                    return False
    return True


def choose(
    candidates: Sequence[Candidate],
    accept: Callable[[Candidate], bool],
    penalty: Callable[[Candidate], float] = lambda candidate: 0.0,
    settings: SelectionSettings = SelectionSettings(),
) -> Candidate:
    """The acceptable candidate of smallest objective.

    The penalty is added to a candidate's objective. If none of the first few is acceptable, the first is chosen.
    """
    ranked = sorted(candidates, key=lambda c: c.objective + penalty(c))
    return next((c for c in ranked[: settings.most_checked] if accept(c)), ranked[0])


def penalty_of(
    candidate: Candidate,
    problem: Problem,
    target: Target,
    criterion: Criterion,
    settings: SelectionSettings = SelectionSettings(),
) -> float:
    """The penalty of the candidate, in units of description length; 0 under the paper's criterion.

    An equation is penalised if it is too sensitive to its initial state, or if it contains t: over one record a term in
    t can replace any smooth term, but it is wrong from another initial state.
    """
    if criterion is not Criterion.DESCRIPTION_LENGTH or not math.isfinite(candidate.loss):
        return 0.0
    unsteady = 0.0 if steady(candidate, problem, target, settings) else settings.indistinguishable
    return unsteady + (0.0 if candidate.skeleton.autonomous else settings.bare_mention)


def simplest_equal(
    candidates: Sequence[Candidate],
    best: Candidate,
    problem: Problem,
    targets: Mapping[Frame, Target],
    settings: SelectionSettings = SelectionSettings(),
) -> Candidate:
    """The preferred candidate among those that explain the data fully and have the best one's trajectories.

    They differ by less than the errors of the solver and of the rounded data. Autonomous equations come first, then
    those with fewer constants and initial values, then the objective.
    """
    floor = targets[best.skeleton.frame].floor
    reference = _trajectories(best, problem, targets[best.skeleton.frame])
    if reference is None or best.loss > settings.fully_explained * floor:
        return best

    def equal(candidate: Candidate) -> bool:
        if candidate is best:
            return True
        if candidate.loss > settings.fully_explained * floor:
            return False
        trajectories = _trajectories(candidate, problem, targets[candidate.skeleton.frame])
        return trajectories is not None and all(
            relative_l2(a, b) < math.sqrt(floor) for a, b in zip(reference, trajectories, strict=True)
        )

    return min(
        filter(equal, candidates),
        key=lambda c: (
            not c.skeleton.autonomous,
            c.skeleton.n_constants + c.skeleton.frame.dimension,
            c.objective,
        ),
        default=best,
    )


def _trajectories(candidate: Candidate, problem: Problem, target: Target) -> list[np.ndarray] | None:
    """The solution of each state in each experiment; None if a solution ends early."""
    if not math.isfinite(candidate.loss):
        return None
    columns = []
    for e, observation in enumerate(problem.observations):
        system = candidate.fit.system(target, e)
        branch = float(target.record.root[e]), float(target.record.root_slope[e])
        solved = solve(system, candidate.fit.initial[e], observation.t, problem.signals(e), branch=branch)
        if solved.status is not SolveStatus.OK:
            return None
        columns += [solved[name] for name in target.frame.names]
    return columns
