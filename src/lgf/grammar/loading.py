"""Loading of grammars from the package's library or from a file."""

from importlib.resources import files
from pathlib import Path

from lgf.errors import LgfError, quoted
from lgf.files import read_bytes
from lgf.grammar.rules import Grammar
from lgf.grammar.text_format import LONGEST_TEXT, read_grammar


def grammar_names() -> tuple[str, ...]:
    """The names of the grammars that come with the package."""
    entries = files("lgf.grammar").joinpath("library").iterdir()
    return tuple(sorted(e.name.removesuffix(".grammar") for e in entries if e.name.endswith(".grammar")))


def load_grammar(name_or_path: str | Path) -> Grammar:
    """The library grammar of this name, or the grammar in the file at this path; LgfError if there is none."""
    if isinstance(name_or_path, str) and name_or_path in grammar_names():
        text = files("lgf.grammar").joinpath("library", f"{name_or_path}.grammar").read_text(encoding="utf-8")
        return read_grammar(text, name=name_or_path)
    path = Path(name_or_path)
    if not path.is_file():
        raise LgfError(
            f"no grammar or file is called {quoted(str(name_or_path))}; give the path of a file or one of "
            f"{', '.join(grammar_names())}."
        )
    return read_grammar(read_bytes(path, 4 * LONGEST_TEXT, links=True).decode(), name=path.stem, where=path.name)
