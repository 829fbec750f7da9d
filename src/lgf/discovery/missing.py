"""What is missing from a good equation, given its residual: terms ranked by how much of the residual they explain.

For an equation u^(n) = f and a dictionary of terms g, the weak form turns "add C*g" into linear regression: the
gain of a term is what it takes off the residual once the equation's own constants have been projected out. Together
with the bits that the term costs this predicts the description length of the larger equation, before any fit. Swapping
one summand for another, and dropping one, are predicted the same way.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lgf.discovery.candidate import Candidate, Population, Proposal
from lgf.discovery.language import Language
from lgf.discovery.objective import ObjectiveSettings
from lgf.discovery.proposing import propose
from lgf.discovery.starting import choices
from lgf.discovery.target import Target
from lgf.discovery.terms import Term, TermDictionary, term_dictionary
from lgf.discovery.weak_form import WeakForm, make_weak_form
from lgf.grammar import Derivation, join, split
from lgf.ode.expression import Expression
from lgf.ode.kernels.machine import WIDE, evaluate_wide
from lgf.ode.program import Program, compile_expression, compile_skeleton, role_of
from lgf.ode.terms import n_constants

_STEP = 1e-5


@dataclass(frozen=True, eq=False)
class TermLibrary:
    """The dictionary of a language evaluated over a record, in weak form.

    columns [c, row] belong to the terms owner[c]; a term with constants inside has one column per value tried.
    """

    terms: tuple[Term, ...]
    columns: np.ndarray
    owner: np.ndarray
    weak: WeakForm
    t: np.ndarray
    states: np.ndarray
    forcing: np.ndarray


@dataclass(frozen=True, order=True)
class Move:
    """A change of an equation and the description length that it is predicted to lead to."""

    predicted: float
    derivation: Derivation
    kind: str


def make_library(language: Language, target: Target, most_terms: int = 800, n_values: int = 16) -> TermLibrary:
    """The cheapest terms of the language over the target's record."""
    weak = make_weak_form(target)
    t, states = target.t[weak.samples], np.ascontiguousarray(target.states[:, weak.samples])
    forcing = target.forcing[weak.samples]
    dictionary: TermDictionary = term_dictionary(language.grammar, language.allowed)
    terms, columns, owner = [], [], []
    for term in dictionary.terms:
        if len(terms) >= most_terms:
            break
        expression = term.parts[0]
        program = compile_expression(expression, target.order, n_constants(expression))
        values = _inner_values(expression, target, n_values)
        found = [_run(program, target.order, row, t, states, forcing)[0] for row in values]
        finite = [column for column in found if np.all(np.abs(column) < 1e12)]
        if finite:
            columns += finite
            owner += [len(terms)] * len(finite)
            terms.append(term)
    rows = weak.rows(np.array(columns).reshape(len(columns), len(t)))
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return TermLibrary(
        tuple(terms), rows / np.where(sizes > 0, sizes, 1.0), np.array(owner, np.int64), weak, t, states, forcing
    )


