"""The doors through which a user's texts and files come in, each with what may come out of it."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.fuzzing import folders, texts
from lgf.data import Knowledge, Problem, check, make_forcing, observations_from_arrays, read_observations
from lgf.errors import LgfError
from lgf.expression.parse import ReadingError, read_equations
from lgf.grammar import GrammarError, grammar_names, load_grammar, read_grammar, sample, spell
from lgf.grammar.tables import tables
from lgf.paper.autoencoder.autoencoder import decode
from lgf.paper.bundle import load_bundle
from lgf.paper.flow.sampling import sample as sample_tokens
from lgf.paper.training.recipe import load_recipe
from lgf.runs.folder import JOURNAL, front_rows, read_journal, read_request, read_run
from lgf.runs.journal import Journal
from lgf.runs.presets import grammar_named, settings_in
from lgf.runs.starting_equations import starting_proposals
from lgf.search.settings import PRESETS

RECIPES = Path(__file__).parents[2] / "recipes"
SETTINGS = """
smoothing = "whittaker"
all_modes = true
[search]
population = 50
max_seconds = 3.5
[fit]
method = "nelder_mead"
iterations = 30
[prediction]
origins = [0.5, 0.8]
[[proposers]]
name = "flow"
share = 1
"""
STATEMENTS = ({"required": "x: x*y"}, {"forbidden": "y: x^2"}, {"shared": "x: x*y = -2.5 y: x*y"})
MODEL = "b1"
TIMES = np.linspace(0.0, 4.0, 20)


@dataclass(frozen=True)
class Door:
    """A way in: `make` an input, `enter` with it (writing in a folder of its own), complaints that are documented.

    sound   inputs that are accepted
    share   of all inputs; fast doors get most
    limit   CPU seconds that one input may take
    """

    name: str
    share: float
    limit: float
    make: Callable[[Random], Any]
    enter: Callable[[Any, Path], None]
    refusals: tuple[type[Exception], ...]
    sound: tuple[Any, ...]

    def input(self, seed: int, index: int) -> Any:
        """The input of this number: the same in every process."""
        return self.make(Random(f"{seed}/{self.name}/{index}"))


def make_doors(scratch: Path) -> tuple[Door, ...]:
    """Every door; a small run is made in the scratch folder, if it is not there, to be damaged."""
    sound = scratch / "sound"
    if not sound.exists():
        folders.write_small_run(sound)
    run = folders.contents(sound, ("run.json", JOURNAL, "equation.json"))
    with as_file(files("lgf").joinpath("models", MODEL)) as folder:
        bundle = folders.contents(folder, ("model.json", "weights.safetensors"))
    grammars = tuple(load_grammar(name).text for name in grammar_names())
    read_by_train = (path for path in sorted(RECIPES.glob("*.toml")) if path.stem != "systems")
    recipes = tuple(path.read_text(encoding="utf-8") for path in read_by_train)
    complaints, sound_recipes = (LgfError, GrammarError), tuple(text.encode() for text in recipes)
    settings = partial(texts.recipe, known=(SETTINGS,))
    return (
        Door("equation", 0.28, 1.0, texts.equation, enter_equation, (ReadingError, LgfError), texts.EQUATIONS[1:3]),
        Door("knowledge", 0.05, 1.0, texts.knowledge, enter_knowledge, (LgfError,), STATEMENTS),
        Door("forcing", 0.25, 1.0, texts.forcing, enter_forcing, (LgfError,), texts.FORMULAS),
        Door("grammar", 0.20, 1.0, partial(texts.grammar, known=grammars), enter_grammar, (GrammarError,), grammars),
        Door("table", 0.12, 1.0, texts.table, enter_table, (LgfError,), (texts.TABLE,)),
        Door("recipe", 0.04, 1.0, partial(texts.recipe, known=recipes), enter_recipe, complaints, sound_recipes),
        Door("settings", 0.03, 1.0, settings, enter_settings, (LgfError,), (SETTINGS.encode(),)),
        Door("run", 0.025, 2.0, partial(folders.run_folder, sound=run), enter_run, (LgfError,), (run,)),
        Door("bundle", 0.005, 4.0, partial(folders.bundle_folder, sound=bundle), enter_bundle, (LgfError,), (bundle,)),
    )


def enter_equation(text: str, folder: Path) -> None:
    """Reads the equations; the known ones, and one in twenty, are then proposed to a search, as `--start` does."""
    read_equations(text)
    if text in texts.EQUATIONS or zlib.crc32(text.encode("utf-8", "surrogatepass")) % 20 == 0:
        problem = Problem(observations_from_arrays(TIMES, np.exp(-TIMES), forcing="sin(t)"))
        starting_proposals([text], load_grammar("standard"), problem)


def enter_knowledge(statement: dict[str, str], folder: Path) -> None:
    """Reads the statement for two states, describes it, and puts it upon a system."""
    values = np.column_stack([np.exp(-TIMES), np.cos(TIMES)])
    problem = Problem(observations_from_arrays(TIMES, values, states=["x", "y"]), Knowledge(**statement))
    problem.knowledge.describe()
    starting_proposals(["x' = C*x + C*x*y; y' = C*x*y + C*y"], load_grammar("standard"), problem)


def enter_forcing(text: str, folder: Path) -> None:
    """Reads the formula and takes its values."""
    forcing = make_forcing(text, TIMES)
    assert forcing is not None
    forcing.values(TIMES)


def enter_grammar(text: str, folder: Path) -> None:
    """Reads the grammar, writes and reads it again, and draws two sentences."""
    grammar = read_grammar(text)
    assert read_grammar(grammar.text).fingerprint == grammar.fingerprint
    if tables(grammar, weighted=True).shortest[0] <= grammar.max_length:  # else weights of 0 leave no sentence
        for derivation in sample(grammar, np.random.default_rng(0), 2):
            spell(grammar, derivation)


def enter_table(data: bytes, folder: Path) -> None:
    """Reads the table and checks it, as `lgf check` does."""
    path = folder / "data.csv"
    path.write_bytes(data)
    check(Problem(read_observations(path).observations))


def enter_recipe(data: bytes, folder: Path) -> None:
    """Reads the recipe and its grammar, as `lgf train` does first."""
    path = folder / "recipe.toml"
    path.write_bytes(data)
    grammar_named(load_recipe(path).grammar)


def enter_settings(data: bytes, folder: Path) -> None:
    """Reads the settings, as `lgf discover --settings` does."""
    path = folder / "settings.toml"
    path.write_bytes(data)
    settings_in(path, PRESETS["default"])


def enter_run(files: folders.Folder, folder: Path) -> None:
    """Reads the run and its journal, shows its equations and solves the chosen one, as `lgf simulate` does."""
    where = folder / "run"
    folders.write(files, where)
    Journal(lines=read_journal(where))
    read_request(where, resume=True)
    run = read_run(where)
    front_rows(run)
    run.trajectory()


def enter_bundle(files: folders.Folder, folder: Path) -> None:
    """Loads the model and draws two sentences from it."""
    where = folder / "model"
    folders.write(files, where)
    bundle = load_bundle(where)
    decode(bundle.autoencoder, sample_tokens(bundle.denoiser, 2, 0))
