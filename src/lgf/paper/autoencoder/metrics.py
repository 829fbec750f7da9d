"""Quality of a trained latent space: reconstruction, behavioural order, effect of one-token changes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from lgf.grammar import Blocks, split, unpad
from lgf.paper.autoencoder.autoencoder import Autoencoder, decode, encode, latent


def exact_share(model: Autoencoder, derivations: ArrayLike) -> float:
    """The share of padded derivations that are reconstructed exactly."""
    rows = np.asarray(derivations)
    return float((decode(model, encode(model, rows)) == rows).all(1).mean())


def behavioural_correlation(model: Autoencoder, derivations: ArrayLike, behaviour: ArrayLike) -> float:
    """Spearman's rank correlation of latent distance and behavioural distance d_VF over all pairs of rows.

    NaN if there are too few rows, or all distances are equal.
    """
    own, wanted = (pdist(np.asarray(x, float), "sqeuclidean") for x in (latent(model, derivations), behaviour))
    if len(own) < 2 or np.ptp(own) == 0 or np.ptp(wanted) == 0:
        return math.nan
    ranked: Any = spearmanr(own, wanted)
    return float(ranked.statistic)


def nearest(model: Autoencoder, derivations: ArrayLike, row: int, k: int) -> NDArray[np.int64]:
    """The `k` rows nearest to `row` in the latent space, nearest first."""
    places = latent(model, derivations)
    return np.argsort(((places - places[row]) ** 2).sum(1), kind="stable")[1 : k + 1]


@dataclass(frozen=True)
class Edits:
    """Effects of random one-token changes, as shares.

    changed   share of the changes that alter the sentence
    next      the same for changes to a neighbouring level
    summand   share of the altered sentences with exactly one summand replaced, added or dropped, all else equal
    header    share of the altered sentences in which only the header differs
    """

    changed: float
    next: float
    summand: float
    header: float


def edits(model: Autoencoder, derivations: ArrayLike, seed: int) -> Edits:
    """The effects of changing one random token of each padded derivation."""
    rng = np.random.default_rng(seed)
    levels = model.layout.levels
    tokens = encode(model, derivations).astype(np.int64)
    before = decode(model, tokens)
    every, place = np.arange(len(tokens)), rng.integers(tokens.shape[1], size=len(tokens))
    here = tokens[every, place]
    shifted, neighbour = tokens.copy(), tokens.copy()
    shifted[every, place] = (here + rng.integers(1, levels, len(here))) % levels
    neighbour[every, place] = np.where(here == levels - 1, here - 1, here + 1)
    after = decode(model, shifted)
    changed = (after != before).any(1)
    kinds = []
    if model.grammar.summand:
        cut = [
            (split(model.grammar, a), split(model.grammar, b))
            for a, b in zip(unpad(model.grammar, before[changed]), unpad(model.grammar, after[changed]), strict=True)
        ]
        kinds = [_kind(a, b) for a, b in cut]
    count = max(len(kinds), 1)
    return Edits(
        float(changed.mean()),
        float((decode(model, neighbour) != before).any(1).mean()),
        kinds.count("summand") / count,
        kinds.count("header") / count,
    )


def _kind(before: Blocks, after: Blocks) -> str:
    gone, new = list(before.summands), []
    for summand in after.summands:
        if summand in gone:
            gone.remove(summand)
        else:
            new.append(summand)
    if not gone and not new:
        return "header"
    # Adding or dropping a summand changes which choices the header has, so headers are not compared then.
    same = before.header == after.header or len(before.summands) != len(after.summands)
    return "summand" if same and len(gone) <= 1 and len(new) <= 1 else "more"
