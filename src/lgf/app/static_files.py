"""The files of the page itself."""

from importlib.resources import files
from pathlib import Path

_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
    ".LICENSE": "text/plain",
}  # fmt: skip


def static_files() -> dict[str, tuple[bytes, str]]:
    """Content and type of every file of the page by its path; they are read once, so no path of a call is a file's."""
    root = Path(str(files("lgf.app").joinpath("static")))
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), _TYPES[path.suffix])
        for path in root.rglob("*")
        if path.suffix in _TYPES
    }
