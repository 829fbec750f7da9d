"""Training recipes of the conditional flow and of the ranking of right-hand sides, and of one training loop."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from lgf.settings.ranges import Count, Positive, Tally, Weight
from lgf.trained.rule_flow import RuleFlowSettings
from lgf.training.pairs import PairRecipe
from lgf.training.system_simulation import SystemSimulation


@dataclass(frozen=True)
class TrainingRecipe:
    """Settings of one training; it ends early after `patience` epochs without a smaller validation loss.

    schedule "cosine" falls to zero over the epochs; "plateau" (the paper's) multiplies the learning rate by 0.9 after
    each quarter of the patience without progress, down to a tenth. optimiser "muon" moves matrices along all directions
    of their momentum alike, so that rare ones are learned too.
    """

    epochs: Count
    batch: Count = 256
    learning_rate: Positive = 3e-3
    weight_decay: Weight = 1e-3
    schedule: Literal["cosine", "plateau"] = "cosine"
    patience: Count = 1000
    optimiser: Literal["adam", "muon"] = "adam"


@dataclass(frozen=True)
class ConditionalRecipe:
    """The conditional flow: its simulated pairs, of which `held_out` validate, its network and its training."""

    pairs: PairRecipe = PairRecipe()
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.02
    network: RuleFlowSettings = RuleFlowSettings()
    training: TrainingRecipe = TrainingRecipe(epochs=10, learning_rate=2e-3, weight_decay=0.02, patience=3)


@dataclass(frozen=True)
class RowSettings:
    """The simulated systems of a ranking of right-hand sides, of which `held_out` validate, and its penalty."""

    systems: Count = 1000
    chunk: Count = 25
    simulation: SystemSimulation = SystemSimulation()
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.2
    penalty: Weight = 1.0  # on the squared weights of the scaled features


@dataclass(frozen=True)
class RowRecipe:
    """All settings of the training of a ranking of the right-hand sides of systems."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    grammar: str
    seed: Tally = 0
    rows: RowSettings = RowSettings()
