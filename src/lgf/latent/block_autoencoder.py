"""The default autoencoder: the header and every summand of a sentence are coded apart, summands by one shared coder.

A change of one summand's tokens changes that summand and nothing else, and summands may be exchanged.
"""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from lgf.grammar import Extent, Grammar, decode_blocks, split, unpad
from lgf.grammar.blocks import header_items
from lgf.latent.layout import Layout


class BlockAutoencoder(nn.Module):
    """Rules of header and summands <-> codes. `arrange` makes [n, header + summands * summand] rule numbers."""

    rivals: Tensor

    def __init__(self, grammar: Grammar, layout: Layout, extent: Extent, width: int, depth: int):
        super().__init__()
        self.grammar = grammar
        self.layout = layout
        self.extent = extent
        outer = [[item for item in items if isinstance(item, str)] for items in header_items(grammar)]
        inner = [[symbol for symbol in rule.body if symbol in grammar.nonterminals] for rule in grammar.rules]
        header = _units(grammar, extent.header, (grammar.start,), outer)
        summand = _units(grammar, extent.summand, grammar.summand, inner)
        self.header = _Coder(header, layout.header, width, depth) if layout.header else None
        self.summand = _Coder(summand, layout.summand, width, depth)
        self.register_buffer("rivals", _rivals(grammar), persistent=False)

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

    def recombined(self, arranged: Tensor, n: int) -> Tensor:
        """`n` arranged rows made of headers and summands of these rows, each drawn by torch's current generator.

        Drawn from rows of distinct blocks (`distinct`) they let rare blocks be learned as well as frequent ones.
        """
        header, summands = self._cut(arranged)
        slots = torch.randint(len(arranged), (n, self.extent.summands))
        heads = header[torch.randint(len(arranged), (n,))]
        return torch.cat([heads, summands[:, 0][slots].flatten(1)], 1)

    def distinct(self, arranged: Tensor) -> Tensor:
        """Rows that hold every header and, in their first slot, every summand of the given ones equally often."""
        header, summands = self._cut(arranged)
        heads = header.unique(dim=0) if self.extent.header else header[:1]
        blocks = summands.flatten(0, 1).unique(dim=0)
        n = max(len(heads), len(blocks))
        rows = torch.full((n, arranged.shape[1]), self.grammar.n_rules)
        head, slots = self._cut(rows)
        head[:] = heads[torch.arange(n) % len(heads)]
        slots[:, 0] = blocks[torch.arange(n) % len(blocks)]
        return rows

    def place(self, z: Tensor) -> Tensor:
        """Where rows z [n, D] lie for measuring distances, in whatever order their summands stand: slots add up."""
        header, slots = self.layout.cut(z)
        return torch.cat([header, slots.sum(1)], 1)

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

    def __init__(self, units: Tensor, tokens: int, width: int, depth: int):
        super().__init__()
        # Numbered without gaps, so that no unit is stored in vain.
        self.register_buffer("units", units.unique(return_inverse=True)[1], persistent=False)
        count = int(self.units.max()) + 1
        self.enter = nn.Embedding(count, width)
        self.down = nn.Sequential(*(_Residual(width) for _ in range(depth)), nn.Linear(width, tokens))
        self.up = nn.Sequential(nn.Linear(tokens, width), *(_Residual(width) for _ in range(depth)))
        self.leave = nn.Embedding(count, width)
        self.bias = nn.Embedding(count, 1)

    def encode(self, sequence: Tensor) -> Tensor:
        places = torch.arange(sequence.shape[-1])
        return self.down(self.enter(self.units[places, sequence]).sum(-2))

    def decode(self, codes: Tensor) -> Tensor:
        # Gathering the weights is far cheaper than gathering the logits, whose gradient would be scattered.
        weight, bias = self.leave(self.units).flatten(0, 1), self.bias(self.units).flatten()
        return nn.functional.linear(self.up(codes), weight, bias).unflatten(-1, self.units.shape)


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


def _units(grammar: Grammar, length: int, start: tuple[str, ...], bodies: list[list[str]]) -> Tensor:
    """[length, R]: the unit of each rule at each place; one for all places if its left-hand side is met once only.

    Such a choice is then coded by what is chosen, not by where: the change of a neighbour does not displace it.
    """
    most = {name: dict.fromkeys(grammar.nonterminals, 0) for name in grammar.nonterminals}
    for _ in range(2 * len(most)):
        for rule, body in zip(grammar.rules, bodies, strict=True):
            for name in most:
                count = (rule.lhs == name) + sum(most[symbol][name] for symbol in body)
                most[rule.lhs][name] = max(most[rule.lhs][name], min(count, 2))
    once = [sum(most[symbol][rule.lhs] for symbol in start) <= 1 for rule in grammar.rules] + [False]
    units = torch.arange(length * len(once)).view(length, len(once))
    units[:, once] = units[:1, once].clone()
    return units


def _cross_entropy(logits: Tensor, target: Tensor, competing: Tensor) -> Tensor:
    """-log p of the target among the competing, at the places where at least two compete."""
    chosen = competing.sum(-1) > 1
    scores = logits[chosen].masked_fill(~competing[chosen], -torch.inf)
    return nn.functional.cross_entropy(scores, target[chosen], reduction="none")
