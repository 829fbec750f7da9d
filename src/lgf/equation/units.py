"""Units: their texts, the dimensions behind them (by pint, which is imported when the first unit is read), printing.

A unit is a mapping from words of units to exponents: m/s^2 is {"meter": 1, "second": -2}. Words that pint does not
know, such as cells, are units of their own.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from lgf.errors import LgfError, quoted

Unit = Mapping[str, float]

SCALE = "scale"  # the logarithm of the size of a unit, beside its dimensions: 1 km + 1 m needs a factor
_LONGEST = 60  # characters of a unit
_NO_UNIT = frozenset(("", "1", "-", "–", "none", "dimensionless"))
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[^\W\d]+(?:_\w+)?|[°%‰Ωµ][^\W\d]*)|(?P<one>1)(?=\s*/)|(?P<mark>[*·/()]))\s*"
)  # fmt: skip
_EXPONENT = re.compile(
    r"\s*(?:\^|\*\*)?\s*(?P<open>\(\s*)?(?P<top>[-+]?[0-9]{1,2}(?:\.[0-9]{1,3})?)"
    r"(?(open)(?:\s*/\s*(?P<below>[1-9]))?\s*\))"
)


def read_unit(text: str, own_words: bool = True) -> dict[str, float]:
    """The unit in the text; {} is the unit 1. LgfError if it cannot be read, or has words of its own where none may be.

    >>> read_unit("m/s^2"), read_unit("W/(m^2 K)")
    ({'meter': 1.0, 'second': -2.0}, {'watt': 1.0, 'meter': -2.0, 'kelvin': -1.0})
    """
    clean = text.strip()
    if clean.lower() in _NO_UNIT:
        return {}
    unit, end = _product(re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda m: "^" + m[0].translate(_SUPERSCRIPTS), clean), 0)
    if end is None or len(clean) > _LONGEST:
        raise LgfError(f"the unit {quoted(text)} cannot be read; write it like m/s^2, kg*m or 1/min.")
    own = next((word for word in unit if _known(word) is None), None)
    if own is not None and not own_words:
        raise LgfError(f"the unit {quoted(own)} is not known.")
    named: dict[str, float] = {}
    for word, exponent in unit.items():
        name = _known(word) or word
        named[name] = named.get(name, 0.0) + exponent
    return {name: exponent for name, exponent in named.items() if exponent}


def _product(text: str, begin: int, inside: bool = False) -> tuple[dict[str, float], int | None]:
    """(exponents of the words, the place after the product); None in place of it if the text cannot be read."""
    unit: dict[str, float] = {}
    sign, at, ready = 1.0, begin, False  # ready: a factor was read, so a divisor or the end may follow
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return unit, None
        at = match.end()
        if match["mark"] == ")":
            return unit, at if inside and ready else None
        if match["mark"] in ("*", "·", "/"):
            if not ready:
                return unit, None
            sign, ready = -1.0 if match["mark"] == "/" else 1.0, False
            continue
        if match["mark"] == "(":
            factor, after = _product(text, at, inside=True)
            if after is None:
                return unit, None
            at = after
        else:
            factor = {match["word"]: 1.0} if match["word"] else {}
        power = _EXPONENT.match(text, at)
        times = 1.0
        if power is not None and not match["one"]:
            times, at = float(power["top"]) / float(power["below"] or 1.0), power.end()
        for word, exponent in factor.items():
            unit[word] = unit.get(word, 0.0) + sign * times * exponent
        # A divisor holds for one factor: m/s kg is kg*m/s, and m/(s kg) divides by both.
        sign, ready = 1.0, True
    return unit, at if ready and not inside else None


@lru_cache(maxsize=1)
def registry() -> Any:
    """The registry of units of the application, pint's own unless the user set another."""
    import pint

    return pint.get_application_registry()


@lru_cache(maxsize=1000)
def _known(word: str) -> str | None:
    """The full name of a unit that pint knows, or None."""
    import pint

    try:
        names = dict(registry().parse_units(word)._units)
    except (pint.PintError, ValueError, TypeError, AttributeError):
        return None
    return next(iter(names)) if len(names) == 1 and set(names.values()) == {1} else None


