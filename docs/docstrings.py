"""Docstrings as Markdown: an aligned list of names becomes a list, a doctest becomes a block of code.

In the source a docstring is read as plain text, where columns line up; Markdown would run them together.
"""

import re
from typing import Any

import griffe

_ENTRY = re.compile(r"^(\S+(?: \S+)*) {2,}(\S.*)$")


class AsMarkdown(griffe.Extension):
    """Rewrites every docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for each class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """The docstring, paragraph by paragraph."""
    return "\n\n".join(_paragraph(part) for part in docstring.split("\n\n"))


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if lines and lines[0].startswith(">>>"):
        return "\n".join(["```pycon", *lines, "```"])
    if not lines or _ENTRY.match(lines[0]) is None:
        return text
    found: list[str] = []
    for line in lines:
        entry = _ENTRY.match(line)
        if entry is not None:
            found.append(f"- `{entry[1]}`: {entry[2]}")
        elif line.startswith(" "):
            found[-1] += " " + line.strip()
        else:
            return text
    return "\n".join(found)
