"""What the headers of a grammar explain of a record, and which kind of summand is worth most beside them.

A conditional flow says the header of a sentence, its linear terms and powers and the number of its summands, before any
summand. These features show what each header would leave, and what would then be gained by a summand.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lgf.language.term_table import TermTable
from lgf.solver.kernels.projections import beside

_LEAST = 1e-5  # of what is left, before its logarithm is taken
_RIDGE = 1e-6  # relative to unit columns, where terms of a header say the same
_BESIDE = 5  # of the cheapest headers, beside which the kinds of summands are compared


@dataclass(frozen=True, eq=False)
class _Columns:
    """What of the columns is compared, for the headers that are usable.

    usable     the numbers of these headers
    columns    [header, term] their columns, -1 where `there` is false
    products   [header, term, term] the places of the inner products, with the mask and the ridge of those used
    cheapest   the columns of the cheapest headers, beside which the kinds are compared
    gained     (their numbers, the kinds), which index the features
    by_kind    the columns of the table sorted by kind, and the first of each kind
    """

    usable: np.ndarray
    columns: np.ndarray
    there: np.ndarray
    products: np.ndarray
    mask: np.ndarray
    padding: np.ndarray
    cheapest: tuple[np.ndarray, ...]
    gained: tuple[np.ndarray, ...]
    by_kind: np.ndarray
    first: np.ndarray


def n_header_features(table: TermTable) -> int:
    """The number of these features."""
    return len(table.headers) + min(_BESIDE, len(table.headers)) * table.n_kinds


def header_features(table: TermTable, order: int, gram: np.ndarray, with_measured: np.ndarray) -> np.ndarray:
    """Logarithms of what each header leaves of the measured column, then of what the kinds leave beside the cheapest.

    gram [K, K] and with_measured [K] are as in `Projections`. Headers that the order does not have are 0.
    """
    own = _columns(table, order)
    left = np.zeros(len(table.headers))
    products = gram.ravel()[own.products] * own.mask + own.padding
    measured = np.where(own.there, with_measured[own.columns], 0.0)
    solved = np.linalg.solve(products, measured[:, :, None])[:, :, 0]
    left[own.usable] = np.log10(np.clip(1.0 - (solved * measured).sum(1), _LEAST, 1.0))
    gained = np.zeros((min(_BESIDE, len(table.headers)), table.n_kinds))
    free, shares = np.zeros(len(with_measured)), np.zeros((len(own.cheapest), len(with_measured)))
    for columns, share in zip(own.cheapest, shares, strict=True):
        beside(gram, with_measured, columns, free, share)
    rest = np.maximum(1.0 - shares[:, own.by_kind] ** 2, _LEAST)
    gained[own.gained] = np.log10(np.minimum.reduceat(rest, own.first, axis=1))
    return np.concatenate([left, gained.ravel()])


@lru_cache(maxsize=8)
def _columns(table: TermTable, order: int) -> _Columns:
    group = table.by_order[order].group
    column = {int(g): int(np.flatnonzero(group == g)[0]) for g in np.unique(group)}
    sets = [[column[g] for g in header] if column.keys() >= set(header) else None for header in table.headers]
    usable = [i for i, columns in enumerate(sets) if columns is not None]
    most = max((len(header) for header in table.headers), default=0)
    columns = np.array([[*c, *[-1] * (most - len(c))] for c in sets if c is not None], np.int64).reshape(-1, most)
    there = columns >= 0
    mask = (there[:, :, None] & there[:, None, :]).astype(float)
    padding = np.where(there, _RIDGE, 1.0)[:, :, None] * np.eye(most)
    kind = np.array(table.kinds)[group]
    by_kind = np.argsort(kind, kind="stable")
    kinds, first = np.unique(kind[by_kind], return_index=True)
    compared = [i for i in usable if i < _BESIDE]
    return _Columns(
        np.array(usable, np.int64),
        columns,
        there,
        (columns % len(group))[:, :, None] * len(group) + (columns % len(group))[:, None, :],
        mask,
        padding,
        tuple(columns[k][there[k]] for k in range(len(compared))),
        np.ix_(np.array(compared, np.int64), kinds),
        by_kind,
        first,
    )
