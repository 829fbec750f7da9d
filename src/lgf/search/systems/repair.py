"""Changes of a fitted system, ranked by coupled linear responses: terms to add to any row, to drop, to exchange."""

import math
from dataclasses import dataclass

import numpy as np

from lgf.fit.target import Target
from lgf.language.system_language import SystemLanguage
from lgf.search.candidate import Candidate
from lgf.search.sensitivity import Linearisation, linearise
from lgf.search.systems.component import Components
from lgf.search.systems.term_grid import TermGrid
from lgf.settings.ranges import Count
from lgf.solver.kernels.machine import BLOCK, evaluate_each

_NATS_PER_BIT = 2 * math.log(2)
_LEAST_LEFT = 0.05  # share of the residual that no single term is believed to explain


@dataclass(frozen=True)
class RepairSettings:
    """The number of changes that are tried."""

    candidates: Count = 3  # systems that are changed, each round
    additions: Count = 14  # of one system
    swaps: Count = 6  # terms tried in place of one term
    moves: Count = 40  # of one system, apart from drops


@dataclass(frozen=True)
class Move:
    """A changed system and how long its description is expected to become."""

    score: float
    components: Components
    kind: str


def moves(
    candidate: Candidate,
    components: Components,
    target: Target,
    language: SystemLanguage,
    terms: TermGrid,
    settings: RepairSettings = RepairSettings(),
) -> list[Move]:
    """The changes of the system: drops first, then the most promising additions and swaps."""
    changes = _drops(components)
    line = linearise(candidate, target)
    if line is None or not np.all(np.isfinite(line.own)):
        return changes
    responses = _Responses(line, terms)
    ranked = _additions(responses, components, language, terms, settings.additions)
    if candidate.skeleton.n_constants < sum(len(c.values) for c in components):
        # A tied constant has one response for all its places, so no single term can be taken out.
        return changes + sorted(ranked, key=lambda move: move.score)[: settings.moves]
    n = len(components)
    position = {constant: row for row, constant in enumerate(line.constants)}
    first = 0
    for row in range(n):
        component = components[row]
        for place, term in enumerate(component.terms):
            count = 1 + len(component.inner[place])
            own = [position[first + k] for k in range(count)]
            saved = count * math.log(responses.n_samples) + _NATS_PER_BIT * _bits(language, terms, row, term)
            without = _replaced(components, row, component.without(place))
            ranked += _additions(
                responses.without(own, own[0], component.coefficients[place]), without, language, terms,
                settings.swaps, offset=-saved, kind="swap", excluded=(row, term),
            )  # fmt: skip
            first += count
        first += len(component.others)
    return changes + sorted(ranked, key=lambda move: move.score)[: settings.moves]


def _bits(language: SystemLanguage, terms: TermGrid, row: int, term) -> float:
    place = terms.position.get(term)
    bits = math.inf if place is None else float(terms.bits[row, place])
    return bits if math.isfinite(bits) else 0.0


def _replaced(components: Components, row: int, component) -> Components:
    return (*components[:row], component, *components[row + 1 :])


def _drops(components: Components) -> list[Move]:
    found = []
    for row, component in enumerate(components):
        if len(component.terms) > 1:
            for place in range(len(component.terms)):
                found.append(Move(0.0, _replaced(components, row, component.without(place)), "drop"))
    return found


class _Responses:
    """The residual of a system and its linear responses to every term in every row, as inner products."""

    def __init__(self, line: Linearisation, terms: TermGrid):
        along = np.zeros((-(-len(terms.owner) // BLOCK), len(line.t), BLOCK))
        evaluate_each(terms.programs, terms.owner, terms.values, line.t, line.columns, line.inputs, 1e12, along)
        own = np.concatenate([line.own, line.initial])
        self.residual, self.own = line.residual, own
        self.n_samples = len(line.residual) / len(line.measured)
        n, products, squares = len(line.rates), [], []
        for row in range(n):
            responses = line.responses(along, row)
            squares.append(np.einsum("brk,brk->bk", responses, responses).ravel()[: len(terms.owner)])
            product = np.concatenate([own, line.residual[None]]) @ responses
            products.append(product.swapaxes(1, 2).reshape(-1, len(own) + 1)[: len(terms.owner)])
        self.squares = np.array(squares)  # [row, column]
        self.with_own = np.array(products)[:, :, :-1]
        self.with_residual = np.array(products)[:, :, -1]
        self.kept = [i for i in range(len(own)) if np.any(own[i])]
        self.back = np.zeros(len(own))

    def without(self, rows: list[int], row: int, value: float) -> "_Responses":
        """The same with a term of the system taken out: its responses `rows`, `value` times the response `row`."""
        other = object.__new__(_Responses)
        other.__dict__.update(self.__dict__)
        other.kept = [i for i in self.kept if i not in rows]
        other.back = self.back.copy()
        other.back[row] = value
        return other

    def gains(self) -> tuple[float, np.ndarray, np.ndarray]:
        """(squared residual, its fall [row, column] if a column is added to a row, the column's coefficient)."""
        residual = self.residual + self.back @ self.own
        with_residual = self.with_residual + self.with_own @ self.back
        own = self.own[self.kept]
        sizes = np.linalg.norm(own, axis=1)
        u, s, basis = np.linalg.svd(own / sizes[:, None], full_matrices=False)
        good = s > 1e-7 * s[0]
        inside = (self.with_own[:, :, self.kept] / sizes) @ (u[:, good] / s[good])
        along = basis[good] @ residual
        left = float(residual @ residual - along @ along)
        free = self.squares - np.einsum("rck,rck->rc", inside, inside)
        moment = with_residual - inside @ along
        sound = free > 1e-6 * self.squares
        safe = np.where(sound, free, 1.0)
        return left, np.where(sound, moment**2 / safe, 0.0), np.where(sound, moment / safe, 0.0)


def _additions(
    responses: _Responses,
    components: Components,
    language: SystemLanguage,
    terms: TermGrid,
    most: int,
    offset: float = 0.0,
    kind: str = "add",
    excluded: tuple | None = None,
) -> list[Move]:
    """The most promising terms to add to any row."""
    left, gains, coefficients = responses.gains()
    n = len(responses.residual)
    rest = np.maximum(left - gains, _LEAST_LEFT * min(n, left))
    bits = terms.bits[:, terms.owner]
    cost = (1 + terms.n_inner[terms.owner]) * math.log(responses.n_samples) + _NATS_PER_BIT * bits
    score = n * np.log(rest / n) + cost + offset
    for row, component in enumerate(components):
        known = component.known is not None
        taken = [terms.position[t] for t in component.terms if t in terms.position]
        score[row, np.isin(terms.owner, taken) | known] = np.inf
    found: list[Move] = []
    seen: set[tuple[int, int]] = set() if excluded is None else {(excluded[0], terms.position.get(excluded[1], -1))}
    for flat in np.argsort(score, axis=None, kind="stable"):
        row, column = divmod(int(flat), len(terms.owner))
        if not math.isfinite(score[row, column]) or len(found) == most:
            break
        number = int(terms.owner[column])
        if (row, number) in seen:
            continue
        seen.add((row, number))
        inner = tuple(float(v) for v in terms.values[column, : terms.n_inner[number]])
        changed = components[row].plus(terms.terms[number], float(coefficients[row, column]), inner, language, row)
        found.append(Move(float(score[row, column]), _replaced(components, row, changed), kind))
    return found
