"""The command line: `lgf discover DATA.csv` and its companions. Every mistake of a user is answered by one sentence."""

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from lgf import __version__
from lgf.cli.discover import Stopped, discover
from lgf.cli.inspect import check, plot, records, simulate
from lgf.cli.models import models_app, sample, train

_UsageError: type[Exception] = typer.BadParameter.__bases__[
    0
]  # of click or of typer's own copy of it, as the version has it

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
for command in (discover, check, simulate, plot, records, sample, train):
    app.command()(command)
app.add_typer(models_app, name="models")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 2 a mistake in what was asked, 130 stopped by Ctrl-C; typer gives 1 for a closed pipe."""
    os.environ.pop("MPLBACKEND", None)  # figures go to files: no choice of windows may stop a run
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a column's name may have letters that the locale lacks
    try:
        return app(args=None if arguments is None else list(arguments), prog_name="lgf", standalone_mode=False) or 0
    except _UsageError as error:
        return _complain(getattr(error, "format_message", error.__str__)())
    except Stopped as stopped:
        sys.stderr.write(f"{stopped}\n")
        return 130
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("Stopped.\n")
        return 130
    except ValueError as error:  # LgfError, LgfError, GrammarError, LgfError, LgfError: all meant for users
        return _complain(str(error).splitlines()[0])
    except OSError as error:
        return _complain(f"{error.filename or 'a file'} cannot be used: {error.strerror or error}")


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
