"""A corpus to train on: distinct equations of a grammar with their labels, as memory-mapped arrays in a folder.

Sentences are drawn from the grammar's twin `<name>_corpus` where the library has one (weighted, flatter) and parsed
with the grammar itself. Kept are those that are differential equations of order 1 or 2, each structure once.
"""

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import lgf
from lgf.grammar import (
    Derivation,
    Grammar,
    enumerate_derivations,
    grammar_names,
    join,
    load_grammar,
    pad,
    parse,
    restrict,
    sample,
    spell,
    split,
)
from lgf.grammar.vocabulary import derivative
from lgf.ode.behaviour import MOST_CONSTANTS, BehaviourGrid, behaviour
from lgf.ode.expression import ZERO
from lgf.ode.skeleton import NoEquation, Skeleton

HIGHEST_ORDER = 2
BEHAVIOUR_SIZE = 256
PROJECTION_SEED = 20
DRAWS_A_ROUND = 20_000
CHUNK = 500
_FACTS = "corpus.json"
_ARRAYS = ("derivations", "order", "autonomous", "forced", "behaviour")


@dataclass(frozen=True)
class Corpus:
    """Distinct equations of a grammar, one a row.

    derivations  [n, max_length] int16, filled up with the padding rule
    order        [n] int8; of a right-hand side the least order at which it is one (2 if it holds u')
    autonomous   [n] bool, whether time does not occur
    forced       [n] bool, whether a given forcing occurs
    behaviour    [n, 256] float32; Euclidean distances of rows approximate sqrt(exp(d_VF)), see `project`
    facts        seed, grammar, versions: how it was made
    """

    derivations: np.ndarray
    order: np.ndarray
    autonomous: np.ndarray
    forced: np.ndarray
    behaviour: np.ndarray
    facts: dict[str, Any]

    def __len__(self) -> int:
        return len(self.derivations)

    def save(self, folder: str | Path) -> None:
        """Writes the arrays and, last, the facts, so that a folder with facts is complete."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / _FACTS).unlink(missing_ok=True)
        for name in _ARRAYS:
            np.save(path / f"{name}.npy", getattr(self, name), allow_pickle=False)
        (path / _FACTS).write_text(json.dumps(self.facts, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, grammar: Grammar | None = None) -> "Corpus":
        """The corpus in the folder, memory-mapped; with a grammar it must be one of that grammar."""
        path = Path(folder)
        if not (path / _FACTS).is_file():
            raise FileNotFoundError(f"{str(path)!r} holds no complete corpus ({_FACTS} is missing); make it again.")
        facts = json.loads((path / _FACTS).read_text(encoding="utf-8"))
        arrays = {name: np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS}
        sizes = {name: len(array) for name, array in arrays.items()}
        if set(sizes.values()) != {facts["size"]}:
            raise ValueError(f"the corpus in {str(path)!r} has {sizes} rows, not {facts['size']}; make it again.")
        if grammar is not None and facts["fingerprint"] != grammar.fingerprint:
            raise ValueError(
                f"the corpus in {str(path)!r} belongs to grammar {facts['grammar']!r} {facts['fingerprint']}, "
                f"not to {grammar.name!r} {grammar.fingerprint}; make it again."
            )
        return cls(**arrays, facts=facts)


@dataclass(frozen=True)
class _Row:
    """One labelled equation; `structure` decides whether it is new."""

    derivation: Derivation
    order: int
    autonomous: bool
    forced: bool
    structure: str
    behaviour: np.ndarray


def make_corpus(
    grammar: Grammar,
    size: int,
    seed: int,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Corpus:
    """A corpus of `size` equations, fewer only if the grammar soon gives nothing new; the same at any `workers`.

    `progress` is told (equations found, size) after each round.
    """
    source = _source(grammar)
    rng = np.random.default_rng(seed)
    drawn: set[Derivation] = set()
    structures: set[str] = set()
    rows: list[_Row] = []
    n_draws = 0
    with joblib.Parallel(n_jobs=workers) as parallel:
        while len(rows) < size:
            fresh = [d for d in dict.fromkeys(_draw(source, rng)) if d not in drawn]
            n_draws += DRAWS_A_ROUND
            drawn.update(fresh)
            before = len(rows)
            chunks = iter(lambda stream=iter(fresh): list(islice(stream, CHUNK)), [])
            for labelled in parallel(joblib.delayed(_label)(grammar, source, chunk) for chunk in chunks) or ():
                for row in labelled:
                    if row.structure not in structures:
                        structures.add(row.structure)
                        rows.append(row)
            if progress is not None:
                progress(min(len(rows), size), size)
            if len(rows) - before < DRAWS_A_ROUND / 1000:
                break
    rows = rows[:size]
    return Corpus(
        derivations=pad(grammar, [row.derivation for row in rows]).astype(np.int16),
        order=np.array([row.order for row in rows], dtype=np.int8),
        autonomous=np.array([row.autonomous for row in rows], dtype=bool),
        forced=np.array([row.forced for row in rows], dtype=bool),
        behaviour=np.array([row.behaviour for row in rows], dtype=np.float32).reshape(len(rows), BEHAVIOUR_SIZE),
        facts={
            "grammar": grammar.name,
            "fingerprint": grammar.fingerprint,
            "drawn_from": source.name,
            "drawn_from_fingerprint": source.fingerprint,
            "seed": seed,
            "size": len(rows),
            "draws": n_draws,
            "behaviour_grid": asdict(BehaviourGrid()),
            "projection_seed": PROJECTION_SEED,
            "versions": {"lgf": lgf.__version__, "numpy": np.__version__, "python": platform.python_version()},
        },
    )


def project(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Behaviours (mean [..., N], deviation [..., N]) as vectors [..., 256] of a fixed random projection.

    The squared distance of two vectors approximates the mean squared difference of means and deviations, whose log is
    d_VF, to a relative standard deviation of sqrt(2/256) = 9 %.
    """
    both = np.concatenate([mean, deviation], axis=-1)
    return both @ _projection(both.shape[-1])


