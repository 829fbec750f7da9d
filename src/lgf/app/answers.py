"""Answers of the page, checked: nothing that is not asked for, every value in its range."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from lgf.errors import LgfError


class Answers(BaseModel):
    """What the page sends; an answer that was not asked for is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Kind = TypeVar("Kind", bound=Answers)


def read_answers(kind: type[Kind], sent: Any) -> Kind:
    """The answers of this kind; LgfError names the first that cannot be used."""
    try:
        return kind.model_validate(sent)
    except ValidationError as error:
        first = error.errors()[0]
        place = " ".join(str(part) for part in first["loc"]) or "the form"
        raise LgfError(f"The answer for {place} cannot be used: {first['msg'].lower()}; change it.") from error
