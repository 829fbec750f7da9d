"""What a record says about a hidden state, and what it does not, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.terms import rows_of, term_of
from lgf.expression.tree import ONE, factors
from lgf.fit.jacobian import solve_with_jacobian
from lgf.fit.settings import FitSettings, make_fitting
from lgf.fit.target import Target
from lgf.search.candidate import Candidate
from lgf.search.hidden.coupling import scale_is_free
from lgf.search.hidden.equivalents import EquivalenceSettings, equivalents_of
from lgf.search.prediction import unknowns_at
from lgf.settings.ranges import Positive


@dataclass(frozen=True)
class HiddenFindings:
    """The sentences on a hidden state, and the systems that are exactly equivalent to the chosen one."""

    state: str
    sentences: tuple[str, ...]
    equivalents: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class FindingSettings:
    """When something is said about a hidden state."""

    equivalence: EquivalenceSettings = EquivalenceSettings()
    unexplained: Positive = 3.0  # root mean square error of the best system in units of the noise
    undetermined: Positive = 1e-6  # singular value, relative to the largest, of a direction that the data leave open


def hidden_findings(
    best: Candidate,
    near: Sequence[Candidate],
    target: Target,
    known: RowKnowledge,
    given: Sequence[float],
    fit: FitSettings,
    settings: FindingSettings = FindingSettings(),
) -> HiddenFindings:
    """The findings on the hidden state of the chosen system; `near` are the others that fit about as well."""
    assert known.hidden is not None
    name = known.frame.names[known.hidden]
    measured = _listed([n for n in known.frame.names if n != name])
    sentences = [f"{name} was not measured: its path is inferred from {measured} through the equations."]
    ratio = float(np.sqrt(best.loss / target.noise_loss))
    if ratio > settings.unexplained:
        sentences.append(
            f"One hidden state does not explain the record: the best system leaves {ratio:.0f} times the noise; do not "
            f"use it. The system may have more states: measure another one."
        )
    equivalents = tuple(equivalents_of(best, near, target, fit, settings.equivalence))
    free = scale_is_free(known, given)
    if free:
        sentences.append(
            f"The scale of {name} is not determined: {name} may be multiplied by any number. The coefficient that sets "
            "it is a power of ten that was chosen, not fitted."
        )
    if _is_linear(best):
        sentences.append(
            f"The equations are linear, and for every number a the hidden state {name} + a {measured} obeys linear "
            "equations too: the record determines the eigenvalues only, and no single coefficient. This is the form "
            "with the fewest constants."
        )
    elif equivalents:
        sentences.append(
            f"{_count(len(equivalents))} with another {name} exactly the same {measured}, so no measurement of "
            f"{measured} can tell them apart; values of {name} mean something only if you know which form holds."
        )
    rivals = len({c.skeleton.structure for c in near} - {c.skeleton.structure for c in (best, *equivalents)})
    if rivals:
        fit_as_well = "1 other system fits" if rivals == 1 else f"{rivals} other systems fit"
        sentences.append(
            f"{fit_as_well} about as well, each with a path of {name} of its own: the record does not decide between "
            f"them. Say what you know, such as populations or a conserved sum, or measure {name}."
        )
    left_open = undetermined(best, target, fit, settings.undetermined)
    if left_open:
        sentences.append(
            f"The record leaves {left_open} of the {best.skeleton.n_constants + target.n_unknown} constants and "
            "initial values open: they can be changed together without any effect on what is measured."
        )
    return HiddenFindings(name, tuple(sentences), equivalents)


def undetermined(best: Candidate, target: Target, fit: FitSettings, below: float) -> int:
    """The number of directions in which constants and initial values have no effect on what is measured."""
    fitting = make_fitting(best.skeleton, target, fit)
    solved = solve_with_jacobian(fitting, unknowns_at(best, fitting), rtol=1e-9)
    used = target.record.weight > 0
    rows = solved.jacobian[:, used] * np.sqrt(target.record.weight[used])
    sizes = np.linalg.norm(rows, axis=1)
    values = np.linalg.svd(rows[sizes > 0] / sizes[sizes > 0, None], compute_uv=False)
    return int(np.count_nonzero(sizes == 0)) + int(np.count_nonzero(values < below * values[0]))


def _is_linear(candidate: Candidate) -> bool:
    """Whether every term is one variable, or none."""
    frame = candidate.skeleton.frame
    symbols = {v.symbol for v in frame.variables} | {ONE}
    return len(frame.states) == 2 and all(
        len(factors(term_of(s))) == 1 and term_of(s) in symbols for _, s in rows_of(candidate.skeleton)
    )


def _count(n: int) -> str:
    return "One other system gives" if n == 1 else f"{n} other systems give"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
