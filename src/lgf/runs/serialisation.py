"""Stored values: pydantic writes and reads them by the types of their fields. Numbers are exact.

What a type has beyond its fields (shapes, sums, names that agree) its own checks refuse when it is read.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from lgf.errors import LgfError

Kind = TypeVar("Kind")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)  # takes long to make


def to_plain(value: Any) -> Any:
    """The stored fields of a dataclass by name, as numbers, texts, lists and mappings."""
    return _adapter(type(value)).dump_python(value)


def written(plain: Any, indent: int | None = None) -> bytes:
    """The plain value as JSON; infinities and NaN are texts."""
    return to_json(plain, indent=indent, inf_nan_mode="strings", fallback=_number)


def for_page(facts: Any) -> bytes:
    """The facts as JSON; infinities and NaN become null, which a plot leaves out."""
    return to_json(facts, inf_nan_mode="null", fallback=_number)


def _number(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not stored")


def read(kind: type[Kind], plain: Any) -> Kind:
    """The value of this kind that `to_plain` wrote; ValueError names what is wrong in one line."""
    try:
        return _adapter(kind).validate_python(plain)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"] if not isinstance(part, str) or part.isidentifier())
        reason = str(first.get("ctx", {}).get("error") or first["msg"])
        raise ValueError(f"{place}: {reason[:1].lower()}{reason[1:]}") from error


def checked(make: Callable[[], Kind], what: str, instead: str) -> Kind:
    """What `make` gives; LgfError says in one sentence that `what` is damaged, and what to do `instead`."""
    try:
        return make()
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        reason = "".join(c if c.isprintable() else "?" for c in reason).rstrip(".")
        raise LgfError(f"{what} is damaged ({reason}); {instead}.") from error


def read_json(content: bytes) -> dict[str, Any]:
    """The object in the JSON text; ValueError if it is none."""
    facts = from_json(content)
    if not isinstance(facts, dict):
        raise ValueError("no object")
    return facts
