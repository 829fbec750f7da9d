"""Figures that a notebook shows without pyplot, and images of them."""

import io
import warnings

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


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
