"""The command line: `lgf discover DATA.csv` and its companions. Every mistake of a user is answered by one sentence."""

import errno
import io
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lgf import __version__
from lgf.cli.discover import Stopped, discover
from lgf.cli.inspect import check, plot, records, simulate
from lgf.cli.models import models_app, sample, train
from lgf.errors import LgfError

_UsageError: type[Exception] = typer.BadParameter.__bases__[
    0
]  # of click or of typer's own copy of it, as the version has it

_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO)  # no room, no right to write

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
for command in (discover, check, simulate, plot, records, sample, train):
    app.command()(command)
app.add_typer(models_app, name="models")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 2 a mistake in what was asked, 70 a bug of lgf, 130 stopped by Ctrl-C.

    Typer gives 1 for a closed pipe.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    os.environ.pop("MPLBACKEND", None)  # figures go to files: no choice of windows may stop a run
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a column's name may have letters that the locale lacks
    try:
        return app(args=words, prog_name="lgf", standalone_mode=False) or 0
    except _UsageError as error:
        return _complain(getattr(error, "format_message", error.__str__)())
    except Stopped as stopped:
        sys.stderr.write(f"{stopped}\n")
        return 130
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("Stopped.\n")
        return 130
    except LgfError as error:
        return _complain(str(error).splitlines()[0])
    except Exception as error:  # noqa: BLE001  whatever else there is, is shown in full
        if isinstance(error, OSError) and (error.errno in _OF_THE_MACHINE or _named(error, words)):
            return _complain(f"{error.filename or 'a file'} cannot be used: {error.strerror or error}")
        traceback.print_exc()
        command = shlex.join(["lgf", *words])
        sys.stderr.write(
            f"lgf: this is a bug of lgf {__version__}; please report it with all of the above: {command}\n"
        )
        return 70


def _named(error: OSError, words: Sequence[str]) -> bool:
    """Whether the file that failed is one that the command names, or lies in a folder that it names."""
    if not isinstance(error.filename, (str, os.PathLike)):
        return False
    file = Path(error.filename)
    return any(word and (file == Path(word) or Path(word) in file.parents) for word in words)


def _complain(sentence: str) -> int:
    said = " ".join(sentence.split())
    sys.stderr.write(f"lgf: {said if said.endswith(('.', '?')) else said + '.'}\n")
    return 2


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lgf {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Latent Grammar Flow: ordinary differential equations from noisy measurements."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
