"""Fuzz of the equation reader: no text may make it do anything but return or raise ReadingError, each under 50 ms.

`python benchmarks/fuzz_reader.py [count]` reads 100,000 random texts, nested ones of 10,000 levels included.
"""

import random
import sys
import time
from collections.abc import Iterator

from lgf.ode.reading import ReadingError, read_equation

WORDS = """u u' u'' t F F(t) C C1 x0 x1' ( ) + - * / ^ ** = , ' sin( cos( exp( log( sqrt( abs( diff( Derivative( du/dt
pi 1 2.5 1e9 1e-300 9 0 e é ∂ __class__ lambda: [ ] { \\ ; _"""
PIECES = (*WORDS.split(), " ", "\n", "\0", '"')
OPENINGS = ("(", "sin(", "u^", "-", "2*(", "diff(", "((", "u+(", "exp(u*", "9^", "u(", "1/(", "Derivative(u(t), (")


def texts(count: int, seed: int = 0) -> Iterator[str]:
    """Random texts: any characters, plausible pieces, mutated equations, and deep or long ones."""
    rng = random.Random(seed)
    equation = "2*u'' + u'*(1 - u^2) + 5*exp(-0.5*t)*u = 2*sin(0.5*t) + F(t)/(1 + C*diff(u, t, 2))"
    for i in range(count):
        kind = i % 20
        if kind < 4:
            yield "".join(chr(rng.randrange(0x20, 0x2FFF)) for _ in range(rng.randrange(60)))
        elif kind < 12:
            yield "".join(rng.choices(PIECES, k=int(rng.paretovariate(0.7)) % 2000))
        elif kind < 18:
            characters = list(equation)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(characters))
                characters[at : at + rng.randrange(3)] = rng.choice(PIECES)
            yield "".join(characters)
        elif kind == 18:
            depth = rng.choice((10, 60, 70, 300, 2_000, 10_000))
            opening = rng.choice(OPENINGS)
            yield opening * depth + "u" + ")" * (depth * opening.count("("))
        else:
            yield rng.choice(("u+", "u*", "1/", "2*u-", "u'^2+", "x1*")) * rng.randrange(1, 2_000) + "u"


def fuzz(count: int = 100_000, seed: int = 0) -> dict[str, float]:
    """How many texts were read and refused, and the longest time in ms; any other exception passes through."""
    read = refused = 0
    longest = 0.0
    for text in texts(count, seed):
        start = time.perf_counter()
        try:
            read_equation(text)
            read += 1
        except ReadingError:
            refused += 1
        longest = max(longest, time.perf_counter() - start)
    return {"read": read, "refused": refused, "longest_ms": round(1e3 * longest, 2)}


if __name__ == "__main__":
    print(fuzz(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
