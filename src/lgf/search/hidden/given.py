"""The user's own equations with a hidden state: their numbers are where the fit starts."""

import math
from collections.abc import Sequence
from dataclasses import replace

from lgf.equation.terms import rows_of, term_of
from lgf.expression.frame import Frame
from lgf.expression.parse import read_equations
from lgf.expression.tree import factors, summands
from lgf.fit.segments import Shooting
from lgf.search.candidate import Proposal


def started_at_numbers(proposal: Proposal, text: str, frame: Frame, segments: Sequence[int]) -> Proposal:
    """The proposal, started at the numbers in the text; unchanged if it has a constant without a number.

    Without a start the constants would be regressed along the hidden path, which is not known.
    """
    rows = {variable.symbol: row for row, variable in enumerate(frame.highest)}
    numbers = {}
    for left, right in read_equations(text, frame) if text else ():
        for summand in summands(right) if left in rows else ():
            if not any(node.head == "constant" for node in summand.nodes()):
                parts = [f.args[0] for f in factors(summand) if f.head == "number"]
                numbers[rows[left], term_of(summand)] = math.prod(parts)
    values: dict[int, float] = {}
    for row, summand in rows_of(proposal.skeleton):
        constants = [f.args[0] for f in factors(summand) if f.head == "constant"]
        scale = math.prod(f.args[0] for f in factors(summand) if f.head == "number")
        if constants and (row, term_of(summand)) in numbers:
            values[constants[0]] = numbers[row, term_of(summand)] / scale
    if len(values) < proposal.skeleton.n_constants:
        return proposal
    start = tuple(values[i] for i in range(len(values)))
    return replace(proposal, start=start, shooting=Shooting(tuple(segments), whole=True))
