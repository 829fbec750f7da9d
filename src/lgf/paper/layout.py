"""The layout of a sentence's tokens: a header block and one exchangeable block per summand slot."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

HEADER = -1
"""The block number of the header; slots are numbered from 0."""


@dataclass(frozen=True)
class Layout:
    """Token counts: `header` for the header, then `summand` for each of `slots` slots (none in the paper)."""

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
        """The number of the mask state, after the last level."""
        return self.levels

    @property
    def states(self) -> int:
        """S, the number of states of one token: its levels and the mask."""
        return self.levels + 1

    def blocks(self) -> NDArray[np.int64]:
        """The block number [tokens] of each token: HEADER or its slot."""
        slots = np.repeat(np.arange(self.slots), self.summand)
        return np.concatenate([np.full(self.header, HEADER), slots])

    def cut(self, x: Any) -> tuple[Any, Any]:
        """(header [n, header, ...], slots [n, slots, summand, ...]) of an array or tensor [n, tokens, ...]."""
        return x[:, : self.header], x[:, self.header :].reshape(len(x), self.slots, self.summand, *x.shape[2:])
