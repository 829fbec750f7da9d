"""Training corpora: distinct labelled equations of a grammar, as memory-mapped arrays in a folder.

Sentences are drawn from the grammar `<name>_corpus` (flatter weights) if the library has it, and parsed with the
grammar itself. The corpus holds the differential equations of order 1 or 2, each structure once.
"""

import itertools
import json
import platform
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import lgf
from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError
from lgf.expression.tree import ZERO
from lgf.grammar import (
    Blocks,
    Derivation,
    Grammar,
    enumerate_derivations,
    grammar_names,
    join,
    load_grammar,
    pad,
    restrict,
    sample,
    spell,
    split,
)
from lgf.language.sentences import NoEquation, skeleton_of
from lgf.paper.behavioural_distance import MOST_CONSTANTS, BehaviourGrid, behaviour
from lgf.paper.derivations.parsing import parse

HIGHEST_ORDER = 2
BEHAVIOUR_SIZE = 256
PROJECTION_SEED = 20
MOST_DRAWS = 5_000  # in one round
_FACTS = "corpus.json"
_ARRAYS = ("derivations", "order", "forced", "behaviour")


@dataclass(frozen=True)
class Corpus:
    """Distinct equations of a grammar, one a row.

    derivations  [n, max_length] int16, filled up with the padding rule
    order        [n] int8; for a right-hand side the least possible order (2 if it holds u')
    forced       [n] bool, whether a given forcing occurs
    behaviour    [n, 256] float32; Euclidean distances of rows approximate sqrt(exp(d_VF)), see `project`
    facts        seed, grammar and versions of its making
    """

    derivations: np.ndarray
    order: np.ndarray
    forced: np.ndarray
    behaviour: np.ndarray
    facts: dict[str, Any]

    def __len__(self) -> int:
        return len(self.derivations)

    def save(self, folder: str | Path) -> None:
        """Writes the arrays, then the facts, so that a folder with facts is complete."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / _FACTS).unlink(missing_ok=True)
        for name in _ARRAYS:
            np.save(path / f"{name}.npy", getattr(self, name), allow_pickle=False)
        (path / _FACTS).write_text(json.dumps(self.facts, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, grammar: Grammar | None = None) -> "Corpus":
        """The corpus in the folder, memory-mapped; LgfError if it belongs to another grammar than this one."""
        path = Path(folder)
        if not (path / _FACTS).is_file():
            raise LgfError(f"{str(path)!r} holds no complete corpus ({_FACTS} is missing); make it again.")
        facts = json.loads((path / _FACTS).read_text(encoding="utf-8"))
        arrays = {name: np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS}
        sizes = {name: len(array) for name, array in arrays.items()}
        if set(sizes.values()) != {facts["size"]}:
            raise LgfError(f"the corpus in {str(path)!r} has {sizes} rows, not {facts['size']}; make it again.")
        if grammar is not None and facts["fingerprint"] != grammar.fingerprint:
            raise LgfError(
                f"the corpus in {str(path)!r} belongs to grammar {facts['grammar']!r} {facts['fingerprint']}, "
                f"not to {grammar.name!r} {grammar.fingerprint}; make it again."
            )
        return cls(**arrays, facts=facts)


@dataclass(frozen=True)
class _Row:
    """One labelled equation; the corpus has one row per `structure`."""

    derivation: Derivation
    order: int
    forced: bool
    structure: str
    behaviour: np.ndarray


def make_corpus(
    grammar: Grammar,
    size: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Corpus:
    """A corpus of `size` equations, fewer only if the grammar yields no more.

    `progress` is called with (equations so far, size) after each round.
    """
    source = _source(grammar)
    rng = np.random.default_rng(seed)
    drawn: set[Derivation] = set()
    rows: dict[str, _Row] = {}
    parsed: dict[Derivation, Blocks] = {}
    draws = min(2 * size + 100, MOST_DRAWS)
    n_draws = 0
    while len(rows) < size:
        fresh = [d for d in dict.fromkeys(_draw(source, rng, draws)) if d not in drawn]
        drawn.update(fresh)
        n_draws += draws
        new = _labelled(source, fresh, rows)
        if source is not grammar:
            new = _translated(grammar, source, new, parsed)
        rows.update(new)
        if progress is not None:
            progress(min(len(rows), size), size)
        if len(new) < draws / 1000:
            break
    chosen = list(rows.values())[:size]
    return Corpus(
        derivations=pad(grammar, [row.derivation for row in chosen]).astype(np.int16),
        order=np.array([row.order for row in chosen], dtype=np.int8),
        forced=np.array([row.forced for row in chosen], dtype=bool),
        behaviour=np.array([row.behaviour for row in chosen], dtype=np.float32).reshape(len(chosen), BEHAVIOUR_SIZE),
        facts={
            "grammar": grammar.name,
            "fingerprint": grammar.fingerprint,
            "drawn_from": source.name,
            "drawn_from_fingerprint": source.fingerprint,
            "seed": seed,
            "size": len(chosen),
            "draws": n_draws,
            "behaviour_grid": {key: str(value) for key, value in asdict(BehaviourGrid()).items()},
            "projection_seed": PROJECTION_SEED,
            "versions": {"lgf": lgf.__version__, "numpy": np.__version__, "python": platform.python_version()},
        },
    )


def project(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Behaviours (mean [..., N], deviation [..., N]) as vectors [..., 256] of a fixed random projection.

    The squared distance of two vectors approximates the mean squared difference of means and deviations, whose log is
    d_VF. Every value goes with a random sign into one of the 256 sums (a count sketch): the relative standard
    deviation is at most sqrt(2/256) = 9 %, as with a dense Gaussian matrix, and single large values stay exact.
    """
    both = np.concatenate([mean, deviation], axis=-1)
    places, signs = _projection(both.shape[-1])
    sums = (both[..., places] * signs).reshape(*both.shape[:-1], BEHAVIOUR_SIZE, -1).sum(axis=-1)
    return sums / np.sqrt(both.shape[-1] / 2)


