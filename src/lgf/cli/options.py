"""Options that several commands share. Nothing heavy is imported here: `lgf --help` must not wait for it."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[str, typer.Argument(metavar="DATA", help="A CSV file, or the name of a record (see `lgf records`).")]
Time = Annotated[str | None, typer.Option(help="Column of times, by name or number; guessed if not given.")]
Value = Annotated[list[str] | None, typer.Option(help="Column of measured values; repeat it for several columns.")]
Derivative = Annotated[list[int] | None, typer.Option(help="What was measured: 0 is u, 1 is u', 2 is u''.")]
ForcingFormula = Annotated[str | None, typer.Option(help="The known input as a formula in t, such as cos(2*t).")]
ForcingColumn = Annotated[str | None, typer.Option(help="Column of the known input.")]
Experiment = Annotated[str | None, typer.Option(help="Column that tells experiments apart.")]
Weight = Annotated[str | None, typer.Option(help="Column of weights.")]
Initial = Annotated[
    str | None, typer.Option(help="Initial state u,u',... or x=1,y=2, as far as known; the rest is fitted.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
