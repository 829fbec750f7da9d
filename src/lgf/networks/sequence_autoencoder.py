"""The paper's autoencoder in torch: convolutions, recurrent decoder, binary cross-entropy."""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from lgf.grammar import Grammar
from lgf.latent.layout import Layout
from lgf.latent.sequence_autoencoder import KERNELS, RECURRENT, RESIDUAL


class SequenceAutoencoder(nn.Module):
    """One-hot rules [n, N, R] <-> codes [n, D]; `arrange` returns padded derivations unchanged."""

    def __init__(self, grammar: Grammar, layout: Layout):
        super().__init__()
        self.grammar = grammar
        self.layout = layout
        rules, length = grammar.n_rules + 1, grammar.max_length
        layers: list[nn.Module] = []
        for kernel in KERNELS:
            layers += [nn.Conv1d(rules, rules, kernel), nn.ReLU()]
        left = length - sum(KERNELS) + len(KERNELS)
        self.encoder = nn.Sequential(
            *layers, nn.Flatten(), nn.Linear(rules * left, RESIDUAL), _Residual(), _Residual(),
            nn.Linear(RESIDUAL, layout.tokens),
        )  # fmt: skip
        self.enter = nn.Sequential(nn.Linear(layout.tokens, RECURRENT), nn.ELU())
        self.recurrent = nn.GRU(RECURRENT, RECURRENT, num_layers=2, bidirectional=True, batch_first=True)
        self.leave = nn.Linear(2 * RECURRENT, rules)

    def arrange(self, derivations: ArrayLike) -> Tensor:
        """The padded derivations [n, N]."""
        return torch.as_tensor(np.array(derivations), dtype=torch.long)

    def place(self, z: Tensor) -> Tensor:
        """Vectors of rows z [n, D] for measuring distances: z itself."""
        return z

    def latent(self, arranged: Tensor) -> Tensor:
        """The latent z [n, D], neither bounded nor rounded."""
        return self.encoder(self._one_hot(arranged).transpose(1, 2))

    def reconstruction_loss(self, arranged: Tensor, codes: Tensor) -> Tensor:
        """Mean binary cross-entropy of all entries of the one-hot matrix."""
        return functional.binary_cross_entropy_with_logits(self._logits(codes), self._one_hot(arranged))

    def _logits(self, codes: Tensor) -> Tensor:
        repeated = self.enter(codes)[:, None].expand(-1, self.grammar.max_length, -1)
        return self.leave(self.recurrent(repeated)[0])

    def _one_hot(self, arranged: Tensor) -> Tensor:
        return functional.one_hot(arranged, self.grammar.n_rules + 1).float()


class _Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(RESIDUAL, RESIDUAL), nn.ReLU(), nn.Linear(RESIDUAL, RESIDUAL))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.inner(x))
