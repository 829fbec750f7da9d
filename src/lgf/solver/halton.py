"""The Halton set: points that fill a cube evenly, for trial values of several constants."""

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=128)
def halton(dimensions: int, n: int) -> np.ndarray:
    """Points of the Halton set in the unit cube, without the first (all zeros)."""
    return np.column_stack([_van_der_corput(base, n) for base in _primes(dimensions)])


def _van_der_corput(base: int, n: int) -> np.ndarray:
    """The numbers 1 to n, their digits mirrored at the point. SciPy has it, in a module that takes long to import."""
    left, total, weight = np.arange(1, n + 1), np.zeros(n), 1 / base
    while left.any():
        left, digit = np.divmod(left, base)
        total += digit * weight
        weight /= base
    return total


def _primes(n: int) -> list[int]:
    """The first n primes."""
    primes: list[int] = []
    number = 2
    while len(primes) < n:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return primes
