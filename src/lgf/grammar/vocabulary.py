"""The words of sentences: numbers, variables, functions and signs."""

import re
from collections.abc import Iterator

from lgf.expression.functions import FUNCTIONS

STATE_WORD, INPUT_WORD = "u", "F"  # the names of the state and of a known input in grammars
OTHER_WORDS = ("v", "w")  # in grammars for systems: states other than the row's own
SIGNS = frozenset("+-*/^(),")

_WORD = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)|(?P<name>[A-Za-z_][A-Za-z_0-9]*'*)|(?P<sign>[-+*/^(),])")
_BLANK = re.compile(r"[ \t]*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")
_STATE = re.compile(r"(?:u|x[0-9]+)('*)")
_ROW_STATE = re.compile(r"([uvw])('*)")


class UnknownCharacter(ValueError):
    """A character that begins no word, and its column (from 0)."""

    def __init__(self, character: str, column: int):
        super().__init__(f"{character!r} is not a character of equations")
        self.character = character
        self.column = column


def words(text: str) -> Iterator[tuple[str, int]]:
    """The words of `text`, each with its column (from 0); names may be unknown."""
    position = 0
    while True:
        blank = _BLANK.match(text, position)
        position = blank.end() if blank else position
        if position == len(text):
            return
        word = _WORD.match(text, position)
        if word is None:
            raise UnknownCharacter(text[position], position)
        yield word.group(), position
        position = word.end()


def is_number(word: str) -> bool:
    """Whether the word is a plain decimal number."""
    return _NUMBER.fullmatch(word) is not None


def derivative(word: str) -> int | None:
    """The number of primes of a state (u, u', x0, x1'', ...); None if the word is not a state."""
    state = _STATE.fullmatch(word)
    return None if state is None else len(state.group(1))


def row_state(word: str) -> tuple[str, int] | None:
    """(u, v or w; number of primes) of a state in a grammar for systems; None if the word is not a state."""
    state = _ROW_STATE.fullmatch(word)
    return None if state is None else (state.group(1), len(state.group(2)))


def is_terminal(word: str, system: bool = False) -> bool:
    """Whether the word belongs to the vocabulary: C, t, F, a state, a function, `diff`, a number or a sign.

    The states of a grammar for systems are u, v and w, and it has no `diff`.
    """
    if word in SIGNS or word in ("C", "t", INPUT_WORD) or word in FUNCTIONS or is_number(word):
        return True
    return row_state(word) is not None if system else word == "diff" or derivative(word) is not None


def write(sentence: list[str]) -> str:
    """The words as one text, with blanks only between words that would otherwise run together."""
    parts: list[str] = []
    for word in sentence:
        if parts and word not in SIGNS and parts[-1] not in SIGNS:
            parts.append(" ")
        parts.append(word)
    return "".join(parts)
