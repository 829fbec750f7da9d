"""Training recipes of the conditional flow, and of one training loop."""

from dataclasses import dataclass
from typing import Literal

from lgf.settings.ranges import Count, Positive, Weight
from lgf.training.pairs import PairRecipe


@dataclass(frozen=True)
class TrainingRecipe:
    """Settings of one training; the learning rate falls to zero over the epochs, as a cosine.

    The optimiser "muon" moves matrices along all directions of their momentum alike, so that rare ones are learned too.
    """

    epochs: Count
    batch: Count = 256
    learning_rate: Positive = 3e-3
    weight_decay: Weight = 1e-3
    optimiser: Literal["adam", "muon"] = "adam"


@dataclass(frozen=True)
class ConditionalRecipe:
    """The conditional flow: its simulated pairs, the width of its network, and the epochs of its training."""

    pairs: PairRecipe = PairRecipe()
    width: Count = 192
    epochs: Count = 10
