"""Derivations as rows of rule numbers for the block autoencoder: a header, then slots of summands."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lgf.grammar import Blocks, Derivation, Extent, Grammar, extent, split, unpad


def fits(grammar: Grammar, size: Extent, derivation: Derivation) -> bool:
    """Whether the sentence fits into a model of this extent."""
    return _holds(size, split(grammar, derivation))


def _holds(size: Extent, blocks: Blocks) -> bool:
    return (
        len(blocks.header) <= size.header
        and len(blocks.summands) <= size.summands
        and all(len(summand) <= size.summand for summand in blocks.summands)
    )


def arrange(grammar: Grammar, size: Extent, derivations: ArrayLike) -> NDArray[np.int64]:
    """Rows [n, header + summands * summand] of padded derivations; absent slots are padding."""
    rows = unpad(grammar, derivations)
    out = np.full((len(rows), size.header + size.summands * size.summand), grammar.n_rules)
    for row, derivation in zip(out, rows, strict=True):
        blocks = split(grammar, derivation)
        if not _holds(size, blocks):
            actual = extent(grammar, [derivation])
            raise ValueError(f"a sentence has {actual} but the model holds at most {size}; leave it out.")
        row[: len(blocks.header)] = blocks.header
        for slot, summand in enumerate(blocks.summands):
            begin = size.header + slot * size.summand
            row[begin : begin + len(summand)] = summand
    return out
