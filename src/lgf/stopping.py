"""`StopToken`: the one way to end a search early, with the best equation so far; and the signals that ask it to.

A search asks the token between two fits, because an exception inside a compiled kernel becomes a SystemError.
"""

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from lgf.compilation import search_clock


class StopToken:
    """Whether a search is to end: somebody asked it to, or its time is up.

    `elsewhere` tells whether it was asked from outside, such as by a file that another process makes.
    """

    def __init__(self, elsewhere: Callable[[], bool] = lambda: False) -> None:
        self._elsewhere = elsewhere
        self._asked = False
        self._end = math.inf

    def ask(self) -> None:
        """Asks the search to end."""
        self._asked = True

    @property
    def asked(self) -> bool:
        """Whether somebody asked; an answer of yes is for good."""
        self._asked = self._asked or self._elsewhere()
        return self._asked

    def limit(self, seconds: float | None) -> None:
        """Gives the search so many seconds from now; compilations of kernels do not count."""
        self._end = math.inf if seconds is None else search_clock() + seconds

    @property
    def out_of_time(self) -> bool:
        """Whether the time is up."""
        return search_clock() > self._end


@contextmanager
def asked_by_ctrl_c(stop: StopToken) -> Iterator[None]:
    """The first Ctrl-C asks the token; a later one raises KeyboardInterrupt."""

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.ask()

    try:
        previous = signal.signal(signal.SIGINT, handle)
    except ValueError:  # only the main thread receives signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Handles SIGTERM and SIGHUP like Ctrl-C, so that a batch time limit or closed terminal keeps the best so far."""
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handled = [s for s in signals if signal.getsignal(s) is signal.SIG_DFL]  # nohup ignores SIGHUP
    for number in handled:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
