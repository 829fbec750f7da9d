"""Evaluation of a proposal: fit, stability, objective. It is pure, so any joblib backend can map it."""

import math
from dataclasses import dataclass, field

import numpy as np

from lgf.data.knowledge import Knowledge
from lgf.equation.complexity import node_count
from lgf.equation.skeleton import Skeleton
from lgf.expression.canonical import canonical
from lgf.expression.frame import Frame
from lgf.expression.parse import read_expression
from lgf.expression.tree import factors, fill
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitSettings
from lgf.fit.target import Target
from lgf.language.language import rows_of, term_of
from lgf.search.candidate import Candidate, Proposal
from lgf.search.objective import ObjectiveSettings, objective
from lgf.solver.stability import StabilitySettings, assess


@dataclass(frozen=True, eq=False)
class Evaluator:
    """A picklable function from a proposal to its candidate."""

    targets: dict[Frame, Target]
    knowledge: Knowledge = field(default_factory=Knowledge)
    fit: FitSettings = FitSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    stability: StabilitySettings = StabilitySettings()
    assess_all: bool = False  # assess stability even if the user states nothing about it
    refining: bool = False  # the candidates are finalists

    def __call__(self, proposal: Proposal) -> Candidate:
        """The candidate: fitted constants, stability, objective."""
        skeleton = proposal.skeleton
        target = self.targets[skeleton.frame]
        fit = fit_constants(
            skeleton, target, self.fit, bounds=bounds_of(skeleton, self.knowledge), start=proposal.start
        )
        stability = None
        if (self.assess_all or self.knowledge.stable is not None) and math.isfinite(fit.loss) and fit.loss < 1.0:
            stability = assess(fit.system(target), target.sizes, target.window, self.stability, target.box)
        complexity = sum(node_count(fill(residual, fit.values)) for residual in skeleton.residuals)
        value = objective(
            fit.loss, fit.residual, target.n_samples, skeleton.n_constants, proposal.bits, complexity,
            target.initial_length, target.floor(self.fit.accuracy * self.fit.rtol), self.objective,
        )  # fmt: skip
        if stability is not None and stability.verdict.contradicts(self.knowledge.stable):
            value += self.objective.contradiction * target.n_samples  # ranks it below candidates that fit about as well
        return Candidate(proposal, fit, complexity, value, stability)


def bounds_of(skeleton: Skeleton, knowledge: Knowledge) -> np.ndarray | None:
    """Bounds [n_constants, 2] of the constants from the user's bounds on terms; None if there are none."""
    if knowledge.bounds is None and knowledge.constants is None:
        return None
    bounds = np.full((skeleton.n_constants, 2), (-np.inf, np.inf))
    if knowledge.constants is not None:
        bounds[:] = knowledge.constants
    terms = {text: read_expression(text, skeleton.frame) for text in knowledge.bounds or {}}
    limits = {canonical(term)[0]: (knowledge.bounds or {})[text] for text, term in terms.items()}
    for _, summand in rows_of(skeleton):
        coefficient = next((f.args[0] for f in factors(summand) if f.head == "constant"), None)
        term = term_of(summand)
        if coefficient is not None and term in limits:
            bounds[coefficient] = limits[term]
    return bounds
