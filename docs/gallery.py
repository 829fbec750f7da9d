"""Writes the pictures of the gallery and what its examples print: python docs/gallery.py [NAME ...]"""

import contextlib
import io
import re
import runpy
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write(name: str) -> None:
    """Runs one example; its picture goes to docs/figures, its output into the page."""
    printed = io.StringIO()
    begin = time.process_time()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("ignore", UserWarning)  # real records are noisy, and short
        names = runpy.run_path(str(ROOT / f"examples/gallery/{name}.py"))
    seconds = time.process_time() - begin
    names["FIGURE"]().savefig(ROOT / f"docs/figures/gallery-{name}.png", dpi=70)
    page = ROOT / "docs/gallery.md"
    block = f"<!-- {name} -->\n```\n{printed.getvalue().strip()}\n```\n<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8")
    text = re.sub(f"<!-- {name} -->.*<!-- end of {name} -->", lambda _: block, text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")
    print(f"{name}: {seconds:.0f} s of processor time")


if __name__ == "__main__":
    for example in sys.argv[1:] or sorted(path.stem for path in ROOT.glob("examples/gallery/*.py")):
        write(example)
