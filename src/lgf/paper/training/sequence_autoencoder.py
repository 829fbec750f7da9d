"""The paper's autoencoder in torch: convolutions, a recurrent decoder, and its loss."""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from lgf.grammar import Grammar
from lgf.paper.autoencoder.sequence_autoencoder import KERNELS, RECURRENT, RESIDUAL
from lgf.paper.layout import Layout

SPREAD = 0.6


class SequenceAutoencoder(nn.Module):
    """One-hot rules [n, N, R] <-> codes [n, D]; `arrange` returns padded derivations unchanged."""

    rivals: Tensor

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
        self.register_buffer("rivals", _rivals(grammar), persistent=False)

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
        """Mean cross-entropy over all places among the rules of the nonterminal that is rewritten there.

        Decoding chooses among the same rules. Binary cross-entropy over all rules, as in the paper, first learns how
        frequent each rule is, and meanwhile moves the codes of all sentences to one point, where they stay.
        """
        logits = self._logits(codes).masked_fill(~self.rivals[arranged], -torch.inf)
        return functional.cross_entropy(logits.flatten(0, 1), arranged.flatten())

    def _logits(self, codes: Tensor) -> Tensor:
        at_every_place = self.enter(codes)[:, None].expand(-1, self.grammar.max_length, -1)
        return self.leave(self.recurrent(at_every_place)[0])

    def initialise(self, arranged: Tensor) -> None:
        """Draws weights by which the latent of these rows varies by SPREAD around 0 in each channel.

        With the weights that torch draws it varies by 0.002, so that all sentences have one code.
        """
        for name, parameter in (*self.encoder.named_parameters(), *self.enter.named_parameters()):
            if "inner" in name:  # of a residual layer, which begins near the identity
                continue
            if "weight" in name:
                nn.init.kaiming_normal_(parameter, nonlinearity="relu")
            else:
                nn.init.zeros_(parameter)
        for name, parameter in self.recurrent.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
                continue
            for gate in parameter.chunk(3):
                (nn.init.orthogonal_ if "hh" in name else nn.init.xavier_uniform_)(gate)
        last = self.encoder[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            # The input is the same at every place, so units that forget at different speeds tell places apart.
            for name in ("bias_ih_l0", "bias_ih_l0_reverse"):
                update = self.recurrent.get_parameter(name)[RECURRENT : 2 * RECURRENT]
                update.uniform_(1, self.grammar.max_length - 1).log_()
            z = self.latent(arranged)
            scale = SPREAD / z.std(0)
            last.bias.copy_(-z.mean(0) * scale)
            last.weight.mul_(scale[:, None])

    def _one_hot(self, arranged: Tensor) -> Tensor:
        return functional.one_hot(arranged, self.grammar.n_rules + 1).float()


class _Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(RESIDUAL, RESIDUAL), nn.ReLU(), nn.Linear(RESIDUAL, RESIDUAL))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.inner(x))


def _rivals(grammar: Grammar) -> Tensor:
    """[R, R]: which rules rewrite the same nonterminal; padding is alone."""
    sides = [*(rule.lhs for rule in grammar.rules), None]
    return torch.tensor([[a == b for b in sides] for a in sides])