@lru_cache(maxsize=2)
def _projection(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the values in order of summation, and their signs (0 for padding)."""
    rng = np.random.default_rng(PROJECTION_SEED)
    filled = -(-n // BEHAVIOUR_SIZE) * BEHAVIOUR_SIZE
    places = rng.permutation(filled)
    return np.minimum(places, n - 1), np.where(places < n, rng.choice((-1.0, 1.0), filled), 0.0)


def _source(grammar: Grammar) -> Grammar:
    """The grammar to draw from: `<name>_corpus` if the library has it for this grammar, else the grammar itself."""
    name = f"{grammar.name}_corpus"
    if name in grammar_names() and grammar.fingerprint == load_grammar(grammar.name).fingerprint:
        return load_grammar(name)
    return grammar


def _draw(source: Grammar, rng: np.random.Generator, draws: int) -> Iterator[Derivation]:
    """About `draws` derivations, split evenly over the combinations of order and forcing that restrict the grammar."""
    if source.template != "explicit":
        yield from sample(source, rng, draws, max_order=HIGHEST_ORDER)
        return
    masks = {}
    for order in range(1, HIGHEST_ORDER + 1):
        for forced in (False, True):
            try:
                mask = restrict(source, order=order, forced=forced)
            except ValueError:  # the grammar has no such equation
                continue
            masks[mask.tobytes()] = mask
    samples = [sample(source, rng, draws // len(masks), mask) for mask in masks.values()]
    for group in zip(*samples, strict=True):
        yield from group


def _labelled(source: Grammar, derivations: Sequence[Derivation], known: Container[str]) -> dict[str, _Row]:
    """The labelled rows of those derivations that are equations of structures not known, by structure."""
    rows: dict[str, _Row] = {}
    for derivation in derivations:
        try:
            skeleton = skeleton_of(source.template, spell(source, derivation))
        except NoEquation:
            continue
        structure = skeleton.structure
        if _is_suitable(skeleton) and structure not in known and structure not in rows:
            vector = project(*behaviour(skeleton)).astype(np.float32)
            rows[structure] = _Row(derivation, skeleton.frame.orders[0], skeleton.forced, structure, vector)
    return rows


def _is_suitable(skeleton: Skeleton) -> bool:
    # A single term set to zero means only that one of its factors vanishes.
    trivial = skeleton.right == ZERO and skeleton.left.head != "+"
    return not trivial and skeleton.frame.orders[0] <= HIGHEST_ORDER and skeleton.n_constants <= MOST_CONSTANTS


def _translated(
    grammar: Grammar, source: Grammar, rows: dict[str, _Row], parsed: dict[Derivation, Blocks]
) -> dict[str, _Row]:
    """The rows with derivations of `grammar` in place of those of `source`, without those that are too long.

    Parsing is slow, but few pieces make many sentences. Each header and each summand is parsed once, in a plain
    sentence of its own, and cached in `parsed`.
    """
    plain = _cheapest_sentence(source)
    pieces: dict[str, list[Derivation]] = {}
    for structure, row in rows.items():
        blocks = split(source, row.derivation)
        header = join(source, blocks.header, plain.summands * len(blocks.summands))
        pieces[structure] = [header, *(join(source, plain.header, [summand]) for summand in blocks.summands)]
    for derivation in itertools.chain.from_iterable(pieces.values()):
        if derivation not in parsed:
            parsed[derivation] = split(grammar, parse(grammar, spell(source, derivation)))
    result = {}
    for structure, (header, *summands) in pieces.items():
        derivation = join(grammar, parsed[header].header, [parsed[summand].summands[0] for summand in summands])
        if len(derivation) <= grammar.max_length:
            result[structure] = replace(rows[structure], derivation=derivation)
    return result


def _cheapest_sentence(grammar: Grammar) -> Blocks:
    """The header and summand of the cheapest sentence with a single summand."""
    sentences = (split(grammar, derivation) for _, derivation in enumerate_derivations(grammar, np.inf))
    return next(blocks for blocks in sentences if len(blocks.summands) == 1)
