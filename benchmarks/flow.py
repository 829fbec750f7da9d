"""`flow`: quality and run time of the trained flows: guided samples, predictor training, Taylor approximation."""

import argparse
import json
import time
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
from lgf.paper.flow.guidance import Guide, exact_log_ratio, taylor_log_ratio
from lgf.paper.flow.predictor import new_predictor, predict
from lgf.paper.flow.predictor_training import train_predictor
from lgf.paper.flow.sampling import sample
from lgf.settings.flow import FlowSettings, SamplingSettings
from lgf.trained.folders import model_names

SAMPLES = 1000
POINTS = 10_000
LONGER = 800  # steps of a well-trained predictor, to compare exact and Taylor guidance


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
    tokens = sample(denoiser, POINTS, 0, settings=SamplingSettings(steps=10))
    derivations = decode(bundle.autoencoder, tokens)
    lengths = np.array([len(d) for d in unpad(bundle.grammar, derivations)], float)
    scores = (lengths - lengths.mean()) / lengths.std()
    began = time.perf_counter()
    predictor = train_predictor(
        new_predictor(denoiser.layout, 0, seed=0), tokens, scores, 0, FlowSettings().predictor_steps
    )
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
    for exact in (True, False):
        settings = SamplingSettings(steps=10, exact_guidance=exact)
        began = time.perf_counter()
        rows = decode(
            bundle.autoencoder, sample(denoiser, SAMPLES, 1, guides, settings), language.allowed, language.max_order
        )
        skeletons = [language.skeleton(d) for d in unpad(bundle.grammar, rows)]
        how = "exact ratio" if exact else "Taylor"
        found[f"s for {SAMPLES} guided samples decoded to skeletons, {how}"] = time.perf_counter() - began
        found[f"share of them that are an equation of order {order}, {how}"] = np.mean(
            [s is not None for s in skeletons]
        )
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
