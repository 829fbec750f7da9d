"""How a model is trained, read from a TOML file in which every misspelt key is an error."""

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lgf.errors import LgfError, quoted
from lgf.latent.autoencoder import AutoencoderSettings
from lgf.latent.flow import DenoiserSettings, Noise

LONGEST = 10_000  # characters; dotted keys take time with their square


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrainingRecipe(_Table):
    """One training: at most `epochs`, ended early when `patience` epochs bring no smaller validation loss.

    schedule "cosine" falls to zero over the epochs; "plateau" is the paper's, times 0.9 after a quarter of the
    patience without progress, not below a tenth.
    """

    epochs: int = Field(ge=1)
    batch: int = Field(default=256, ge=1)
    learning_rate: float = Field(default=3e-3, gt=0)
    weight_decay: float = Field(default=1e-3, ge=0)
    schedule: Literal["cosine", "plateau"] = "cosine"
    patience: int = Field(default=1000, ge=1)


class CorpusRecipe(_Table):
    """The sentences to train on, and the share of them kept apart to validate."""

    size: int = Field(default=50_000, ge=10)
    seed: int = 0
    held_out: float = Field(default=0.05, gt=0, lt=1)


class AutoencoderRecipe(_Table):
    """The autoencoder; see `lgf.latent.autoencoder.AutoencoderSettings`."""

    architecture: Literal["blocks", "sequence"] = "blocks"
    levels: int = Field(default=9, ge=3, le=64)
    header_tokens: int = Field(default=4, ge=1)
    summand_tokens: int = Field(default=8, ge=1)
    width: int = Field(default=128, ge=1)
    depth: int = Field(default=1, ge=1)
    positions: int = Field(default=17, ge=1)
    scale: float = Field(default=0.1, ge=0)
    weight: float = Field(default=1e-3, ge=0)
    training: TrainingRecipe = TrainingRecipe(epochs=20)

    def settings(self) -> AutoencoderSettings:
        """The same as plain settings."""
        return AutoencoderSettings(**self.model_dump(exclude={"training"}))


class DenoiserRecipe(_Table):
    """The denoiser; see `lgf.latent.flow.DenoiserSettings`."""

    architecture: Literal["blocks", "mlp"] = "blocks"
    width: int = Field(default=128, ge=1)
    depth: int = Field(default=3, ge=1)
    heads: int = Field(default=4, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    noise: Noise = Noise.MASK
    training: TrainingRecipe = TrainingRecipe(epochs=20, batch=512, learning_rate=2e-3)

    def settings(self) -> DenoiserSettings:
        """The same as plain settings."""
        return DenoiserSettings(**self.model_dump(exclude={"training"}))


class PredictorRecipe(_Table):
    """The static predictors: order, autonomy, forcing; `own_samples` of the flow are added to the corpus."""

    width: int = Field(default=128, ge=1)
    own_samples: int = Field(default=8000, ge=0)
    training: TrainingRecipe = TrainingRecipe(epochs=6, batch=512)


class Recipe(_Table):
    """Everything that decides what a trained model is."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    grammar: str
    seed: int = 0
    corpus: CorpusRecipe = CorpusRecipe()
    autoencoder: AutoencoderRecipe = AutoencoderRecipe()
    denoiser: DenoiserRecipe = DenoiserRecipe()
    predictors: PredictorRecipe = PredictorRecipe()


def load_recipe(path: str | Path) -> Recipe:
    """The recipe in the file; LgfError names the first key that is wrong. A grammar's path is taken from there."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        if len(text) > LONGEST:
            raise LgfError(f"{file.name} has {len(text)} characters; a recipe has at most {LONGEST}.")
        table = tomllib.loads(text)
    except LgfError:
        raise
    except (ValueError, RecursionError) as error:  # no text, no TOML, too deep, or a number of too many digits
        raise LgfError(f"{file.name} is not TOML: {error}.") from error
    try:
        recipe = Recipe.model_validate(table)
    except ValidationError as error:
        raise LgfError(_complaint(file.name, error)) from error
    beside = file.parent / recipe.grammar
    try:
        there = beside.is_file()
    except OSError as error:
        raise LgfError(f"{file.name} says grammar = {quoted(recipe.grammar)}: {error.strerror}.") from error
    return recipe.model_copy(update={"grammar": str(beside)}) if there else recipe


def _complaint(file: str, error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        known = _known(first["loc"][:-1])
        return f"{file} has a key {quoted(key)} that no recipe has; the keys there are {', '.join(known)}."
    if first["type"] == "missing":
        return f"{file} lacks the key {quoted(key)}; write it."
    return f"{file} says {key} = {quoted(first['input'])}: {first['msg'].lower()}."


def _known(place: tuple[int | str, ...]) -> list[str]:
    """The keys of the table at that place of a recipe."""
    table: type[BaseModel] = Recipe
    for key in place:
        inner = table.model_fields[str(key)].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        table = inner
    return list(table.model_fields)
