"""Evaluation of a proposal: fit, stability, objective. It is pure, so any joblib backend can map it."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from lgf.data.knowledge import Knowledge
from lgf.data.row_knowledge import impose, row_knowledge
from lgf.equation.complexity import node_count
from lgf.equation.skeleton import Skeleton
from lgf.equation.terms import rows_of, term_of
from lgf.equation.tied_constants import Contradiction
from lgf.expression.frame import Frame
from lgf.expression.numeric import evaluate
from lgf.expression.tree import factors, fill
from lgf.fit.constants import ConstantFit, fit_constants, residual_start
from lgf.fit.likelihood import can_be_disturbed, likeliest, undisturbed_length
from lgf.fit.segments import reweighed, segmented
from lgf.fit.settings import FitMethod, FitSettings, Fitting, make_fitting, patient
from lgf.fit.sharing import Sharing, Varying
from lgf.fit.target import Target
from lgf.search.candidate import Candidate, Proposal
from lgf.search.objective import Criterion, ObjectiveSettings, description_length, paper_objective
from lgf.solver.stability import assess


@dataclass(frozen=True, eq=False)
class Evaluator:
    """A picklable function from a proposal to its candidate."""

    targets: dict[Frame, Target]
    knowledge: Knowledge = field(default_factory=Knowledge)
    fit: FitSettings = FitSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    assess_all: bool = False  # assess stability even if the user states nothing about it
    refining: bool = False  # the candidates are finalists
    growth: float = 0.0  # of the noise with the signal, in the weights of the targets
    of_part: bool = False  # the targets hold some of the experiments only

    @property
    def patient(self) -> "Evaluator":
        """The evaluator of finalists."""
        return replace(self, fit=patient(self.fit), refining=True)

    def admit(self, proposal: Proposal) -> Proposal | None:
        """The proposal with what is known about single equations put in; None if it contradicts that.

        Under Nelder-Mead an equation that has no solution from the first state at the constants it starts from, such
        as u''/t at t = 0, is not admitted either: no simplex leads out of there.
        """
        if self.fit.method is FitMethod.NELDER_MEAD:
            target = self.targets[proposal.skeleton.frame]
            if not all(begins(proposal.skeleton, target, e) for e in range(target.n_experiments)):
                return None
        if not self.knowledge.by_row:
            return proposal
        try:
            skeleton = impose(row_knowledge(self.knowledge, proposal.skeleton.frame), proposal.skeleton)
        except Contradiction:
            return None
        return proposal if skeleton == proposal.skeleton else replace(proposal, skeleton=skeleton, start=None)

    def least_objective(self, proposal: Proposal) -> float:
        """A bound below the objective: that of a fit as good as the solver and the rounded data allow."""
        varying = proposal.sharing.varying or not isinstance(self.knowledge.vary, str)
        if varying or self.objective.criterion is not Criterion.DESCRIPTION_LENGTH:
            return -math.inf
        target = self.targets[proposal.skeleton.frame]
        nothing = undisturbed_length(target, np.zeros(len(target.frame.columns)))
        return self.described(nothing, proposal, target)

    def described(
        self, length: float, proposal: Proposal, judged: Target, n_more: int = 0, random_length: float = 0.0
    ) -> float:
        """The description length of a fit with this -2 log L to the target as it was cut into segments, `judged`.

        `n_more` are fitted constants beside those of the equation.
        """
        return description_length(
            length, judged.n_samples, len(judged.measured), proposal.skeleton.n_constants + n_more,
            self.objective.bits_weight * proposal.bits, judged.n_unknown, judged.initial_length, random_length,
        )  # fmt: skip

    def __call__(self, proposal: Proposal) -> Candidate:
        """The candidate: fitted constants, stability, objective."""
        skeleton = proposal.skeleton
        target = self.targets[skeleton.frame]
        fit = fit_constants(
            skeleton, target, self.fit, bounds=bounds_of(skeleton, self.knowledge), start=proposal.start,
            sharing=sharing_of(proposal, self.knowledge),
            shooting=proposal.shooting,
        )  # fmt: skip
        stability = None
        if (self.assess_all or self.knowledge.stable is not None) and math.isfinite(fit.loss) and fit.loss < 1.0:
            stability = assess(fit.system(target), target.sizes, target.window, target.box)
        complexity = sum(node_count(fill(residual, fit.values)) for residual in skeleton.residuals)
        judged = segmented(target, fit.segments)
        if self.objective.criterion is Criterion.PAPER:  # its n_s is the number of times, in however many modes
            value = paper_objective(
                fit.loss, fit.residual, len(target.t), complexity, self.objective.alpha, self.fit.gate or 0.0
            )
        else:
            noise = None if proposal.shooting is None else proposal.shooting.noise
            weighed = target if noise is None else reweighed(target, noise)
            length = undisturbed_length(weighed, fit.losses) if math.isfinite(fit.loss) else math.inf
            value = self.described(length, proposal, judged, 0, fit.varying_length(target.n_experiments))
        if stability is not None and stability.kind.contradicts(self.knowledge.stable):
            value += self.objective.contradiction * target.n_samples  # ranks it below candidates that fit about as well
        return Candidate(proposal, fit, complexity + target.n_unknown, value, stability)

    def disturbed(self, candidate: Candidate) -> float:
        """The description length of the candidate with disturbances, or without if that is shorter.

        Constants that vary by experiment are judged without.
        """
        target = self.targets[candidate.skeleton.frame]
        bounds = bounds_of(candidate.skeleton, self.knowledge)
        fitting = make_fitting(candidate.skeleton, target, self.fit, bounds, candidate.fit.sharing)
        if candidate.fit.sharing.varying or not can_be_disturbed(fitting):
            return candidate.objective
        smooth = residual_start(fitting)
        still = np.concatenate([np.zeros(fitting.layout.n_free), smooth[fitting.layout.n_free :]])
        starts = [unknowns_at(candidate.fit, fitting), smooth, still]
        kinds = [likeliest(fitting, starts, proportional) for proportional in (False, True)]
        n_more = len(target.frame.states)
        lengths = [self.described(k.length, candidate.proposal, target, n_more) for k in kinds if k is not None]
        return min([candidate.objective, *lengths])


def begins(skeleton: Skeleton, target: Target, experiment: int = 0) -> bool:
    """Whether the equations are finite at the first state of the experiment, with every constant 1.

    If the highest derivative enters linearly, its coefficient must not vanish there.
    """
    first = target.record.first[experiment]
    environment = {name: values[first] for name, values in target.environment.items()}
    environment |= dict(zip(skeleton.frame.variables, target.record.initial[experiment], strict=True))
    ones = (1.0,) * skeleton.n_constants
    if not all(np.isfinite(evaluate(residual, environment, ones)) for residual in skeleton.residuals):
        return False
    if len(skeleton.sides) > 1 or skeleton.degree != 1 or skeleton.polynomial is None:
        return True
    leading = evaluate(skeleton.polynomial[1], environment, ones)
    return bool(np.isfinite(leading) and abs(leading) > 0.0)


def unknowns_at(fit: ConstantFit, fitting: Fitting) -> np.ndarray:
    """The unknowns of a fitting at the constants and initial states of a fit."""
    unknown = fitting.target.record.unknown
    initial = np.zeros(fitting.target.n_unknown)
    initial[unknown[unknown >= 0]] = fit.initial[unknown >= 0]
    return np.concatenate([fitting.layout.free(fit.by_experiment), initial])


def bounds_of(skeleton: Skeleton, knowledge: Knowledge) -> np.ndarray | None:
    """Bounds [n_constants, 2] of the constants from the user's bounds on terms; None if there are none."""
    if knowledge.bounds is None and knowledge.constants is None:
        return None
    bounds = np.full((skeleton.n_constants, 2), (-np.inf, np.inf))
    if knowledge.constants is not None:
        bounds[:] = knowledge.constants
    limits = row_knowledge(knowledge, skeleton.frame).bounds
    bounded: set[int] = set()
    for row, summand in rows_of(skeleton):
        coefficient = next((f.args[0] for f in factors(summand) if f.head == "constant"), None)
        term = term_of(summand)
        low_high = limits.get((row, term), limits.get((None, term)))
        if coefficient is None or low_high is None:
            continue
        factor = math.prod(f.args[0] for f in factors(summand) if f.head == "number")
        low, high = sorted(limit / factor for limit in low_high)
        if coefficient in bounded:  # tied to a coefficient with bounds of its own
            low, high = max(low, bounds[coefficient, 0]), min(high, bounds[coefficient, 1])
        bounds[coefficient] = low, high
        bounded.add(coefficient)
    return bounds


def sharing_of(proposal: Proposal, knowledge: Knowledge) -> Sharing:
    """The sharing of the proposal, with the coefficients of the terms that the user says vary by experiment."""
    if isinstance(knowledge.vary, str) or proposal.sharing.varying:
        return proposal.sharing
    places = row_knowledge(knowledge, proposal.skeleton.frame).varying
    varying = []
    for row, summand in rows_of(proposal.skeleton):
        coefficient = next((f.args[0] for f in factors(summand) if f.head == "constant"), None)
        if coefficient is not None and not places.isdisjoint({(row, term_of(summand)), (None, term_of(summand))}):
            varying.append(Varying(coefficient))
    return replace(proposal.sharing, varying=tuple(varying))
