"""Folders of trained models: their names, their grammars, and files of bounded size. Nothing is unpickled."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from lgf.errors import LgfError, quoted
from lgf.files import read_bytes
from lgf.grammar import Grammar, read_grammar

LARGEST = 100_000_000  # bytes of a model; enough for the paper's perceptron
FACTS = "model.json"
# Errors caused by damaged facts.
DAMAGED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError, RecursionError)


def model_names() -> tuple[str, ...]:
    """The names of the models that come with the package."""
    entries = files("lgf").joinpath("models")
    if not entries.is_dir():
        return ()
    return tuple(sorted(e.name for e in entries.iterdir() if e.joinpath(FACTS).is_file()))


def is_shipped(name_or_path: str | Path) -> bool:
    """Whether this is the name of a model that comes with the package."""
    return isinstance(name_or_path, str) and name_or_path in model_names()


def model_folder(name_or_path: str | Path) -> Any:
    """The folder of the model of that name in the package, or that folder."""
    if is_shipped(name_or_path):
        return files("lgf").joinpath("models", str(name_or_path))
    return Path(name_or_path)


def no_model(name_or_path: str | Path, needed: str = FACTS) -> LgfError:
    """The error of a folder without the files that a model needs."""
    return LgfError(
        f"no model is called {quoted(str(name_or_path))}; give a folder with {needed}, or one of "
        f"{', '.join(model_names()) or 'none installed'}."
    )


def grammar_of(facts: dict[str, Any]) -> Grammar:
    """The grammar in the facts of a model; LgfError if it is not the one that its fingerprint announces."""
    grammar = read_grammar(facts["grammar"], name=facts["name"])
    if grammar.fingerprint != facts["fingerprint"]:
        raise LgfError("has a grammar whose fingerprint is not the announced one")
    return grammar


def model_grammar(name_or_path: str | Path) -> Grammar:
    """The grammar of a model; LgfError if its facts are missing or damaged."""
    folder = model_folder(name_or_path)
    if not folder.joinpath(FACTS).is_file():
        raise no_model(name_or_path)
    try:
        return grammar_of(json.loads(read_bytes(folder.joinpath(FACTS), LARGEST, links=True)))
    except LgfError as error:
        raise damaged_model(folder, error) from error
    except DAMAGED as error:
        raise undescribed_model(folder, error) from error


def fingerprint_of(name_or_path: str | Path) -> str | None:
    """The fingerprint of a model's grammar, read without reading the grammar; None if the folder holds no model."""
    file = model_folder(name_or_path).joinpath(FACTS)
    return json.loads(read_bytes(file, LARGEST, links=True)).get("fingerprint") if file.is_file() else None


def damaged_model(folder: Any, error: LgfError) -> LgfError:
    """The error of a model that is not what it says."""
    reason = str(error).splitlines()[0]  # a grammar's error shows its line below
    return LgfError(f"the model in {str(folder)!r} {reason}; get it again.")


def undescribed_model(folder: Any, error: Exception) -> LgfError:
    """The error of a model whose facts cannot be read."""
    return LgfError(f"{FACTS} in {str(folder)!r} does not describe a model: {error!r}; get it again.")
