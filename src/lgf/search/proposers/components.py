"""Proposals of systems: right-hand sides selected for each row alone, combined, and changed where the fit shows it.

The plan is a sequence of batches; each depends on the fits of the one before. Full linear systems and mass action are
fitted with the first combinations, whatever the lists say.

1. terms of each row are selected in integral form along the smoothed states (`systems.component_lists`);
2. combinations of these right-hand sides, best first, are fitted in short segments;
3. rows of the best system are exchanged for others of their lists, which a trained ranking orders
   (`systems.row_ranking`), the most probable of all rows first, and for the cheapest of the language;
4. the best go on to longer segments, as far as the record can be followed;
5. the noise of each state is taken from the best fit, terms are selected again along its trajectory, and changes are
   ranked by linear responses (`systems.repair`), until nothing improves.
"""

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lgf.data.row_knowledge import RowKnowledge
from lgf.fit.constants import initial_values
from lgf.fit.segments import Shooting, reweighed, segmented
from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.proposers.plan import Plan
from lgf.search.sensitivity import solved_columns
from lgf.search.systems.amplification import amplification
from lgf.search.systems.combinations import Lists, by_rank, combinations, joined, ranked_as
from lgf.search.systems.component import (
    Component,
    Components,
    cancelled,
    exchanged,
    fitted_components,
    known_component,
    propose_components,
)
from lgf.search.systems.component_lists import ComponentSelection
from lgf.search.systems.conservation import closures
from lgf.search.systems.plain import plain_components
from lgf.search.systems.repair import moves
from lgf.search.systems.row_fits import FLOOR
from lgf.search.systems.row_ranking import load_row_ranking
from lgf.search.systems.term_grid import TermGrid, make_term_grid
from lgf.settings.ranges import Count, Tally
from lgf.threads import Spread, alone

SEGMENTS = (8, 24)  # of the first fits; the next number if none explains the record
DESCENT = (8, 2, 1)  # segments of the later ones
_SWEPT_WIDELY = 120  # right-hand sides tried in a row if no system can follow the record in longer segments
_LARGE_IMPROVEMENT = 10.0  # of the objective, after which all rows are exchanged once more
_STEPS = 4_500_000  # of the integrator in all fits; then the plan ends
_DESCENDING, _DESCENDING_WIDELY = 12, 40  # systems fitted in longer segments, and after a wide sweep
_SECOND_KAPPAS = (0.0, 10.0)
_ROUNDS = 8  # of repair, at most
_REPAIRED = 3  # systems that are changed, each round
_REWEIGH_ABOVE = 0.15  # change of a logarithmic deviation that is worth it
_EXPLAINED = 0.1  # share of the variance left by a fit, below which it tells the noise
_IMPROVEMENT = 0.01
# (log amplification of a disturbed start, least number of segments below it); above all of them the first of `SEGMENTS`
_CHAOS = ((7.0, 1), (12.0, 2), (18.0, 3))


