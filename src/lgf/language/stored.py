"""What depends on a grammar alone, kept on disk beside the compiled kernels.

Terms and headers of a grammar take longer to work out than a small search. They are stored under a key of the grammar,
the allowed rules and the sources of this package, so nothing stale is ever read. Without a cache folder they are worked
out in every process.
"""

import marshal
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lgf.compilation import CACHED
from lgf.expression.tree import Expression
from lgf.grammar import Grammar
from lgf.grammar.machine import draw_all

Result = TypeVar("Result")
Plain = Any  # numbers, text and tuples of them, as `marshal` writes them

MOST_FILES = 100  # the oldest beyond them are deleted
_LEAVES = ("number", "constant", "symbol")
_SOURCES = ("lgf.expression", "lgf.grammar", "lgf.language", "lgf.solver", "lgf.solver.kernels")


class Numbers(dict[Expression, int]):
    """Number of every expression that was looked up, and of those inside it, smaller ones first."""

    def __init__(self) -> None:
        self.nodes: list[Plain] = []  # (head, data or numbers of the children)

    def __missing__(self, expression: Expression) -> int:
        args = tuple(self[a] if isinstance(a, Expression) else a for a in expression.args)
        self.nodes.append((expression.head, args))
        self[expression] = len(self.nodes) - 1
        return self[expression]


def _expressions(nodes: list[Plain]) -> list[Expression]:
    """The expressions by number; each is made once."""
    made: list[Expression] = []
    for head, args in nodes:
        made.append(Expression(head, args if head in _LEAVES else tuple([made[a] for a in args])))
    return made


def array_to_plain(array: np.ndarray) -> Plain:
    """An array as `marshal` writes it."""
    return array.dtype.str, array.shape, array.tobytes()


def array_from_plain(plain: Plain) -> np.ndarray:
    """The array that `array_to_plain` took."""
    kind, shape, data = plain
    return np.frombuffer(data, kind).reshape(shape).copy()  # kernels are compiled for arrays that can be written


def stored(
    to_plain: Callable[[Result, Numbers], Plain], from_plain: Callable[[Plain, list[Expression]], Result]
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """A decorator for functions of (grammar, allowed rules as bytes, numbers): in memory, then on disk, then made.

    `to_plain` writes numbers for expressions, `from_plain` gets the expressions by number.
    """

    def decorate(make: Callable[..., Result]) -> Callable[..., Result]:
        @lru_cache(maxsize=16)
        def get(grammar: Grammar, allowed: bytes, *numbers: float) -> Result:
            folder = _folder()
            if folder is None:
                return make(grammar, allowed, *numbers)
            key = repr((make.__qualname__, grammar, allowed, numbers, _digest_of_sources()))
            file = folder / f"lgf-{sha256(key.encode()).hexdigest()[:32]}.grammar"
            with suppress(OSError, ValueError, EOFError, TypeError):  # none yet, or cut off
                nodes, plain = marshal.loads(file.read_bytes())
                return from_plain(plain, _expressions(nodes))
            result, number_of = make(grammar, allowed, *numbers), Numbers()
            with suppress(OSError):
                plain = to_plain(result, number_of)
                _write(file, marshal.dumps((number_of.nodes, plain)))
            return result

        return get

    return decorate


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
    """Writes the file in one step, because other processes may read it, and deletes the oldest beyond MOST_FILES."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(f".{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(file)
    others = sorted(file.parent.glob("lgf-*.grammar"), key=lambda f: f.stat().st_mtime)
    for old in others[:-MOST_FILES]:
        old.unlink(missing_ok=True)
