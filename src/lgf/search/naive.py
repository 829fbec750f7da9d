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
        targets = _targets(problem, completions)
        judge = Evaluator(targets, fit=evaluator.fit, objective=evaluator.objective)
        return any(judge.disturbed(judge(p)) < length + 2 * math.log(_AS_LIKELY) for p in _proposals(targets))


def _targets(problem: Problem, completions: Sequence[Completion]) -> dict[Frame, Target]:
    """The record for the frames of the naive equations: of the state that was measured, or of its derivative."""
    measured = dict.fromkeys(v.name for o in problem.observations for v in o.columns)
    observations = tuple(
        replace(o, initial={v: value for v, value in o.initial.items() if v.name in measured})
        for o in problem.observations
    )
    bare = Problem(observations, Knowledge(inputs=problem.knowledge.inputs))
    highest = {n: max(v.derivative for o in problem.observations for v in o.columns if v.name == n) for n in measured}
    targets = {}
    for more in (1, 2):
        frame = Frame(tuple((n, min(highest[n] + more, HIGHEST_ORDER)) for n in measured), problem.inputs)
        targets[frame] = make_target(bare, frame, [_with_columns(c, frame) for c in completions])
    return targets


def _proposals(targets: dict[Frame, Target]) -> list[Proposal]:
    """The naive equations: x' = 0 and x' = C of the first frame, x'' = 0 of the second, for all states alike."""
    first, second = targets
    sides = ((first, "0"), (first, "C"), (second, "0"))
    texts = ("; ".join(f"{variable} = {side}" for variable in frame.highest) for frame, side in sides)
    return [Proposal(Skeleton.read(text, frame), 0.0) for text, (frame, _) in zip(texts, sides, strict=True)]


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
