"""The sign of a hidden state: nothing measured fixes it where nothing fixes the scale, so it starts positive."""

from dataclasses import replace

import numpy as np

from lgf.equation.skeleton import Skeleton, numbered
from lgf.expression.frame import Variable
from lgf.expression.tree import Expression, add, factors, mul, number, summands
from lgf.search.candidate import Candidate, Population
from lgf.search.hidden.coupling import degree


def oriented(population: Population, hidden: int) -> Population:
    """The candidates with hidden states that start positive; of mirror images the better one."""
    return Population([mirrored(c, hidden) if _starts_negative(c, hidden) else c for c in population])


def _starts_negative(candidate: Candidate, hidden: int) -> bool:
    column = candidate.skeleton.frame.positions[Variable(candidate.skeleton.frame.names[hidden])]
    starts = candidate.fit.initial[:, column]
    return bool(np.isfinite(candidate.loss) and starts[np.argmax(np.abs(starts))] < 0.0)


def mirrored(candidate: Candidate, hidden: int) -> Candidate:
    """The candidate with the hidden state of opposite sign; itself if its constants are tied."""
    skeleton, fit = candidate.skeleton, candidate.fit
    if skeleton.tied or skeleton.right_sides is None:
        return candidate
    sides, signs = [], np.ones(skeleton.n_constants)
    symbol = Variable(skeleton.frame.names[hidden]).symbol
    for row, (left, right) in enumerate(skeleton.sides):
        parts = []
        for summand in summands(right):
            odd = (degree(summand, symbol) + (row == hidden)) % 2 == 1
            constants = [f.args[0] for f in factors(summand) if f.head == "constant"]
            if constants:
                signs[constants[0]] = -1.0 if odd else 1.0
            parts.append(_negative(summand) if odd and not constants else summand)
        sides.append((left, add(*parts)))
    changed = _renumbered(skeleton, sides)
    if changed is None:
        return candidate
    column = skeleton.frame.positions[Variable(skeleton.frame.names[hidden])]
    mirror = np.ones(skeleton.frame.dimension)
    mirror[column] = -1.0
    states = fit.segment_states
    values = tuple(float(s * v) for s, v in zip(signs, fit.values, strict=True))
    turned = replace(
        fit,
        skeleton=changed,
        values=values,
        covariance=fit.covariance * np.outer(signs, signs),
        initial=fit.initial * mirror,
        by_experiment=fit.by_experiment * signs,
        segment_states=None if states is None else states * mirror,
    )
    proposal = replace(candidate.proposal, skeleton=changed, start=values)
    if proposal.shooting is not None:
        proposal = replace(proposal, shooting=replace(proposal.shooting, segments=(fit.segments,), initial=None))
    return replace(candidate, proposal=proposal, fit=turned)


def _negative(summand: Expression) -> Expression:
    return mul(number(-1.0), summand)


def _renumbered(skeleton: Skeleton, sides: list) -> Skeleton | None:
    changed = numbered(skeleton.frame, sides)
    return changed if changed.n_constants == skeleton.n_constants else None
