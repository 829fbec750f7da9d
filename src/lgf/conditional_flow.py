"""Proposals of a conditional flow: the sentences that are most probable for the record, one after the other.

The flow says p(sentence | record) exactly (see `latent.rule_flow`), so its most probable sentences are listed by a
best-first search over partial sentences, in place of many samples.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from lgf.expression.frame import Frame
from lgf.fit.target import Target
from lgf.grammar import Derivation, join_rules
from lgf.grammar.blocks import BLOCK, bodies, header_items
from lgf.language.language import Language
from lgf.language.projections import GridRecord, Projections, project
from lgf.language.summand_tree import summand_tree
from lgf.language.term_table import ORDERS, header_terms, summand_group, term_table
from lgf.search.candidate import Population, Proposal
from lgf.search.grid_record import grid_record
from lgf.search.mixture import MakeProposer
from lgf.search.proposers.basic import Proposer, propose
from lgf.search.settings import DiscoverySettings
from lgf.settings.flow import ConditionalSettings
from lgf.trained.rule_flow import RuleFlow


@dataclass(frozen=True, eq=False)
class _Partial:
    """A sentence of which some tokens are still masked.

    open holds the masked nonterminals of the present block, the next one last; said and within are the sums of the
    vectors of the rules said so far, and of those of the present summand.
    """

    header: Derivation
    summands: tuple[Derivation, ...]
    present: Derivation | None  # the summand that is being said
    waiting: int  # summands that are not begun
    open: tuple[int | str, ...]
    said: np.ndarray = field(repr=False)
    within: np.ndarray = field(repr=False)
    lack: "Lack | None" = field(repr=False)  # beside which the present summand is said


class Lack:
    """What is missing beside some groups: its vector, and what rules gain by the odds of the terms they lead to."""

    def __init__(self, flow: RuleFlow, record: Projections, state: np.ndarray, groups: Sequence[int]):
        # training has seen these features in half precision
        features = record.missing(groups)[0].astype(np.float16)
        self.vector = flow.missing(features)
        self._odds = flow.odds(record.features.astype(np.float16), features, state + self.vector)
        self._tree = summand_tree(flow.grammar)
        self._gains: dict[Derivation, np.ndarray] = {}

    def gain(self, begin: Derivation) -> np.ndarray:
        """The gain [rule] after this begin of a summand."""
        if begin not in self._gains:
            self._gains[begin] = self._tree.gain(self._odds, begin)
        return self._gains[begin]


_LEAST = 14.0  # nats below which a sentence is not listed
_BATCH = 24  # partial sentences that are continued at a time


class LikelySentences:
    """The sentences of a record, the most probable first; an iterator of (log p, derivation)."""

    def __init__(self, flow: RuleFlow, record: Projections, allowed: np.ndarray, least: float = _LEAST):
        self._flow, self._record, self._allowed, self._least = flow, record, allowed, least
        self._grammar = flow.grammar
        self._state = flow.read(record.features)
        self._numbers = {name: i for i, name in enumerate(self._grammar.nonterminals)}
        self._items, self._bodies = header_items(self._grammar), bodies(self._grammar)
        self._lacks: dict[tuple[int, ...], Lack] = {}
        self._zero, self._no_gain = np.zeros_like(self._state), np.zeros(self._grammar.n_rules, np.float32)
        self._tie = count()
        start = _Partial((), (), None, 0, (self._grammar.start,), self._zero, self._zero, None)
        self._open: list[tuple[float, int, _Partial]] = [(0.0, next(self._tie), start)]
        self._complete: list[tuple[float, Derivation]] = []

    def __iter__(self) -> Iterator[tuple[float, Derivation]]:
        return self

    def __next__(self) -> tuple[float, Derivation]:
        while self._open and (not self._complete or self._complete[0][0] > self._open[0][0]):
            self._expand()
        if not self._complete:
            raise StopIteration
        cost, derivation = heapq.heappop(self._complete)
        return -cost, derivation

    def _expand(self) -> None:
        """Unmasks the next token of the most probable partial sentences."""
        batch = [heapq.heappop(self._open) for _ in range(min(_BATCH, len(self._open)))]
        partials = [partial for _, _, partial in batch]
        states = self._state + np.array([p.said + (p.within + p.lack.vector if p.lack else 0.0) for p in partials])
        sides = np.array([self._numbers[str(p.open[-1])] for p in partials])
        gains = np.array([p.lack.gain(p.present or ()) if p.lack else self._no_gain for p in partials])
        log_p = self._flow.log_probabilities(states, sides, gains, self._allowed)
        for (cost, _, partial), row in zip(batch, log_p, strict=True):
            for rule in np.flatnonzero(row > cost - self._least).tolist():
                self._push(cost - float(row[rule]), self._after(partial, rule))

    def _push(self, cost: float, partial: _Partial) -> None:
        if (
            len(partial.header) + sum(map(len, partial.summands)) + len(partial.present or ())
            > self._grammar.max_length
        ):
            return
        if partial.open:
            heapq.heappush(self._open, (cost, next(self._tie), partial))
        else:
            heapq.heappush(self._complete, (cost, join_rules(self._grammar, partial.header, partial.summands)))

    def _after(self, partial: _Partial, rule: int) -> _Partial:
        """The partial sentence with its next token unmasked."""
        said = partial.said + self._flow.said[rule]
        stack = list(partial.open[:-1])
        if partial.present is None:
            header = (*partial.header, rule)
            stack.extend(reversed(self._items[rule]))
            waiting = partial.waiting
            while stack and stack[-1] == BLOCK:
                stack.pop()
                waiting += 1
            if stack:
                # blocks further down the stack are counted when they come up
                return _Partial(header, (), None, waiting, tuple(stack), said, self._zero, None)
            return self._begin(header, (), waiting, said)
        present = (*partial.present, rule)
        stack.extend(reversed(self._bodies[rule]))
        if stack:
            within = partial.within + self._flow.said_in_summand[rule]
            return _Partial(
                partial.header, partial.summands, present, partial.waiting, tuple(stack), said, within, partial.lack
            )
        return self._begin(partial.header, (*partial.summands, present), partial.waiting, said)

    def _begin(self, header: Derivation, summands: tuple[Derivation, ...], waiting: int, said: np.ndarray) -> _Partial:
        """The sentence at the begin of its next summand, complete if there is none."""
        if waiting == 0:
            return _Partial(header, summands, None, 0, (), said, self._zero, None)
        symbols = tuple(reversed(self._grammar.summand))
        groups = self._groups(header, summands)
        if groups not in self._lacks:
            self._lacks[groups] = Lack(self._flow, self._record, self._state, groups)
        return _Partial(header, summands, (), waiting - 1, symbols, said, self._zero, self._lacks[groups])

    def _groups(self, header: Derivation, summands: tuple[Derivation, ...]) -> tuple[int, ...]:
        own = [summand_group(self._grammar, s) for s in summands]
        return (*header_terms(self._grammar, header), *(g for g in own if g is not None))


class ConditionalFlowProposer:
    """The most probable equations for the record, each structure once; several languages are merged by probability."""

    def __init__(
        self,
        flow: RuleFlow,
        languages: Sequence[Language],
        targets: Mapping[Frame, Target],
        settings: ConditionalSettings = ConditionalSettings(),
    ):
        self._settings = settings
        self._streams: list[tuple[Language, LikelySentences]] = []
        self.records: list[GridRecord] = []  # what was read, one for each language that could be
        table = term_table(flow.grammar)
        for language in languages:
            record = grid_record(targets[language.frame])
            if record is not None:
                self.records.append(record)
                sentences = LikelySentences(flow, project(record, table), language.allowed)
                self._streams.append((language, sentences))
        self._heads = [next(sentences, None) for _, sentences in self._streams]
        self._listed: set[str] = set()

    @property
    def has_read(self) -> bool:
        """Whether any record could be read."""
        return bool(self._streams)

    def ask(self, n: int) -> list[Proposal]:
        """The next n equations; fewer at the end of the list."""
        proposals: list[Proposal] = []
        while len(proposals) < n and len(self._listed) < self._settings.most:
            heads = [(head[0], i) for i, head in enumerate(self._heads) if head is not None]
            if not heads:
                break
            _, i = max(heads, key=lambda pair: (pair[0], -pair[1]))
            language, sentences = self._streams[i]
            head = self._heads[i]
            assert head is not None
            self._heads[i] = next(sentences, None)
            proposal = propose(language, head[1], "conditional flow")
            if proposal is not None and proposal.skeleton.structure not in self._listed:
                self._listed.add(proposal.skeleton.structure)
                proposals.append(proposal)
        return proposals

    def tell(self, population: Population) -> None:
        """Does nothing: the list depends on the record only."""


def conditional_proposers(flow: RuleFlow) -> MakeProposer:
    """The maker of proposers with this flow; it returns None if the flow covers none of the orders or records."""

    def make(
        languages: Sequence[Language], targets: Mapping[Frame, Target], settings: DiscoverySettings, seed: int
    ) -> Proposer | None:
        known = [language for language in languages if language.frame.orders[0] in ORDERS]
        proposer = ConditionalFlowProposer(flow, known, targets, settings.conditional)
        return proposer if proposer.has_read else None

    return make
