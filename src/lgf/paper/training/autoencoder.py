"""Autoencoders in torch, and their losses."""

import torch
from torch import Tensor

from lgf.paper.autoencoder.autoencoder import AutoencoderSettings, Design
from lgf.paper.training.block_autoencoder import BlockAutoencoder
from lgf.paper.training.quantisation import bounded, quantised
from lgf.paper.training.sequence_autoencoder import SequenceAutoencoder

Autoencoder = BlockAutoencoder | SequenceAutoencoder


def new_autoencoder(design: Design) -> Autoencoder:
    """An untrained autoencoder of this design."""
    if design.extent is None:
        return SequenceAutoencoder(design.grammar, design.layout)
    settings = design.settings
    return BlockAutoencoder(design.grammar, design.layout, design.extent, settings.width, settings.depth)


def autoencoder_loss(
    model: Autoencoder,
    arranged: Tensor,
    behaviour: Tensor | None,
    settings: AutoencoderSettings,
    practice: Tensor | None = None,
) -> Tensor:
    """Reconstruction loss of the arranged and practice rows, plus the behavioural loss of the arranged rows."""
    rows = arranged if practice is None else torch.cat([arranged, practice])
    z = model.latent(rows)
    reconstruction = model.reconstruction_loss(rows, quantised(z, model.layout.levels))
    if behaviour is None or settings.weight == 0:
        return reconstruction
    place = model.place(_bounded(model, z[: len(arranged)]))
    return reconstruction + settings.weight * behavioural_loss(place, behaviour, settings.scale)


def behavioural_loss(z: Tensor, behaviour: Tensor, scale: float) -> Tensor:
    """Mean over all pairs of (|z_i - z_j| - scale d_VF(i, j))^2, d_VF = max(log |b_i - b_j|^2, 0)."""
    target = squared_distances(behaviour.double()).clamp(min=1).log().float()
    return ((squared_distances(z) + 1e-6).sqrt() - scale * target).square().mean()


def squared_distances(x: Tensor) -> Tensor:
    """|x_i - x_j|^2 [n, n] from the Gram matrix, clipped at zero."""
    gram = x @ x.T
    squares = gram.diagonal()
    return (squares[:, None] + squares - 2 * gram).clamp(min=0)


def _bounded(model: Autoencoder, z: Tensor) -> Tensor:
    levels = model.layout.levels
    return bounded(z, levels) / (levels // 2)
