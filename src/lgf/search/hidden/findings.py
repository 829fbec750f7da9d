"""What a record says about a hidden state, and what it does not: notes and exact equivalents."""

from collections.abc import Sequence

import numpy as np

from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.terms import rows_of, term_of
from lgf.expression.tree import ONE, factors
from lgf.fit.jacobian import solve_with_jacobian
from lgf.fit.settings import FitSettings, make_fitting
from lgf.fit.target import Target
from lgf.search.candidate import Candidate
from lgf.search.evaluate import unknowns_at
from lgf.search.hidden.coupling import scale_is_free
from lgf.search.hidden.equivalents import equivalents_of
from lgf.search.notes import Note, NoteKind

_UNEXPLAINED = 3.0  # root mean square error of the best system in units of the noise
_UNDETERMINED = 1e-6  # singular value, relative to the largest, of a direction that the data leave open


def hidden_findings(
    best: Candidate,
    near: Sequence[Candidate],
    target: Target,
    known: RowKnowledge,
    given: Sequence[float],
    fit: FitSettings,
) -> tuple[list[Note], tuple[Candidate, ...]]:
    """(notes on the hidden state of the chosen system, the systems that are exactly equivalent to it).

    `near` are the others that fit about as well.
    """
    assert known.hidden is not None
    name = known.frame.names[known.hidden]
    measured = _listed([n for n in known.frame.names if n != name])
    notes = [Note(NoteKind.HIDDEN, name, measured=measured)]
    ratio = float(np.sqrt(best.loss / target.noise_loss))
    if ratio > _UNEXPLAINED:
        common = target.n_experiments > 1 and not best.fit.sharing.varying
        kind = NoteKind.HIDDEN_UNEXPLAINED_EXPERIMENTS if common else NoteKind.HIDDEN_UNEXPLAINED
        notes.append(Note(kind, name, {"ratio": ratio}))
    equivalents = tuple(equivalents_of(best, near, target, fit))
    if scale_is_free(known, given):
        notes.append(Note(NoteKind.FREE_SCALE, name))
    if _is_linear(best):
        notes.append(Note(NoteKind.LINEAR, name, measured=measured))
    elif equivalents:
        notes.append(Note(NoteKind.EQUIVALENTS, name, {"number": len(equivalents)}, measured))
    rivals = len({c.skeleton.structure for c in near} - {c.skeleton.structure for c in (best, *equivalents)})
    if rivals:
        notes.append(Note(NoteKind.RIVALS, name, {"number": rivals}))
    left_open = undetermined(best, target, fit)
    if left_open:
        unknowns = best.skeleton.n_constants + target.n_unknown
        notes.append(Note(NoteKind.OPEN_DIRECTIONS, name, {"number": left_open, "unknowns": unknowns}))
    return notes, equivalents


def undetermined(best: Candidate, target: Target, fit: FitSettings) -> int:
    """The number of directions in which constants and initial values have no effect on what is measured."""
    fitting = make_fitting(best.skeleton, target, fit)
    solved = solve_with_jacobian(fitting, unknowns_at(best.fit, fitting), rtol=1e-9)
    used = target.record.weight > 0
    rows = solved.jacobian[:, used] * np.sqrt(target.record.weight[used])
    sizes = np.linalg.norm(rows, axis=1)
    values = np.linalg.svd(rows[sizes > 0] / sizes[sizes > 0, None], compute_uv=False)
    return int(np.count_nonzero(sizes == 0)) + int(np.count_nonzero(values < _UNDETERMINED * values[0]))


def _is_linear(candidate: Candidate) -> bool:
    """Whether every term is one variable, or none."""
    frame = candidate.skeleton.frame
    symbols = {v.symbol for v in frame.variables} | {ONE}
    return len(frame.states) == 2 and all(
        len(factors(term_of(s))) == 1 and term_of(s) in symbols for _, s in rows_of(candidate.skeleton)
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
