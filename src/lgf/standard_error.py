"""Standard error as a stream that never fails: a terminal that is closed or a disk that is full loses no result."""

import io
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class _StandardError(io.TextIOBase):
    """sys.stderr, as it is at the time; what it does not take is lost."""

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError, AttributeError):  # AttributeError: it was closed when Python began
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr is not None and sys.stderr.isatty()

    def fileno(self) -> int:
        return sys.stderr.fileno()

    def __getattribute__(self, name: str) -> Any:
        if name == "encoding":  # rich asks which characters it may draw
            return getattr(sys.stderr, "encoding", "utf-8")
        return super().__getattribute__(name)


STANDARD_ERROR: Any = _StandardError()


def make_console(stdout: bool = False) -> "Console":
    """A console on standard error or output, without markup: Rich would take a name such as 'time [h]' for it."""
    from rich.console import Console  # takes long, and `lgf --help` needs none

    return Console(file=None if stdout else STANDARD_ERROR, markup=False, emoji=False, highlight=False)
