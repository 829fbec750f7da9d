"""`lgf app`: the page in the browser."""

from pathlib import Path
from typing import Annotated

import typer


def app(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Folder whose runs are shown, in runs/.")] = Path(),
    port: Annotated[int | None, typer.Option(help="Port on this machine. Default: 8765, or any free one.")] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, but do not open a browser.")
    ] = False,
) -> None:
    """Open a page in the browser for searches, results and simulations."""
    from lgf.errors import LgfError

    try:
        from lgf.app.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise LgfError(
            f"the page needs the package {error.name}; install it by: pip install 'latent-grammar-flow[app]'."
        ) from error
    serve(folder, port, not no_browser)
