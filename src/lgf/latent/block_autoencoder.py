"""The default autoencoder: the header and every summand of a sentence are coded apart, summands by one shared coder.

A change of one summand's tokens changes that summand and nothing else, and summands may be exchanged.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from lgf.grammar import Extent, Grammar, decode_blocks, split, unpad
from lgf.latent.layout import Layout


class BlockAutoencoder(nn.Module):
    """Rules of header and summands <-> codes. `arrange` makes [n, header + summands * summand] rule numbers."""

    rivals: Tensor

    def __init__(self, grammar: Grammar, layout: Layout, extent: Extent, width: int, depth: int):
        super().__init__()
        self.grammar = grammar
        self.layout = layout
        self.extent = extent
        self.header = _Coder(extent.header, grammar.n_rules + 1, layout.header, width, depth) if layout.header else None
        self.summand = _Coder(extent.summand, grammar.n_rules + 1, layout.summand, width, depth)
        self.register_buffer("rivals", _rivals(grammar), persistent=False)

    def align(self, arranged: Tensor) -> None:
        """Lets nonterminals that no header, or no summand, of these rows rewrites twice share units at all places.

        Such a choice is then coded by what is chosen, not by where: a neighbour's change does not displace it.
        """
        header, summands = self._cut(arranged)
        if self.header is not None:
            self.header.align(_once(self.rivals, header))
        self.summand.align(_once(self.rivals, summands.flatten(0, 1)))

    def arrange(self, derivations: ArrayLike) -> Tensor:
        """The rows of padded derivations, cut into header and summands; absent slots are all padding."""
        size, padding = self.extent, self.grammar.n_rules
        rows = unpad(self.grammar, derivations)
        out = np.full((len(rows), size.header + size.summands * size.summand), padding)
        for row, derivation in zip(out, rows, strict=True):
            blocks = split(self.grammar, derivation)
            found = Extent(len(blocks.header), len(blocks.summands), max(map(len, blocks.summands), default=0))
            if found.header > size.header or found.summands > size.summands or found.summand > size.summand:
                raise ValueError(f"a sentence has {found} but the model holds at most {size}; leave it out.")
            row[: len(blocks.header)] = blocks.header
            for slot, summand in enumerate(blocks.summands):
                begin = size.header + slot * size.summand
                row[begin : begin + len(summand)] = summand
        return torch.from_numpy(out)

    def latent(self, arranged: Tensor) -> Tensor:
        """The latent z [n, D], neither bounded nor rounded."""
        header, summands = self._cut(arranged)
        parts = [] if self.header is None else [self.header.encode(header)]
        return torch.cat([*parts, self.summand.encode(summands).flatten(1)], 1)

    def reconstruction_loss(self, arranged: Tensor, codes: Tensor) -> Tensor:
        """Mean cross-entropy, over the rules that rival the true one, at the places with a choice.

        The first place of a slot has a choice always: the padding rule there says that the slot is absent.
        """
        padding = self.grammar.n_rules
        header, summands = self._cut(arranged)
        head, slots = self._logits(codes)
        open_slots = self.rivals[summands]
        open_slots[:, :, 0] = self.rivals[padding]
        entropy = _cross_entropy(slots, summands, open_slots)
        if head is not None:
            entropy = torch.cat(
                [entropy, _cross_entropy(head, header, self.rivals[header] & (header != padding)[..., None])]
            )
        return entropy.mean()

    def derive(self, codes: Tensor, allowed: ArrayLike | None, max_order: int | None) -> NDArray[np.int32]:
        """Padded derivations of codes, complete always."""
        head, slots = self._logits(codes)
        if head is None:
            head = torch.zeros(len(codes), 0, self.grammar.n_rules + 1)
        return decode_blocks(self.grammar, head.numpy(), slots.numpy(), allowed, max_order)

    def _logits(self, codes: Tensor) -> tuple[Tensor | None, Tensor]:
        header, slots = self.layout.cut(codes)
        return None if self.header is None else self.header.decode(header), self.summand.decode(slots)

    def _cut(self, arranged: Tensor) -> tuple[Tensor, Tensor]:
        size = self.extent
        return arranged[:, : size.header], arranged[:, size.header :].unflatten(1, (size.summands, size.summand))


class _Coder(nn.Module):
    """Rule numbers [..., length] <-> latent [..., tokens]; each (place, rule) has a unit of input and of output."""

    units: Tensor

    def __init__(self, length: int, rules: int, tokens: int, width: int, depth: int):
        super().__init__()
        self.register_buffer("units", torch.arange(length * rules).view(length, rules))
        self.enter = nn.Embedding(length * rules, width)
        self.down = nn.Sequential(*(_Residual(width) for _ in range(depth)), nn.Linear(width, tokens))
        self.up = nn.Sequential(nn.Linear(tokens, width), *(_Residual(width) for _ in range(depth)))
        self.leave = nn.Linear(width, length * rules)

    def align(self, once: Tensor) -> None:
        self.units[:, once] = self.units[0, once]

    def encode(self, sequence: Tensor) -> Tensor:
        places = torch.arange(sequence.shape[-1])
        return self.down(self.enter(self.units[places, sequence]).sum(-2))

    def decode(self, codes: Tensor) -> Tensor:
        return self.leave(self.up(codes))[..., self.units]


class _Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


def _rivals(grammar: Grammar) -> Tensor:
    """[R, R]: which rules compete with a rule, by sharing its left-hand side; with padding, a summand's first rules."""
    sides = [rule.lhs for rule in grammar.rules] + [grammar.summand[0]]
    table = torch.tensor([[a == b for b in sides] for a in sides])
    table[:-1, -1] = False
    return table


def _once(rivals: Tensor, sequences: Tensor) -> Tensor:
    """[R]: whether a rule's left-hand side is rewritten at most once in every sequence; never for the padding rule."""
    sides = [rivals[rule] for rule in range(len(rivals) - 1)]
    most = [int(side[sequences].logical_and(sequences < len(sides)).sum(-1).max()) for side in sides]
    return torch.tensor([count <= 1 for count in most] + [False])


def _cross_entropy(logits: Tensor, target: Tensor, competing: Tensor) -> Tensor:
    """-log p of the target among the competing, at the places where at least two compete."""
    chosen = competing.sum(-1) > 1
    scores = logits[chosen].masked_fill(~competing[chosen], -torch.inf)
    return nn.functional.cross_entropy(scores, target[chosen], reduction="none")
