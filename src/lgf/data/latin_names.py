"""Names of columns in the letters of equations: accents left out, Greek letters spelled, other scripts refused."""

import re
import unicodedata

_LETTERS = {"ß": "ss", "æ": "ae", "Æ": "Ae", "ø": "o", "Ø": "O", "œ": "oe", "Œ": "Oe", "ł": "l", "Ł": "L", "đ": "d",
            "Đ": "D", "ı": "i", "ð": "d", "þ": "th", "\u2019": "'", "\u2032": "'"}  # fmt: skip
_DOTS = {"\u0307": "dot", "\u0308": "ddot"}  # above a letter
_GREEK = "\u0370-\u03ff"


def in_latin(name: str) -> str:
    """The name in Latin letters as far as these can write it: θ₁ -> theta1, Δx -> Delta_x, température -> temperature.

    Letters of other scripts stay, and so do words in Greek.

    >>> in_latin("θ₁"), in_latin("Δx"), in_latin("température"), in_latin("温度")
    ('theta1', 'Delta_x', 'temperature', '温度')
    """
    if name.isascii():
        return name
    text = unicodedata.normalize("NFKD", name)
    text = "".join(_LETTERS.get(letter, letter) for letter in text if not unicodedata.combining(letter))
    return re.sub(rf"(?<![{_GREEK}])[{_GREEK}]{{1,2}}(?![{_GREEK}])", _spelled, text)


def with_dots_spelled(name: str) -> str:
    """The name with dots above its only letter, as of a derivative, in words: ẋ -> xdot."""
    dotted = re.fullmatch(r"(\w)([\u0307\u0308])", unicodedata.normalize("NFKD", name))
    return name if dotted is None else dotted[1] + _DOTS[dotted[2]]


def has_other_letters(text: str) -> bool:
    """Whether a letter of the text is none of those in which names are written in equations."""
    return any(letter.isalpha() and not letter.isascii() for letter in text)


def _spelled(found: re.Match[str]) -> str:
    """The names of one or two Greek letters, apart from the letters beside them."""
    before, after = found.string[: found.start()], found.string[found.end() :]
    names = "_".join(map(_name, found[0]))
    dot = re.match(r"d?dot\b", after)
    return "_" * before[-1:].isalpha() * (before != "d") + names + "_" * (after[:1].isalpha() and not dot)


def _name(letter: str) -> str:
    words = unicodedata.name(letter, "").split()
    if words[:1] != ["GREEK"] or "LETTER" not in words:
        return letter
    name = words[-1].lower().replace("lamda", "lambda")
    return name.capitalize() if "CAPITAL" in words else name
