"""What is missing from a good equation, given its residual: terms ranked by how much of the residual they explain.

The residual of a fitted equation is projected on the linear answers of the record to every term that the grammar can
say (see `response`), after the equation's own constants have been projected out. The share of the residual that a term
explains, against the bits that it costs, ranks the terms to add; taking a summand out, or another one in for it, is
judged the same way. The ranking says what to try first; what a change is worth the fit decides.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from lgf.ode.kernels.machine import evaluate_many
from lgf.ode.program import Program, compile_expression, compile_skeleton, role_of
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

    def columns(self, line: Linearisation) -> tuple[np.ndarray, np.ndarray]:
        """(columns [c, N] of terms, then divisors, along the trajectory; owner [c])."""
        found, owner = [], []
        for k, term in enumerate((*self.terms, *(t for _, t in self.divisors))):
            out = np.empty((len(term.values), len(line.t)))
            program = term.program
            evaluate_many(
                program.code, program.outputs[0], program.literals, program.n_registers, self._order, term.values,
                line.t, line.states, line.forcing, out,
            )  # fmt: skip
            out = out[np.all(np.abs(out) < 1e12, axis=1)]
            found.append(out)
            owner.append(np.full(len(out), k))
        return np.concatenate(found), np.concatenate(owner)


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
    columns, owner = vocabulary.columns(line)
    answers = line.answers(columns)
    sizes = np.linalg.norm(answers, axis=1, keepdims=True)
    answers /= np.where(sizes > 0, sizes, 1.0)
    n_terms = len(vocabulary.terms)
    bits = np.array([t.bits for t in vocabulary.terms] + [t.bits for _, t in vocabulary.divisors])
    found: list[Move] = []

    def extend(kept: Parts, basis: np.ndarray, rest: np.ndarray, offset: float, kind: str, n: int) -> None:
        share = _explained(answers, owner, len(bits), basis, rest)
        score = offset + settings.trust * np.log(1.0 - np.minimum(share, 0.999)) + settings.bits_weight * bits
        for i in np.argsort(score, kind="stable")[: n + len(kept)]:
            if i >= n_terms:
                if divisor == ONE:
                    found.append(Move(float(score[i]), "divide", kept, vocabulary.divisors[i - n_terms][0]))
            elif vocabulary.terms[i].expression not in kept:
                found.append(Move(float(score[i]), kind, (*kept, vocabulary.terms[i].expression), divisor))

    basis, rest = _projected(line.own, line.residual)
    extend(parts, basis, rest, 0.0, "add", settings.per_candidate)
    total = float(rest @ rest)
    for i, part in enumerate(parts):
        if part == F or not owners[i]:
            continue
        kept = parts[:i] + parts[i + 1 :]
        linear = owners[i][0]
        without = line.residual + candidate.fit.values[linear[0]] * line.own[linear[1]]
        fewer, larger = _projected(np.delete(line.own, [row for _, row in owners[i]], axis=0), without)
        loss = settings.trust * np.log(max(float(larger @ larger) / max(total, 1e-300), 1e-9))
        cost = settings.bits_weight * next((t.bits for t in vocabulary.terms if t.expression == part), 3.0)
        found.append(Move(float(loss - cost), "drop", kept, divisor))
        extend(kept, fewer, larger, float(loss - cost), "swap", settings.per_candidate // 4)
    return sorted(found, key=lambda m: m.score)[: settings.per_candidate]


def _state(candidate: Candidate) -> tuple[Parts, Expression, list[list[tuple[int, int]]]]:
    """(terms, divisor, for each term its constants with their rows among the candidate's own answers).

    A common divisor is taken apart only if the right side is (sum)/(divisor). The coefficient comes first; a term
    without an open coefficient has no constants to take out.
    """
    compiled = compile_skeleton(candidate.skeleton)
    row_of = {int(c): r for r, c in enumerate([*compiled.linear, *compiled.nonlinear])}
    divisor, body = ONE, candidate.skeleton.right
    if body.head == "*" and len(body.args) == 2 and body.args[0].head == "+" and body.args[1].head == "^":
        body, below = body.args
        divisor = renumber(below.args[0], [0.0] * candidate.skeleton.n_constants)[0]
    parts, owners = [], []
    for summand in body.args if body.head == "+" else (body,):
        first = summand.args[0] if summand.head == "*" else summand
        inside = [n.args[0] for n in summand.nodes() if n.head == "constant"]
        owners.append([(i, row_of[i]) for i in inside] if first.head == "constant" else [])
        parts.append(term_of(summand))
    return tuple(parts), divisor, owners


def _projected(own: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(an orthonormal basis [k, row] of the own answers, what of the residual they do not explain)."""
    if len(own) == 0:
        return np.zeros((0, len(residual))), residual
    sizes = np.linalg.norm(own, axis=1, keepdims=True)
    _, s, rows = np.linalg.svd(own / np.where(sizes > 0, sizes, 1.0), full_matrices=False)
    basis = rows[s > 1e-9 * max(float(s[0]), 1e-300)]
    return basis, residual - (basis @ residual) @ basis


def _explained(answers: np.ndarray, owner: np.ndarray, n: int, basis: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """The share [n] of the residual that each term explains at its best value, the own answers projected out."""
    inside = answers @ basis.T
    free = 1.0 - np.einsum("ck,ck->c", inside, inside)
    gain = np.where(free > 1e-6, (answers @ rest) ** 2 / np.maximum(free, 1e-6), 0.0)
    best = np.zeros(n)
    np.maximum.at(best, owner, gain)
    return best / max(float(rest @ rest), 1e-300)


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
        self._made: set[tuple[frozenset[Expression], Expression]] = set()

    def tell(self, population: Population) -> None:
        """Rank the changes of candidates not looked at before, and queue them anew by today's ranking."""
        self._queue = []
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
