"""`release`: run a benchmark command by released versions of lgf, or by several versions in turn.

    python -m benchmarks release 0.2.0,now run b1 --seeds 1 --out '{version}.jsonl'

A release is its commit, because a tag may get lost. Its tree is laid out once, in `.releases`. It runs with the
interpreter and the libraries of this process, but with its own benchmarks, unless `--present` says that those of this
tree judge its package. `{version}` in the command is the version; `now` is this tree.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from benchmarks.surroundings import ROOT

COMMITS = {
    "0.1": "b2ec5e95f819b1bae2bd938e5ced69514c5ccf7b",  # the last one before the packages were renamed
    "0.2.0": "48a049ae4edab9e98fce1760271c59ba838c9dd5",
}
NOW = "now"
FOLDER = ROOT / ".releases"


def tree(version: str) -> Path:
    """The folder with the files of this version."""
    if version == NOW:
        return ROOT
    folder = FOLDER / COMMITS[version]
    if not folder.exists():
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / ".gitignore").write_text("*\n")
        archive = subprocess.run(["git", "archive", COMMITS[version]], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        with (
            tempfile.TemporaryDirectory(dir=FOLDER) as unfinished,
            tarfile.open(fileobj=BytesIO(archive.stdout)) as files,
        ):
            files.extractall(Path(unfinished) / "tree", filter="data")
            (Path(unfinished) / "tree").rename(folder)
    return folder


def environment(version: str, present: bool = False, cache: str | None = None) -> dict[str, str]:
    """The environment of a process that imports this version, with its own benchmarks or those of this tree.

    Compiled code and bytecode are kept in the folder `cache`, or else beside the sources.
    """
    path = f"{tree(version) / 'src'}{os.pathsep}{ROOT if present else tree(version)}"
    kept = {} if cache is None else {"NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": f"{cache}/bytecode"}
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    outside = {"GIT_CEILING_DIRECTORIES": str(FOLDER)}  # the commit of this tree is not that of a release
    return inherited | kept | outside | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def run(version: str, command: Sequence[str], present: bool = False) -> None:
    """Runs `python -m benchmarks COMMAND` by this version."""
    filled = [part.replace("{version}", version) for part in command]
    subprocess.run([sys.executable, "-m", "benchmarks", *filled], env=environment(version, present), check=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("versions", help=f"versions with commas between them, of {', '.join([*COMMITS, NOW])}")
    parser.add_argument("--present", action="store_true", help="with the benchmarks of this tree")
    parser.add_argument("benchmark", nargs=argparse.REMAINDER, help="a command of python -m benchmarks")


def main(args: argparse.Namespace) -> None:
    """Runs the command by each version."""
    versions = args.versions.split(",")
    if unknown := set(versions) - {*COMMITS, NOW}:
        sys.exit(f"there is no version {', '.join(sorted(unknown))}; there are {', '.join([*COMMITS, NOW])}.")
    for version in versions:
        run(version, args.benchmark, args.present)
