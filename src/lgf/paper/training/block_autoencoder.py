"""The block autoencoder in torch, its loss, and the rows that it practises on."""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from lgf.grammar import Extent, Grammar, pad, unpad
from lgf.paper.derivations.arrangement import arrange
from lgf.paper.derivations.crossover import crossover
from lgf.paper.derivations.rule_slots import left_sides, used_once
from lgf.paper.layout import Layout


class BlockAutoencoder(nn.Module):
    """Rules of header and summands <-> codes. `arrange` makes [n, header + summands * summand] rule numbers."""

    rivals: Tensor
    left_sides: Tensor
    once: Tensor

    def __init__(self, grammar: Grammar, layout: Layout, extent: Extent, width: int, depth: int):
        super().__init__()
        self.grammar = grammar
        self.layout = layout
        self.extent = extent
        rules = grammar.n_rules + 1
        self.header = _Coder(extent.header, rules, layout.header, width, depth) if layout.header else None
        self.summand = _Coder(extent.summand, rules, layout.summand, width, depth)
        self.register_buffer("rivals", _rivals(grammar), persistent=False)
        self.register_buffer("left_sides", torch.from_numpy(left_sides(grammar)), persistent=False)
        self.register_buffer("once", torch.from_numpy(used_once(grammar)), persistent=False)

    def arrange(self, derivations: ArrayLike) -> Tensor:
        """Rows of rule numbers, split into header and summands; absent slots are padding."""
        return torch.from_numpy(arrange(self.grammar, self.extent, derivations))

    def recombined(self, arranged: Tensor, n: int) -> Tensor:
        """`n` rows recombined from the headers and first summands of these rows, drawn by torch's current generator.

        Rows from `practice` hold each block equally often, so rare blocks are learned as well as frequent ones.
        """
        header, summands = self._cut(arranged)
        slots = torch.randint(len(arranged), (n, self.extent.summands))
        heads = header[torch.randint(len(arranged), (n,))]
        return torch.cat([heads, summands[:, 0][slots].flatten(1)], 1)

    def practice(self, arranged: Tensor, crossings: int, rng: np.random.Generator) -> Tensor:
        """Rows that hold every header, and every summand in the first slot, about equally often.

        `crossings` exchanges of subtrees add new summands, because a corpus never contains all of them.
        """
        header, summands = self._cut(arranged)
        heads = header.unique(dim=0) if self.extent.header else header[:1]
        blocks = summands.flatten(0, 1).unique(dim=0)
        known = [summand for summand in unpad(self.grammar, blocks.numpy()) if summand]
        new = crossover(self.grammar, known, crossings, rng, self.extent.summand)
        blocks = torch.cat([blocks, torch.from_numpy(pad(self.grammar, new, self.extent.summand)).long()]).unique(dim=0)
        n = max(len(heads), len(blocks))
        rows = torch.full((n, arranged.shape[1]), self.grammar.n_rules)
        head, slots = self._cut(rows)
        head[:] = heads[torch.arange(n) % len(heads)]
        slots[:, 0] = blocks[torch.arange(n) % len(blocks)]
        return rows

    def place(self, z: Tensor) -> Tensor:
        """Vectors of rows z [n, D] for measuring distances. Slots are summed, so their order does not matter."""
        header, slots = self.layout.cut(z)
        return torch.cat([header, slots.sum(1)], 1)

    def latent(self, arranged: Tensor) -> Tensor:
        """The latent z [n, D], neither bounded nor rounded."""
        header, summands = self._cut(arranged)
        parts = [] if self.header is None else [self.header.encode(header, self._header_places(header))]
        slots = self.summand.encode(summands, _occurrences(self.left_sides, summands))
        return torch.cat([*parts, slots.flatten(1)], 1)

    def reconstruction_loss(self, arranged: Tensor, codes: Tensor) -> Tensor:
        """Mean cross-entropy over the rules that compete with the true one, where there is a choice.

        The first place of a slot always has a choice: the padding rule there means that the slot is absent.
        """
        padding = self.grammar.n_rules
        header, summands = self._cut(arranged)
        head, slots = self.layout.cut(codes)
        competing = self.rivals[summands]
        competing[:, :, 1:] &= (summands[:, :, 1:] != padding)[..., None]
        competing[:, :, 0] = self.rivals[padding]
        logits = self.summand.decode(slots)
        entropy = _cross_entropy(logits, summands, _occurrences(self.left_sides, summands), competing)
        if self.header is not None:
            competing = self.rivals[header] & (header != padding)[..., None]
            header_entropy = _cross_entropy(self.header.decode(head), header, self._header_places(header), competing)
            entropy = torch.cat([entropy, header_entropy])
        return entropy.mean()

    def _header_places(self, header: Tensor) -> Tensor:
        return torch.where(self.once[header], 0, torch.arange(header.shape[-1]))

    def _cut(self, arranged: Tensor) -> tuple[Tensor, Tensor]:
        size = self.extent
        return arranged[:, : size.header], arranged[:, size.header :].unflatten(1, (size.summands, size.summand))


class _Coder(nn.Module):
    """Rule numbers [..., length] and their places <-> latent [..., tokens]; one network unit per (place, rule)."""

    def __init__(self, length: int, rules: int, tokens: int, width: int, depth: int):
        super().__init__()
        self.rules = rules
        self.enter = nn.Embedding(length * rules, width)
        self.down = nn.Sequential(*(_Residual(width) for _ in range(depth)), nn.Linear(width, tokens))
        self.up = nn.Sequential(nn.Linear(tokens, width), *(_Residual(width) for _ in range(depth)))
        self.leave = nn.Linear(width, length * rules)

    def encode(self, sequence: Tensor, places: Tensor) -> Tensor:
        return self.down(self.enter(places * self.rules + sequence).sum(-2))

    def decode(self, codes: Tensor) -> Tensor:
        """Logits [..., length, rules] by place."""
        return self.leave(self.up(codes)).unflatten(-1, (-1, self.rules))


class _Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


def _occurrences(left_sides: Tensor, sequence: Tensor) -> Tensor:
    """For each position of sequences [..., L], how often its nonterminal was rewritten before."""
    here = left_sides[sequence]
    return (here[..., :, None] == here[..., None, :]).tril(-1).sum(-1)


def _rivals(grammar: Grammar) -> Tensor:
    """[R, R]: rules that share a left-hand side; padding competes with the first rules of a summand."""
    sides = [rule.lhs for rule in grammar.rules] + [grammar.summand[0]]
    table = torch.tensor([[a == b for b in sides] for a in sides])
    table[:-1, -1] = False
    return table


def _cross_entropy(logits: Tensor, target: Tensor, places: Tensor, competing: Tensor) -> Tensor:
    """-log p of the target among the competing rules, where there are at least two; logits are read at its place."""
    chosen = competing.sum(-1) > 1
    row = torch.arange(chosen[..., 0].numel()).view(*chosen.shape[:-1], 1) * logits.shape[-2] + places
    # The gradient of an embedding is much cheaper than that of indexing.
    scores = nn.functional.embedding(row[chosen], logits.flatten(0, -2)).masked_fill(~competing[chosen], -torch.inf)
    return nn.functional.cross_entropy(scores, target[chosen], reduction="none")
