"""The naive forecasts as equations: the last value stays, the line goes on, the local line goes on.

They are members of the class dx = f dt + g sigma dW, with f = 0, f = C and x'' = 0. An equation that describes the
record no better than one of them is no law.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lgf.data.knowledge import Knowledge
from lgf.data.problem import Problem
from lgf.equation.skeleton import Skeleton
from lgf.expression.frame import HIGHEST_ORDER, Frame, Variable
from lgf.fit.target import Target
from lgf.fit.target_assembly import make_target
from lgf.search.candidate import Candidate, Proposal
from lgf.search.evaluate import Evaluator
from lgf.smoothing.complete import Completion
from lgf.threads import one_blas_thread

_COMPARED = 3  # equations that are compared with naive forecasts
_AS_LIKELY = 10.0  # times the probability of a naive forecast: a law has more


def a_naive_forecast_is_as_likely(
    candidates: Sequence[Candidate], problem: Problem, completions: Sequence[Completion], evaluator: Evaluator,
    leaves_pattern: Callable[[Candidate], bool],
) -> bool:  # fmt: skip
    """Whether a naive forecast has a tenth of the probability of the best of these candidates, or more.

    Each counts with disturbances, if these shorten its description. They cannot if it leaves noise alone.
    """
    best = sorted(candidates, key=lambda c: c.objective)[:_COMPARED]
    with one_blas_thread():
        length = min(evaluator.disturbed(c) if leaves_pattern(c) else c.objective for c in best)
        naive = _naive(problem, completions)
        judge = Evaluator(dict(naive.values()), fit=evaluator.fit, objective=evaluator.objective)
        proposals = [Proposal(skeleton, 0.0) for skeleton in naive]
        return any(judge.disturbed(judge(p)) < length + 2 * math.log(_AS_LIKELY) for p in proposals)


def _naive(problem: Problem, completions: Sequence[Completion]) -> dict[Skeleton, tuple[Frame, Target]]:
    """The naive equations with the record for their frames: x' = 0, x' = C and x'' = 0, for all states alike.

    x is what was measured, also where that is a derivative; equations above the highest order are left out.
    """
    measured = dict.fromkeys(v.name for o in problem.observations for v in o.columns)
    observations = tuple(
        replace(o, initial={v: value for v, value in o.initial.items() if v.name in measured})
        for o in problem.observations
    )
    bare = Problem(observations, Knowledge(inputs=problem.knowledge.inputs))
    highest = {n: max(v.derivative for o in problem.observations for v in o.columns if v.name == n) for n in measured}
    naive = {}
    for more, sides in ((1, ("0", "C")), (2, ("0",))):
        if max(highest.values()) + more > HIGHEST_ORDER:
            break
        frame = Frame(tuple((n, highest[n] + more) for n in measured), problem.inputs)
        target = make_target(bare, frame, [_with_columns(c, frame) for c in completions])
        for side in sides:
            text = "; ".join(f"{variable} = {side}" for variable in frame.highest)
            naive[Skeleton.read(text, frame)] = frame, target
    return naive


def _with_columns(completion: Completion, frame: Frame) -> Completion:
    """The completion with derivatives that it lacks, by differences: they are first guesses only."""
    whole = completion.trajectory
    columns = {variable: whole.values[:, i] for i, variable in enumerate(whole.variables)}
    for name, order in frame.states:
        for d in range(order + 1):
            if Variable(name, d) not in columns:
                before = columns[Variable(name, d - 1)]
                columns[Variable(name, d)] = np.gradient(before, whole.t) if len(before) > 1 else np.zeros(len(before))
    values = np.column_stack([columns[variable] for variable in frame.columns])
    return replace(completion, trajectory=replace(whole, values=values, variables=frame.columns))
