"""Reading of frozen dataclasses (settings, recipes) from TOML; errors name the first wrong key."""

import json
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from lgf.errors import LgfError, quoted
from lgf.files import read_bytes

LONGEST = 10_000  # bytes; dotted keys take quadratic time
Table = dict[str, Any]
_Described = TypeVar("_Described")


def read_table(path: str | Path) -> Table:
    """The table in the TOML file; LgfError if it is not TOML."""
    content = read_bytes(path, LONGEST, links=True)
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # no text, no TOML, too deep, or a number of too many digits
        raise LgfError(f"{Path(path).name} is not TOML: {error}.") from error


def described(kind: type[_Described], table: Table, source: str) -> _Described:
    """The dataclass `kind` with the values of the table; LgfError names the wrong key and `source`."""
    unknown = _unknown_key(kind, table, ())
    if unknown is not None:
        place, known = unknown
        raise LgfError(f"{source} has a key {quoted(place)} that is not known; the keys there are {', '.join(known)}.")
    try:
        # pydantic reads JSON strictly but takes lists for tuples; "3" is not a number.
        return TypeAdapter(kind).validate_json(json.dumps(table, default=_plain), strict=True)
    except ValidationError as error:
        raise LgfError(_message(source, error)) from error
    except (ValueError, RecursionError) as error:  # a whole number of thousands of digits
        raise LgfError(f"{source} cannot be used: {error}.") from error


def _plain(value: Any) -> Any:
    """A NumPy number as a Python number; anything else that JSON lacks, such as a date, as text."""
    return value.item() if hasattr(value, "item") else str(value)


def _message(source: str, error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "value_error":
        return f"{source} cannot be used: {first.get('ctx', {}).get('error')}"
    if first["type"] == "missing":
        return f"{source} lacks the key {quoted(key)}; write it."
    return f"{source} says {key} = {quoted(first['input'])}: {first['msg'].lower()}."


def _unknown_key(kind: Any, value: Any, place: tuple[str, ...]) -> tuple[str, list[str]] | None:
    """(the first unknown key, the known keys) of the dataclass or the dataclasses inside it; None if all are known."""
    if isinstance(value, list):
        inner = (_unknown_key(kind, entry, (*place, str(i))) for i, entry in enumerate(value))
        return next((unknown for unknown in inner if unknown is not None), None)
    if not isinstance(value, dict):
        return None
    types = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    for key, entry in value.items():
        if key not in known:
            return ".".join((*place, key)), known
        inside = _dataclass_in(types[key])
        unknown = None if inside is None else _unknown_key(inside, entry, (*place, key))
        if unknown is not None:
            return unknown
    return None


def _dataclass_in(annotation: Any) -> Any | None:
    """The dataclass that the annotation is or contains, as in tuple[ProposerShare, ...]; None if there is none."""
    if is_dataclass(annotation):
        return annotation
    return next((kind for part in get_args(annotation) if (kind := _dataclass_in(part)) is not None), None)
