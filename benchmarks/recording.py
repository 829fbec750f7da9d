"""Results as lines of JSON: appended whole, read back with what was cut off left out."""

import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def append(file: Path, row: dict[str, Any]) -> None:
    """Add the row as one line, also while other processes add theirs."""
    file.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(row, allow_nan=False) + "\n"
    with file.open("a+b") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        if out.tell() > 0:
            out.seek(-1, os.SEEK_END)
            if out.read(1) != b"\n":  # a line that was cut off must not swallow this one
                line = "\n" + line
        out.write(line.encode())


def rows(file: Path) -> list[dict[str, Any]]:
    """Every whole line of the file, none if there is no file."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:  # cut off when a run was stopped
            continue
    return found


def digest(settings: Any) -> str:
    """A short name for settings: equal settings, equal digest."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:12]
