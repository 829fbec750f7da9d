"""Recipes of trained models, read from TOML files; a misspelt key is an error."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from lgf.errors import LgfError, quoted
from lgf.paper.autoencoder.autoencoder import AutoencoderSettings
from lgf.paper.flow.denoiser import DenoiserSettings
from lgf.settings.ranges import Count, Positive, Tally
from lgf.settings.toml_tables import described, read_table
from lgf.training.recipe import ConditionalRecipe, TrainingRecipe


@dataclass(frozen=True)
class CorpusRecipe:
    """The number of sentences in the training corpus."""

    size: Annotated[int, Field(ge=10)] = 50_000


@dataclass(frozen=True)
class AutoencoderRecipe(AutoencoderSettings):
    """The settings of the autoencoder, and its training."""

    training: TrainingRecipe = TrainingRecipe(epochs=20)


@dataclass(frozen=True)
class DenoiserRecipe(DenoiserSettings):
    """The settings of the denoiser, and its training."""

    training: TrainingRecipe = TrainingRecipe(epochs=20, batch=512, learning_rate=2e-3)


@dataclass(frozen=True)
class PredictorRecipe:
    """The training of the static predictors (order, forcing) on the corpus and `own_samples` of the flow."""

    own_samples: Tally = 8000
    epochs: Count = 6
    learning_rate: Positive = 3e-3


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


def load_recipe(path: str | Path) -> Recipe:
    """The recipe in the file; LgfError names the first wrong key. A grammar path is relative to the file."""
    file = Path(path)
    recipe = described(Recipe, read_table(file), file.name)
    beside = file.parent / recipe.grammar
    try:
        there = beside.is_file()
    except OSError as error:
        raise LgfError(f"{file.name} says grammar = {quoted(recipe.grammar)}: {error.strerror}.") from error
    return replace(recipe, grammar=str(beside)) if there else recipe
