"""What is missing from a good equation, given its residual: terms ranked by how much of the residual they explain.

The residual of a fitted equation is projected on the linear answers of the record to every term that the grammar can
say (see `response`), after the equation's own constants have been projected out. The share of the residual that a term
explains, against the bits that it costs, ranks the terms to add; taking a summand out, or another one in for it, is
judged the same way. The ranking says what to try first; what a change is worth the fit decides.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lgf.discovery.candidate import Candidate, Population, Proposal
from lgf.discovery.encoding import cheapest, header_parts
from lgf.discovery.language import Language, term_of
from lgf.discovery.proposing import propose
from lgf.discovery.response import Linearisation, linearise
from lgf.discovery.starting import choices
from lgf.discovery.target import Target
from lgf.discovery.terms import term_dictionary
from lgf.ode.expression import ONE, Expression, F, symbol
from lgf.ode.kernels.machine import BLOCK, evaluate_each
from lgf.ode.program import Program, compile_expression, compile_skeleton, role_of
from lgf.ode.skeleton import Skeleton
from lgf.ode.terms import n_constants, renumber

Parts = tuple[Expression, ...]


@dataclass(frozen=True)
class MissingSettings:
    """How terms are ranked."""

    n_terms: int = 500  # the cheapest of the dictionary
    n_values: int = 8  # tried for a constant inside a term, times three for a single one
    trust: float = 30.0  # how many independent samples the share of an explained residual is worth
    bits_weight: float = 2.0  # nats per bit
    per_candidate: int = 60
    elite: int = 20
    looked_at: int = 6  # candidates whose changes are ranked anew, each time


@dataclass(frozen=True, eq=False)
class _Term:
    expression: Expression
    bits: float
    program: Program
    values: np.ndarray  # [v, constants inside]


@dataclass(frozen=True)
class Move:
    """A change of an equation: the terms it leads to, over a divisor, and its score (smaller is more promising)."""

    score: float
    kind: str
    parts: Parts
    divisor: Expression


class Vocabulary:
    """The terms that a language can say, ready to be evaluated along a trajectory; divisors as terms of u^(n)."""

    def __init__(self, language: Language, target: Target, settings: MissingSettings = MissingSettings()):
        self._order = target.order
        grammar, allowed = language.grammar, language.allowed
        costs: dict[Expression, float] = {}
        headers = header_parts(grammar, allowed)
        for term in term_dictionary(grammar, allowed).terms[: settings.n_terms]:
            costs.setdefault(term.parts[0], term.bits)
        plain_cost, plain_parts = headers.get(ONE, (0.0, frozenset()))
        for part in sorted(plain_parts):
            costs[part] = min(costs.get(part, np.inf), 3.0)
        costs.pop(F, None)
        costs.pop(symbol("u", target.order), None)
        self.terms = tuple(_prepare(e, bits, target, settings.n_values) for e, bits in costs.items())
        # u^(n) * (1 + C*h) = E is u^(n) = E - C*h*u^(n): a divisor is missing where that term is.
        self.divisors: tuple[tuple[Expression, _Term], ...] = tuple(
            (divisor, _prepare(h * symbol("u", target.order), max(cost - plain_cost, 0.0), target, settings.n_values))
            for divisor, (cost, _) in headers.items()
            if (h := _varying_part(divisor)) is not None
        )

        self._programs = _together([*self.terms, *(term for _, term in self.divisors)])

    def columns(self, line: Linearisation) -> tuple[np.ndarray, np.ndarray]:
        """(columns [block, N, BLOCK] of terms, then divisors, along the trajectory; the owner [c] of each).

        A column that is undefined somewhere, or that fills up the last block, is zero.
        """
        out = np.zeros((-(-len(self._programs.owner) // BLOCK), len(line.t), BLOCK))
        code, first, literals, literal_first, outputs, n_registers, owner, p, values = self._programs
        evaluate_each(
            code, first, literals, literal_first, outputs, n_registers, self._order, owner, p, values,
            line.t, line.states, line.forcing, 1e12, out,
        )  # fmt: skip
        return out, owner


class _Programs(NamedTuple):
    """The programs of many terms end to end, as `evaluate_each` takes them."""

    code: np.ndarray
    code_first: np.ndarray
    literals: np.ndarray
    literal_first: np.ndarray
    outputs: np.ndarray
    n_registers: int
    owner: np.ndarray  # [row] which term
    p: np.ndarray  # [term] how many constants
    values: np.ndarray  # [row, constants]


def _together(terms: Sequence[_Term]) -> _Programs:
    programs = [term.program for term in terms]
    p = np.array([term.values.shape[1] for term in terms], np.int64)
    rows = [len(term.values) for term in terms]
    values = np.zeros((sum(rows), max(p, default=0)))
    for begin, term in zip(np.cumsum([0, *rows]).tolist(), terms, strict=False):
        values[begin : begin + len(term.values), : term.values.shape[1]] = term.values
    return _Programs(
        np.concatenate([program.code for program in programs]),
        np.cumsum([0, *(len(program.code) for program in programs)]),
        np.concatenate([program.literals for program in programs]),
        np.cumsum([0, *(len(program.literals) for program in programs)]),
        np.concatenate([program.outputs[:1] for program in programs]),
        max(program.n_registers for program in programs),
        np.repeat(np.arange(len(terms)), rows),
        p,
        values,
    )


def _prepare(expression: Expression, bits: float, target: Target, n_values: int) -> _Term:
    count = n_constants(expression)
    if count == 0:
        values = np.zeros((1, 0))
    else:
        lists = [choices(role_of(expression, i), target, 3 * n_values) for i in range(count)]
        if count == 1:
            values = lists[0][:: max(1, len(lists[0]) // (3 * n_values)), None]
        else:
            rng = np.random.default_rng(0)
            values = np.array([[rng.choice(v) for v in lists] for _ in range(2 * n_values)])
    program = compile_expression(expression, target.order, count)
    return _Term(expression, bits, program, np.ascontiguousarray(values))


def _varying_part(divisor: Expression) -> Expression | None:
    """H of a divisor 1 + C*h; None for divisors of another form."""
    if divisor.head != "+" or len(divisor.args) != 2:
        return None
    parts = [p for p in divisor.args if p.head == "*" and p.args[0].head == "constant"]
    if len(parts) != 1 or not any(p == ONE for p in divisor.args) or n_constants(parts[0]) != 1:
        return None
    factors = parts[0].args[1:]
    return factors[0] if len(factors) == 1 else None


def moves(candidate: Candidate, target: Target, vocabulary: Vocabulary, settings: MissingSettings) -> list[Move]:
    """The most promising changes of the candidate, best first."""
    line = linearise(candidate, target)
    if line is None:
        return []
    parts, divisor, owners = _state(candidate)
    n_terms = len(vocabulary.terms)
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
        if part == F or not owners[i]:
            continue
        kept = parts[:i] + parts[i + 1 :]
        (constant, row), taken = owners[i][0], {row for _, row in owners[i]}
        rows = [r for r in range(len(line.own)) if r not in taken]
        larger, share = comparison.explained(rows, candidate.fit.values[constant], row)
        loss = settings.trust * np.log(max(larger / max(total, 1e-300), 1e-9))
        cost = settings.bits_weight * next((t.bits for t in vocabulary.terms if t.expression == part), 3.0)
        found.append(Move(float(loss - cost), "drop", kept, divisor))
        extend(kept, share, float(loss - cost), "swap", settings.per_candidate // 4)
    return sorted(found, key=lambda m: m.score)[: settings.per_candidate]


class Comparison:
    """The answers to all terms beside the residual and the candidate's own answers, by their products alone."""

    def __init__(self, line: Linearisation, columns: np.ndarray, owner: np.ndarray, n_terms: int):
        answers = line.answers(columns)
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
    compiled = compile_skeleton(candidate.skeleton)
    row_of = {int(c): r for r, c in enumerate([*compiled.linear, *compiled.nonlinear])}
    summands, divisor = _taken_apart(candidate.skeleton)
    owners = []
    for summand in summands:
        first = summand.args[0] if summand.head == "*" else summand
        inside = [n.args[0] for n in summand.nodes() if n.head == "constant"]
        owners.append([(i, row_of[i]) for i in inside] if first.head == "constant" else [])
    return tuple(term_of(summand) for summand in summands), divisor, owners


