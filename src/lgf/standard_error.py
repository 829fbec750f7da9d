"""Standard error as a stream that never fails: a terminal that is closed or a disk that is full loses no result."""

import io
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def _present() -> Any:
    """The present sys.stderr; None if it was closed when Python began.

    While rich draws a live display, sys.stderr is its proxy, which writes to our stream: the file behind it is meant.
    """
    return getattr(sys.stderr, "rich_proxied_file", sys.stderr)


class _StandardError(io.TextIOBase):
    """sys.stderr, as it is at the time; what it does not take is lost."""

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError, AttributeError):
            _present().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            _present().flush()

    def isatty(self) -> bool:
        return _present() is not None and _present().isatty()

    def fileno(self) -> int:
        return _present().fileno()

    def __getattribute__(self, name: str) -> Any:
        if name == "encoding":  # rich asks which characters it may draw
            return getattr(_present(), "encoding", "utf-8")
        return super().__getattribute__(name)


STANDARD_ERROR: Any = _StandardError()


def make_console(stdout: bool = False) -> "Console":
    """A console on standard error or output, without markup: Rich would take a name such as 'time [h]' for it."""
    from rich.console import Console  # takes long, and `lgf --help` needs none

    return Console(file=None if stdout else STANDARD_ERROR, markup=False, emoji=False, highlight=False)
