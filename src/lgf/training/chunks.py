"""Training data that are made in chunks, each a file, so that an interruption loses one of them only."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lgf.training.progress import Progress


def made_in_chunks(
    stage: str,
    folder: Path,
    size: int,
    chunk: int,
    make: Callable[[int, int], Mapping[str, np.ndarray]],
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, np.ndarray]:
    """The arrays of all chunks by name, one after the other; `make` takes the number of a chunk and its size.

    Chunks whose files are in the folder are read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{number:05d}.npz" for number in range(-(-size // chunk))]
    begun, made = time.monotonic(), 0
    for number, file in enumerate(files):
        if file.is_file():
            continue
        done = min((number + 1) * chunk, size)
        part = file.with_suffix(".part.npz")  # a second file, so that an interruption leaves none that is broken
        arrays: Any = make(number, done - number * chunk)
        np.savez(part, **arrays)
        part.replace(file)
        made += 1
        if progress is not None:
            left = (time.monotonic() - begun) / made * (len(files) - number - 1)
            progress(Progress(stage, done, size, None, None, None, left))
    parts = []
    for file in files:
        with np.load(file) as stored:
            parts.append(dict(stored))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
