"""A sound record, and a way to spoil it: what the tests of bad input begin with."""

import numpy as np

T = np.linspace(0.0, 1.0, 10)
U = np.exp(-T)
NAN = float("nan")


def changed(array, at, value):
    """The array with another value at one place."""
    copy = np.array(array, dtype=float)
    copy[at] = value
    return copy
