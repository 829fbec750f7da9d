"""What is missing from a good equation, given its residual: terms ranked by how much of the residual they explain.

The residual of a fitted equation is projected on the linear responses of the record to every term that the grammar can
say (see `sensitivity`), after the equation's own constants have been projected out. The share of the residual that a
term explains, against the bits that it costs, ranks the terms to add. Dropping or swapping a summand is ranked the same
way. The ranking decides what is fitted first; the fit decides what is better.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.expression.frame import Frame
from lgf.expression.monomials import renumber
from lgf.expression.tree import ONE, Expression, is_input, summands
from lgf.fit.target import Target
from lgf.language.cheapest_derivation import cheapest
from lgf.language.language import Language, term_of
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.proposers.basic import propose
from lgf.search.sensitivity import Linearisation, linearise
from lgf.search.term_columns import Vocabulary, VocabularySettings
from lgf.settings.ranges import Count, Share, Weight
from lgf.solver.program import compile_skeleton

Parts = tuple[Expression, ...]


@dataclass(frozen=True)
class MissingSettings:
    """How terms are ranked."""

    vocabulary: VocabularySettings = VocabularySettings()
    trust: Weight = 30.0  # how many independent samples the share of an explained residual is worth
    bits_weight: Weight = 2.0  # nats per bit
    per_candidate: Count = 60
    swap_share: Share = 0.25  # of these, most that exchange one and the same term
    elite: Count = 20
    front_share: Share = 0.25  # so many more, relative to the elite, of the Pareto front
    rank_weight: Weight = 2.0  # places in the queue that a candidate's rank costs its changes
    looked_at: Count = 6  # candidates whose changes are ranked anew, each time


@dataclass(frozen=True)
class Move:
    """A change of an equation: the terms it leads to, over a divisor, and its score (smaller is more promising)."""

    score: float
    kind: str
    parts: Parts
    divisor: Expression


def moves(candidate: Candidate, target: Target, vocabulary: Vocabulary, settings: MissingSettings) -> list[Move]:
    """The most promising changes of the candidate, best first."""
    line = linearise(candidate, target)
    if line is None:
        return []
    parts, divisor, owners = _state(candidate)
    n_terms, unlisted = len(vocabulary.terms), settings.vocabulary.header_bits
    bits = np.array([t.bits for t in vocabulary.terms] + [t.bits for _, t in vocabulary.divisors])
    comparison = Comparison(line, *vocabulary.columns(line), len(bits))
    found: list[Move] = []

    def extend(kept: Parts, share: np.ndarray, offset: float, kind: str, n: int) -> None:
        score = offset + settings.trust * np.log(1.0 - np.minimum(share, 0.999)) + settings.bits_weight * bits
        for i in np.argsort(score, kind="stable")[: n + len(kept)]:
            if i >= n_terms:
                if divisor == ONE:
                    found.append(Move(float(score[i]), "divide", kept, vocabulary.divisors[i - n_terms][0]))
            elif vocabulary.terms[i].expression not in kept:
                found.append(Move(float(score[i]), kind, (*kept, vocabulary.terms[i].expression), divisor))

    total, share = comparison.explained(list(range(len(line.own))))
    extend(parts, share, 0.0, "add", settings.per_candidate)
    for i, part in enumerate(parts):
        if is_input(part) or not owners[i]:
            continue
        kept = parts[:i] + parts[i + 1 :]
        (constant, row), taken = owners[i][0], {row for _, row in owners[i]}
        rows = [r for r in range(len(line.own)) if r not in taken]
        larger, share = comparison.explained(rows, candidate.fit.values[constant], row)
        loss = settings.trust * np.log(max(larger / max(total, 1e-300), 1e-9))
        cost = settings.bits_weight * next((t.bits for t in vocabulary.terms if t.expression == part), unlisted)
        found.append(Move(float(loss - cost), "drop", kept, divisor))
        extend(kept, share, float(loss - cost), "swap", int(settings.swap_share * settings.per_candidate))
    return sorted(found, key=lambda m: m.score)[: settings.per_candidate]


class Comparison:
    """The answers to all terms beside the residual and the candidate's own answers, by their products alone."""

    def __init__(self, line: Linearisation, columns: np.ndarray, owner: np.ndarray, n_terms: int):
        answers = line.responses(columns)
        squares = np.einsum("brk,brk->bk", answers, answers).ravel()[: len(owner)]
        scale = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))
        products = np.concatenate([line.own, line.residual[None]]) @ answers  # [block, own and residual, BLOCK]
        products = products.swapaxes(1, 2).reshape(-1, len(line.own) + 1)[: len(owner)] * scale[:, None]
        self._line, self._owner, self._n_terms = line, owner, n_terms
        self._with_own, self._with_residual = products[:, :-1], products[:, -1]

    def explained(self, rows: list[int], value: float = 0.0, row: int = 0) -> tuple[float, np.ndarray]:
        """(what the own answers of these rows leave of the residual, the share of it that each term explains).

        A term taken out gives `value` times its answer, the own one of `row`, back to the residual.
        """
        line = self._line
        residual, products = line.residual, self._with_residual
        if value:
            residual, products = residual + value * line.own[row], products + value * self._with_own[:, row]
        inside, free = np.zeros((len(products), 0)), np.ones(len(products))
        if rows:
            own = line.own[rows]
            sizes = np.linalg.norm(own, axis=1)
            sizes[sizes == 0.0] = 1.0
            u, s, basis = np.linalg.svd(own / sizes[:, None], full_matrices=False)
            sound = s > 1e-9 * max(float(s[0]), 1e-300)
            basis = basis[sound]
            inside = (self._with_own[:, rows] / sizes) @ (u[:, sound] / s[sound])
            known = basis @ residual
            residual, products = residual - known @ basis, products - inside @ known
            free = free - np.einsum("ck,ck->c", inside, inside)
        left = float(residual @ residual)
        gain = np.where(free > 1e-6, products**2 / np.maximum(free, 1e-6), 0.0)
        best = np.zeros(self._n_terms)
        np.maximum.at(best, self._owner, gain)
        return left, best / max(left, 1e-300)


