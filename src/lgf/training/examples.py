"""Training examples of a conditional flow: the features of simulated records, and their sentences as they are said."""

from dataclasses import dataclass, fields

import numpy as np

from lgf.grammar import Grammar, split_rules, unpad
from lgf.language.projections import GridRecord, ProjectionMemory, n_features, project
from lgf.language.sentence_order import spoken
from lgf.language.term_table import term_table
from lgf.training.pairs import Pairs, Records


@dataclass(frozen=True, eq=False)
class Examples:
    """One row for each pair; sentences are said header first, see `sentence_order`.

    features   [n, static features]
    missing    [n, summands, features of what is missing], before each summand
    rules      [n, length] the rules as they are said, padded by `n_rules`
    block      [n, length] 0 for rules of the header, k for those of the k-th summand
    allowed    [n, n_rules] the rules usable on the record, as bits
    level      [n] the level of the noise
    """

    features: np.ndarray
    missing: np.ndarray
    rules: np.ndarray
    block: np.ndarray
    allowed: np.ndarray
    level: np.ndarray

    def __len__(self) -> int:
        return len(self.features)

    def rows(self, rows: np.ndarray) -> "Examples":
        """The examples of these rows."""
        return Examples(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def record_at(records: Records, i: int) -> GridRecord:
    """The record of row i."""
    order = int(records.order[i])
    one = slice(i, i + 1)
    return GridRecord(
        records.columns[one, : order + 1], records.forcing[one], records.start[one], records.window[one], order,
        bool(records.forced[i]), int(records.observed[i]), float(records.noise[i]), float(records.samples[i]),
    )  # fmt: skip


def make_examples(grammar: Grammar, pairs: Pairs, summands: int) -> Examples:
    """The examples of the pairs whose sentences have at most this many summands."""
    table = term_table(grammar)
    n, (static, missing) = len(pairs.records), n_features(table)
    out = Examples(
        np.zeros((n, static), np.float16),
        np.zeros((n, summands, missing), np.float16),
        np.full((n, grammar.max_length), grammar.n_rules, np.int16),
        np.zeros((n, grammar.max_length), np.int8),
        np.packbits(pairs.allowed, axis=1),
        pairs.level,
    )
    good, memory = np.ones(n, bool), ProjectionMemory()
    for i, derivation in enumerate(unpad(grammar, pairs.derivations)):
        header, blocks = split_rules(grammar, derivation)
        if len(blocks) > summands:
            good[i] = False
            continue
        record = record_at(pairs.records, i)
        projections = project(record, table, memory)
        order, before = spoken(grammar, tuple(header), blocks, projections)
        out.features[i] = projections.features
        out.missing[i, : len(order)] = before
        said = [*header, *(rule for summand in order for rule in summand)]
        out.rules[i, : len(said)] = said
        out.block[i, : len(said)] = [0] * len(header) + [k for k, own in enumerate(order, 1) for _ in own]
    good &= np.isfinite(out.features).all(1) & np.isfinite(out.missing).all((1, 2))
    return out.rows(np.flatnonzero(good))
