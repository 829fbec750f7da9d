"""Training recipes, read from TOML files; a misspelt key is an error."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from lgf.errors import LgfError, quoted
from lgf.latent.autoencoder import AutoencoderSettings
from lgf.latent.denoiser import DenoiserSettings
from lgf.latent.rule_flow import RuleFlowSettings
from lgf.settings.ranges import Count, Positive, Tally, Weight
from lgf.settings.toml_tables import described, read_table
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
class CorpusRecipe:
    """The training corpus, and the share of its sentences held out for validation."""

    size: Annotated[int, Field(ge=10)] = 50_000
    seed: Tally = 0
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05


@dataclass(frozen=True)
class AutoencoderRecipe(AutoencoderSettings):
    """The settings of the autoencoder, and its training.

    With `compared` it is trained a second time, without the behavioural loss, to measure what that changes.
    """

    training: TrainingRecipe = TrainingRecipe(epochs=20)
    compared: bool = True


@dataclass(frozen=True)
class DenoiserRecipe(DenoiserSettings):
    """The settings of the denoiser, and its training."""

    training: TrainingRecipe = TrainingRecipe(epochs=20, batch=512, learning_rate=2e-3)


@dataclass(frozen=True)
class PredictorRecipe:
    """The static predictors: order, autonomy, forcing; `own_samples` of the flow are added to the corpus."""

    width: Count = 128
    own_samples: Tally = 8000
    training: TrainingRecipe = TrainingRecipe(epochs=6, batch=512)


@dataclass(frozen=True)
class ConditionalRecipe:
    """The conditional flow: its simulated pairs, of which `held_out` validate, its network and its training."""

    pairs: PairRecipe = PairRecipe()
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.02
    network: RuleFlowSettings = RuleFlowSettings()
    training: TrainingRecipe = TrainingRecipe(epochs=10, learning_rate=2e-3, weight_decay=0.02, patience=3)


@dataclass(frozen=True)
class Recipe:
    """All settings of a training; without `conditional` the model has no conditional flow."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    grammar: str
    seed: Tally = 0
    corpus: CorpusRecipe = CorpusRecipe()
    autoencoder: AutoencoderRecipe = AutoencoderRecipe()
    denoiser: DenoiserRecipe = DenoiserRecipe()
    predictors: PredictorRecipe = PredictorRecipe()
    conditional: ConditionalRecipe | None = None


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


def load_recipe(path: str | Path) -> Recipe | RowRecipe:
    """The recipe in the file; LgfError names the first wrong key. A grammar path is relative to the file.

    A recipe with a table [rows] is one of a ranking of right-hand sides.
    """
    file = Path(path)
    table = read_table(file)
    recipe = described(RowRecipe if "rows" in table else Recipe, table, file.name)
    beside = file.parent / recipe.grammar
    try:
        there = beside.is_file()
    except OSError as error:
        raise LgfError(f"{file.name} says grammar = {quoted(recipe.grammar)}: {error.strerror}.") from error
    return replace(recipe, grammar=str(beside)) if there else recipe
