"""Files of users and of runs: regular ones only, read up to a bound, replaced atomically.

A pipe or a device would hang a reader, and a link in a folder that somebody else made may lead anywhere.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from lgf.errors import LgfError

LARGEST = 500_000_000  # bytes of a file of this program's making
_PIECE = 1 << 20  # bytes read at a time: Python takes the memory of all that it is asked for


def open_regular(path: str | Path, flags: int = os.O_RDONLY, *, links: bool = False) -> int:
    """A handle of the regular file; LgfError if there is none, or if it is a pipe, a device or a folder.

    A symbolic link is followed only with `links`, for names that the user gives.
    """
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | (0 if links else getattr(os, "O_NOFOLLOW", 0))
    try:
        handle = os.open(path, flags, 0o666)
    except FileNotFoundError as error:
        raise LgfError(f"there is no file {path}; check the name and the folder.") from error
    except (OSError, ValueError) as error:
        link = not links and os.path.islink(path)
        reason = "it is a link" if link else getattr(error, "strerror", None) or str(error)
        raise LgfError(f"{path} cannot be opened ({reason}); check the name and its permissions.") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        what = "a directory; give a file in it" if stat.S_ISDIR(mode) else "not a regular file; give one"
        raise LgfError(f"{path} is {what}.")
    return handle


def read_bytes(path: str | Path, most: int = LARGEST, *, links: bool = False) -> bytes:
    """The content of the regular file; LgfError if it cannot be read or has more than `most` bytes."""
    with os.fdopen(open_regular(path, links=links), "rb") as file:
        try:
            size, content = os.fstat(file.fileno()).st_size, bytearray()  # files of /proc say that they have none
            while max(size, len(content)) <= most and (piece := file.read(_PIECE)):
                content += piece
        except OSError as error:
            raise LgfError(f"{path} cannot be read ({error.strerror}); check the disk.") from error
    if max(size, len(content)) > most:
        raise LgfError(f"{path} has more than the {most:,} bytes that are read; give a smaller file.")
    return bytes(content)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes the file atomically: a reader sees the old content or the new, nothing between."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.unlink(missing_ok=True)  # of a process that died, or anything else
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):  # frees space on a full disk
            temporary.unlink(missing_ok=True)
        raise LgfError(f"{path} cannot be written ({error.strerror}); make room or name another folder.") from error


def is_regular(path: str | Path) -> bool:
    """Whether this is a regular file, not a link to one."""
    return os.path.isfile(path) and not os.path.islink(path)