def _taken_apart(skeleton: Skeleton) -> tuple[Parts, Expression]:
    """(summands, divisor); a common divisor is taken apart only if the right side is (sum)/(divisor)."""
    divisor, body = ONE, skeleton.right
    if body.head == "*" and len(body.args) == 2 and body.args[0].head == "+" and body.args[1].head == "^":
        body, below = body.args
        divisor = renumber(below.args[0], [0.0] * skeleton.n_constants)[0]
    return (body.args if body.head == "+" else (body,)), divisor


class MissingTermProposer:
    """Changes of the best candidates, the most promising first; better candidates have their say earlier."""

    def __init__(
        self,
        languages: Sequence[Language],
        targets: Mapping[int, Target],
        settings: MissingSettings = MissingSettings(),
    ):
        self._languages = {language.order: language for language in languages}
        self._targets = targets
        self._settings = settings
        self._vocabularies = {o: Vocabulary(language, targets[o], settings) for o, language in self._languages.items()}
        self._moves: dict[str, list[Move]] = {}
        self._queue: list[tuple[float, int, int, Move]] = []  # (priority, number, order, move)
        self._known: set[str] = set()  # structures of the population, whose terms count as proposed
        self._made: set[tuple[frozenset[Expression], Expression]] = set()

    def tell(self, population: Population) -> None:
        """Rank the changes of candidates not looked at before, and queue them anew by today's ranking."""
        self._queue = []
        for candidate in population:
            if candidate.skeleton.structure not in self._known:
                self._known.add(candidate.skeleton.structure)
                summands, divisor = _taken_apart(candidate.skeleton)
                self._made.add((frozenset(map(term_of, summands)), divisor))
        number = looked_at = 0
        front = sorted(population.front(), key=lambda c: c.objective)[: self._settings.elite // 4]
        for rank, candidate in enumerate([*population.best(self._settings.elite), *front]):
            structure, order = candidate.skeleton.structure, candidate.skeleton.order
            if structure not in self._moves:
                if looked_at == self._settings.looked_at:
                    continue
                looked_at += 1
                self._moves[structure] = moves(
                    candidate, self._targets[order], self._vocabularies[order], self._settings
                )
            for place, move in enumerate(self._moves[structure]):
                heapq.heappush(self._queue, (place + 2.0 * rank, number, order, move))
                number += 1

    def ask(self, n: int) -> list[Proposal]:
        """The n most promising changes that were not proposed before."""
        found: list[Proposal] = []
        while self._queue and len(found) < n:
            _, _, order, move = heapq.heappop(self._queue)
            key = (frozenset(move.parts), move.divisor)
            if key in self._made:
                continue
            self._made.add(key)
            proposal = self._proposal(self._languages[order], move)
            if proposal is not None:
                found.append(proposal)
        return found

    def _proposal(self, language: Language, move: Move) -> Proposal | None:
        said = cheapest(language.grammar, language.allowed, language.sentence_parts(move.parts), move.divisor)
        return None if said is None else propose(language, said[1], f"missing: {move.kind}")
