"""Options shared by several commands. Imports are kept light, so that `lgf --help` is fast."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV file, or name of an example record (see `lgf records`).")
]
Time = Annotated[str | None, typer.Option(help="Column of the times, by name or number. Default: guessed.")]
Value = Annotated[
    list[str] | None,
    typer.Option(help="Column of measured values. Repeatable. Default: every column of numbers without another role."),
]
Derivative = Annotated[
    list[str] | None,
    typer.Option(help="Measured derivative: 0 is u, 1 is u', 2 is u'', for each value column, or x=2 for one of them."),
]
ForcingFormula = Annotated[
    list[str] | None, typer.Option(help="Known input as a formula in t: cos(2*t), or name=cos(2*t). Repeatable.")
]
ForcingColumn = Annotated[list[str] | None, typer.Option(help="Column of a known input. Repeatable.")]
Experiment = Annotated[
    list[str] | None,
    typer.Option(help="Column that identifies the experiments. Repeatable: plate and well name them together."),
]
Wide = Annotated[
    bool, typer.Option("--wide", help="Every measured column is an experiment of the same quantity, as wells are.")
]
Weight = Annotated[str | None, typer.Option(help="Column of sample weights.")]
Unit = Annotated[
    list[str] | None,
    typer.Option(
        help="Unit of a column or quantity, such as u=m or t=s. Repeatable. Default: from headers like u [m]."
    ),
]
Initial = Annotated[
    str | None, typer.Option(help="Values known at the first sample, as u,u',... or 'x=1,y=3 cm'. Others are fitted.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def options_given(context: typer.Context, beside: Collection[str]) -> list[str]:
    """The options on the command line, as they are typed, but for those that set the parameters in `beside`."""
    sources = ((p, context.get_parameter_source(p.name or "")) for p in context.command.params)
    typed = [p for p, source in sources if source is not None and source.name == "COMMANDLINE"]
    return [p.opts[0] for p in typed if p.name not in beside]
