"""The stages of training a bundle: corpus, autoencoder, denoiser, predictors, conditional flow."""

import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

import lgf
from lgf.equation.skeleton import Skeleton
from lgf.errors import LgfError, quoted
from lgf.grammar import Derivation, Grammar, extent, load_grammar, spell, unpad
from lgf.language.sentences import NoEquation, skeleton_of
from lgf.paper.autoencoder.autoencoder import Autoencoder, decode, design, encode, exact_share
from lgf.paper.bundle import ModelBundle, load_bundle, save_bundle
from lgf.paper.corpus import Corpus, make_corpus
from lgf.paper.flow.denoiser import Denoiser
from lgf.paper.flow.predictor import Predictor, new_predictor
from lgf.paper.flow.predictor_training import train_predictor
from lgf.paper.flow.sampling import sample
from lgf.paper.training import denoiser as flow
from lgf.paper.training.autoencoder import autoencoder_loss, new_autoencoder
from lgf.paper.training.block_autoencoder import BlockAutoencoder
from lgf.paper.training.recipe import Recipe, load_recipe
from lgf.paper.training.sequence_autoencoder import SequenceAutoencoder
from lgf.paper.training.trained_weights import arrays, to_denoiser
from lgf.trained.rule_flow_file import save_rule_flow
from lgf.training.conditional import require_conditional, train_conditional
from lgf.training.loop import fit
from lgf.training.progress import Progress
from lgf.training.stage_times import FILE, StageTimes

Report = Callable[[Progress], None]
CHECKED = 500
HELD_OUT = 0.05  # the share of the corpus that validates
PREDICTOR_BATCH = 512
CROSSINGS = 20_000
INITIAL = 1000  # sentences that scale the first weights of a sequence autoencoder


def train(
    recipe: str | Path | Recipe,
    out: str | Path,
    resume: bool = False,
    progress: Report | None = None,
) -> ModelBundle:
    """The model that the recipe describes, saved in folder `out` with the seconds of each stage in times.json.

    Intermediate files are in `out`/work.
    With `resume` the training continues from the corpus and checkpoints there. The result is the same as without
    interruption.
    """
    plan = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    grammar = load_grammar(plan.grammar)
    if plan.autoencoder.architecture == "blocks" and not grammar.summand:
        raise LgfError(f"grammar {quoted(grammar.name)} names no summand; add a line 'summand: ...' to it.")
    if plan.conditional is not None:
        require_conditional(grammar)
    work = Path(out) / "work"
    if not resume:
        shutil.rmtree(work, ignore_errors=True)
    times = StageTimes(work / FILE)
    with times.stage("corpus"):
        corpus = recipe_corpus(plan, grammar, work / "corpus", progress)
    n_held_out = held_out(corpus)
    with times.stage("autoencoder"):
        autoencoder = train_autoencoder(plan, grammar, corpus, n_held_out, work, progress)
        tokens = torch.from_numpy(encode(autoencoder, corpus.derivations)).long()
    with times.stage("denoiser"):
        denoiser = train_denoiser(plan, autoencoder, tokens, n_held_out, work, progress)
    with times.stage("predictors"):
        predictors = train_predictors(plan, autoencoder, denoiser, tokens.numpy(), corpus)
    bundle = ModelBundle(
        plan.name, grammar, plan.autoencoder, autoencoder, denoiser, predictors,
        recipe=asdict(plan), metrics={}, seed=plan.seed, versions=_versions(),
    )  # fmt: skip
    if plan.conditional is not None:
        most = max(1, extent(grammar, unpad(grammar, corpus.derivations)).summands)
        conditional, facts = train_conditional(plan.conditional, grammar, most, plan.seed, work, times, progress)
        save_rule_flow(conditional, out, {**facts, "versions": _versions()})
    save_bundle(bundle, out)
    bundle = load_bundle(out)  # with the stored half-precision weights, in which it is measured
    unseen = np.asarray(corpus.derivations[-n_held_out:], dtype=np.int64)
    bundle = replace(bundle, metrics={"exact_reconstruction": exact_share(bundle.autoencoder, unseen)})
    save_bundle(bundle, out)
    shutil.move(work / FILE, Path(out) / FILE)
    shutil.rmtree(work)
    return bundle


