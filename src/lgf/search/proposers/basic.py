"""Proposers of skeletons: ask(n) returns proposals, tell(population) updates the proposer.

These use only the weighted grammar: Monte Carlo samples it, enumeration lists the most probable structures first,
evolution varies the summands of good candidates. The guided flow implements the same protocol.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Protocol

import numpy as np

from lgf.equation.skeleton import numbered
from lgf.expression.canonical import canonical
from lgf.expression.frame import Frame, Variable
from lgf.expression.tree import ONE, add, constant, mul, number, power
from lgf.grammar import Blocks, Derivation, bits, enumerate_derivations, join, sample, split, split_rules
from lgf.language.language import Language
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Population, Proposal

_BATCH = 64
_MOST_BITS = 24.0  # of an equation that is enumerated


class Proposer(Protocol):
    """The protocol of all proposers.

    A proposer with an attribute `in_batches` that is true follows a plan: it is asked again, after it was told the fits
    of its last proposals, until an iteration is full, and the search lasts until it has no more proposals.
    """

    def ask(self, n: int) -> list[Proposal]:
        """About n proposals, possibly with duplicates; an empty list if none are left."""
        ...

    def tell(self, population: Population) -> None:
        """Updates the proposer with all candidates so far."""
        ...


def propose(language: Language, derivation: Derivation, origin: str) -> Proposal | None:
    """The proposal of the derivation; None if the derivation gives no usable equation.

    The bits are those of the structure; without a dictionary of summands, those of the derivation.
    """
    skeleton = language.skeleton(derivation)
    if skeleton is None:
        return None
    return priced(
        Proposal(skeleton, bits(language.grammar, derivation, language.allowed), derivation, origin), language
    )


def priced(proposal: Proposal, language: Language | SystemLanguage | None) -> Proposal:
    """The proposal at the price of the language, as far as it can say it."""
    price = math.inf if language is None else language.price(proposal.skeleton)
    return replace(proposal, bits=price) if math.isfinite(price) else proposal


class MonteCarloProposer:
    """Independent samples of the weighted grammar of each language."""

    def __init__(self, languages: Sequence[Language], seed: int = 0):
        self._languages = tuple(languages)
        self._rng = np.random.default_rng([seed, 1])

    def ask(self, n: int) -> list[Proposal]:
        """About n new samples."""
        share = -(-n // len(self._languages))
        proposals = []
        for language in self._languages:
            draws = sample(language.grammar, self._rng, share, language.allowed, max_order=language.max_order)
            proposals += [propose(language, derivation, "monte carlo") for derivation in draws]
        return [p for p in proposals if p is not None]

    def tell(self, population: Population) -> None:
        """Does nothing: the proposals do not depend on the population."""


class EnumerationProposer:
    """Structures in order of increasing bits, the languages merged."""

    def __init__(self, languages: Sequence[Language]):
        self._streams: list[tuple[Language, Iterator[tuple[float, Derivation]]]] = [
            (language, enumerate_derivations(language.grammar, _MOST_BITS, allowed=language.allowed))
            for language in languages
        ]
        self._heads = [next(stream, None) for _, stream in self._streams]

    def ask(self, n: int) -> list[Proposal]:
        """The next n derivations that give an equation."""
        proposals: list[Proposal] = []
        while len(proposals) < n:
            open_streams = [i for i, head in enumerate(self._heads) if head is not None]
            if not open_streams:
                break
            i = min(open_streams, key=lambda i: self._heads[i][0])  # type: ignore[index]
            language, stream = self._streams[i]
            proposal = propose(language, self._heads[i][1], "enumeration")  # type: ignore[index]
            self._heads[i] = next(stream, None)
            if proposal is not None:
                proposals.append(proposal)
        return proposals

    def tell(self, population: Population) -> None:
        """Does nothing: the proposals do not depend on the population."""


class PlainProposer:
    """The full linear equation with all inputs, and the one with all products of the state too, of each language."""

    def __init__(self, languages: Sequence[Language]):
        self.waiting = [p for language in languages for p in _plain(language)]

    def ask(self, n: int) -> list[Proposal]:
        """All of them, once."""
        proposals, self.waiting = self.waiting, []
        return proposals

    def tell(self, population: Population) -> None:
        """Does nothing: the proposals do not depend on the population."""


def _plain(language: Language) -> Iterator[Proposal]:
    frame = language.frame
    linear = (*(v.symbol for v in frame.variables), *frame.input_symbols, ONE)
    state = Variable(frame.names[0]).symbol
    for terms in (linear, (*linear, power(state, number(2)))):
        right, _ = canonical(add(*(mul(constant(i), term) for i, term in enumerate(terms))))
        skeleton = numbered(frame, ((frame.highest[0].symbol, right),))
        derivation = language.encoding(skeleton).derivation if language.grammar.summand else None
        proposal = None if derivation is None else propose(language, derivation, "plain")
        if proposal is not None:
            yield proposal


_ELITE = 50  # candidates that are varied
_ELITE_DECAY = 4.0  # candidates are drawn by rank; the mean rank is that of the elite divided by this
_FRESH = 0.2  # share of the proposals sampled from the grammar
_SECOND_MOVE = 0.3  # share of the variations with two moves
_MOVES = {"replace": 0.3, "add": 0.25, "drop": 0.15, "cross": 0.15, "header": 0.15}


class EvolutionProposer:
    """Variations of the best candidates (a summand replaced, added, dropped or exchanged), and new samples."""

    def __init__(self, languages: Sequence[Language], seed: int = 0):
        self._languages = {language.frame: language for language in languages}
        self._rng = np.random.default_rng([seed, 2])
        weights = np.array(list(_MOVES.values()))
        self._chances = weights / weights.sum()
        self._monte_carlo = MonteCarloProposer(languages, seed)
        self._parents: list[tuple[Language, Blocks]] = []
        self._blocks_of: dict[Derivation, Blocks] = {}
        self._pool: dict[Frame, list[tuple[int, ...]]] = {}

    def tell(self, population: Population) -> None:
        """Takes the best candidates as parents."""
        self._parents = []
        for candidate in population.best(_ELITE):
            language, derivation = self._languages[candidate.skeleton.frame], candidate.proposal.derivation
            if derivation is not None:
                if derivation not in self._blocks_of:
                    self._blocks_of[derivation] = split(language.grammar, derivation)
                self._parents.append((language, self._blocks_of[derivation]))

    def ask(self, n: int) -> list[Proposal]:
        """About n proposals, a share of them new samples."""
        if not self._parents:
            return self._monte_carlo.ask(n)
        fresh = int(_FRESH * n)
        proposals = self._monte_carlo.ask(fresh)
        for _ in range(n - fresh):
            rank = min(int(self._rng.exponential(len(self._parents) / _ELITE_DECAY)), len(self._parents) - 1)
            language, blocks = self._parents[rank]
            proposal = propose(language, self._vary(language, blocks), "evolution")
            if proposal is not None:
                proposals.append(proposal)
        return proposals

    def _vary(self, language: Language, blocks: Blocks) -> Derivation:
        """The parent after one or two moves; a move that makes it too long for the grammar is skipped."""
        for _ in range(1 + (self._rng.random() < _SECOND_MOVE)):
            header, summands = blocks.header, list(blocks.summands)
            move = self._rng.choice(list(_MOVES), p=self._chances)
            at = int(self._rng.integers(len(summands))) if summands else -1
            if move == "drop" and summands:
                del summands[at]
            elif move == "replace" and summands:
                summands[at] = self._summand(language)
            elif move == "cross":
                mates = [b for parent_language, b in self._parents if parent_language is language and b.summands]
                if mates:
                    donor = mates[int(self._rng.integers(len(mates)))].summands
                    summands.append(donor[int(self._rng.integers(len(donor)))])
            elif move == "header":
                header = self._blocks(language).header
            else:
                summands.append(self._summand(language))
            try:
                join(language.grammar, header, tuple(summands))
            except ValueError:
                continue
            blocks = Blocks(header, tuple(summands))
        return join(language.grammar, blocks.header, blocks.summands)

    def _blocks(self, language: Language) -> Blocks:
        draw = sample(language.grammar, self._rng, 1, language.allowed, max_order=language.max_order)[0]
        return split(language.grammar, draw)

    def _summand(self, language: Language) -> tuple[int, ...]:
        """A summand from a sample of the grammar."""
        pool = self._pool.setdefault(language.frame, [])
        while not pool:
            draws = sample(language.grammar, self._rng, _BATCH, language.allowed, max_order=language.max_order)
            pool += [s for d in draws for s in split_rules(language.grammar, d)[1]]
        return pool.pop()


class DeferredProposer:
    """A proposer that is made when it is first used, because that takes long."""

    def __init__(self, make: Callable[[], Proposer | None]):
        self._make = cache(make)

    def ask(self, n: int) -> list[Proposal]:
        """The proposals of the proposer."""
        proposer = self._make()
        return [] if proposer is None else proposer.ask(n)

    def tell(self, population: Population) -> None:
        """Updates the proposer."""
        proposer = self._make()
        if proposer is not None:
            proposer.tell(population)


class MixedProposer:
    """A mixture of proposers by their shares; if one runs short, the proposers after it fill the gap.

    None in place of a proposer means that it proposes nothing.
    """

    def __init__(self, parts: Sequence[tuple[Proposer | None, float]]):
        remaining = [sum(share for _, share in parts[i:]) for i in range(len(parts))]
        # Each share is of the proposals still missing after the proposers before; the last one fills the rest.
        usable = [(p, share / rest) for (p, share), rest in zip(parts, remaining, strict=True) if p is not None]
        self._parts = [*usable[:-1], (usable[-1][0], 1.0)]

    @property
    def in_batches(self) -> bool:
        """Whether the proposals of a part depend on the fits of its last ones."""
        return any(getattr(proposer, "in_batches", False) for proposer, _ in self._parts)

    def tell(self, population: Population) -> None:
        """Updates every proposer."""
        for proposer, _ in self._parts:
            proposer.tell(population)

    def ask(self, n: int) -> list[Proposal]:
        """About n proposals, in the order of the proposers."""
        proposals: list[Proposal] = []
        for proposer, share in self._parts:
            count = int(share * (n - len(proposals)))
            if count > 0:
                proposals += proposer.ask(count)
        return proposals