def _inner_values(expression: Expression, target: Target, n_values: int) -> np.ndarray:
    """Rows of values for the constants inside a term."""
    count = n_constants(expression)
    if count == 0:
        return np.zeros((1, 0))
    lists = [choices(role_of(expression, i), target, 3 * n_values) for i in range(count)]
    if count == 1:
        values = lists[0]
        if len(values) > 3 * n_values:
            values = values[:: -(-len(values) // (3 * n_values))]
        return values[:, None]
    rng = np.random.default_rng(0)
    return np.array([[rng.choice(values) for values in lists] for _ in range(2 * n_values)])


def _run(
    program: Program, order: int, values: np.ndarray, t: np.ndarray, states: np.ndarray, forcing: np.ndarray
) -> np.ndarray:
    out = np.empty((len(program.outputs), len(t)))
    evaluate_wide(
        program.code, program.outputs, program.literals, order, len(values), np.asarray(values, float), t, states,
        forcing, np.zeros((program.n_registers, WIDE)), out,
    )  # fmt: skip
    return out


def moves(
    candidate: Candidate, language: Language, target: Target, library: TermLibrary, settings: ObjectiveSettings, n: int
) -> list[Move]:
    """The n most promising changes of the candidate: a term added, one swapped, one dropped."""
    derivation = candidate.proposal.derivation
    if candidate.skeleton.explicit is None or derivation is None or not math.isfinite(candidate.loss):
        return []
    own, right = _own_columns(candidate, target, library)
    blocks = split(language.grammar, derivation)
    found: list[Move] = []

    def consider(header: Derivation, summands: Sequence[Derivation], predicted: float, kind: str) -> None:
        try:
            found.append(Move(predicted, join(language.grammar, header, tuple(summands)), kind))
        except ValueError:
            return

    basis, rest = _project(own, right)
    base = candidate.objective
    for term, gain in _ranked(library, basis, rest, settings, target, n):
        consider(blocks.header, (*blocks.summands, term.derivation), base + gain, "add")
    for i in range(len(blocks.summands)):
        kept = blocks.summands[:i] + blocks.summands[i + 1 :]
        column = _matching_column(own, blocks.summands[i], library)
        if column is None:
            continue
        fewer, larger = _project(np.delete(own, column, axis=0), right)
        loss = _change(rest @ rest, larger @ larger, target)
        cost = _cost(_bits_of(blocks.summands[i], library), settings, target)
        consider(blocks.header, kept, base + loss - cost, "drop")
        for term, gain in _ranked(library, fewer, larger, settings, target, max(n // 3, 3)):
            consider(blocks.header, (*kept, term.derivation), base + loss - cost + gain, "swap")
    return heapq.nsmallest(n, found)


def _own_columns(candidate: Candidate, target: Target, library: TermLibrary) -> tuple[np.ndarray, np.ndarray]:
    """(weak columns of the candidate's constants, right side): linear ones as they are, others by differences."""
    compiled = compile_skeleton(candidate.skeleton)
    values = np.array(candidate.fit.values)
    arguments = (library.t, library.states, library.forcing)
    out = _run(compiled.basis, compiled.order, values, *arguments)
    top = library.states[compiled.order]
    columns = list(out[:-1])
    for index in compiled.nonlinear:
        moved = values.copy()
        step = _STEP * max(abs(values[index]), 1e-3)
        moved[index] += step
        other = _run(compiled.basis, compiled.order, moved, *arguments)
        weights = values[compiled.linear]
        columns.append(((weights @ other[:-1] + other[-1]) - (weights @ out[:-1] + out[-1])) / step)
    rows = library.weak.rows(np.nan_to_num(np.array(columns).reshape(-1, len(library.t)), posinf=0.0, neginf=0.0))
    fixed = library.weak.rows(np.nan_to_num(out[-1] - top)[None, :])[0]
    return rows, library.weak.highest + fixed


def _project(own: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(an orthonormal basis [k, row] of the columns, what of the right side they do not explain)."""
    if len(own) == 0:
        return np.zeros((0, len(right))), right
    sizes = np.linalg.norm(own, axis=1, keepdims=True)
    u, s, _ = np.linalg.svd((own / np.where(sizes > 0, sizes, 1.0)).T, full_matrices=False)
    basis = u[:, s > 1e-9 * max(s[0], 1e-300)].T
    return basis, right - basis.T @ (basis @ right)


def _ranked(
    library: TermLibrary, basis: np.ndarray, rest: np.ndarray, settings: ObjectiveSettings, target: Target, n: int
) -> list[tuple[Term, float]]:
    """The n terms with the best predicted change of the description length, and that change."""
    inside = library.columns @ basis.T
    free = 1.0 - np.einsum("ck,ck->c", inside, inside)
    projected = library.columns @ rest
    gain = np.where(free > 1e-6, projected**2 / np.maximum(free, 1e-6), 0.0)
    best = np.zeros(len(library.terms))
    np.maximum.at(best, library.owner, gain)
    total = float(rest @ rest)
    change = np.array([_change(total, total - g, target) for g in best])
    change += np.array([_cost(term.bits, settings, target) for term in library.terms])
    order = np.argsort(change, kind="stable")[:n]
    return [(library.terms[i], float(change[i])) for i in order]


def _change(before: float, after: float, target: Target) -> float:
    """The change of n ln(loss) when the weak residual goes from `before` to `after`."""
    return target.n_samples * math.log(max(after, 1e-9 * before, 1e-300) / max(before, 1e-300))


def _cost(bits: float, settings: ObjectiveSettings, target: Target) -> float:
    return math.log(target.n_samples) + 2 * math.log(2) * settings.bits_weight * bits


def _matching_column(own: np.ndarray, summand: Derivation, library: TermLibrary) -> int | None:
    """Which of the candidate's own columns is that of the summand, if one is."""
    at = next((i for i, term in enumerate(library.terms) if term.derivation == summand), None)
    if at is None or len(own) == 0:
        return None
    sizes = np.linalg.norm(own, axis=1)
    alike = np.abs(own @ library.columns[library.owner == at].T).max(axis=1) / np.where(sizes > 0, sizes, 1.0)
    return int(np.argmax(alike)) if alike.max() > 0.9 else None


def _bits_of(summand: Derivation, library: TermLibrary) -> float:
    return next((term.bits for term in library.terms if term.derivation == summand), 0.0)


class MissingTermProposer:
    """Best-first over the changes of everything evaluated: the most promising prediction is tried first."""

    def __init__(
        self,
        languages: Sequence[Language],
        targets: Mapping[int, Target],
        settings: ObjectiveSettings = ObjectiveSettings(),
        elite: int = 30,
        per_candidate: int = 40,
    ):
        self._languages = {language.order: language for language in languages}
        self._targets = targets
        self._libraries = {o: make_library(language, targets[o]) for o, language in self._languages.items()}
        self._settings = settings
        self._elite = elite
        self._per_candidate = per_candidate
        self._expanded: set[str] = set()
        self._queue: list[tuple[Move, int]] = []

    def tell(self, population: Population) -> None:
        """Put the changes of candidates that were not looked at before into the queue."""
        for candidate in [*population.best(self._elite), *population.front()]:
            structure = candidate.skeleton.structure
            if structure in self._expanded:
                continue
            self._expanded.add(structure)
            order = candidate.skeleton.order
            found = moves(
                candidate, self._languages[order], self._targets[order], self._libraries[order], self._settings,
                self._per_candidate,
            )  # fmt: skip
            for move in found:
                heapq.heappush(self._queue, (move, order))

    def ask(self, n: int) -> list[Proposal]:
        """The n most promising changes."""
        found: list[Proposal] = []
        while self._queue and len(found) < n:
            move, order = heapq.heappop(self._queue)
            proposal = propose(self._languages[order], move.derivation, move.kind)
            if proposal is not None:
                found.append(proposal)
        return found
