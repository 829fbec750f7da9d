"""The processor and clock seconds of the stages of a training, kept in a file across interruptions."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE = "times.json"


class StageTimes:
    """A file {stage: {"processor": seconds, "clock": seconds}}; the seconds of a stage that is resumed add up."""

    def __init__(self, path: Path):
        self._path = path

    def seconds(self) -> dict[str, dict[str, float]]:
        """The seconds so far, by stage."""
        return json.loads(self._path.read_text(encoding="utf-8")) if self._path.is_file() else {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the seconds of the block to those of the stage, also if it is interrupted."""
        processor, clock = time.process_time(), time.monotonic()
        try:
            yield
        finally:
            found = self.seconds()
            before = found.get(name, {"processor": 0.0, "clock": 0.0})
            spent = {"processor": time.process_time() - processor, "clock": time.monotonic() - clock}
            found[name] = {kind: round(before[kind] + spent[kind], 2) for kind in spent}
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
