"""The page of Benchmark 5 in the docs: tables and pictures from the committed results."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.real.protocol import Trial, trials_of
from benchmarks.real.records import held_back, records
from benchmarks.real.summary import summaries
from benchmarks.recording import RESULTS, rows
from benchmarks.reporting import markdown
from benchmarks.surroundings import ROOT
from lgf.runs.percentages import percentage

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the backend is set

PAGE = ROOT / "docs" / "real.md"
FIGURES = ROOT / "docs" / "figures"
LABEL = "current"
COLUMNS = 5

BEFORE = """# Real records

Written by `python -m benchmarks real --page` from the files in `benchmarks/results`; nothing here was typed.

Forty measured records from packages on PyPI: growth, decay, pharmacokinetics, cooling, vibration, epidemics, cycles.
The rules of selection, split and score are in `benchmarks/real/README.md` and were written before anything was run.
Half of the records are for development; the other half is held back and run at a release only.

- *forecast*: it is chosen and fitted on the first 75 % of the window of every experiment, and predicts the rest.
- *left out*: it is chosen and fitted on two thirds of the experiments; the others are predicted from their first 30 %.

Nothing is given but the data. The *ratio* is the root mean square error on samples that were not seen, divided by that
of the best naive prediction (the last value stays; the line goes on; the mean curve of the other experiments), which is
picked in hindsight for each test. Below 1 is better than all of them. A user can only choose in advance, so there is a
second ratio, to the naive prediction that does best in the same test made of the training part alone. How a forecast is
made is in [Can I trust the equation?](trust.md); linear equations are fitted and continued in the same way.

The rule of choice was made on the records for development, so their figures are optimistic. Nothing was chosen by a
look at the others; figures of a release are theirs.
"""


def write_page() -> Path:
    """The path of the page, written with its figures."""
    parts = [BEFORE]
    for title, held, file in (
        ("Records for development", False, "real-development.png"),
        ("Records held back", True, "real-held-back.png"),
    ):
        section = _section(title, held, file)
        if section:
            parts.append(section)
    parts.append(_sources())
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    return PAGE


def _results(label: str, held: bool) -> list[dict[str, Any]]:
    return rows(RESULTS / f"real-{'held-back-' if held else ''}{label}.jsonl")


def _section(title: str, held: bool, figure: str) -> str:
    """The summary, the table and the picture of one half; empty without results."""
    shown, references = _results(LABEL, held), _results("references", held)
    if not shown:
        return ""
    chosen = {(row["record"], row["test"]): row["in_advance"] for row in shown if "in_advance" in row}
    body = [_cells(s, f"lgf ({_version(shown)})") for s in summaries(shown, chosen)]
    body += [_cells(s, s.method) for s in summaries(references, chosen)]
    head = ["", "tests", "better than naive", "records", "better than naive", "ratio (geometric mean)"]
    head += ["ratio, naive chosen in advance", "tests better than it", "median", "constants", "no answer", "CPU s"]
    _draw(shown, held, FIGURES / figure)
    return (
        f"## {title}\n\n{markdown(head, body)}\n\n{_table(shown, references)}\n\n"
        f"![Predictions on the first experiment of each test](figures/{figure})\n\n"
        "Samples seen (grey), samples predicted (black), prediction (red), of the first experiment of each test.\n"
    )


def _version(lines: Sequence[dict[str, Any]]) -> str:
    return lines[-1]["versions"]["lgf"]


def _cells(s: Any, name: str) -> list[str]:
    return [
        name, str(s.tests), str(s.wins), str(s.records), str(s.record_wins), f"{s.ratio:.2f}",
        "" if math.isnan(s.ratio_in_advance) else f"{s.ratio_in_advance:.2f}", str(s.advance_wins), f"{s.median:.2f}",
        f"{s.constants:.1f}" if s.constants else "", str(s.failures), f"{s.seconds:.1f}",
    ]  # fmt: skip


def _table(shown: Sequence[dict[str, Any]], references: Sequence[dict[str, Any]]) -> str:
    """A line for each test: equation, errors, and the ratios of all methods."""
    names = list(dict.fromkeys(row["method"] for row in references))
    others = {(row["record"], row["test"], row["method"]): row["ratio"] for row in references}
    body = []
    for row in shown:
        best = min(row["baselines"], key=lambda name: row["baselines"][name])
        equation = row.get("equation") or row.get("failure", "")
        cells = [row["record"], row["test"], f"`{equation.replace(chr(10), '; ')}`", str(row.get("constants", ""))]
        cells += [_percent(row.get("in_sample")), _percent(row["error"]), best, f"**{_ratio(row['ratio'])}**"]
        body.append([*cells, *(_ratio(others.get((row["record"], row["test"], name))) for name in names)])
    head = ["record", "test", "equation", "constants", "error in sample", "out of sample", "best naive", "ratio"]
    return markdown([*head, *names], body)


def _percent(value: float | None) -> str:
    return "" if value is None else percentage(value) if value < 10 else "over 1000 %"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _draw(shown: Sequence[dict[str, Any]], held: bool, file: Path) -> None:
    """A panel for each test: its first piece, seen and predicted."""
    by_key = {(row["record"], row["test"]): row for row in shown}
    among = [r for r in records().values() if (r.id in held_back()) == held]
    tests = [t for r in among for t in trials_of(r) if (t.record, t.kind) in by_key]
    lines = math.ceil(len(tests) / COLUMNS)
    figure, grid = plt.subplots(
        lines, COLUMNS, figsize=(2.6 * COLUMNS, 1.9 * lines), layout="constrained", squeeze=False
    )
    for axes in grid.flat[len(tests) :]:
        axes.set_axis_off()
    for axes, test in zip(grid.flat, tests, strict=False):
        _panel(axes, test, by_key[test.record, test.kind])
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=90)
    plt.close(figure)


def _panel(axes: Any, test: Trial, row: dict[str, Any]) -> None:
    piece = test.pieces[0]
    axes.plot(piece.seen.t, piece.seen.values[:, 0], ".", ms=3, color="0.6")
    axes.plot(piece.rest.t, piece.rest.values[:, 0], ".", ms=3, color="black")
    if row.get("predicted"):
        values = [math.nan if v[0] is None else v[0] for v in row["predicted"][0]]
        axes.plot(piece.rest.t, values, ".-", color="tab:red", lw=1.2, ms=2)
    both = [*piece.seen.values[:, 0], *piece.rest.values[:, 0]]
    margin = 0.4 * (max(both) - min(both)) or 1.0
    axes.set_ylim(min(both) - margin, max(both) + margin)
    axes.set_title(f"{test.record}, {test.kind}: {_ratio(row['ratio'])}", fontsize="small")
    axes.tick_params(labelsize="xx-small")


def _sources() -> str:
    held = held_back()
    body = [
        [r.id, r.what, r.source, r.licence, "held back" if r.id in held else "development"] for r in records().values()
    ]
    return (
        "## Sources\n\nThe records are extracted from these packages in an environment of their own "
        "(`python -m benchmarks real --install`).\n\n"
        + markdown(["record", "quantity", "source", "licence", "half"], body)
        + "\n"
    )
