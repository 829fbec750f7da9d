"""`flow`: quality and run time of the trained flows: guided samples, predictor training, Taylor approximation."""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.surroundings import load_average, machine, versions
from lgf.grammar import restrict, unpad
from lgf.language.language import Language
from lgf.language.sentences import grammar_frame
from lgf.paper.autoencoder.autoencoder import decode
from lgf.paper.bundle import ModelBundle, load_bundle
from lgf.paper.flow.denoiser import noised
from lgf.paper.flow.guidance import Guide, taylor_log_ratio
from lgf.paper.flow.predictor import new_predictor, predict
from lgf.paper.flow.predictor_training import train_predictor
from lgf.paper.flow.sampling import sample
from lgf.trained.folders import model_names

SAMPLES = 1000
POINTS = 10_000
STEPS = 200  # of a predictor, as in a search
LONGER = 800  # steps of a well-trained predictor, to compare the approximation with the exact ratio


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--model", action="append", choices=model_names(), help="(all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")


def main(args: argparse.Namespace) -> None:
    """Prints the results of each model."""
    report: dict[str, Any] = {
        "machine": machine(), "versions": versions(), "load": load_average(),
    }  # fmt: skip
    for name in args.model or model_names():
        report[name] = figures = measured(load_bundle(name))
        print(f"\n{name}")
        for what, value in figures.items():
            print(f"  {what:72s} {value:.3f}")
    if args.json is not None:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


def measured(bundle: ModelBundle) -> dict[str, float]:
    """Seconds by the clock, and correlations."""
    denoiser = bundle.denoiser
    tokens = sample(denoiser, POINTS, 0, steps=10)
    derivations = decode(bundle.autoencoder, tokens)
    lengths = np.array([len(d) for d in unpad(bundle.grammar, derivations)], float)
    scores = (lengths - lengths.mean()) / lengths.std()
    began = time.perf_counter()
    predictor = train_predictor(new_predictor(denoiser.layout, 0, seed=0), tokens, scores, 0, STEPS)
    found = {f"s to train a predictor on {POINTS} points": time.perf_counter() - began}
    predictor = train_predictor(predictor, tokens, scores, 0, LONGER)
    found["correlation of its predictions (sentence length) with the truth"] = float(
        np.corrcoef(predict(predictor, tokens), scores)[0, 1]
    )
    guides = [Guide(predictor, -0.5)]
    if "order" in bundle.predictors:
        guides.append(Guide(bundle.predictors["order"], 2))
    order = 2 if "order" in bundle.predictors else 1
    frame = grammar_frame(order, False)
    language = Language(bundle.grammar, frame, False, restrict(bundle.grammar, order=order))
    began = time.perf_counter()
    rows = decode(bundle.autoencoder, sample(denoiser, SAMPLES, 1, guides, 10), language.allowed, language.max_order)
    skeletons = [language.skeleton(d) for d in unpad(bundle.grammar, rows)]
    found[f"s for {SAMPLES} guided samples decoded to skeletons, Taylor"] = time.perf_counter() - began
    found[f"share of them that are an equation of order {order}, Taylor"] = np.mean([s is not None for s in skeletons])
    rng = np.random.default_rng(0)
    t = rng.random(200, dtype=np.float32)
    x = noised(denoiser.layout, tokens[:200], t, rng)
    masked = x == denoiser.layout.mask
    for name, guide in {"length": guides[:1], "order": guides[1:]}.items():
        if guide:
            exact, taylor = (
                ratio(guide, x, t, masked)[masked][:, :-1] for ratio in (exact_log_ratio, taylor_log_ratio)
            )
            found[f"correlation of Taylor's log-ratios with the exact ones, {name}"] = float(
                np.corrcoef(exact.flatten(), taylor.flatten())[0, 1]
            )
    return found


def exact_log_ratio(guides: Sequence[Guide], x: np.ndarray, t: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The exact log-ratios [n, D, states]: every change of the tokens `where` [n, D] is evaluated."""
    states = guides[0].predictor.layout.states
    ratio = np.zeros((*x.shape, states), dtype=np.float32)
    for guide in guides:
        before = guide.log_probability(guide.predictor(x, t), t)
        for token, state in np.ndindex(x.shape[1], states):
            changed = x.copy()
            changed[:, token] = state
            after = guide.log_probability(guide.predictor(changed, t), t)
            ratio[:, token, state] += np.where(where[:, token], after - before, 0)
    return ratio
