"""Proposals that add missing terms to good equations, ranked by how much of the residual a term explains.

The residual of a fitted equation is projected on the linear response of the record to each term of the grammar (see
`sensitivity`), after the equation's own constants have been projected out. Terms to add are ranked by the share of the
residual that they explain and by their bits. Dropping or swapping a summand is ranked the same way. The ranking only
sets the order of the fits.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.equation.terms import term_of
from lgf.expression.frame import Frame
from lgf.expression.monomials import renumber
from lgf.expression.tree import ONE, Expression, is_input, summands
from lgf.fit.target import Target
from lgf.language.cheapest_derivation import cheapest
from lgf.language.language import Language
from lgf.search.candidate import Candidate, Population, Proposal
from lgf.search.proposers.basic import propose
from lgf.search.sensitivity import Linearisation, linearise
from lgf.search.term_columns import HEADER_BITS, TermColumns
from lgf.solver.program import compile_skeleton

Parts = tuple[Expression, ...]


_TRUST = 30.0  # effective number of independent samples of the residual
_BITS_WEIGHT = 2.0  # nats per bit
_PER_CANDIDATE = 60
_SWAPS = 15  # of these, most that swap the same term
_ELITE = 20
_FRONT = 5  # candidates added from the Pareto front
_RANK_WEIGHT = 2.0  # places in the queue lost per rank of the candidate


@dataclass(frozen=True)
class Move:
    """A change of an equation: its new terms and divisor, and a score (smaller is more promising)."""

    score: float
    kind: str
    parts: Parts
    divisor: Expression


def moves(candidate: Candidate, target: Target, columns: TermColumns) -> list[Move]:
    """The most promising changes of the candidate, best first."""
    linearisation = linearise(candidate, target)
    if linearisation is None:
        return []
    parts, divisor, owners = _terms_of(candidate)
    n_terms = len(columns.terms)
    bits = np.array([t.bits for t in columns.terms] + [t.bits for _, t in columns.divisors])
    comparison = Comparison(linearisation, columns)
    ranked: list[Move] = []

    def extend(others: Parts, share: np.ndarray, offset: float, kind: str, n: int) -> None:
        score = offset + _TRUST * np.log(1.0 - np.minimum(share, 0.999)) + _BITS_WEIGHT * bits
        for i in np.argsort(score, kind="stable")[: n + len(others)]:
            if i >= n_terms:
                if divisor == ONE:
                    ranked.append(Move(float(score[i]), "divide", others, columns.divisors[i - n_terms][0]))
            elif columns.terms[i].expression not in others:
                ranked.append(Move(float(score[i]), kind, (*others, columns.terms[i].expression), divisor))

    total, share = comparison.explained(list(range(len(linearisation.own))))
    extend(parts, share, 0.0, "add", _PER_CANDIDATE)
    for i, part in enumerate(parts):
        if is_input(part) or not owners[i]:
            continue
        others = parts[:i] + parts[i + 1 :]
        (constant, row), removed = owners[i][0], {row for _, row in owners[i]}
        rows = [r for r in range(len(linearisation.own)) if r not in removed]
        without, share = comparison.explained(rows, candidate.fit.values[constant], row)
        loss = _TRUST * np.log(max(without / max(total, 1e-300), 1e-9))
        cost = _BITS_WEIGHT * next((t.bits for t in columns.terms if t.expression == part), HEADER_BITS)
        ranked.append(Move(float(loss - cost), "drop", others, divisor))
        extend(others, share, float(loss - cost), "swap", _SWAPS)
    return sorted(ranked, key=lambda m: m.score)[:_PER_CANDIDATE]


class Comparison:
    """Inner products of the responses to all terms with the residual and with the candidate's own responses."""

    def __init__(self, line: Linearisation, columns: TermColumns):
        both = np.concatenate([line.own, line.residual[None]])
        squares, products = line.products(columns.programs, columns.owner, columns.values, both)
        products /= np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
        self._line, self._owner = line, columns.owner
        self._n_terms = len(columns.terms) + len(columns.divisors)
        self._with_own, self._with_residual = products[:, :-1], products[:, -1]

    def explained(self, rows: list[int], value: float = 0.0, row: int = 0) -> tuple[float, np.ndarray]:
        """(squared residual left by the candidate's own responses `rows`, share of it that each term explains).

        If a term is removed, `value` times its own response, `row`, is added back to the residual.
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
            nonzero = s > 1e-9 * max(float(s[0]), 1e-300)
            basis = basis[nonzero]
            inside = (self._with_own[:, rows] / sizes) @ (u[:, nonzero] / s[nonzero])
            known = basis @ residual
            residual, products = residual - known @ basis, products - inside @ known
            free = free - np.einsum("ck,ck->c", inside, inside)
        left = float(residual @ residual)
        gain = np.where(free > 1e-6, products**2 / np.maximum(free, 1e-6), 0.0)
        best = np.zeros(self._n_terms)
        np.maximum.at(best, self._owner, gain)
        return left, best / max(left, 1e-300)


def _terms_of(candidate: Candidate) -> tuple[Parts, Expression, list[list[tuple[int, int]]]]:
    """(terms, divisor, for each term its constants with their rows among the candidate's own responses).

    The coefficient comes first. A term without an open coefficient has an empty list: it cannot be removed.
    """
    equation = compile_skeleton(candidate.skeleton).equations[0]
    row_of = {int(c): r for r, c in enumerate([*equation.linear, *equation.nonlinear])}
    terms, divisor = _split_divisor(candidate.skeleton)
    owners = []
    for summand in terms:
        first = summand.args[0] if summand.head == "*" else summand
        inside = [n.args[0] for n in summand.nodes() if n.head == "constant"]
        owners.append([(i, row_of[i]) for i in inside] if first.head == "constant" else [])
    return tuple(term_of(summand) for summand in terms), divisor, owners


def _split_divisor(skeleton: Skeleton) -> tuple[Parts, Expression]:
    """(summands, divisor) of the right side; the divisor is 1 unless the right side is (sum)/(divisor)."""
    divisor, body = ONE, skeleton.right
    if body.head == "*" and len(body.args) == 2 and body.args[0].head == "+" and body.args[1].head == "^":
        body, below = body.args
        divisor = renumber(below.args[0], [0.0] * skeleton.n_constants)[0]
    return summands(body), divisor


class MissingTermProposer:
    """Changes of the best candidates, the most promising first; changes of better candidates come earlier."""

    def __init__(self, languages: Sequence[Language], targets: Mapping[Frame, Target]):
        self._languages = {language.frame: language for language in languages}
        self._targets = targets
        self._columns: dict[Frame, TermColumns] = {}  # made when first used, after the first equations are fitted
        self._moves: dict[str, list[Move]] = {}
        self._best: list[Candidate] = []  # whose changes are proposed
        self._opened = 0  # the first ones, whose changes are in the queue
        self._queue: list[tuple[float, int, int, Frame, Move]] = []  # (priority, rank, place, frame, move)
        self._known: set[str] = set()  # structures of the population
        self._made: set[tuple[frozenset[Expression], Expression]] = set()

    def _columns_of(self, frame: Frame) -> TermColumns:
        if frame not in self._columns:
            self._columns[frame] = TermColumns(self._languages[frame], self._targets[frame])
        return self._columns[frame]

    def tell(self, population: Population) -> None:
        """Takes the best candidates of the population, and those of its front."""
        for candidate in population:
            if candidate.skeleton.structure not in self._known:
                self._known.add(candidate.skeleton.structure)
                terms, divisor = _split_divisor(candidate.skeleton)
                self._made.add((frozenset(map(term_of, terms)), divisor))
        front = sorted(population.front(), key=lambda c: c.objective)
        self._best = [*population.best(_ELITE), *front[:_FRONT]]
        self._opened, self._queue = 0, []

    def ask(self, n: int) -> list[Proposal]:
        """The n most promising changes not proposed before."""
        proposals: list[Proposal] = []
        while len(proposals) < n:
            self._open()
            if not self._queue:
                break
            *_, frame, move = heapq.heappop(self._queue)
            key = (frozenset(move.parts), move.divisor)
            if key in self._made:
                continue
            self._made.add(key)
            proposal = self._proposal(self._languages[frame], move)
            if proposal is not None:
                proposals.append(proposal)
        return proposals

    def _open(self) -> None:
        """Puts the changes of further candidates into the queue, as long as one of them could be the next.

        Ranking the changes of a candidate takes longer than fitting it, and few candidates are reached.
        """
        while self._opened < len(self._best) and (not self._queue or self._queue[0][0] > _RANK_WEIGHT * self._opened):
            rank, candidate = self._opened, self._best[self._opened]
            structure, frame = candidate.skeleton.structure, candidate.skeleton.frame
            if structure not in self._moves:
                self._moves[structure] = moves(candidate, self._targets[frame], self._columns_of(frame))
            for place, move in enumerate(self._moves[structure]):
                heapq.heappush(self._queue, (place + _RANK_WEIGHT * rank, rank, place, frame, move))
            self._opened += 1

    def _proposal(self, language: Language, move: Move) -> Proposal | None:
        derived = cheapest(language.grammar, language.allowed, language.sentence_parts(move.parts), move.divisor)
        return None if derived is None else propose(language, derived[1], f"missing: {move.kind}")
