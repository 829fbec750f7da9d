"""Results as lines of JSON; incomplete lines are ignored when read."""

import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def append(file: Path, row: dict[str, Any]) -> None:
    """Appends the row as one line; safe with several processes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(row, allow_nan=False) + "\n"
    with file.open("a+b") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        if out.tell() > 0:
            out.seek(-1, os.SEEK_END)
            if out.read(1) != b"\n":  # an incomplete line must not swallow this one
                line = "\n" + line
        out.write(line.encode())


def rows(file: Path) -> list[dict[str, Any]]:
    """Every complete line of the file; none if there is no file."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:  # cut off when a run was stopped
            continue
    return found


def digest(settings: Any) -> str:
    """A short hash of settings; equal settings have equal digests."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:12]
