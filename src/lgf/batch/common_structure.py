"""One structure for all records of a batch, with constants of their own.

The structures that the records chose by themselves, or could not tell from their choice, are fitted to every record.
The sum of the description lengths decides, the grammar's bits counted once. Each record is then answered by this
structure, which is a known right-hand side of it.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lgf.batch.answer import Answer, Question, Read, Status
from lgf.batch.workers import Notify, answer_all, map_records
from lgf.data import Problem
from lgf.data.condensation import condensed
from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.expression.print import plain
from lgf.fit.settings import patient
from lgf.fit.target_assembly import make_target
from lgf.runs.folder import read_run
from lgf.runs.starting_equations import starting_proposals
from lgf.search.evaluate import Evaluator
from lgf.smoothing.complete import complete

FOLDER = "one structure"
MOST_STRUCTURES = 40  # that are fitted to every record


@dataclass(frozen=True)
class ReadWithStructure:
    """Reads a record whose right-hand sides are known but for their constants."""

    read: Read
    known: tuple[tuple[str, str], ...]  # (x'', right-hand side)

    def __call__(self, source: Any) -> tuple[Problem, tuple[str, ...]]:
        """(the problem in the source, notes on how it was read)."""
        problem, notes = self.read(source)
        return replace(problem, knowledge=replace(problem.knowledge, known=dict(self.known))), notes


def answer_with_one_structure(
    question: Question,
    records: Mapping[str, Any],
    answers: Sequence[Answer],
    folder: Path,
    *,
    n_jobs: int = 1,
    workers: str | None = "processes",
    notify: Notify = lambda _: None,
) -> tuple[str, list[Answer]]:
    """(the common structure, the answers with it); `answers` are those of the records on their own, in the folder."""
    answered = {line.record: records[line.record] for line in answers if line.status is Status.ANSWERED}
    structures = proposed_structures(answered, folder)
    if not structures:
        raise LgfError("no record has an explicit equation, so there is no structure that all could share.")
    lengths = map_records(structure_lengths, question, answered, structures, n_jobs=n_jobs, workers=workers)
    chosen = structures[shortest(np.array(lengths))]
    known = tuple(known_rows(chosen).items())
    common = replace(question, read=ReadWithStructure(question.read, known), start=())
    lines = answer_all(common, answered, folder / FOLDER, n_jobs=n_jobs, workers=workers, notify=notify)
    by_name = {line.record: line for line in lines}
    return str(chosen), [by_name.get(line.record, line) for line in answers]


def proposed_structures(records: Mapping[str, Any], folder: Path) -> list[Skeleton]:
    """The explicit structures in the answers of the records, those that most of them have first."""
    votes: Counter[str] = Counter()
    skeletons: dict[str, Skeleton] = {}
    for name in records:
        run = read_run(folder / name)
        proposed = [c.skeleton for c in (run.best, *run.indistinguishable, *run.prediction_front)]
        own = {s.structure: s for s in proposed if s.right_sides is not None and not s.tied}
        votes.update(own.keys())
        skeletons |= {structure: s for structure, s in own.items() if structure not in skeletons}
    return [skeletons[structure] for structure, _ in votes.most_common(MOST_STRUCTURES)]


def structure_lengths(question: Question, source: Any, structures: Sequence[Skeleton]) -> list[tuple[float, float]]:
    """(description length without bits, length of the bits) of each structure, fitted to one record."""
    request = question.request(source)
    settings = request.settings
    problem = condensed(request.problem, settings.samples)
    frames = {skeleton.frame for skeleton in structures}
    widest = max(frames, key=lambda frame: frame.dimension)
    completions = [
        complete(o, widest, settings.smoothing, problem.signals(e)) for e, o in enumerate(problem.observations)
    ]
    accuracy = settings.fit.accuracy
    targets = {f: make_target(problem, f, completions, all_modes=settings.all_modes, accuracy=accuracy) for f in frames}
    evaluator = Evaluator(targets, problem.knowledge, patient(settings.fit), settings.objective)
    lengths = []
    for skeleton in structures:
        free = replace(problem, knowledge=replace(problem.knowledge, order=dict(skeleton.frame.states)))
        (proposal,) = starting_proposals([str(skeleton).replace("\n", "; ")], request.grammar, free, settings.objective)
        bits = 2 * math.log(2) * settings.objective.bits_weight * proposal.bits
        lengths.append((evaluator(proposal).objective - bits, bits))
    return lengths


def shortest(lengths: np.ndarray) -> int:
    """The structure of the least total length; `lengths` [record, structure, (without bits, bits)].

    A record that a structure cannot describe counts as its worst description by another.
    """
    own = lengths[:, :, 0]
    worst = np.max(np.where(np.isfinite(own), own, -np.inf), axis=1, keepdims=True)
    own = np.where(np.isfinite(own), own, np.where(np.isfinite(worst), worst, 0.0))
    return int(np.argmin(own.sum(axis=0) + lengths[0, :, 1]))


def known_rows(skeleton: Skeleton) -> dict[str, str]:
    """The right-hand sides by the highest derivative, open constants written as C."""
    rights = skeleton.right_sides
    assert rights is not None
    highest = skeleton.frame.highest
    return {str(v): plain(right, ["C"] * skeleton.n_constants) for v, right in zip(highest, rights, strict=True)}
