"""What depends on a grammar alone, kept on disk beside the compiled kernels.

Terms and headers of a grammar take longer to work out than a small search. They are stored under a key of the grammar,
the allowed rules and the sources of this package, so nothing stale is ever read. Without a cache folder they are worked
out in every process. The files are pickles, as those of numba beside them are: who can write into this folder can have
any code run.
"""

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from lgf.compilation import CACHED
from lgf.errors import LgfError
from lgf.files import write_atomically
from lgf.grammar import Grammar
from lgf.grammar.machine import draw_all

Result = TypeVar("Result")

MOST_FILES = 100  # the oldest beyond them are deleted
_SOURCES = ("lgf.expression", "lgf.grammar", "lgf.language", "lgf.solver", "lgf.solver.kernels")


def stored(make: Callable[..., Result]) -> Callable[..., Result]:
    """The function of (grammar, allowed rules as bytes, numbers), looked up in memory, then on disk, then called."""

    @lru_cache(maxsize=16)
    def get(grammar: Grammar, allowed: bytes, *numbers: float) -> Result:
        folder = _folder()
        if folder is None:
            return make(grammar, allowed, *numbers)
        key = repr((make.__module__, make.__qualname__, grammar, allowed, numbers, _digest_of_sources()))
        file = folder / f"lgf-{sha256(key.encode()).hexdigest()[:32]}.grammar"
        with suppress(OSError, ValueError, EOFError, pickle.UnpicklingError):  # none yet, or cut off
            return pickle.loads(file.read_bytes())  # noqa: S301
        result = make(grammar, allowed, *numbers)
        with suppress(OSError, LgfError):
            _write(file, pickle.dumps(result))
        return result

    return get


def _folder() -> Path | None:
    path = draw_all.stats.cache_path if CACHED else None
    return None if path is None else Path(path)


@cache
def _digest_of_sources() -> str:
    digest = sha256()
    for package in _SOURCES:
        for file in sorted(files(package).iterdir(), key=lambda f: f.name):
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _write(file: Path, content: bytes) -> None:
    """Writes the file, and deletes the oldest beyond MOST_FILES."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)
    others = sorted(file.parent.glob("lgf-*.grammar"), key=lambda f: f.stat().st_mtime)
    for old in others[:-MOST_FILES]:
        old.unlink(missing_ok=True)
