"""`autoencoder`: train the autoencoder of a recipe alone, in pieces; the share of unseen sentences it reconstructs."""

import argparse
import json
import shutil
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.checked_decoding import checked_share
from benchmarks.surroundings import ROOT, machine, versions
from lgf.grammar import load_grammar
from lgf.paper.autoencoder.autoencoder import design, exact_share
from lgf.paper.autoencoder.sequence_autoencoder import SequenceAutoencoder
from lgf.paper.training.recipe import Recipe, load_recipe
from lgf.paper.training.stages import held_out, recipe_corpus, train_autoencoder
from lgf.training.progress import Progress
from lgf.training.stage_times import FILE, StageTimes

RESULTS = ROOT / "benchmarks" / "results" / "paper_autoencoder.json"
SEEN = 2000  # training sentences that are reconstructed for comparison


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder; a training in it is resumed, as by lgf train")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="begin with this one if --out has none")
    parser.add_argument("--measure", action="store_true", help="only measure what has been trained so far")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="(%(default)s)")


def main(args: argparse.Namespace) -> None:
    """Trains on one thread, prints each epoch, and writes the figures of the recipe's name into the file."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the seconds of this piece are recorded
    recipe = load_recipe(args.recipe)
    assert isinstance(recipe, Recipe)
    own = args.out / "work" / "autoencoder.safetensors"
    if args.checkpoint is not None and not own.exists():
        own.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(args.checkpoint, own)
    figures = measured(recipe, args.out, train=not args.measure)
    found = json.loads(args.json.read_text()) if args.json.is_file() else {}
    found[recipe.name] = {"machine": machine(), "versions": versions(), **figures}
    args.json.write_text(json.dumps(found, indent=1) + "\n")


def measured(recipe: Recipe, out: Path, train: bool = True) -> dict[str, Any]:
    """Exact shares in half precision, as a model is stored, seconds, and the curve of the training."""
    work, curve = out / "work", out / "curve.jsonl"
    times = StageTimes(work / FILE)
    grammar = load_grammar(recipe.grammar)

    def report(progress: Progress) -> None:
        if progress.stage != "corpus":
            line = json.dumps(asdict(progress))
            print(line, flush=True)
            with curve.open("a") as file:
                file.write(line + "\n")

    with times.stage("corpus"):
        corpus = recipe_corpus(recipe, grammar, work / "corpus", report)
    n_held_out = held_out(corpus)
    settings = recipe.autoencoder
    if not train:  # the checkpoint with the least validation loss is all that is read then
        settings = replace(settings, training=replace(settings.training, epochs=0))
    with times.stage("autoencoder"):
        trained = train_autoencoder(replace(recipe, autoencoder=settings), grammar, corpus, n_held_out, work, report)
    half = {name: value.astype(np.float16).astype(np.float32) for name, value in trained.weights.items()}
    rows = np.asarray(corpus.derivations, dtype=np.int64)
    stored = design(grammar, recipe.autoencoder, rows).with_weights(half)
    assert isinstance(stored, SequenceAutoencoder)
    epochs = [json.loads(line) for line in curve.read_text().splitlines()]
    return {
        "recipe": asdict(recipe.autoencoder),
        "sentences": len(corpus),
        "unseen": n_held_out,
        "exact_reconstruction": exact_share(stored, rows[-n_held_out:]),
        "exact_reconstruction_checked": checked_share(stored, rows[-n_held_out:]),
        "exact_reconstruction_seen": exact_share(stored, rows[:SEEN]),
        "weights_bytes": sum(2 * value.size for value in half.values()),
        "seconds": times.seconds(),
        "curve": [{key: line[key] for key in ("epoch", "loss", "validation_loss", "exact")} for line in epochs],
    }
