"""The one error that a user can cause, and how errors repeat what the user wrote."""

import reprlib

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


class LgfError(ValueError):
    """What was asked cannot be done; the message is one sentence: what was wrong, what was got, what to do."""


def quoted(value: object) -> str:
    """The value as Python writes it, without its middle where it is longer than 60 characters.

    >>> quoted("cos(2*t")
    "'cos(2*t'"
    >>> len(quoted("u + " * 100))
    60
    """
    return _REPR.repr(value)
