"""Simulated pairs (sentence, record): what a conditional flow is trained on.

A sentence of one state is drawn from the grammar, solved, measured (the state or its highest derivative, at even or
uneven times, with noise) and smoothed onto the common grid. Pairs are made in chunks. A chunk depends only on the seed
and its own number, so chunks can be made in any order, and again.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import Field

from lgf.expression.frame import Variable
from lgf.grammar import Derivation, Grammar, mentions, pad, restrict, sample
from lgf.language.language import Language, undefined_on
from lgf.language.sentences import grammar_frame
from lgf.settings.ranges import Count, Share, Tally
from lgf.smoothing.common_grid import GRID, on_grid, smooth_records
from lgf.solver.program import CompiledSkeleton, compile_skeleton
from lgf.training.simulation import POINTS, Solution, solutions

_DRAWN = 50  # sentences at a time
_STRIDES, _STRIDE_CHANCES = (1, 2, 3, 4, 6, 8), (0.2, 0.25, 0.2, 0.15, 0.12, 0.08)
_PATTERNS = 6  # uneven sets of sample times in a chunk
_SKELETONS = 60_000  # kept in memory
_EVEN_NOISE = 0.5  # share of the records
_HIGHEST = 0.5, 0.15  # shares of the records of order 2 of which u'' is measured, with and without a known input

Kind = tuple[int, bool]
"""(order, forced)"""
_KINDS: dict[Kind, float] = {(1, False): 0.36, (1, True): 0.10, (2, False): 0.24, (2, True): 0.30}


@dataclass(frozen=True)
class PairRecipe:
    """How many pairs are simulated, and how they are measured.

    noise    the largest standard deviation of the noise, relative to that of the measured column; half of the records
             have up to it, evenly, the others from a thousandth of it on, evenly in its logarithm
    uneven   share of the records with uneven sample times
    """

    size: Annotated[int, Field(ge=0)] = 300_000
    chunk: Count = 5000
    seed: Tally = 0
    noise: Share = 0.1
    uneven: Share = 0.2


@dataclass(frozen=True, eq=False)
class Records:
    """Smoothed records on the common grid, one row each.

    columns   [n, 3, GRID] the state and its derivatives; zero above the order
    forcing   [n, GRID]
    start, window, order, forced, observed, samples   [n]
    noise     [n] the standard deviation of the noise, relative to that of the measured column, as the smoother says
    """

    columns: np.ndarray
    forcing: np.ndarray
    start: np.ndarray
    window: np.ndarray
    order: np.ndarray
    forced: np.ndarray
    observed: np.ndarray
    samples: np.ndarray
    noise: np.ndarray

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Records with their sentences [n, length], padded, the rules [n, rule] usable on them, and noise levels [n]."""

    records: Records
    derivations: np.ndarray
    allowed: np.ndarray
    level: np.ndarray


def usable_rules(grammar: Grammar, records: Records) -> np.ndarray:
    """[n, rule]: the rules that are usable on each record, as `make_language` has it."""
    end = records.start + records.window
    low, high = records.columns.min(2).astype(float), records.columns.max(2).astype(float)
    out = np.zeros((len(records), grammar.n_rules), bool)
    for i, order in enumerate(records.order.tolist()):
        ranges: dict[str | Variable, tuple[float, float]] = {"t": (float(records.start[i]), float(end[i]))}
        ranges |= {_STATES[d]: (float(low[i, d]), float(high[i, d])) for d in range(order + 1)}
        forced = bool(records.forced[i])
        out[i] = _rules(grammar, order, forced, tuple(undefined_on(_frame(order, forced), ranges)))
    return out


_STATES = tuple(Variable("u", d) for d in range(3))
_frame = lru_cache(maxsize=8)(grammar_frame)


@lru_cache(maxsize=256)
def _rules(grammar: Grammar, order: int, forced: bool, phrases: tuple[str, ...]) -> np.ndarray:
    return restrict(grammar, order=order, forced=forced, forbid=mentions(*phrases) if phrases else ())