@dataclass(frozen=True)
class ComponentSettings:
    """The plan of the search for systems."""

    ranked: bool = True  # the first lists by the trained ranking
    combinations: Count = 40
    swept: Count = 25  # right-hand sides tried in a row of the best system
    together: Count = 25  # exchanges of a batch, if those of all rows are tried in one order
    cheap: Tally = 60  # cheapest right-hand sides of a row, whatever the lists say of them
    sweeps: Count = 2  # over all rows and both, as long as the improvement is large
    second_passes: Tally = 2
    second_swept: Count = 20


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A candidate with its right-hand sides."""

    candidate: Candidate
    components: Components


@dataclass(eq=False)
class _Trial:
    """A proposal whose candidate is awaited."""

    proposal: Proposal
    components: Components


class ComponentProposer:
    """Systems made of right-hand sides selected row by row; see the module."""

    in_batches = True

    def __init__(
        self,
        language: SystemLanguage,
        target: Target,
        known: RowKnowledge,
        settings: ComponentSettings = ComponentSettings(),
        spread: Spread = alone,
    ):
        self._language, self._target, self._known, self._settings = language, target, known, settings
        self._spread = spread
        self._n = len(language.frame.states)
        self._noise: tuple[float, ...] | None = None
        self._fitted: dict[int, dict[str, _Fitted]] = {}  # by the last number of segments, then by structure
        self._plan = Plan(self._batches())
        self._made: set[tuple] = set()  # what was proposed, and in how many segments
        self._steps = 0

    def tell(self, population: Population) -> None:
        """Takes the results of the proposals that were made."""
        for trial in self._plan.answered():
            candidate = population.get(trial.proposal.skeleton.structure)
            if candidate is not None and candidate.proposal.shooting is not None:
                self._steps += candidate.fit.steps
                self._record(candidate, trial.components)

    def ask(self, n: int) -> list[Proposal]:
        """Up to n proposals of the present batch; the next batch starts when the results of this one are known."""
        if self._steps > _STEPS:
            return []
        return [trial.proposal for trial in self._plan.next(n)]

    def _record(self, candidate: Candidate, components: Components) -> None:
        level = self._fitted.setdefault(candidate.fit.segments, {})
        structure = candidate.skeleton.structure
        known = level.get(structure)
        if known is None or candidate.objective < known.candidate.objective:
            level[structure] = _Fitted(candidate, fitted_components(components, candidate))

    def _best(self, segments: int, k: int = 1) -> list[_Fitted]:
        level = self._fitted.get(segments, {})
        finite = [f for f in level.values() if math.isfinite(f.candidate.objective)]
        return sorted(finite, key=lambda f: f.candidate.objective)[:k]

    def _trial(
        self, components: Components, segments: tuple[int, ...], origin: str, like: _Fitted | None = None
    ) -> _Trial | None:
        """The proposal, started from the initial values of `like`; None if it was made before with this noise."""
        components = tuple(cancelled(c, self._language, row) for row, c in enumerate(components))
        again = segments[-1], self._noise if origin == "reweighed" else None
        if self._was_made((tuple(c.key for c in components), *again)):
            return None
        initial = None if like is None else initial_values(like.candidate.fit, self._target, segments[0])
        shooting = Shooting(segments, initial, self._noise)
        proposal = propose_components(self._language, self._known, components, shooting, f"components: {origin}")
        if proposal is None or self._was_made((proposal.skeleton.structure, *again)):
            return None
        return _Trial(proposal, components)

    def _was_made(self, key: tuple) -> bool:
        """Whether this was proposed before; it counts as proposed from now on."""
        known = key in self._made
        self._made.add(key)
        return known

    def _batches(self) -> Iterator[list[_Trial]]:
        """The plan: batches of proposals, each made when the results of the one before are known."""
        settings, target = self._settings, self._target
        known = [known_component(row.known) for row in self._language.rows if row.known is not None]
        if len(known) == self._n:  # nothing to select
            yield from self._fitted_in_segments(tuple(known))
            return
        terms = make_term_grid(self._language, target)
        selection = self._selection(terms, target.columns)
        lists = self._first_lists(selection)
        short = SEGMENTS[0]
        for short in SEGMENTS:
            plain = (self._trial(c, (short,), "plain") for c in plain_components(self._language, self._known))
            listed = self._consistent([lists[i] for i in range(self._n)]) if all(lists.values()) else ()
            yield _present([*plain, *(self._trial(components, (short,), "combination") for components in listed)])
            if self._best(short) and self._explains(self._best(short)[0]):
                break
        if not self._best(short):
            return
        for number in range(settings.sweeps):
            before = self._best(short)[0]
            if number > 0:
                selection, lists = self._selected_again(before, short, terms, lists) or (selection, lists)
            if settings.ranked:
                likely = by_rank(lists)[: settings.swept * self._n]
                yield from self._together(likely, short, "sweep")
                yield from self._together(by_rank(ranked_as(lists, self._cheapest(selection))), short, "cheap")
            else:
                for row, cheapest in self._cheapest(selection).items():
                    yield self._exchanging(row, cheapest, short, "cheap")
                yield from self._sweep(lists, short, settings.swept)
            if self._reweigh(self._best(short)[0]):
                yield self._again(short)
            if self._best(short)[0].candidate.objective > before.candidate.objective - _LARGE_IMPROVEMENT:
                break
        del selection  # it holds much memory
        level = yield from self._lengthened(short, _DESCENDING)
        if level == short and self._descent(self._best(short)[0]):
            # Equations that cannot follow a record which is not chaotic are imitations: the whole lists are tried.
            yield from self._sweep(lists, short, _SWEPT_WIDELY)
            level = yield from self._lengthened(short, _DESCENDING_WIDELY)
        repaired: set[str] = set()
        for number in range(_ROUNDS):
            before = self._best(level)[0]
            if self._reweigh(before):
                yield self._again(level)
                before = self._best(level)[0]
            if number < settings.second_passes:
                lists = (self._selected_again(before, level, terms, lists) or (None, lists))[1]
                yield from self._sweep(lists, level, settings.second_swept)
            for f in self._best(level, _REPAIRED):
                structure = f.candidate.skeleton.structure
                if structure not in repaired:
                    repaired.add(structure)
                    changed = moves(
                        f.candidate, f.components, self._weighted(level), self._language, self._known, terms
                    )  # fmt: skip
                    yield _present(self._trial(m.components, (level,), m.kind, f) for m in changed)
            yield from self._sweep(lists, level, settings.second_swept // 2)
            after = self._best(level)[0].candidate.objective
            if after > before.candidate.objective - _IMPROVEMENT:
                break

    def _fitted_in_segments(self, components: Components) -> Iterator[list[_Trial]]:
        """Batches with this system alone: in segments that it can follow, then in longer ones."""
        for short in SEGMENTS:
            yield _present([self._trial(components, (short,), "known")])
            if self._best(short):
                yield from self._lengthened(short, 1)
                if self._explains(self._best(short)[0]):
                    break

    def _selection(self, terms: TermGrid, columns: np.ndarray) -> ComponentSelection:
        """The selection of terms along these columns."""
        return ComponentSelection(self._language, self._target, terms, columns, self._spread)

    def _first_lists(self, selection: ComponentSelection) -> Lists:
        """The lists of right-hand sides along the smoothed states."""
        if not self._settings.ranked:
            return selection.lists(range(self._n))
        ranking = load_row_ranking()
        return {row: ranking.ranked(evidence) for row, evidence in selection.evidence(range(self._n)).items()}

    def _lengthened(self, short: int, most: int) -> Generator[list[_Trial], None, int]:
        """Batches with the best systems in longer segments; the last number of segments that was no worse."""
        level = short
        for count in self._descent(self._best(short)[0]):
            yield _present(self._trial(f.components, (count,), "longer segments", f) for f in self._best(level, most))
            best = self._best(count)
            if not best or best[0].candidate.objective > self._best(level)[0].candidate.objective:
                break
            level = count
        return level

    def _selected_again(
        self, best: _Fitted, level: int, terms: TermGrid, lists: Lists
    ) -> tuple[ComponentSelection, Lists] | None:
        """The selection of terms along the solution of a system, and its lists joined with the former ones.

        None if the system has no solution.
        """
        columns = solved_columns(best.candidate, self._weighted(level))
        if columns is None:
            return None
        second = self._selection(terms, columns)
        fresh = second.lists(range(self._n), _SECOND_KAPPAS)
        return second, {i: joined(fresh[i], lists[i]) for i in range(self._n)}

    def _sweep(self, lists: Lists, level: int, most: int) -> Iterator[list[_Trial]]:
        """Batches that exchange one row of the best system for others of its list, row by row."""
        for row in range(self._n):
            yield self._exchanging(row, lists[row][:most], level, "sweep")

    def _together(self, others: Iterable[tuple[int, Component]], level: int, origin: str) -> Iterator[list[_Trial]]:
        """Batches that exchange a row of the best system for another right-hand side, in this order of all rows.

        A row that the ranking is sure of has few probable right-hand sides, so the others have their turn early.
        """
        trials = (t for row, other in others for t in self._exchanging(row, [other], level, origin))
        while batch := list(islice(trials, self._settings.together)):
            yield batch

    def _exchanging(self, row: int, others: Iterable[Component], level: int, origin: str) -> list[_Trial]:
        """Trials of the best system with others in one row."""
        best = self._best(level)[0]
        return _present(
            self._trial(components, (level,), origin, best)
            for other in others
            for components in closures(exchanged(best.components, row, other), self._known, self._language, row)
        )

    def _consistent(self, lists: list[Sequence[Component]]) -> Iterator[Components]:
        """Combinations of the lists, those that violate a law or a relation in every way of mending them."""
        every = combinations(lists, self._settings.combinations)
        made = (closed for c in every for closed in closures(c, self._known, self._language, changed=-1))
        return islice(made, self._settings.combinations)

    def _again(self, level: int) -> list[_Trial]:
        """The best systems once more, with the present noise."""
        best = self._best(level, _DESCENDING)
        return _present(self._trial(f.components, (level,), "reweighed", f) for f in best)

    def _cheapest(self, selection: ComponentSelection) -> Lists:
        """The cheapest right-hand sides of each row that is not known, whatever the selection says of them."""
        unknown = [row for row in range(self._n) if self._language.rows[row].known is None]
        return {row: selection.cheapest(row, self._settings.cheap) for row in unknown}

    def _descent(self, best: _Fitted) -> tuple[int, ...]:
        """The numbers of segments to go on with; not fewer than a disturbed start allows."""
        short = best.candidate.fit.segments
        growth = amplification(best.candidate, segmented(self._target, short))
        least = next((count for limit, count in _CHAOS if growth < limit), SEGMENTS[0])
        path = [count for count in DESCENT if least <= count < short]
        return tuple(path if least >= short or least in path else [*path, least])

    def _weighted(self, level: int) -> Target:
        """The target in this many segments, with the present noise."""
        target = self._target if self._noise is None else reweighed(self._target, self._noise)
        return segmented(target, level)

    def _reweigh(self, best: _Fitted) -> bool:
        """Takes the noise from the residuals of the best fit; False if it changes little or the fit is poor."""
        if not self._explains(best):
            return False
        target, measured = self._target, list(self._target.measured)
        freedom = 1.0 - len(best.candidate.fit.values) / target.n_samples
        floor = FLOOR * target.scales[measured]
        noise = np.maximum(np.sqrt(self._variances(best) / max(freedom, 0.5)), floor)
        present = target.noise[measured] if self._noise is None else np.array(self._noise)
        if np.max(np.abs(np.log(noise / present))) <= _REWEIGH_ABOVE:
            return False
        self._noise = tuple(float(v) for v in noise)
        return True

    def _explains(self, fitted: _Fitted) -> bool:
        """Whether the fit leaves only a small share of the variance of every measured column."""
        record = self._target.record
        spread = [np.var(record.data[record.weight[:, c] > 0, c]) for c in self._target.measured]
        return bool(np.all(self._variances(fitted) <= _EXPLAINED * np.array(spread)))

    def _variances(self, fitted: _Fitted) -> np.ndarray:
        """The mean square residual of each measured column."""
        shooting, target = fitted.candidate.proposal.shooting, self._target
        if shooting is not None and shooting.noise is not None:
            target = reweighed(target, shooting.noise)
        measured = list(target.measured)
        mean = fitted.candidate.fit.losses[measured] * target.power / target.column_counts[measured]
        return mean * target.noise[measured] ** 2


def _present(trials: Iterable[_Trial | None]) -> list[_Trial]:
    """The trials that could be made, each structure once."""
    return list({t.proposal.skeleton.structure: t for t in trials if t is not None}.values())
