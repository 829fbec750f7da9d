"""A run as HTML: the report, one self-contained file with its figures, and what a notebook shows."""

import base64
from pathlib import Path

from lgf.expression.mathml import markup
from lgf.files import write_atomically
from lgf.report.equilibria import equilibrium_rows, equilibrium_sentence, state_rows
from lgf.report.run_view import run_view
from lgf.report.sentences import portrait
from lgf.report.templates import render
from lgf.runs.request import Run

REPORT = "report.html"


def write_report(run: Run, folder: str | Path) -> Path:
    """The path of the report, written with its figures into the folder."""
    from lgf.report.canvas import png  # imported late: a search does not wait for matplotlib
    from lgf.report.figures import figures

    images = {name: png(figure) for name, figure in figures(run).items()}
    for name, image in images.items():
        write_atomically(Path(folder) / f"{name}.png", image)
    path = Path(folder) / REPORT
    write_atomically(path, report(run, images).encode())
    return path


def report(run: Run, images: dict[str, bytes]) -> str:
    """The report as HTML with embedded images, without scripts or links."""
    embedded = {name: base64.b64encode(image).decode() for name, image in images.items()}
    return render(
        "report.html.j2", view=run_view(run), images=embedded, portrait=portrait(run), states=state_rows(run),
        equilibrium=equilibrium_sentence(run), equilibria=equilibrium_rows(run),
    )  # fmt: skip


def run_html(run: Run) -> str:
    """The chosen equation, its constants with their errors, and what predictions say, as HTML for a notebook."""
    view = run_view(run)
    return render("notebook.html.j2", view=view, equation=markup(view.chosen.math))
