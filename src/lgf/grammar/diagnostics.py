"""Errors in the text of a grammar, with line and column."""

import difflib
from dataclasses import dataclass

from lgf.errors import LgfError, quoted


class GrammarError(LgfError):
    """An error in the text of a grammar; the message shows the line with a caret under the column."""

    def __init__(self, complaint: str, where: str, number: int, line: str, column: int):
        start = max(0, column - 80)
        shown = "".join(c if c.isprintable() else " " for c in line[start : column + 80]).rstrip()
        caret = " " * (column - start) + "^"
        super().__init__(f"{where}, line {number}, column {column + 1}: {complaint}\n    {shown}\n    {caret}")
        self.complaint = complaint
        self.line = number
        self.column = column + 1


@dataclass(frozen=True)
class Place:
    """A position in the text of a grammar."""

    where: str
    number: int
    line: str
    column: int

    def at(self, column: int) -> "Place":
        """The place at another column of the same line."""
        return Place(self.where, self.number, self.line, column)

    def error(self, complaint: str) -> GrammarError:
        """The error with this message at this place, to be raised."""
        return GrammarError(complaint, self.where, self.number, self.line, self.column)


def like(word: str, known: tuple[str, ...]) -> str:
    """The hint "did you mean ...?" with the nearest known word; empty if none is near."""
    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {quoted(close[0])}?)" if close else ""
