"""What a notebook shows: a run as HTML."""

import html

from lgf.expression.mathml import markup
from lgf.expression.print import format_number
from lgf.report.constants import constant_rows
from lgf.report.page import summary
from lgf.report.sentences import sentences
from lgf.runs.request import Run


def run_html(run: Run) -> str:
    """The chosen equation, its constants with their errors, and what predictions say, as HTML."""
    rows = [
        f"<tr><td>{html.escape(row['term'])}</td><td>{format_number(row['value'], row['error'])}</td>"
        f"<td>{row['error']:.2g}</td>{_unit(row)}</tr>"
        for row in constant_rows(run)
    ]
    head = "<th>term</th><th>C</th><th>standard error</th>" + ("<th>unit</th>" if run.request.problem.units else "")
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""
    return f'<div style="font-size: 130%; margin: .4em 0">{markup(run.system.mathml())}</div>{table}' + "".join(
        f"<p>{html.escape(sentence)}</p>" for sentence in (summary(run), *sentences(run))
    )


def _unit(row: dict) -> str:
    return f"<td>{html.escape(row['unit'])}</td>" if "unit" in row else ""
