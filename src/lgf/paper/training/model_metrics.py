"""Quality metrics of a trained model, stored in its bundle."""

from collections import Counter
from typing import Any

import numpy as np

from lgf.equation.skeleton import Skeleton
from lgf.grammar import Derivation, Grammar, spell, split, unpad
from lgf.language.sentences import NoEquation, skeleton_of
from lgf.paper.autoencoder.autoencoder import Autoencoder, decode
from lgf.paper.autoencoder.metrics import behavioural_correlation, edits, exact_share, nearest
from lgf.paper.bundle import ModelBundle
from lgf.paper.corpus import Corpus
from lgf.paper.flow.guidance import STATIC_TEMPERATURE, Guide
from lgf.paper.flow.sampling import sample

DRAWN = 1000
COMPARED = 1000
SHOWN = 3


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


def skeleton(grammar: Grammar, derivation: Derivation) -> Skeleton | None:
    """The derivation's equation, in the lowest possible order; None if it gives no equation."""
    try:
        return skeleton_of(grammar.template, spell(grammar, derivation))
    except NoEquation:
        return None


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
