"""Whether compiled code can be kept from one process to the next."""

from pathlib import Path
from typing import Any

from numba import njit


def _nothing() -> None:
    """Never called: numba looks for a place for it as it does for every kernel."""


def _place_found() -> bool:
    try:
        njit(cache=True)(_nothing)
    except RuntimeError:  # numba refuses a cached function that it has no place for, and with it the whole import
        return False
    return True


KEPT: bool = _place_found()
"""True if a folder for it can be written: NUMBA_CACHE_DIR, one beside the code, or the user's own for caches."""


def kept_in(kernel: Any) -> Path | None:
    """The folder for the compiled code of this numba function, None where there is none."""
    path = kernel.stats.cache_path
    return None if path is None else Path(path)
