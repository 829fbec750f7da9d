"""Proposal x targets -> Candidate: pure, so that any joblib backend can map it."""

import math
from dataclasses import dataclass, field

import numpy as np

from lgf.data.knowledge import Knowledge
from lgf.equation.complexity import node_count
from lgf.equation.skeleton import Skeleton
from lgf.expression.canonical import canonical
from lgf.expression.parse import read_expression
from lgf.expression.tree import fill
from lgf.fit.constants import fit_constants
from lgf.fit.settings import FitSettings
from lgf.fit.target import Target
from lgf.language.language import terms_of
from lgf.search.candidate import Candidate, Proposal
from lgf.search.objective import ObjectiveSettings, objective
from lgf.solver.stability import StabilitySettings, assess


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Everything that turns a proposal into a candidate; picklable."""

    targets: dict[int, Target]  # by order
    knowledge: Knowledge = field(default_factory=Knowledge)
    fit: FitSettings = FitSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    stability: StabilitySettings = StabilitySettings()
    assess_all: bool = False  # assess every solved candidate, not only when stability is known
    refining: bool = False  # whether these are the fits of finalists

    def __call__(self, proposal: Proposal) -> Candidate:
        """The fitted, judged candidate."""
        skeleton = proposal.skeleton
        target = self.targets[skeleton.order]
        fit = fit_constants(
            skeleton, target, self.fit, bounds=bounds_of(skeleton, self.knowledge), start=proposal.start
        )
        stability = None
        if (self.assess_all or self.knowledge.stable is not None) and math.isfinite(fit.loss) and fit.loss < 1.0:
            window = float(target.t.min()), float(target.t.max())
            stability = assess(fit.equation(target), float(target.scales[0]), window, self.stability)
        complexity = node_count(fill(skeleton.residual, fit.values))
        worth = objective(
            fit.loss, fit.residual, target.n_samples, skeleton.n_constants, proposal.bits, complexity,
            target.initial_length, self.objective,
        )  # fmt: skip
        if stability is not None and stability.verdict.contradicts(self.knowledge.stable):
            worth += self.objective.contradiction * target.n_samples  # last choice among near equals
        return Candidate(proposal, fit, complexity, worth, stability)


def bounds_of(skeleton: Skeleton, knowledge: Knowledge) -> np.ndarray | None:
    """Bounds [n_constants, 2] of the constants by what is known of the terms they multiply; None if nothing is."""
    if knowledge.bounds is None and knowledge.constants is None:
        return None
    bounds = np.full((skeleton.n_constants, 2), (-np.inf, np.inf))
    if knowledge.constants is not None:
        bounds[:] = knowledge.constants
    known = {canonical(read_expression(text))[0]: limits for text, limits in (knowledge.bounds or {}).items()}
    body = skeleton.right if skeleton.explicit is not None else skeleton.residual
    summands = body.args if body.head == "+" else (body,)
    for summand, term in zip(summands, terms_of(skeleton), strict=True):
        factors = summand.args if summand.head == "*" else (summand,)
        coefficient = next((f.args[0] for f in factors if f.head == "constant"), None)
        if coefficient is not None and term in known:
            bounds[coefficient] = known[term]
    return bounds
