"""The table of a batch: a CSV file, and an HTML page with the curves."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lgf.batch.answer import Answer, Status
from lgf.errors import LgfError
from lgf.expression.print import format_number
from lgf.files import write_atomically
from lgf.report.sentences import tally
from lgf.report.templates import render

TABLE, PAGE = "summary.csv", "summary.html"
_WIDTH, _HEIGHT = 160, 48  # of a small figure, in pixels
_COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#8d5a97")


def table_rows(answers: Sequence[Answer], common: str | None = None) -> list[dict[str, Any]]:
    """The table: one row a record. If all have one structure, each constant has a column of its own."""
    rows = []
    for line in answers:
        row: dict[str, Any] = {
            "record": line.record,
            "status": line.status.value,
            "equation": "; ".join(line.equation.splitlines()),
            "error": line.error,
            "prediction": line.prediction,
            "verdict": line.trust,
            "constants": "; ".join(_constant(*entry) for entry in line.constants),
            "samples": line.samples,
            **({"unit of t": line.time_unit} if any(other.time_unit for other in answers) else {}),
            "seconds": round(line.seconds, 3),
            "sentence": line.sentence,
            "source": line.source,
        }
        if common is not None:
            row |= {f"constant of {term}": value for term, value, _ in line.constants}
        rows.append(row)
    keys = dict.fromkeys(key for row in rows for key in row)
    return [{key: row.get(key) for key in keys} for row in rows]


def write_table(answers: Sequence[Answer], folder: Path, common: str | None = None) -> tuple[Path, Path]:
    """The paths of the CSV file and the HTML page, written into the folder."""
    rows = table_rows(answers, common)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows([{key: _cell(value) for key, value in row.items()} for row in rows])
    write_atomically(folder / TABLE, text.getvalue().encode())
    write_atomically(folder / PAGE, page(answers, common).encode())
    return folder / TABLE, folder / PAGE


def _cell(value: Any) -> Any:
    """The value of a cell; a text that a spreadsheet would take for a formula is marked as text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def summary(answers: Sequence[Answer]) -> str:
    """One sentence on what became of the records."""
    counts = {status: sum(line.status is status for line in answers) for status in Status}
    trusts = [line.trust for line in answers if line.status is Status.ANSWERED]
    parts = [f"{counts[Status.ANSWERED]} of {len(answers)} records answered, {tally(trusts)}"]
    parts += [f"{n} {status.value}" for status, n in counts.items() if n and status is not Status.ANSWERED]
    seconds = sum(line.seconds for line in answers)
    return f"{'; '.join(parts)}; {seconds:.0f} s of processor time."


def check_any(answers: Sequence[Answer]) -> None:
    """Raises LgfError if no record could be answered."""
    failed = [line for line in answers if line.status is Status.FAILED]
    if len(failed) == len(answers):
        line = failed[0]
        if len(answers) == 1:
            raise LgfError(line.sentence)
        raise LgfError(f"none of the {len(answers)} records could be answered; {line.record}: {line.sentence}")


def page(answers: Sequence[Answer], common: str | None = None) -> str:
    """The table as a page without scripts or links to other places."""
    records = [(line, _curves(line), [_constant(*entry) for entry in line.constants]) for line in answers]
    return render("batch.html.j2", summary=summary(answers), common=common, records=records, size=(_WIDTH, _HEIGHT))


def _constant(term: str, value: float, error: float) -> str:
    spread = f" ± {error:.2g}" if math.isfinite(error) else ""
    return f"{term}: {format_number(value, error)}{spread}"


def _curves(line: Answer) -> list[dict[str, Any]]:
    """Samples as dots and the solution as a line, each measured column in a colour of its own."""
    curves = []
    for curve, colour in zip(line.curves, _COLOURS, strict=False):
        t, values = np.array(curve.t), np.array([curve.measured, curve.solution], float)
        if np.isnan(values).all() or t[-1] == t[0]:
            continue
        low, high = np.nanmin(values), np.nanmax(values)
        x = 2 + (_WIDTH - 4) * (t - t[0]) / (t[-1] - t[0])
        y = _HEIGHT - 2 - 44 * ((values - low) / (high - low) if high > low else values - low + 0.5)
        dots, solution = ([(round(a, 1), round(b, 1)) for a, b in zip(x, row, strict=True) if b == b] for row in y)
        curves.append({"colour": colour, "dots": dots, "points": " ".join(f"{a},{b}" for a, b in solution)})
    return curves
