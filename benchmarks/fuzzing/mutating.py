"""Mutations of texts, bytes and JSON, every one a function of a random generator and of nothing else."""

import copy
import json
from collections.abc import Sequence
from random import Random
from typing import Any

HOSTILE = (
    "__import__('os').system('touch /tmp/lgf-fuzzed')", "eval('1+1')", "().__class__.__bases__[0].__subclasses__()",
    "lambda: 0", "exec(open('/etc/passwd').read())", "{{7*7}}", "${HOME}", "$(id)", "`id`", "%n%s%x", "; rm -rf x",
    "../../x", "/etc/passwd", "/dev/zero", "~root", "C:\\nul", "file:///etc/passwd", "\0", "\x1b]0;title\x07",
    "\x1b[2J",
    "\u202e", "\u2028", "\ufeff", "\ud7ff", "é", "∂", "𝟙", "١٢", "\U0010ffff", "\r", "\n", "\t", "\x0b", "\x85",
    "1e999", "-1e999", "nan", "inf", "9" * 400, "9" * 5_000, "-0", "0x10", "1_000", "1e-320", "0" * 300, "1" * 19,
    "2147483648", "-9223372036854775809", "1e18", "", " ", "''", '"', "\\", "#", "[", "]", "{", "}", "|", "->", ":",
    "(", ")", ",", "=", "^", "**", "'" * 30, "null", "true", "$type", "__class__", "__proto__",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 65, 1_000, 100_000, 2**31, 2**63, 2**70, -(2**63), 10**400, 0.5, -0.0, 1e-320,
    1e150, 1e308, float("inf"), float("nan"), "", "nan", "inf", "-1", "u", [], {}, [[]], [None], [0], [[1.0, 2.0]],
    {"a": 1},
    [0] * 2_000, "x" * 20_000, *HOSTILE[:12],
)  # fmt: skip


def mutated_text(rng: Random, text: str, pieces: Sequence[str] = HOSTILE, most: int = 6) -> str:
    """The text after a few insertions, deletions, repetitions and exchanges; pieces are strewn in."""
    for _ in range(rng.randint(1, most)):
        at = rng.randint(0, len(text))
        to = min(len(text), at + int(rng.paretovariate(0.8)) % 200)
        kind = rng.randrange(8)
        if kind < 3:
            middle = rng.choice(pieces)
        elif kind == 3:
            middle = rng.choice(HOSTILE)
        elif kind == 4:
            middle = ""
        elif kind == 5:
            middle = text[at:to] * rng.choice((2, 2, 3, 10, 300))
        elif kind == 6:
            other = rng.randint(0, len(text))
            middle = text[other : other + rng.randrange(40)]
        else:
            middle = chr(rng.choice((rng.randrange(32), rng.randrange(0x20, 0x7F), rng.randrange(0x80, 0x2FFF))))
        text = text[:at] + middle + text[to if rng.random() < 0.6 else at :]
    return text


def mutated_bytes(rng: Random, data: bytes, most: int = 5) -> bytes:
    """The bytes after a few flips, deletions, insertions, repetitions and cuts."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, most)):
        at = rng.randint(0, len(changed))
        kind = rng.randrange(6)
        if kind < 2 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del changed[at : at + rng.choice((1, 2, 8, 100))]
        elif kind == 3:
            changed[at:at] = rng.randbytes(rng.choice((1, 2, 8, 64)))
        elif kind == 4:
            changed[at:at] = changed[at : at + rng.randrange(1, 300)] * rng.choice((1, 2, 20))
        elif rng.random() < 0.3:
            del changed[at:]
    return bytes(changed)


def mutated_json(rng: Random, facts: Any, most: int = 3) -> bytes:
    """JSON in which some leaves or branches are something else, missing, twice or nested; now and then broken text."""
    facts = json.loads(json.dumps(facts))
    for _ in range(rng.randint(1, most)):
        _change_somewhere(rng, facts)
    text = json.dumps(facts, ensure_ascii=rng.random() < 0.5)
    chance = rng.random()
    if chance < 0.1:
        text = mutated_text(rng, text)
    elif chance < 0.12:
        depth = rng.choice((100, 2_000, 100_000))
        text = text.replace("null", "[" * depth + "]" * depth, 1)
    return text.encode("utf-8", "replace")


def _change_somewhere(rng: Random, facts: Any) -> None:
    """Walks down at random, equally likely to stop at every depth, and changes what stands there."""
    if not isinstance(facts, (dict, list)) or not facts:
        return
    place = facts
    while True:
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        if not isinstance(place[key], (dict, list)) or not place[key] or rng.random() < 0.2:
            break
        place = place[key]
    kind = rng.randrange(10)
    if kind < 5:
        place[key] = _odd(rng)
    elif kind == 5:
        del place[key]
    elif kind == 6 and isinstance(place, dict):
        place[rng.choice(HOSTILE)] = _odd(rng)
    elif kind == 7 and isinstance(place, list):
        place.insert(key, _odd(rng))
    elif isinstance(place[key], str):
        place[key] = mutated_text(rng, place[key])
    elif isinstance(place[key], (int, float)) and not isinstance(place[key], bool):
        place[key] = place[key] * rng.choice((-1, 0, 2, 10, 1000)) + rng.choice((-1, 0, 1))
    else:
        place[key] = [place[key]]


def _odd(rng: Random) -> Any:
    """An odd value, a copy of its own: later changes must not reach other inputs."""
    return copy.deepcopy(rng.choice(ODD_VALUES))
