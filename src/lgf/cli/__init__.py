"""The command line: `lgf discover DATA.csv` and the other commands. Each user error is reported in one sentence."""

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
from lgf.cli.app import app as open_page
from lgf.cli.discover import discover
from lgf.cli.inspect import check, plot, records, simulate, suggest
from lgf.cli.models import models_app, sample, train
from lgf.cli.warm import warm
from lgf.errors import LgfError, Stopped
from lgf.standard_error import STANDARD_ERROR

_UsageError: type[Exception] = typer.BadParameter.__bases__[
    0
]  # from click, or from typer's copy of click, depending on the version

_DISK_ERRORS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EIO,
)  # disk full, quota, read-only, no permission, I/O

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (discover, check, simulate, plot, suggest, records, sample, train, warm):
    app.command()(command)
app.command("app")(open_page)
app.add_typer(models_app, name="models")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 success, 2 user error, 70 bug of lgf, 130 stopped by Ctrl-C.

    Typer returns 1 for a closed pipe.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    os.environ.pop("MPLBACKEND", None)  # figures go to files, so a window backend must not stop a run
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the locale may lack letters of a column's name
    try:
        return app(args=words, prog_name="lgf", standalone_mode=False) or 0
    except _UsageError as error:
        sentence = str(getattr(error, "format_message", error.__str__)()).rstrip(".?")
        context = getattr(error, "ctx", None)
        return _print_error(f"{sentence}; see `{'lgf' if context is None else context.command_path} --help`.")
    except Stopped as stopped:
        STANDARD_ERROR.write(f"{stopped}\n")
        return 130
    except (typer.Abort, KeyboardInterrupt):
        STANDARD_ERROR.write("Stopped.\n")
        return 130
    except LgfError as error:
        return _print_error(str(error).splitlines()[0])
    except Exception as error:  # noqa: BLE001  any other error is a bug, shown with its traceback
        if isinstance(error, OSError) and (error.errno in _DISK_ERRORS or _is_user_file(error, words)):
            return _print_error(f"{error.filename or 'a file'} cannot be used: {error.strerror or error}")
        traceback.print_exc(file=STANDARD_ERROR)
        command = shlex.join(["lgf", *words])
        STANDARD_ERROR.write(
            f"lgf: this is a bug of lgf {__version__}; please report it with all of the above: {command}\n"
        )
        return 70


def _is_user_file(error: OSError, words: Sequence[str]) -> bool:
    """Whether the command line names the failing file, or a folder that contains it."""
    if not isinstance(error.filename, (str, os.PathLike)):
        return False
    file = Path(error.filename)
    return any(word and (file == Path(word) or Path(word) in file.parents) for word in words)


def _print_error(sentence: str) -> int:
    line = " ".join(sentence.split())
    STANDARD_ERROR.write(f"lgf: {line if line.endswith(('.', '?')) else line + '.'}\n")
    return 2


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"lgf {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Latent Grammar Flow: discover ordinary differential equations from noisy measurements."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
