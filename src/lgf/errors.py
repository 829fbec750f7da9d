"""The error for mistakes of the user, and the quotation of user text in messages."""

import reprlib

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


class LgfError(ValueError):
    """A request that cannot be met; the message says in one sentence what was wrong, what was got and what to do."""


class Stopped(Exception):
    """The user stopped the run; the message tells how to resume it."""


def quoted(value: object) -> str:
    """The repr of the value, shortened in the middle to 60 characters.

    >>> quoted("cos(2*t")
    "'cos(2*t'"
    >>> len(quoted("u + " * 100))
    60
    """
    return _REPR.repr(value)
