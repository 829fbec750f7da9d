"""Proposals of systems with one state that was not measured.

The plan is a sequence of batches:

1. structures with rough constants and a hidden path, the most promising first (`hidden.starts`), are fitted in eight
   segments with a hidden start each, then in two, then as a whole;
2. structures that fit poorly are tried from another path;
3. each term of the best systems is dropped, and the fit goes on from their constants and path, until nothing new is
   among the best.

Nothing measured fixes the scale of a hidden state, unless something is known about it: a coefficient is then a power of
ten, and is not fitted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lgf.data.row_knowledge import RowKnowledge
from lgf.equation.skeleton import numbered
from lgf.equation.terms import term_of
from lgf.expression.frame import Variable
from lgf.expression.tree import Expression, add, factors, mul, number, summands
from lgf.fit.segments import Shooting, segmented
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.hidden.coupling import scale_is_free
from lgf.search.hidden.record import Curves, curves_of
from lgf.search.hidden.starts import Start, find_starts
from lgf.search.proposers.plan import Plan
from lgf.search.sensitivity import solved_columns
from lgf.search.systems.component import Component, Components, fitted_components, propose_components

SEGMENTS = (8, 2, 1)
_POINTS = 80  # of a path, at least
_STRUCTURES = (400, 1600)  # fitted, each part followed by drops
_POOR = 3.0  # in units of the noise: a fit that leaves more is tried from another path
_RETRIED = 150
_DROPPING = 80  # systems whose terms are dropped
_DROP_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class _Trial:
    """A proposal whose candidate is awaited."""

    proposal: Proposal
    components: Components
    coupled: tuple[int, Expression] | None


@dataclass(frozen=True, eq=False)
class _Fitted:
    candidate: Candidate
    trial: _Trial


class HiddenProposer:
    """Systems with a hidden state; see the module."""

    in_batches = True

    def __init__(self, language: SystemLanguage, target: Target, known: RowKnowledge):
        self._language, self._target, self._known = language, target, known
        assert known.hidden is not None
        self._hidden = hidden = known.hidden
        self._column = language.frame.positions[Variable(language.frame.names[hidden])]
        self._given = {
            e: float(target.record.initial[e, self._column])
            for e in range(target.n_experiments)
            if target.record.unknown[e, self._column] < 0
        }
        self._fitted: dict[str, _Fitted] = {}
        self._made: set[tuple[object, int]] = set()
        self._plan = Plan(self._batches())

    def tell(self, population: Population) -> None:
        """Takes the results of the proposals that were made."""
        for trial in self._plan.answered():
            candidate = population.get(trial.proposal.skeleton.structure)
            if candidate is not None and math.isfinite(candidate.objective):
                self._fitted[candidate.skeleton.structure] = _Fitted(candidate, trial)

    def ask(self, n: int) -> list[Proposal]:
        """Up to n proposals of the present batch; the next batch starts when the results of this one are known."""
        return [trial.proposal for trial in self._plan.next(n)]

    def _batches(self) -> Iterator[list[_Trial]]:
        target = self._target
        name = self._language.frame.names[self._hidden]
        curves = curves_of(target, name, _POINTS)
        fixed = scale_is_free(self._known, self._given.values())
        size = float(target.scales[self._column])
        structures = find_starts(self._language, self._known, curves, self._hidden, size, self._given)
        begin = 0
        for count in _STRUCTURES:
            part = structures[begin : begin + count]
            yield self._present(self._from_start(own[0], curves, fixed) for own in part)
            poor = [own for own in part[:_RETRIED] if len(own) > 1 and self._is_poor(own[0], fixed)]
            yield self._present(
                self._from_start(start, curves, fixed, k) for own in poor for k, start in enumerate(own[1:], 1)
            )
            for _ in range(_DROP_ROUNDS):
                batch = self._present(trial for f in self._best(_DROPPING) for trial in self._drops(f))
                if not batch:
                    break
                yield batch
            begin += count

    def _best(self, k: int) -> list[_Fitted]:
        return sorted(self._fitted.values(), key=lambda f: f.candidate.objective)[:k]

    def _is_poor(self, start: Start, fixed: bool) -> bool:
        trial = self._proposed(start.components, start.coupled if fixed else None, None, "")
        return trial is not None and self._was_poor(trial.proposal)

    def _present(self, trials) -> list[_Trial]:
        return [trial for trial in trials if trial is not None]

    def _from_start(self, start: Start, curves: Curves, fixed: bool, number_of_path: int = 0) -> _Trial | None:
        shooting = self._shooting(self._along(curves, start.path))
        coupled = start.coupled if fixed else None
        return self._proposed(start.components, coupled, shooting, "hidden: start", number_of_path)

    def _along(self, curves: Curves, path: np.ndarray) -> np.ndarray:
        """The path at the samples."""
        first = self._target.record.first
        parts = []
        for e in range(self._target.n_experiments):
            own = slice(int(curves.first[e]), int(curves.first[e + 1]))
            parts.append(np.interp(self._target.t[first[e] : first[e + 1]], curves.t[own], path[own]))
        return np.concatenate(parts)

    def _shooting(self, path: np.ndarray, states: np.ndarray | None = None) -> Shooting:
        """The stages of a fit that begins at this hidden path and, if given, at these solved states [n, N]."""
        part = segmented(self._target, SEGMENTS[0])
        guess, unknown = part.initial_guess(), part.record.unknown
        for s, sample in enumerate(part.record.first[:-1]):
            for d in range(unknown.shape[1]):
                if unknown[s, d] >= 0 and d == self._column:
                    guess[unknown[s, d]] = path[sample]
                elif unknown[s, d] >= 0 and states is not None:
                    guess[unknown[s, d]] = states[d, sample]
        return Shooting(SEGMENTS, tuple(float(v) for v in guess), whole=True)

    def _drops(self, fitted: _Fitted) -> Iterator[_Trial | None]:
        """The system without each of its terms, started from its constants and path."""
        candidate, trial = fitted.candidate, fitted.trial
        components = fitted_components(trial.components, candidate)
        conserved = {row for law in self._known.laws for row in law}
        rests: list[Components] = []
        for row, component in enumerate(components):
            for term in component.terms:
                if (row, term) == trial.coupled or (
                    row in conserved and row != self._first(components, conserved, term)
                ):
                    continue
                # A term that leaves one equation of a conserved sum leaves all.
                rows = conserved if row in conserved else {row}
                rest = tuple(_without(c, term) if r in rows else c for r, c in enumerate(components))
                if all(c.terms or c.known is not None for c in rest) and self._shows(rest):
                    rests.append(rest)
        if not rests:
            return
        columns = solved_columns(candidate, self._target)
        if columns is None:
            return
        shooting = self._shooting(columns[self._column], columns[: self._target.frame.dimension])
        for rest in rests:
            yield self._proposed(rest, trial.coupled, shooting, "hidden: drop", -1)

    @staticmethod
    def _first(components: Components, rows: set[int], term: Expression) -> int:
        return min(row for row in rows if term in components[row].terms)

    def _shows(self, components: Components) -> bool:
        """Whether the hidden state stands in the equation of a measured one."""
        symbol = Variable(self._language.frame.names[self._hidden]).symbol
        return any(
            symbol in body.nodes()
            for row, c in enumerate(components)
            if row != self._hidden
            for body in (c.terms if c.known is None else (c.known,))
        )

    def _proposed(
        self,
        components: Components,
        coupled: tuple[int, Expression] | None,
        shooting: Shooting | None,
        origin: str,
        attempt: int = 0,
    ) -> _Trial | None:
        """The trial, or None if the knowledge excludes it or it was made before."""
        made = propose_components(self._language, self._known, components, shooting or Shooting(SEGMENTS), origin)
        if made is None:
            return None
        proposal = made if coupled is None else with_fixed_scale(made, coupled)
        if shooting is not None:
            # By terms: the sign of a fixed coefficient makes no other system.
            key = (tuple(c.terms for c in components), coupled), attempt
            if key in self._made or (attempt < 0 and (key[0], 0) in self._made and not self._was_poor(proposal)):
                return None
            self._made.add(key)
        return _Trial(proposal, components, coupled)

    def _was_poor(self, proposal: Proposal) -> bool:
        fitted = self._fitted.get(proposal.skeleton.structure)
        return fitted is None or fitted.candidate.loss > _POOR * self._target.noise_loss


def _without(component: Component, term: Expression) -> Component:
    return component.without(component.terms.index(term)) if term in component.terms else component


def with_fixed_scale(proposal: Proposal, coupled: tuple[int, Expression]) -> Proposal:
    """The proposal with the coefficient of this term of this row fixed at its start."""
    row, term = coupled
    assert proposal.start is not None
    skeleton, fixed, parts = proposal.skeleton, -1, []
    left, right = skeleton.sides[row]
    for summand in summands(right):
        constants = [f.args[0] for f in factors(summand) if f.head == "constant"]
        if term_of(summand) == term and constants:
            fixed = constants[0]
            parts.append(mul(number(float(proposal.start[fixed])), term))
        else:
            parts.append(summand)
    if fixed < 0:
        return proposal
    sides = [*skeleton.sides[:row], (left, add(*parts)), *skeleton.sides[row + 1 :]]
    start = tuple(v for i, v in enumerate(proposal.start) if i != fixed)
    return replace(proposal, skeleton=numbered(skeleton.frame, sides), start=start)
