"""Scores of a discovered equation: errors, structure, generalisation, and why the truth was missed."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.choosing import stated, true_skeleton
from benchmarks.problems import NamedProblem, Score, frame_of
from lgf.equation.system import System
from lgf.grammar import Grammar
from lgf.language.cheapest_derivation import encoding
from lgf.language.language import make_language
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.discover import Discovery
from lgf.search.evaluate import Evaluator
from lgf.search.loop import joblib_map
from lgf.search.select import finalists
from lgf.solver.reference import solve_by_reference
from lgf.solver.trajectory import SolveStatus, relative_l2


def judged(problem: NamedProblem, equation: System) -> dict[str, Any]:
    """Errors, the paper's complexity, whether the structure is exact, and generalisation where it can be tested."""
    facts = {
        "equation": equation.text,
        "errors": errors_of(problem.score(equation)),
        "complexity": equation.complexity,
        "exact": stated(equation.skeleton).structure == true_skeleton(problem).structure,
        "other_start": from_other_start(problem, equation),
    }
    if problem.published_initial is not None:
        facts["errors_published_start"] = errors_of(problem.score(equation, problem.published_initial))
    return facts


def errors_of(score: Score) -> list[float]:
    """The relative L2 errors of u, u' and, at order 2, u''."""
    return [score.u, score.du] if score.d2u is None else [score.u, score.du, score.d2u]


def from_other_start(problem: NamedProblem, equation: System) -> dict[str, Any] | None:
    """Relative L2 error (at most 1) and R2 (at least -1) of u from the problem's other initial state, if it has one.

    "own" is true if that state was chosen by this project because none is published.
    """
    own = problem.other_initial is None
    start = problem.own_other_initial if own else problem.other_initial
    if start is None or equation.frame.dimension != len(start):
        return None
    truth = solve_by_reference(problem.true_equation(), start, problem.t, problem.inputs)
    assert truth.status is SolveStatus.OK, f"{problem.id} does not solve from {start}: {truth.status}"
    found = solve_by_reference(equation, start, problem.t, problem.inputs)
    if found.status is not SolveStatus.OK:
        return {"error": 1.0, "r2": -1.0, "own": own}
    spread = float(np.sum((truth.u - np.mean(truth.u)) ** 2))
    r2 = 1.0 - float(np.sum((truth.u - found.u) ** 2)) / spread
    r2 = max(-1.0, r2) if math.isfinite(r2) else -1.0
    return {"error": min(1.0, relative_l2(truth.u, found.u)), "r2": r2, "own": own}


def truth_beside(problem: NamedProblem, grammar: Grammar, found: Discovery) -> dict[str, Any]:
    """The result of the true structure in the same run, and the cause if it was not chosen.

    It is fitted as a finalist is, from no start, and judged by the same objective. Cause:
    "not said" (no derivation of the grammar), "wrongly chosen" (the objective prefers what was found), "not proposed",
    "badly fitted" (tried, but its fit in the search was worse than it can be).
    """
    frame = frame_of(found.problem, problem.order)
    language = make_language(grammar, found.problem, frame, found.targets[frame].ranges, found.settings.as_written)
    said = encoding(grammar, problem.true_equation(), problem.forcing is not None)
    skeleton = None if said.derivation is None else language.skeleton(said.derivation)
    bits = math.inf if skeleton is None else language.price(skeleton)
    if skeleton is None or not math.isfinite(bits):
        return {"cause": "not said", "in_set": False}
    structure = skeleton.structure
    tried = next((c for c in found.population if c.skeleton.structure == structure), None)
    best = fitted_as_finalist(Proposal(skeleton, bits), found)
    facts = {
        "bits": bits,
        "tried": tried is not None,
        "objective": best.objective,
        "objective_when_tried": None if tried is None else tried.objective,
        "in_set": any(c.skeleton.structure == structure for c in found.indistinguishable),
    }
    if found.best.skeleton.structure == structure:
        cause = "exact"
    elif best.objective >= found.best.objective:
        cause = "wrongly chosen"
    else:
        cause = "not proposed" if tried is None else "badly fitted"
    return facts | {"cause": cause}


def fitted_as_finalist(proposal: Proposal, found: Discovery) -> Candidate:
    """The proposal fitted as a finalist of the run would be."""
    settings = found.settings
    evaluator = Evaluator(found.targets, found.problem.knowledge, settings.fit, settings.objective)
    (candidate,) = finalists(
        Population([evaluator(proposal)]), evaluator, joblib_map(), replace(settings.selection, n_finalists=1)
    )
    return candidate
