"""Whether numba can cache compiled kernels on disk, and where."""

from pathlib import Path
from typing import Any

from numba import njit


def _probe() -> None:
    """Never called; numba looks for a cache folder for it as for every kernel."""


def _cache_available() -> bool:
    try:
        njit(cache=True)(_probe)
    except RuntimeError:  # numba raises at import if it has no folder for a cached function
        return False
    return True


CACHED: bool = _cache_available()
"""True if a cache folder is writable: NUMBA_CACHE_DIR, one beside the code, or the user's cache folder."""


def cache_folder(kernel: Any) -> Path | None:
    """The folder that holds the compiled code of this numba function; None if it is not cached."""
    path = kernel.stats.cache_path
    return None if path is None else Path(path)
