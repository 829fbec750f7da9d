"""The records of a batch: files from paths, folders and patterns, and the names of their run folders."""

import glob
import json
import re
from collections.abc import Iterable, Sequence
from os.path import expanduser
from pathlib import Path

from lgf.data import records
from lgf.errors import LgfError, quoted
from lgf.files import read_bytes, write_atomically
from lgf.runs.folder import take_folder
from lgf.runs.serialisation import read_json

ENDINGS = (".csv", ".tsv", ".txt", ".dat")  # of the tables in a folder
NAMES = "batch.json"  # which run folder belongs to which file
_PATTERN = re.compile(r"[*?\[]")


def find_sources(words: Iterable[str], out: Path | None = None) -> tuple[str, ...]:
    """The files that the words name, each once: a path, a folder (its tables), a pattern such as plates/*.csv.

    Files of a folder or pattern are in natural order (plate2 before plate10), and nothing in the folder `out` is one of
    them. A file that does not exist stays in the list, so that its line in the table can say so.
    """
    sources: dict[str, None] = {}
    for word in map(expanduser, words):
        path = Path(word)
        if path.is_dir():
            matches = [str(file) for file in path.iterdir() if file.suffix.lower() in ENDINGS and file.is_file()]
            what = f"the folder {word} holds no table ({', '.join(ENDINGS)}); name another one."
        elif not path.exists() and _PATTERN.search(word):
            matches = [match for match in glob.glob(word, recursive=True) if Path(match).is_file()]
            what = f"no file matches {quoted(word)}; check the name and the folder."
        else:
            sources[word] = None
            continue
        inside = [] if out is None else [m for m in matches if out.resolve() in Path(m).resolve().parents]
        matches = [match for match in matches if match not in inside]
        if not matches:
            raise LgfError(what)
        sources |= dict.fromkeys(sorted(matches, key=_natural))
    return tuple(sources)


def name_records(sources: Sequence[str], folder: Path) -> dict[str, str]:
    """The source of each record by its name, which is that of its run folder; the names are stored in the folder.

    A record has the name of its file, and that of the parent folder where two files have the same. A source that was
    named by an earlier call has the same name again.
    """
    stored = _stored(folder)
    taken = {name for source, name in stored.items()}
    names: dict[str, str] = {}
    stems = [_stem(source) for source in sources]
    for source, stem in zip(sources, stems, strict=True):
        name = stored.get(source)
        if name is None:
            name = stem if stems.count(stem) == 1 else f"{_clean(Path(source).resolve().parent.name)}-{stem}"
            name = _unused(name, taken)
            taken.add(name)
        names[name] = source
    everything = stored | {source: name for name, source in names.items()}
    write_atomically(folder / NAMES, (json.dumps(everything, indent=1, ensure_ascii=False) + "\n").encode())
    return names


def _stored(folder: Path) -> dict[str, str]:
    path = folder / NAMES
    if not path.exists():
        take_folder(folder, NAMES)
        return {}
    try:
        names = read_json(read_bytes(path))
    except ValueError as error:
        raise LgfError(f"{path} is damaged; name another folder for the batch.") from error
    if not all(isinstance(n, str) and n == _clean(n) for n in names.values()):
        raise LgfError(f"{path} is damaged; name another folder for the batch.")
    return names


def _stem(source: str) -> str:
    return source if source in records() else _clean(Path(source).stem)


def _clean(name: str) -> str:
    """A name for a folder, without separators and leading dots."""
    return re.sub(r"[^\w.+=@ -]", "_", name).lstrip(".").strip() or "record"


def _unused(name: str, taken: set[str]) -> str:
    unused, number = name, 1
    while unused in taken:
        number += 1
        unused = f"{name}-{number}"
    return unused


def _natural(path: str) -> list[tuple[int, str]]:
    """A sorting key that compares digits as numbers."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path)]
