"""Figures that a notebook shows without pyplot, images of them, and labels of axes."""

import io
import warnings

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lgf.equation.units import unit_pretty
from lgf.expression.frame import Variable
from lgf.runs.quantities import units_of
from lgf.runs.request import Run


class RunFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        return png(self)


def png(figure: Figure) -> bytes:
    """The figure as a PNG image; equal figures give equal bytes."""
    FigureCanvasAgg(figure)
    file = io.BytesIO()
    with warnings.catch_warnings():
        # The font may lack the script of an experiment's name; the report shows the name as text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
    return file.getvalue()


def axis_label(run: Run, quantity: Variable | str) -> str:
    """The name of time, a variable or an input, with its unit if that is known: u [m]."""
    known = units_of(run).get(str(quantity))
    return f"{quantity} [{unit_pretty(known)}]" if known else str(quantity)