def train_autoencoder(
    plan: Recipe,
    grammar: Grammar,
    corpus: Corpus,
    n_held_out: int,
    work: Path | None = None,
    progress: Report | None = None,
) -> Autoencoder:
    """The trained autoencoder; the last `n_held_out` sentences of the corpus are for validation only."""
    settings = plan.autoencoder
    derivations = np.asarray(corpus.derivations, dtype=np.int64)
    described = design(grammar, settings, derivations)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        model = new_autoencoder(described)
        arranged = model.arrange(derivations)
        if isinstance(model, SequenceAutoencoder):
            model.initialise(arranged[:INITIAL])
    behaviour = torch.from_numpy(np.array(corpus.behaviour))
    n_train = len(arranged) - n_held_out
    pool = None
    if isinstance(model, BlockAutoencoder):
        pool = model.practice(arranged[:n_train], CROSSINGS, np.random.default_rng(plan.seed))

    def loss(rows: torch.Tensor) -> torch.Tensor:
        practice = None
        if model.training and pool is not None and isinstance(model, BlockAutoencoder):
            practice = model.recombined(pool, len(rows))
        return autoencoder_loss(model, arranged[rows], behaviour[rows], settings, practice)

    checked = derivations[n_train : n_train + CHECKED]
    fit(
        model, loss, n_train, n_held_out, plan.autoencoder.training, plan.seed, "autoencoder",
        checkpoint=work and work / "autoencoder.safetensors",
        exact=lambda: exact_share(described.with_weights(arrays(model)), checked),
        progress=progress,
    )  # fmt: skip
    return described.with_weights(arrays(model))


def train_denoiser(
    plan: Recipe,
    autoencoder: Autoencoder,
    tokens: torch.Tensor,
    n_held_out: int,
    work: Path | None = None,
    progress: Report | None = None,
) -> Denoiser:
    """The trained denoiser of the corpus's tokens; slots are shuffled in every batch."""
    layout = autoencoder.layout
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        model = flow.Denoiser(layout, plan.denoiser)
    fit(
        model, lambda rows: flow.flow_loss(model, flow.shuffled(layout, tokens[rows])),
        len(tokens) - n_held_out, n_held_out, plan.denoiser.training, plan.seed, "denoiser",
        checkpoint=work and work / "denoiser.safetensors", progress=progress,
    )  # fmt: skip
    return to_denoiser(model)


def train_predictors(
    plan: Recipe,
    autoencoder: Autoencoder,
    denoiser: Denoiser,
    tokens: np.ndarray,
    corpus: Corpus,
) -> dict[str, Predictor]:
    """The trained predictors of order and forcing, except those that are constant in the corpus.

    They are trained on the corpus and on samples of the flow. The samples add sentences that are no equation (order 0)
    and codes that no sentence has.
    """
    grammar = autoencoder.grammar
    drawn = sample(denoiser, plan.predictors.own_samples, plan.seed)
    skeletons = [skeleton(grammar, derivation) for derivation in unpad(grammar, decode(autoencoder, drawn))]
    valid = [s is not None and s.frame.orders[0] <= 2 for s in skeletons]
    labels = {
        "order": ([0 if s is None or s.frame.orders[0] > 2 else s.frame.orders[0] for s in skeletons], corpus.order),
        "forced": ([s is not None and s.forced for s in skeletons], corpus.forced),
    }
    predictors = {}
    for name, (of_drawn, of_corpus) in labels.items():
        if len(np.unique(of_corpus)) < 2:
            continue
        rows = np.ones(len(drawn), dtype=bool) if name == "order" else np.array(valid, dtype=bool)
        x = np.concatenate([drawn[rows], tokens])
        y = np.concatenate([np.asarray(of_drawn, dtype=int)[rows], of_corpus])
        untrained = new_predictor(denoiser.layout, int(y.max()) + 1, plan.seed)
        steps = -(-len(x) // PREDICTOR_BATCH) * plan.predictors.epochs
        rate = plan.predictors.learning_rate
        predictors[name] = train_predictor(untrained, x, y, plan.seed, steps, PREDICTOR_BATCH, rate)
    return predictors


def skeleton(grammar: Grammar, derivation: Derivation) -> Skeleton | None:
    """The derivation's equation, in the lowest possible order; None if it gives no equation."""
    try:
        return skeleton_of(grammar.template, spell(grammar, derivation))
    except NoEquation:
        return None


def held_out(corpus: Corpus) -> int:
    """The number of sentences at the end of the corpus that are for validation only."""
    return max(1, round(HELD_OUT * len(corpus)))


def recipe_corpus(plan: Recipe, grammar: Grammar, folder: Path, progress: Report | None) -> Corpus:
    """The corpus of the recipe, read from the folder, or made and stored there."""
    started = time.monotonic()

    def report(done: int, size: int) -> None:
        if progress is not None and done:
            left = (time.monotonic() - started) / done * (size - done)
            progress(Progress("corpus", done, size, None, None, None, left))

    if not (folder / "corpus.json").is_file():
        make_corpus(grammar, plan.corpus.size, plan.seed, progress=report).save(folder)
    corpus = Corpus.load(folder, grammar)
    if corpus.facts["seed"] != plan.seed or len(corpus) > plan.corpus.size:
        raise LgfError(f"{str(folder)!r} holds another corpus than the recipe asks for; train without resuming.")
    return corpus


def _versions() -> dict[str, str]:
    return {
        "lgf": lgf.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
