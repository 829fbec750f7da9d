"""Writes the picture of how it works: python docs/how_it_works.py"""

from pathlib import Path

BOXES = [  # x, y, title, lines
    (10, 90, "Your table", ["t, u, ... with noise,", "gaps, several runs"]),
    (190, 20, "What you know", ["order, signs, units,", "inputs, terms"]),
    (190, 160, "Smoothing", ["noise, first guesses", "of the derivatives"]),
    (370, 90, "Proposals", ["a grammar, a trained", "model, missing terms"]),
    (550, 90, "Fit", ["solve each equation,", "fit its constants"]),
    (730, 20, "Choice", ["shortest description,", "tested by prediction"]),
    (730, 160, "Report", ["equation, error bars,", "band, alternatives"]),
]
ARROWS = [(0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (5, 6)]
WIDTH, HEIGHT = 160, 84


def picture() -> str:
    """The picture as SVG, readable on light and dark pages."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 290" font-family="system-ui, sans-serif" '
        'role="img" aria-label="From a table to a report: smoothing, proposals, fits, choice">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#6b7785"/></marker></defs>',
        '<rect width="900" height="290" fill="#ffffff"/>',
    ]
    for a, b in ARROWS:
        (x1, y1, *_), (x2, y2, *_) = BOXES[a], BOXES[b]
        if x1 == x2:
            start, stop = (x1 + WIDTH / 2, y1 + HEIGHT), (x2 + WIDTH / 2, y2)
        else:
            start, stop = (x1 + WIDTH, y1 + HEIGHT / 2), (x2, y2 + HEIGHT / 2)
        parts.append(_line(start, stop))
    # the search goes round: good equations are varied
    parts.append(
        '<path d="M630 174 C630 250 450 250 450 178" fill="none" stroke="#c23b22" stroke-width="1.6" '
        'marker-end="url(#tip)"/>'
    )
    parts.append('<text x="540" y="250" text-anchor="middle" font-size="13" fill="#c23b22">what is missing?</text>')
    for x, y, title, lines in BOXES:
        parts.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#f2f5f8" stroke="#9fb0c0"/>'
        )
        parts.append(f'<text x="{x + 12}" y="{y + 26}" font-size="16" font-weight="600" fill="#1d2733">{title}</text>')
        for i, line in enumerate(lines):
            parts.append(f'<text x="{x + 12}" y="{y + 48 + 18 * i}" font-size="13" fill="#3c4a58">{line}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _line(start: tuple[float, float], stop: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, stop
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#6b7785" stroke-width="1.6" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    Path(__file__).with_name("figures").joinpath("how-it-works.svg").write_text(picture(), encoding="utf-8")
