"""Tables that were dropped on the page, in a folder beside the runs; names are the server's own."""

import json
import re
import secrets
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lgf.data.delimited_text import MOST_BYTES
from lgf.data.table import Table, read_table
from lgf.errors import LgfError
from lgf.files import is_regular, read_bytes

FOLDER = ".uploads"  # below the folder of the runs
MOST_UPLOADS = 10  # the oldest go first
_TABLE, _FACTS = "data.csv", "upload.json"
_ID = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True)
class Upload:
    """A table on the disk, its name for people, and the answers that its form starts with."""

    id: str
    folder: Path
    name: str
    form: dict[str, Any]

    @property
    def path(self) -> Path:
        """The file of the table."""
        return self.folder / _TABLE

    @property
    def table(self) -> Table:
        """The table, under its own name."""
        return _table(self.path, self.name)


class Incoming:
    """A table that is being received, piece by piece."""

    def __init__(self, parent: Path):
        self.id = secrets.token_hex(8)
        self.folder = parent / self.id
        self.folder.mkdir(parents=True)
        self._file = (self.folder / _TABLE).open("xb")
        self._size = 0

    def write(self, piece: bytes) -> None:
        """Adds a piece; LgfError if the table becomes too large."""
        self._size += len(piece)
        if self._size > MOST_BYTES:
            raise LgfError(
                f"The file has more than {MOST_BYTES // 1_000_000} MB; keep every tenth row, or fewer columns."
            )
        self._file.write(piece)

    def discard(self) -> None:
        """Removes what was received."""
        self._file.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, name: str, form: dict[str, Any]) -> Upload:
        """The received table; LgfError, and nothing is left, if it cannot be read as one."""
        self._file.close()
        upload = Upload(self.id, self.folder, display_name(name), form)
        try:
            _ = upload.table
        except LgfError:
            self.discard()
            raise
        facts = {"name": upload.name, "form": form}
        (self.folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        stored = sorted((p for p in self.folder.parent.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime)
        for old in stored[:-MOST_UPLOADS]:
            shutil.rmtree(old, ignore_errors=True)
        return upload


class Uploads:
    """The received tables below the folder of the runs."""

    def __init__(self, runs: Path):
        self._folder = runs / FOLDER

    def receive(self) -> Incoming:
        """A new table to be received."""
        return Incoming(self._folder)

    def add(self, content: bytes, name: str, form: dict[str, Any]) -> Upload:
        """A table that need not be received: a shipped record, or that of an earlier run."""
        incoming = self.receive()
        incoming.write(content)
        return incoming.finish(name, form)

    def find(self, id: str) -> Upload:
        """The table of this id; LgfError if it is not there any more."""
        folder = self._folder / id
        facts = folder / _FACTS
        if not _ID.fullmatch(id) or folder.is_symlink() or not is_regular(facts):
            raise LgfError("This table is not here any more; drop the file again.")
        stored = json.loads(read_bytes(facts))
        return Upload(id, folder, str(stored["name"]), dict(stored["form"]))


def display_name(name: str) -> str:
    """The name of a file for people: one line of at most 80 printable characters, without its folders."""
    printable = "".join(c for c in name if c.isprintable()).replace("\\", "/").rsplit("/", 1)[-1].strip()
    return printable[:80] or "table.csv"


@lru_cache(maxsize=4)
def _table(path: Path, name: str) -> Table:
    try:
        table = read_table(path)
    except LgfError as error:  # the sentence names the file as the user knows it
        raise LgfError(str(error).replace(str(path), name).replace(_TABLE, name)) from error
    return Table(table.names, table.columns, name, table.lines, table.notes)