@lru_cache(maxsize=1000)
def _base(word: str) -> tuple[tuple[str, float], ...]:
    """The dimensions of a unit, and the logarithm of its size in base units."""
    if _known(word) is None:
        return ((word, 1.0),)
    size, base = registry().get_base_units(word)
    parts = [(str(name), float(exponent)) for name, exponent in base._units.items() if str(name) != "radian"]
    return (*parts, (SCALE, math.log(float(size)))) if size != 1 else tuple(parts)


def dimension(unit: Unit) -> dict[str, float]:
    """The exponents of base dimensions, with SCALE; empty for a pure number."""
    total: dict[str, float] = {}
    for word, exponent in unit.items():
        for name, power in _base(word):
            total[name] = total.get(name, 0.0) + exponent * power
    return {name: exponent for name, exponent in total.items() if abs(exponent) > 1e-9}


def simplest(unit: Unit) -> dict[str, float]:
    """The unit, or the same in base units if that takes fewer words: m/(s^2*N) is 1/kg."""
    own = {word: exponent for word, exponent in unit.items() if abs(exponent) > 1e-9}
    base = dimension(own)
    if SCALE not in base and len(base) < len(own):
        return base
    return own


@lru_cache(maxsize=1000)
def _symbol(word: str) -> str:
    if word in ("degree_Celsius", "delta_degree_Celsius"):
        return "°C"
    return str(registry().get_symbol(word)) if _known(word) is not None else word


def unit_text(unit: Unit) -> str:
    """The unit in plain text, which reads back; "" for a pure number.

    >>> unit_text({"meter": 1.0, "second": -2.0}), unit_text({"second": -1.0})
    ('m/s^2', '1/s')
    """
    above, below = _sorted(unit)
    top = "*".join(f"{symbol}{_power(p, '^')}" for symbol, p in above) or ("1" if below else "")
    bottom = "*".join(f"{symbol}{_power(p, '^')}" for symbol, p in below)
    return f"{top}/({bottom})" if len(below) > 1 else f"{top}/{bottom}" if below else top


def unit_latex(unit: Unit) -> str:
    r"""The unit in LaTeX, "" for a pure number.

    >>> print(unit_latex({"meter": 1.0, "second": -2.0}))
    \mathrm{m\,s^{-2}}
    """
    above, below = _sorted(unit)
    parts = [(symbol, p) for symbol, p in above] + [(symbol, -p) for symbol, p in below]
    names = {"%": r"\%", "°C": r"{}^{\circ}C", "°": r"{}^{\circ}", "Ω": r"\Omega", "µ": r"\mu "}
    texts = []
    for symbol, p in parts:
        for plain, tex in names.items():
            symbol = symbol.replace(plain, tex)
        texts.append(symbol.replace("_", r"\_") + ("" if p == 1.0 else f"^{{{_exponent(p)}}}"))
    joined = r"\,".join(texts)
    return rf"\mathrm{{{joined}}}" if texts else ""


def unit_pretty(unit: Unit) -> str:
    """The unit as it is set in type, "" for a pure number.

    >>> unit_pretty({"meter": 1.0, "second": -2.0})
    'm/s²'
    """
    text = re.sub(r"\^(-?[0-9]+)", lambda m: m[1].translate(_RAISED), unit_text(unit))
    return text.replace("*", "·")


def _sorted(unit: Unit) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """(symbol, exponent) of what stands above and below the line."""
    parts = sorted((_symbol(word), exponent) for word, exponent in unit.items() if abs(exponent) > 1e-9)
    return [(s, p) for s, p in parts if p > 0], [(s, -p) for s, p in parts if p < 0]


def _exponent(p: float) -> str:
    near = Fraction(p).limit_denominator(6)
    if abs(float(near) - p) < 1e-9:
        return str(near)
    return f"{p:.4g}"


def _power(p: float, mark: str) -> str:
    text = _exponent(p)
    return "" if text == "1" else f"{mark}({text})" if "/" in text else f"{mark}{text}"
