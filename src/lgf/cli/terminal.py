"""What commands print beside their results: findings, and that the kernels are being compiled."""

import time

from rich.console import Console

from lgf.compilation import CACHED
from lgf.data import Finding
from lgf.search.precompilation import KERNELS, is_compiled, precompile

_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def compile_kernels(console: Console) -> None:
    """Compiles the kernels, unless they are cached, with a line that says how far it is."""
    if is_compiled():
        return
    if not CACHED:
        console.print(
            "compiling the numerical kernels, as in every run, because no folder can be written to keep them in (name "
            "one by NUMBA_CACHE_DIR); this takes half a minute ...", style="dim", soft_wrap=True
        )  # fmt: skip
        return
    started, done = time.monotonic(), 0
    sentence = "compiling the numerical kernels, once; this takes 10 to 20 seconds"

    def report(_: str) -> None:
        nonlocal done
        done += 1
        status.update(f"{sentence}: {done} of {len(KERNELS)} after {time.monotonic() - started:.0f} s")

    if not console.is_terminal:
        console.print(f"{sentence} ...", style="dim", soft_wrap=True)
    with console.status(sentence, spinner_style="dim") as status:
        precompile(report)


def show_findings(findings: tuple[Finding, ...], console: Console) -> None:
    """Prints the findings of the data check."""
    for finding in findings:
        console.print(f"{finding.severity}: {finding.sentence}", style=_COLOURS[finding.severity], soft_wrap=True)
