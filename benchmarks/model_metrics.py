"""Quality of a trained model: reconstruction, behavioural order, effect of one-token changes, samples of its flow.

The autoencoder is trained again without the behavioural loss, for comparison. The numbers are written into model.json.
"""

import argparse
import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from lgf.grammar import Blocks, Derivation, Grammar, spell, split, unpad
from lgf.paper.autoencoder.autoencoder import Autoencoder, decode, encode, exact_share
from lgf.paper.autoencoder.quantisation import bounded
from lgf.paper.autoencoder.sequence_autoencoder import SequenceAutoencoder
from lgf.paper.bundle import ModelBundle, load_bundle, save_bundle
from lgf.paper.corpus import Corpus, make_corpus
from lgf.paper.flow.guidance import STATIC_TEMPERATURE, Guide
from lgf.paper.flow.sampling import sample
from lgf.paper.training.recipe import load_recipe
from lgf.paper.training.stages import held_out, skeleton, train_autoencoder

DRAWN = 1000
COMPARED = 1000
SHOWN = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The recipe and the folder of the model."""
    parser.add_argument("recipe", type=Path)
    parser.add_argument("model", type=Path, help="folder of the model that was trained by this recipe")


def main(args: argparse.Namespace) -> None:
    """Measures, writes and prints the numbers."""
    recipe, bundle = load_recipe(args.recipe), load_bundle(args.model)
    corpus = make_corpus(bundle.grammar, recipe.corpus.size, recipe.seed)
    plain = None
    if recipe.autoencoder.weight and recipe.autoencoder.architecture == "blocks":  # the other one trains for hours
        settings = replace(recipe.autoencoder, weight=0.0)
        plain = train_autoencoder(replace(recipe, autoencoder=settings), bundle.grammar, corpus, held_out(corpus))
    metrics = measure(bundle, corpus, held_out(corpus), plain)
    save_bundle(replace(bundle, metrics=metrics), args.model)
    print(json.dumps(metrics, indent=1, default=str))


def measure(bundle: ModelBundle, corpus: Corpus, n_held_out: int, plain: Autoencoder | None) -> dict[str, Any]:
    """All metrics, on the last `n_held_out` sentences of the corpus; `plain` has no behavioural loss."""
    grammar, model = bundle.grammar, bundle.autoencoder
    unseen = np.asarray(corpus.derivations[-n_held_out:], dtype=np.int64)
    rng = np.random.default_rng(bundle.seed)
    random = unpad(grammar, decode(model, rng.integers(model.layout.levels, size=(DRAWN, model.layout.tokens))))
    few, behaviour = unseen[:COMPARED], np.asarray(corpus.behaviour[-n_held_out:][:COMPARED])
    changes = edits(model, few, bundle.seed)
    return {
        "exact_reconstruction": exact_share(model, unseen),
        "random_codes_complete": sum(_complete(grammar, d) for d in random) / DRAWN,
        "random_codes_unique_sentences": len({spell(grammar, d) for d in random}) / DRAWN,
        "random_codes_unique_structures": len({_structure(grammar, d) for d in random}) / DRAWN,
        "behavioural_correlation": behavioural_correlation(model, few, behaviour),
        "behavioural_correlation_without_loss": plain and behavioural_correlation(plain, few, behaviour),
        "edit_changes_sentence": changes.changed,
        "edit_to_next_level_changes_sentence": changes.next,
        "edit_changes_one_summand": changes.summand,
        "edit_changes_header": changes.header,
        "neighbours": _neighbours(grammar, model, few),
        **_free(bundle, corpus),
        **_guided(bundle),
    }


def latent(model: Autoencoder, derivations: ArrayLike) -> NDArray[np.float32]:
    """Bounded, unrounded latent vectors of padded derivations; the behavioural loss shapes their distances.

    Slots are summed, so their order does not matter.
    """
    levels = model.layout.levels
    z = bounded(model.latent(model.arrange(derivations)), levels) / np.float32(levels // 2)
    if isinstance(model, SequenceAutoencoder):
        return z
    header, slots = model.layout.cut(z)
    return np.concatenate([header, slots.sum(1)], 1)


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


def _free(bundle: ModelBundle, corpus: Corpus) -> dict[str, Any]:
    """Statistics of unguided samples, and of the training corpus for comparison."""
    grammar = bundle.grammar
    drawn = unpad(grammar, decode(bundle.autoencoder, sample(bundle.denoiser, DRAWN, bundle.seed)))
    known = unpad(grammar, np.asarray(corpus.derivations[:: max(1, len(corpus) // 5000)]))
    skeletons = [skeleton(grammar, d) for d in drawn]
    valid = [s for s in skeletons if s is not None]
    orders = Counter(s.frame.orders[0] for s in valid)
    return {
        "free_samples_valid": len(valid) / DRAWN,
        "free_samples_beyond_order_2": sum(n for order, n in orders.items() if order > 2) / DRAWN,
        "free_samples_unique_structures": len({s.structure for s in valid}) / max(len(valid), 1),
        "free_samples_length": float(np.mean([len(d) for d in drawn])),
        "corpus_length": float(np.mean([len(d) for d in known])),
        "free_samples_summands": float(np.mean([_summands(grammar, d) for d in drawn])),
        "corpus_summands": float(np.mean([_summands(grammar, d) for d in known])),
        "free_samples_second_order": orders[2] / max(len(valid), 1),
        "corpus_second_order": float((np.asarray(corpus.order) == 2).mean()),
    }


def _guided(bundle: ModelBundle) -> dict[str, float]:
    """The share of samples guided to an order that have it."""
    if "order" not in bundle.predictors:
        return {}
    result = {"guide_temperature": STATIC_TEMPERATURE}
    for order in (1, 2):
        guides = [Guide(bundle.predictors["order"], order, STATIC_TEMPERATURE)]
        tokens = sample(bundle.denoiser, DRAWN // 2, bundle.seed + order, guides)
        skeletons = [skeleton(bundle.grammar, d) for d in unpad(bundle.grammar, decode(bundle.autoencoder, tokens))]
        result[f"guided_to_order_{order}"] = sum(s is not None and s.frame.orders[0] == order for s in skeletons) / len(
            skeletons
        )
    return result


def _neighbours(grammar: Grammar, model: Autoencoder, rows: np.ndarray) -> dict[str, list[str]]:
    """A few sentences with their nearest neighbours in the latent space."""
    sentences = [spell(grammar, d) for d in unpad(grammar, rows)]
    return {sentences[i]: [sentences[j] for j in nearest(model, rows, i, SHOWN)] for i in range(min(SHOWN, len(rows)))}


def _complete(grammar: Grammar, derivation: Derivation) -> bool:
    try:
        spell(grammar, derivation)
    except ValueError:
        return False
    return True


def _structure(grammar: Grammar, derivation: Derivation) -> str:
    equation = skeleton(grammar, derivation)
    return "" if equation is None else equation.structure


def _summands(grammar: Grammar, derivation: Derivation) -> int:
    return len(split(grammar, derivation).summands) if grammar.summand else 0
