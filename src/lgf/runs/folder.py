"""A run folder: the request, every candidate, and the result in several forms. A crash loses nothing.

    run.json          data, knowledge, grammar, settings, seed, versions: written first, enough to restart
    candidates.jsonl  every candidate, appended as it is fitted (see `lgf.runs.journal`)
    front.csv         the Pareto front
    equation.tex .py  the equation in LaTeX and as a Python function
    equation.json     the result, written last
    progress.json     the last report of a search (see `lgf.runs.progress`)

Every file but the journal is replaced atomically. Nothing is unpickled, and input is checked.
"""

import csv
import io
from collections.abc import Callable, Collection
from itertools import count
from pathlib import Path
from typing import Any

from lgf import __version__
from lgf.errors import LgfError, quoted
from lgf.files import read_bytes, write_atomically
from lgf.runs.journal import read_lines
from lgf.runs.request import Request, Run
from lgf.runs.serialisation import Kind, checked, read, read_json, to_plain, written

FORMAT = 4
JOURNAL = "candidates.jsonl"
REQUEST, RESULT, PROGRESS = "run.json", "equation.json", "progress.json"


def holds_run(folder: str | Path) -> bool:
    """Whether the folder holds a run."""
    return Path(folder).joinpath(REQUEST).exists()


def take_folder(folder: str | Path, own: str = JOURNAL, beside: Collection[str] = ()) -> Path:
    """The folder, which is now the caller's: of all processes that ask for it, one makes the file `own` there.

    LgfError if it is taken or holds anything but files named in `beside`.
    """
    path = Path(folder)
    try:
        if path.name in ("", "..") or "\0" in str(path):
            raise LgfError(f"the folder {quoted(str(folder))} is not a run's own; name one that does not exist yet.")
        if path.is_symlink():
            raise LgfError(f"the folder {path} is a link; name the folder itself.")
        path.mkdir(parents=True, exist_ok=True)
        if any(entry.name not in beside for entry in path.iterdir()):
            raise FileExistsError
        path.joinpath(own).open("xb").close()
    except FileExistsError as error:
        if holds_run(path):
            advice = f"resume it with --resume {path}, or name another folder"
            raise LgfError(f"{path} holds a run already; {advice}.") from error
        what = "holds other files" if path.is_dir() else "is not a folder"
        raise LgfError(f"{path} {what}; name a folder that is empty or does not exist yet.") from error
    except OSError as error:
        raise LgfError(f"the folder {path} cannot be made ({error.strerror}); name another one.") from error
    return path


def new_folder(parent: Path, name: str) -> Path:
    """A folder that did not exist before; a number is appended if the name is taken."""
    parent.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError


def open_run(folder: str | Path, request: Request, beside: Collection[str] = ()) -> Path:
    """The path of the journal in the folder, which is taken for this run, after the request has been written there."""
    path = take_folder(folder, beside=beside)
    write_atomically(path / REQUEST, written(request_facts(request), indent=1))
    return path / JOURNAL


def request_facts(request: Request) -> dict[str, Any]:
    """The content of run.json."""
    known = list(request.problem.knowledge.describe())
    return {"format": FORMAT, "versions": {"lgf": __version__}, "known": known, "request": to_plain(request)}


def discard_run(folder: str | Path) -> None:
    """Removes a run in which nothing was fitted."""
    path = Path(folder)
    if path.joinpath(JOURNAL).is_file() and path.joinpath(JOURNAL).stat().st_size == 0:
        for name in (REQUEST, PROGRESS, JOURNAL):  # the journal holds the folder until the last
            path.joinpath(name).unlink(missing_ok=True)
        if not any(path.iterdir()):
            path.rmdir()


def read_request(folder: str | Path, resume: bool = False) -> Request:
    """The request of the run in the folder; `resume` requires the same version of lgf."""
    facts = _facts(Path(folder), REQUEST)
    request = _checked(folder, REQUEST, lambda: read(Request, facts["request"]))
    made_by = _checked(folder, REQUEST, lambda: str(facts["versions"]["lgf"]))
    if resume and made_by != __version__:
        version = made_by[:20] if made_by.isprintable() else "of no version"
        raise LgfError(
            f"the run in {folder} was made by lgf {version} and this is lgf {__version__}, which may search "
            "otherwise; start it anew."
        )
    return request


def evaluations_so_far(folder: str | Path) -> tuple[int, bool]:
    """(the evaluations behind the result in the folder, 0 if there is none; whether its search ended by itself)."""
    if not Path(folder).joinpath(RESULT).exists():
        return 0, False
    facts = _facts(Path(folder), RESULT)
    return _checked(folder, RESULT, lambda: (int(facts["evaluations"]), not facts["interrupted"]))


def read_journal(folder: str | Path) -> list[str]:
    """The complete lines of the journal in the folder."""
    return read_lines(Path(folder) / JOURNAL)


def write_run(run: Run, folder: str | Path, anew: bool = False) -> None:
    """Writes the result into the folder of the run; request and journal too if it holds no run, or `anew`."""
    path = Path(folder)
    if not holds_run(path):
        take_folder(path)
        anew = True
    if anew:
        write_atomically(path / JOURNAL, "".join(line + "\n" for line in run.journal).encode())
        write_atomically(path / REQUEST, written(request_facts(run.request), indent=1))
    system = run.system
    rows = front_rows(run)
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]) if rows else ["equation"])
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path / "front.csv", table.getvalue().encode())
    write_atomically(path / "equation.tex", (system.latex() + "\n").encode())
    write_atomically(path / "equation.py", system.python().encode())
    facts = {"text": str(system), **to_plain(run)}
    write_atomically(path / RESULT, written(facts, indent=1))


def read_run(folder: str | Path) -> Run:
    """The finished run in the folder."""
    request = read_request(folder)
    if not Path(folder).joinpath(RESULT).exists():
        raise LgfError(f"the run in {folder} is not finished; go on with: lgf discover --resume {folder}.")
    facts, journal = _facts(Path(folder), RESULT), tuple(read_journal(folder))
    stored = {name: value for name, value in facts.items() if name != "text"}
    return _checked(folder, RESULT, lambda: read(Run, {**stored, "request": request, "journal": journal}))


def front_rows(run: Run) -> list[dict[str, Any]]:
    """The Pareto front and the chosen equation as table rows, simplest first."""
    front = list(run.front)
    if all(c is not run.best and c.skeleton.structure != run.best.skeleton.structure for c in front):
        front = sorted([*front, run.best], key=lambda c: (c.complexity, c.loss))
    return [
        {
            "equation": str(run.display_system(c)),
            "complexity": c.complexity,
            "loss": c.loss,
            "prediction": None if c.prediction is None else c.prediction.error,
            "objective": c.objective,
            "stable": None if c.stability is None else c.stability.kind.value,
            "chosen": c.skeleton.structure == run.best.skeleton.structure,
        }
        for c in front
    ]


def _facts(folder: Path, name: str) -> dict[str, Any]:
    if not folder.joinpath(name).exists():
        raise LgfError(f"{folder} holds no run: there is no file {name} in it; name the folder of a run.")
    content = read_bytes(folder / name)
    facts = _checked(folder, name, lambda: read_json(content))
    if name == REQUEST and facts.get("format") != FORMAT:
        raise LgfError(f"{folder / name} does not describe a run that this version can read; start the run anew.")
    return facts


def _checked(folder: str | Path, name: str, make: Callable[[], Kind]) -> Kind:
    return checked(make, f"{name} in {folder}", "start the run anew")