def projected_distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """d_VF between projected behaviours [..., 256]: log of the squared distance, not below zero."""
    squares = np.sum((one.astype(np.float64) - other.astype(np.float64)) ** 2, axis=-1)
    return np.log(np.maximum(squares, 1.0))


@lru_cache(maxsize=2)
def _projection(n: int) -> np.ndarray:
    matrix = np.random.default_rng(PROJECTION_SEED).standard_normal((n, BEHAVIOUR_SIZE))
    return matrix / np.sqrt(BEHAVIOUR_SIZE * n / 2)


def _source(grammar: Grammar) -> Grammar:
    """The grammar to draw from: the twin if the library has one for this very grammar, else the grammar itself."""
    twin = f"{grammar.name}_corpus"
    if twin in grammar_names() and grammar.fingerprint == load_grammar(grammar.name).fingerprint:
        return load_grammar(twin)
    return grammar


def _draw(source: Grammar, rng: np.random.Generator) -> Iterator[Derivation]:
    """One round of draws, shared by all combinations of order and forcing that the grammar tells apart."""
    if source.template != "explicit":
        yield from sample(source, rng, DRAWS_A_ROUND, max_order=HIGHEST_ORDER)
        return
    masks = {}
    for order in range(1, HIGHEST_ORDER + 1):
        for forced in (False, True):
            mask = restrict(source, order=order, forced=forced)
            masks[mask.tobytes()] = mask
    for mask in masks.values():
        yield from sample(source, rng, DRAWS_A_ROUND // len(masks), mask)


def _label(grammar: Grammar, source: Grammar, derivations: Sequence[Derivation]) -> list[_Row]:
    """The equations among the derivations of `source`, labelled, as derivations of `grammar`."""
    found: list[tuple[Derivation, int, Skeleton]] = []
    for drawn in derivations:
        order = None
        if source.template == "explicit":
            order = 1 + max(0, *(_derivatives(source)[rule] for rule in drawn))
        try:
            skeleton = Skeleton.from_sentence(source.template, spell(source, drawn), order)
        except NoEquation:
            continue
        derivation = drawn if source is grammar else _translate(grammar, source, drawn)
        if _fits(skeleton) and len(derivation) <= grammar.max_length:
            found.append((derivation, skeleton.order, skeleton))
    if not found:
        return []
    moments = [behaviour(skeleton) for _, _, skeleton in found]
    projected = project(np.array([mean for mean, _ in moments]), np.array([deviation for _, deviation in moments]))
    return [
        _Row(derivation, order, skeleton.autonomous, skeleton.forced, skeleton.structure, vector.astype(np.float32))
        for (derivation, order, skeleton), vector in zip(found, projected, strict=True)
    ]


def _fits(skeleton: Skeleton) -> bool:
    # A single term set to zero says only that a factor of it vanishes.
    trivial = skeleton.right == ZERO and skeleton.left.head != "+"
    return not trivial and skeleton.order <= HIGHEST_ORDER and skeleton.n_constants <= MOST_CONSTANTS


@lru_cache(maxsize=8)
def _derivatives(grammar: Grammar) -> list[int]:
    """Per rule, the highest derivative that its own words hold."""
    return [max((derivative(word) or 0 for word in rule.body), default=0) for rule in grammar.rules]


def _translate(grammar: Grammar, source: Grammar, derivation: Derivation) -> Derivation:
    """The derivation by `grammar` of a sentence of `source`, parsed piece by piece: few pieces make many sentences."""
    if not source.summand or not grammar.summand:
        return parse(grammar, spell(source, derivation))
    blocks = split(source, derivation)
    header = _header(grammar, source, blocks.header, len(blocks.summands))
    return join(grammar, header, [_summand(grammar, source, summand) for summand in blocks.summands])


@lru_cache(maxsize=100_000)
def _header(grammar: Grammar, source: Grammar, header: Derivation, count: int) -> Derivation:
    filled = join(source, header, [_plainest(source).summands[0]] * count)
    return split(grammar, parse(grammar, spell(source, filled))).header


@lru_cache(maxsize=100_000)
def _summand(grammar: Grammar, source: Grammar, summand: Derivation) -> Derivation:
    alone = join(source, _plainest(source).header, [summand])
    return split(grammar, parse(grammar, spell(source, alone))).summands[0]


@lru_cache(maxsize=8)
def _plainest(grammar: Grammar):
    """The parts of the cheapest sentence with a single summand."""
    blocks = (split(grammar, derivation) for _, derivation in enumerate_derivations(grammar, np.inf))
    return next(b for b in blocks if len(b.summands) == 1)