class PairMaker:
    """Makes chunks of pairs of a grammar."""

    def __init__(self, grammar: Grammar, recipe: PairRecipe = PairRecipe()):
        self._grammar, self._recipe = grammar, recipe
        self._languages = {}
        for order, forced in _KINDS:
            allowed = restrict(grammar, order=order, forced=forced)
            self._languages[order, forced] = Language(grammar, grammar_frame(order, forced), forced, allowed)
        over_u, over_t = mentions("log(u", "sqrt(u", "u^C", "/u"), mentions("/t", "log(t", "/log(t", "/sin(")
        self._positive = frozenset(i for i, rule in enumerate(grammar.rules) if over_u(rule))
        self._late = frozenset(i for i, rule in enumerate(grammar.rules) if over_t(rule))
        self._compiled: dict[tuple[Kind, Derivation], CompiledSkeleton | None] = {}

    def chunk(self, number: int, size: int | None = None) -> Pairs:
        """The pairs of this chunk. `size` pairs are simulated; those that lose their terms to the noise are left out.

        A sentence with log(u), for example, is left out if the smoothed u is not positive.
        """
        rng = np.random.default_rng([self._recipe.seed, 11, number])
        size = self._recipe.chunk if size is None else size
        kinds, chances = list(_KINDS), list(_KINDS.values())
        drawn: list[tuple[Kind, Derivation, Solution]] = []
        while len(drawn) < size:
            kind = kinds[rng.choice(len(kinds), p=chances)]
            language = self._languages[kind]
            for derivation in sample(self._grammar, rng, _DRAWN, language.allowed):
                compiled = self._equation(kind, derivation)
                if compiled is not None:
                    rules = frozenset(derivation)
                    positive, late = not rules.isdisjoint(self._positive), not rules.isdisjoint(self._late)
                    found = solutions(compiled, positive, late, rng)
                    drawn += [(kind, derivation, solution) for solution in found]
        return self._measured(drawn[:size], rng)

    def _equation(self, kind: Kind, derivation: Derivation) -> CompiledSkeleton | None:
        """The equation of the derivation; None if it cannot be solved for its highest derivative."""
        key = kind, derivation
        if key not in self._compiled:
            if len(self._compiled) >= _SKELETONS:
                self._compiled.clear()
            skeleton = self._languages[kind].skeleton(derivation)
            usable = skeleton is not None and skeleton.right_sides is not None
            self._compiled[key] = compile_skeleton(skeleton) if usable else None
        return self._compiled[key]

    def _measured(self, drawn: list[tuple[Kind, Derivation, Solution]], rng: np.random.Generator) -> Pairs:
        recipe, n = self._recipe, len(drawn)
        patterns = [np.arange(0, POINTS, stride) for stride in _STRIDES]
        for _ in range(_PATTERNS):
            inner = rng.choice(np.arange(1, POINTS - 1), int(np.exp(rng.uniform(np.log(30), np.log(200)))), False)
            patterns.append(np.concatenate([[0], np.sort(inner), [POINTS - 1]]))
        even = rng.choice(len(_STRIDES), n, p=_STRIDE_CHANCES)
        uneven = len(_STRIDES) + rng.integers(_PATTERNS, size=n)
        pattern = np.where(rng.random(n) < recipe.uneven, uneven, even)
        level = np.where(
            rng.random(n) < _EVEN_NOISE,
            rng.uniform(0.0, recipe.noise, n),
            recipe.noise * 10 ** rng.uniform(-3.0, 0.0, n),
        )
        order = np.array([kind[0] for kind, _, _ in drawn])
        forced = np.array([kind[1] for kind, _, _ in drawn])
        highest = (order == 2) & (rng.random(n) < np.where(forced, *_HIGHEST))
        observed = np.where(highest, 2, 0)
        columns, noise = np.zeros((n, 3, GRID), np.float32), np.zeros(n, np.float32)
        for key in sorted({(p, o, d) for p, o, d in zip(pattern, observed, order, strict=True)}):
            p, o, d = (int(x) for x in key)
            rows = np.flatnonzero((pattern == p) & (observed == o) & (order == d))
            times = patterns[p]
            values = np.array([drawn[i][2].columns[times, o] for i in rows])
            deviation = values.std(1, keepdims=True)
            values = values + level[rows, None] * deviation * rng.standard_normal(values.shape)
            tau = times / (POINTS - 1)
            coefficients, sigma = smooth_records(tau, values)
            window = np.array([drawn[i][2].window for i in rows])
            initial = np.array([drawn[i][2].initial for i in rows])
            columns[rows, : d + 1] = on_grid(tau, coefficients, o, d, window, initial, sigma)
            noise[rows] = sigma / np.maximum(values.std(1), 1e-30)
        grid = np.linspace(0, POINTS - 1, GRID)
        records = Records(
            columns,
            np.array([np.interp(grid, np.arange(POINTS), s.forcing) for _, _, s in drawn], np.float32),
            np.array([s.start for _, _, s in drawn]),
            np.array([s.window for _, _, s in drawn]),
            order,
            forced,
            observed,
            np.array([len(patterns[p]) for p in pattern]),
            noise,
        )
        derivations = [derivation for _, derivation, _ in drawn]
        allowed = usable_rules(self._grammar, records)
        said = np.array([bool(rules[list(d)].all()) for rules, d in zip(allowed, derivations, strict=True)])
        finite = np.isfinite(columns).all((1, 2))
        pairs = Pairs(records, pad(self._grammar, derivations).astype(np.int16), allowed, level)
        return select(pairs, np.flatnonzero(said & finite))


def select(pairs: Pairs, rows: np.ndarray) -> Pairs:
    """The pairs of these rows."""
    records = Records(**{f.name: getattr(pairs.records, f.name)[rows] for f in fields(Records)})
    return Pairs(records, pairs.derivations[rows], pairs.allowed[rows], pairs.level[rows])
