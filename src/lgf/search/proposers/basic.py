"""Proposers: where the skeletons come from. ask(n) gives proposals, tell(population) lets the proposer learn.

The three here know the weighted grammar only: Monte Carlo draws from it, enumeration lists it from the most probable
structure on, evolution varies the summands of what fitted well. The guided flow stands behind the same protocol.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lgf.errors import LgfError
from lgf.expression.frame import Frame
from lgf.grammar import Blocks, Derivation, enumerate_derivations, join, sample, split
from lgf.language.language import Language
from lgf.search.candidate import Population, Proposal
from lgf.settings.ranges import Count, Positive, Share, Weight

_BATCH = 64


class Proposer(Protocol):
    """Anything that proposes skeletons."""

    def ask(self, n: int) -> list[Proposal]:
        """About n proposals, duplicates among them allowed; an empty list means that there is nothing left."""
        ...

    def tell(self, population: Population) -> None:
        """Take note of everything evaluated so far."""
        ...


def propose(language: Language, derivation: Derivation, origin: str) -> Proposal | None:
    """The proposal that the derivation stands for, or None if it says no usable equation."""
    skeleton = language.skeleton(derivation)
    if skeleton is None:
        return None
    return Proposal(skeleton, language.bits(derivation), derivation, origin)


class MonteCarloProposer:
    """Independent draws from the weighted grammar, in turn from each language."""

    def __init__(self, languages: Sequence[Language], seed: int = 0):
        self._languages = tuple(languages)
        self._rng = np.random.default_rng([seed, 1])

    def ask(self, n: int) -> list[Proposal]:
        """About n fresh draws."""
        share = -(-n // len(self._languages))
        found = []
        for language in self._languages:
            draws = sample(language.grammar, self._rng, share, language.allowed, max_order=language.max_order)
            found += [propose(language, derivation, "monte carlo") for derivation in draws]
        return [p for p in found if p is not None]

    def tell(self, population: Population) -> None:
        """Nothing to learn."""


class EnumerationProposer:
    """Structures in order of increasing bits, the languages merged."""

    def __init__(self, languages: Sequence[Language], max_bits: float = 24.0):
        self._streams: list[tuple[Language, Iterator[tuple[float, Derivation]]]] = [
            (language, enumerate_derivations(language.grammar, max_bits, allowed=language.allowed))
            for language in languages
        ]
        self._heads = [next(stream, None) for _, stream in self._streams]

    def ask(self, n: int) -> list[Proposal]:
        """The next n derivations that say an equation."""
        found: list[Proposal] = []
        while len(found) < n:
            live = [i for i, head in enumerate(self._heads) if head is not None]
            if not live:
                break
            i = min(live, key=lambda i: self._heads[i][0])  # type: ignore[index]
            language, stream = self._streams[i]
            proposal = propose(language, self._heads[i][1], "enumeration")  # type: ignore[index]
            self._heads[i] = next(stream, None)
            if proposal is not None:
                found.append(proposal)
        return found

    def tell(self, population: Population) -> None:
        """Nothing to learn."""


@dataclass(frozen=True)
class EvolutionSettings:
    """How candidates are varied; the moves have weights relative to each other."""

    elite: Count = 50  # candidates that are varied
    elite_decay: Positive = 4.0  # they are drawn by rank, with a mean rank of the elite over this
    fresh: Share = 0.2  # share of the proposals that are drawn from the grammar
    second_move: Share = 0.3  # share of the variations that are two moves away
    replace: Weight = 0.3
    add: Weight = 0.25
    drop: Weight = 0.15
    cross: Weight = 0.15
    header: Weight = 0.15

    def __post_init__(self):
        if not sum(self.moves.values()) > 0:
            raise LgfError("every move of the evolution has weight 0; give one of them a positive weight.")

    @property
    def moves(self) -> dict[str, float]:
        """The weight of each move."""
        return {name: getattr(self, name) for name in ("replace", "add", "drop", "cross", "header")}


class EvolutionProposer:
    """Variations of the best candidates: a summand replaced, added, dropped, or taken from another; fresh draws too."""

    def __init__(self, languages: Sequence[Language], seed: int = 0, settings: EvolutionSettings = EvolutionSettings()):
        self._languages = {language.frame: language for language in languages}
        self._rng = np.random.default_rng([seed, 2])
        self._settings = settings
        weights = np.array(list(settings.moves.values()))
        self._moves, self._chances = list(settings.moves), weights / weights.sum()
        self._monte_carlo = MonteCarloProposer(languages, seed)
        self._parents: list[tuple[Language, Blocks]] = []
        self._pool: dict[Frame, list[tuple[int, ...]]] = {}

    def tell(self, population: Population) -> None:
        """Take the best candidates as parents."""
        self._parents = []
        for candidate in population.best(self._settings.elite):
            language = self._languages[candidate.skeleton.frame]
            if candidate.proposal.derivation is not None:
                self._parents.append((language, split(language.grammar, candidate.proposal.derivation)))

    def ask(self, n: int) -> list[Proposal]:
        """About n proposals, of which a share is fresh."""
        if not self._parents:
            return self._monte_carlo.ask(n)
        fresh = int(self._settings.fresh * n)
        found = self._monte_carlo.ask(fresh)
        for _ in range(n - fresh):
            rank = min(
                int(self._rng.exponential(len(self._parents) / self._settings.elite_decay)), len(self._parents) - 1
            )
            language, blocks = self._parents[rank]
            proposal = propose(language, self._vary(language, blocks), "evolution")
            if proposal is not None:
                found.append(proposal)
        return found

    def _vary(self, language: Language, blocks: Blocks) -> Derivation:
        """One or two moves away from the parent; a move that the grammar has no room for leaves it as it is."""
        for _ in range(1 + (self._rng.random() < self._settings.second_move)):
            header, summands = blocks.header, list(blocks.summands)
            move = self._rng.choice(self._moves, p=self._chances)
            at = int(self._rng.integers(len(summands))) if summands else -1
            if move == "drop" and summands:
                del summands[at]
            elif move == "replace" and summands:
                summands[at] = self._summand(language)
            elif move == "cross":
                others = [b for other, b in self._parents if other is language and b.summands]
                if others:
                    other = others[int(self._rng.integers(len(others)))].summands
                    summands.append(other[int(self._rng.integers(len(other)))])
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
        """A fresh summand as it occurs in draws from the grammar."""
        pool = self._pool.setdefault(language.frame, [])
        while not pool:
            draws = sample(language.grammar, self._rng, _BATCH, language.allowed, max_order=language.max_order)
            pool += [s for d in draws for s in split(language.grammar, d).summands]
        return pool.pop()


class MixedProposer:
    """Proposers side by side, each with a share; what one cannot give, those after it do.

    None in place of a proposer stands for one that gives nothing.
    """

    def __init__(self, parts: Sequence[tuple[Proposer | None, float]]):
        left = [sum(share for _, share in parts[i:]) for i in range(len(parts))]
        # Each is asked for its share of what those before it left, the last one for all of it.
        able = [(p, share / rest) for (p, share), rest in zip(parts, left, strict=True) if p is not None]
        self._parts = [*able[:-1], (able[-1][0], 1.0)]

    def tell(self, population: Population) -> None:
        """All learn."""
        for proposer, _ in self._parts:
            proposer.tell(population)

    def ask(self, n: int) -> list[Proposal]:
        """About n proposals, in the order of the proposers."""
        proposals: list[Proposal] = []
        for proposer, share in self._parts:
            wanted = int(share * (n - len(proposals)))
            if wanted > 0:
                proposals += proposer.ask(wanted)
        return proposals
