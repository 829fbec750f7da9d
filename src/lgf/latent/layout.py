"""Where the tokens of a sentence stand: a header block and exchangeable blocks, one for each summand slot."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

HEADER = -1
"""The number of the header among the blocks; slots are numbered from 0."""


@dataclass(frozen=True)
class Layout:
    """Token counts: `header` of the header, then `summand` of each of `slots` slots. The paper's has no slots."""

    header: int
    slots: int = 0
    summand: int = 0
    levels: int = 9

    @property
    def tokens(self) -> int:
        """D, the number of tokens of one sentence."""
        return self.header + self.slots * self.summand

    @property
    def mask(self) -> int:
        """The masked state: the number after the last level."""
        return self.levels

    @property
    def states(self) -> int:
        """S, the number of states of one token: its levels and the mask."""
        return self.levels + 1

    def blocks(self) -> NDArray[np.int64]:
        """The block [tokens] each token belongs to: HEADER or the number of its slot."""
        slots = np.repeat(np.arange(self.slots), self.summand)
        return np.concatenate([np.full(self.header, HEADER), slots])

    def cut(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(header [n, header, ...], slots [n, slots, summand, ...]) of values [n, tokens, ...]."""
        return x[:, : self.header], x[:, self.header :].unflatten(1, (self.slots, self.summand))

    def shuffled(self, tokens: Tensor) -> Tensor:
        """The tokens [n, tokens] with the slots of each row in a random order, by torch's current generator."""
        if self.slots < 2:
            return tokens
        header, slots = self.cut(tokens)
        order = torch.rand(slots.shape[:2]).argsort(1)[:, :, None].expand_as(slots)
        return torch.cat([header, slots.gather(1, order).flatten(1)], 1)
