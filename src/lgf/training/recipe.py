"""Training recipes of the conditional flow and of the ranking of right-hand sides, and of one training loop."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from lgf.settings.ranges import Count, Positive, Tally, Weight
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


@dataclass(frozen=True)
class RowSettings:
    """The number of simulated systems of a ranking of right-hand sides."""

    systems: Count = 1000


@dataclass(frozen=True)
class RowRecipe:
    """All settings of the training of a ranking of the right-hand sides of systems."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    grammar: str
    seed: Tally = 0
    rows: RowSettings = RowSettings()
