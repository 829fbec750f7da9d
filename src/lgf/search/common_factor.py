"""Equations with one factor for all terms: r u - (r/K) u^2 becomes r (u - u^2/K).

If a rate varies between experiments, all coefficients of its equation vary together. Written with a common factor, one
constant varies.
"""

from dataclasses import replace

from lgf.equation.skeleton import numbered
from lgf.expression.tree import Expression, add, factors, mul, summands
from lgf.search.candidate import Candidate


def with_common_factor(candidate: Candidate) -> Candidate | None:
    """The same fit, written with the first coefficient as a factor of all terms; constant 0 is this factor.

    None if there are several equations, fewer than two terms, or a term without a coefficient of its own.
    """
    skeleton, fit = candidate.skeleton, candidate.fit
    if skeleton.right_sides is None or len(skeleton.sides) > 1 or skeleton.tied:
        return None
    parts = summands(skeleton.right)
    coefficients = [next((f for f in factors(part) if f.head == "constant"), None) for part in parts]
    named = [c for c in coefficients if c is not None]
    if len(named) < 2 or len(named) < len(parts) or not fit.values[named[0].args[0]]:
        return None
    lead = named[0]
    inner = [_without(parts[0], lead), *parts[1:]]
    right = mul(lead, add(*inner))
    order = list(dict.fromkeys(n.args[0] for n in right.nodes() if n.head == "constant"))
    if order[0] != lead.args[0] or len(order) != skeleton.n_constants:
        return None
    factor = fit.values[lead.args[0]]
    relative = {c.args[0] for c in named[1:]}
    values = tuple(fit.values[i] / factor if i in relative else fit.values[i] for i in order)
    by_experiment = fit.by_experiment[:, order].copy()
    by_experiment[:] = values
    written = numbered(skeleton.frame, ((skeleton.left, right),))
    moved = replace(fit, skeleton=written, values=values, by_experiment=by_experiment)
    return replace(candidate, proposal=replace(candidate.proposal, skeleton=written, start=values), fit=moved)


def _without(product: Expression, factor: Expression) -> Expression:
    """The product without this factor."""
    rest = [f for f in factors(product) if f != factor]
    return mul(*rest)
