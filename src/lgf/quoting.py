"""What a user wrote, as an error repeats it."""

import reprlib

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def quoted(value: object) -> str:
    """The value as Python writes it, without its middle where it is longer than 60 characters.

    >>> quoted("cos(2*t")
    "'cos(2*t'"
    >>> len(quoted("u + " * 100))
    60
    """
    return _REPR.repr(value)