def _state(candidate: Candidate) -> tuple[Parts, Expression, list[list[tuple[int, int]]]]:
    """(terms, divisor, for each term its constants with their rows among the candidate's own answers).

    The coefficient comes first; a term without an open coefficient has no constants to take out.
    """
    equation = compile_skeleton(candidate.skeleton).equations[0]
    row_of = {int(c): r for r, c in enumerate([*equation.linear, *equation.nonlinear])}
    terms, divisor = _taken_apart(candidate.skeleton)
    owners = []
    for summand in terms:
        first = summand.args[0] if summand.head == "*" else summand
        inside = [n.args[0] for n in summand.nodes() if n.head == "constant"]
        owners.append([(i, row_of[i]) for i in inside] if first.head == "constant" else [])
    return tuple(term_of(summand) for summand in terms), divisor, owners


def _taken_apart(skeleton: Skeleton) -> tuple[Parts, Expression]:
    """(summands, divisor); a common divisor is taken apart only if the right side is (sum)/(divisor)."""
    divisor, body = ONE, skeleton.right
    if body.head == "*" and len(body.args) == 2 and body.args[0].head == "+" and body.args[1].head == "^":
        body, below = body.args
        divisor = renumber(below.args[0], [0.0] * skeleton.n_constants)[0]
    return summands(body), divisor


class MissingTermProposer:
    """Changes of the best candidates, the most promising first; better candidates have their say earlier."""

    def __init__(
        self,
        languages: Sequence[Language],
        targets: Mapping[Frame, Target],
        settings: MissingSettings = MissingSettings(),
    ):
        self._languages = {language.frame: language for language in languages}
        self._targets = targets
        self._settings = settings
        self._vocabularies = {
            o: Vocabulary(language, targets[o], settings.vocabulary) for o, language in self._languages.items()
        }
        self._moves: dict[str, list[Move]] = {}
        self._queue: list[tuple[float, int, Frame, Move]] = []  # (priority, number, frame, move)
        self._known: set[str] = set()  # structures of the population, whose terms count as proposed
        self._made: set[tuple[frozenset[Expression], Expression]] = set()

    def tell(self, population: Population) -> None:
        """Rank the changes of candidates not looked at before, and queue them anew by today's ranking."""
        self._queue = []
        for candidate in population:
            if candidate.skeleton.structure not in self._known:
                self._known.add(candidate.skeleton.structure)
                terms, divisor = _taken_apart(candidate.skeleton)
                self._made.add((frozenset(map(term_of, terms)), divisor))
        number = looked_at = 0
        front = sorted(population.front(), key=lambda c: c.objective)[
            : int(self._settings.front_share * self._settings.elite)
        ]
        for rank, candidate in enumerate([*population.best(self._settings.elite), *front]):
            structure, frame = candidate.skeleton.structure, candidate.skeleton.frame
            if structure not in self._moves:
                if looked_at == self._settings.looked_at:
                    continue
                looked_at += 1
                self._moves[structure] = moves(
                    candidate, self._targets[frame], self._vocabularies[frame], self._settings
                )
            for place, move in enumerate(self._moves[structure]):
                heapq.heappush(self._queue, (place + self._settings.rank_weight * rank, number, frame, move))
                number += 1

    def ask(self, n: int) -> list[Proposal]:
        """The n most promising changes that were not proposed before."""
        found: list[Proposal] = []
        while self._queue and len(found) < n:
            _, _, frame, move = heapq.heappop(self._queue)
            key = (frozenset(move.parts), move.divisor)
            if key in self._made:
                continue
            self._made.add(key)
            proposal = self._proposal(self._languages[frame], move)
            if proposal is not None:
                found.append(proposal)
        return found

    def _proposal(self, language: Language, move: Move) -> Proposal | None:
        said = cheapest(language.grammar, language.allowed, language.sentence_parts(move.parts), move.divisor)
        return None if said is None else propose(language, said[1], f"missing: {move.kind}")
