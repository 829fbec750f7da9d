"""TOML files that describe a frozen dataclass: settings and recipes. The first key that is wrong is named."""

import json
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from lgf.errors import LgfError, quoted

LONGEST = 10_000  # characters; dotted keys take time with their square
Table = dict[str, Any]
_Described = TypeVar("_Described")


def read_table(path: str | Path) -> Table:
    """The table in the TOML file; LgfError if it is none."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        if len(text) > LONGEST:
            raise LgfError(f"{file.name} has {len(text)} characters; at most {LONGEST} are read.")
        return tomllib.loads(text)
    except LgfError:
        raise
    except (ValueError, RecursionError) as error:  # no text, no TOML, too deep, or a number of too many digits
        raise LgfError(f"{file.name} is not TOML: {error}.") from error


def described(kind: type[_Described], table: Table, source: str) -> _Described:
    """The dataclass `kind` that the table describes; LgfError names the key that is wrong, and `source`."""
    odd = _unknown_key(kind, table, ())
    if odd is not None:
        place, known = odd
        raise LgfError(f"{source} has a key {quoted(place)} that is not known; the keys there are {', '.join(known)}.")
    try:
        # JSON has TOML's types, and pydantic reads it strictly: lists are tuples there, but "3" is no number.
        return TypeAdapter(kind).validate_json(json.dumps(table, default=_plain), strict=True)
    except ValidationError as error:
        raise LgfError(_complaint(source, error)) from error
    except (ValueError, RecursionError) as error:  # a whole number of thousands of digits
        raise LgfError(f"{source} cannot be used: {error}.") from error


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python; text in place of what JSON has not, such as a date."""
    return value.item() if hasattr(value, "item") else str(value)


def _complaint(source: str, error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "value_error":
        return f"{source} cannot be used: {first.get('ctx', {}).get('error')}"
    if first["type"] == "missing":
        return f"{source} lacks the key {quoted(key)}; write it."
    return f"{source} says {key} = {quoted(first['input'])}: {first['msg'].lower()}."


def _unknown_key(kind: Any, value: Any, place: tuple[str, ...]) -> tuple[str, list[str]] | None:
    """(the first key that the dataclass has not, the keys that it has), in it and in the dataclasses inside it."""
    if isinstance(value, list):
        inner = (_unknown_key(kind, entry, (*place, str(i))) for i, entry in enumerate(value))
        return next((odd for odd in inner if odd is not None), None)
    if not isinstance(value, dict):
        return None
    types = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    for key, entry in value.items():
        if key not in known:
            return ".".join((*place, key)), known
        inside = _dataclass_in(types[key])
        odd = None if inside is None else _unknown_key(inside, entry, (*place, key))
        if odd is not None:
            return odd
    return None


def _dataclass_in(annotation: Any) -> Any | None:
    """The dataclass that the annotation is or contains, as in tuple[ProposerShare, ...]; None if there is none."""
    if is_dataclass(annotation):
        return annotation
    return next((kind for part in get_args(annotation) if (kind := _dataclass_in(part)) is not None), None)
