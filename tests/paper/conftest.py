"""A small trained model on a small grammar, shared by the tests of this layer."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from lgf.grammar import Grammar, pad, read_grammar, sample, spell, unpad
from lgf.paper.autoencoder.autoencoder import Autoencoder, AutoencoderSettings, design, encode
from lgf.paper.flow.denoiser import Denoiser, DenoiserSettings
from lgf.paper.flow.predictor import Predictor, new_predictor
from lgf.paper.flow.predictor_training import train_predictor
from lgf.paper.training import denoiser as flow
from lgf.paper.training.autoencoder import autoencoder_loss, new_autoencoder
from lgf.paper.training.trained_weights import arrays, to_denoiser

SMALL = """
template: explicit
max_length: 16
summand: T
S -> E [0.7] | (E)/D [0.3]
D -> u | t | (1 + C*u)
E -> L [0.2] | L + N [0.5] | N [0.3]
L -> C | C*u | C*u'
N -> T | T + T | T + T + T
T -> C*M | C*f | C*M*f
M -> u^2 | u^3 | u'^2 | u*u'
f -> sin(Y) | cos(Y) | exp(Y)
Y -> C*t | C*u
"""


@dataclass(frozen=True)
class Small:
    """What was trained, and on what."""

    grammar: Grammar
    derivations: np.ndarray
    autoencoder: Autoencoder
    settings: AutoencoderSettings
    tokens: np.ndarray
    second_order: np.ndarray
    denoiser: Denoiser
    predictor: Predictor


@pytest.fixture(scope="session")
def small() -> Small:
    grammar = read_grammar(SMALL, name="small")
    derivations = pad(grammar, list(dict.fromkeys(sample(grammar, np.random.default_rng(0), 3000))))
    settings = AutoencoderSettings(header_tokens=4, summand_tokens=4, width=64, depth=1, weight=0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        described = design(grammar, settings, derivations)
        model = new_autoencoder(described)
        arranged = model.arrange(derivations)
        pool = model.practice(arranged, 100, np.random.default_rng(0))

        def loss(rows: torch.Tensor) -> torch.Tensor:
            return autoencoder_loss(model, arranged[rows], None, settings, model.recombined(pool, 64))

        _train(model, loss, len(arranged), 64, 350, 8e-3)
        autoencoder = described.with_weights(arrays(model))
        tokens = encode(autoencoder, derivations)
        x1 = torch.from_numpy(tokens).long()
        layout = autoencoder.layout
        denoiser = flow.Denoiser(layout, DenoiserSettings(width=48, depth=2, heads=2))
        _train(
            denoiser, lambda rows: flow.flow_loss(denoiser, flow.shuffled(layout, x1[rows])), len(x1), 256, 250, 4e-3
        )
        second = np.array(["u'" in spell(grammar, d) for d in unpad(grammar, derivations)])
    predictor = train_predictor(new_predictor(layout, 2, seed=0, width=64), tokens, second, 0, 800)
    return Small(grammar, derivations, autoencoder, settings, tokens, second, to_denoiser(denoiser), predictor)


def _train(model, loss, n, batch, steps, rate):
    optimiser = torch.optim.AdamW(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(torch.randint(n, (batch,))).backward()
        optimiser.step()
        schedule.step()
    model.eval()
