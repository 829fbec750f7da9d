"""What a notebook shows: a run as HTML."""

from lgf.expression.mathml import markup
from lgf.expression.print import format_number
from lgf.report.constants import constant_rows
from lgf.report.page import summary
from lgf.report.sentences import sentences
from lgf.report.templates import render
from lgf.runs.request import Run


def run_html(run: Run) -> str:
    """The chosen equation, its constants with their errors, and what predictions say, as HTML."""
    rows = [
        {
            "term": row["term"],
            "C": format_number(row["value"], row["error"]),
            "standard error": f"{row['error']:.2g}",
            **({"unit": row["unit"]} if "unit" in row else {}),
        }
        for row in constant_rows(run)
    ]
    said = [summary(run), *sentences(run)]
    return render("notebook.html.j2", equation=markup(run.system.mathml()), constants=rows, sentences=said)
