"""Chromium for the tests of the page, and what the tests ask of every screen."""

import io
import os
import shutil
from pathlib import Path

import pytest

FIGURES = Path(__file__).parents[2] / "docs/figures"
REQUIRED = os.environ.get("LGF_BROWSER_TESTS") == "required"  # CI: a browser that is missing is a failure
SHOOT = os.environ.get("LGF_SCREENSHOTS") == "1"  # writes the pictures of docs/app.md anew
FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip

# Collects what the policy of the page refused.
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => {
  window.violations.push(`${e.violatedDirective} ${e.blockedURI}`);
});
"""

AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")

DROP = """
([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name));
  document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}
"""


def chromium_path() -> str:
    """The browser on this machine; without one the tests are skipped, or fail where it is required."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        reason = "there is no Chromium on this machine (Debian: apt-get install chromium)"
        pytest.fail(reason) if REQUIRED else pytest.skip(reason)
    return found


def launch(playwright):
    """A headless browser."""
    sandbox = () if not hasattr(os, "geteuid") or os.geteuid() else ("--no-sandbox",)  # root has none
    return playwright.chromium.launch(executable_path=chromium_path(), args=[*FLAGS, *sandbox])


def shoot(page, name: str, whole: bool = False) -> None:
    """Writes a picture for the docs, if asked for by LGF_SCREENSHOTS=1."""
    if SHOOT:
        from PIL import Image

        page.wait_for_timeout(500)
        picture = Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")
        picture.quantize(64, dither=Image.Dither.NONE).save(FIGURES / f"app-{name}.png", optimize=True)
