"""The lock of a run folder: one process at a time searches in it, and others can see whether one does.

The lock is the operating system's, on the file run.json. It goes with the process that holds it, however that ends, so
no lock is ever left behind.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lgf.errors import LgfError
from lgf.files import open_regular
from lgf.runs.folder import REQUEST

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    _BEYOND = 1 << 40  # Windows locks bytes against reading too, so one is locked that the file does not have

    def _lock(handle: int, shared: bool) -> None:
        os.lseek(handle, _BEYOND, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:

    def _lock(handle: int, shared: bool) -> None:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


_TRIES, _PAUSE = 20, 0.05  # who looks whether a folder is locked holds its lock for a moment


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Holds the lock of the run folder; LgfError if another process searches in it."""
    handle = open_regular(Path(folder) / REQUEST, os.O_RDWR)
    try:
        for tried in range(1, _TRIES + 1):
            try:
                _lock(handle, shared=False)
                break
            except OSError as error:
                if tried == _TRIES:
                    raise LgfError(f"another process searches in {folder}; wait for it, or stop it first.") from error
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(handle)


def is_locked(folder: str | Path) -> bool:
    """Whether a process searches in this run folder."""
    try:
        handle = open_regular(Path(folder) / REQUEST, os.O_RDWR)
    except LgfError:
        return False
    try:
        _lock(handle, shared=True)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
