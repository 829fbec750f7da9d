"""`lgf discover`: from a file to a folder with the equation and its report."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lgf.cli.options import (
    AsJson,
    Derivative,
    Experiment,
    ForcingColumn,
    ForcingFormula,
    Initial,
    Time,
    Value,
    Weight,
)


class Stopped(Exception):
    """The work was stopped by the user; the message says how to go on."""


def discover(
    data: Annotated[str | None, typer.Argument(metavar="[DATA]", help="A CSV file, or the name of a record.")] = None,
    time: Time = None,
    value: Value = None,
    derivative: Derivative = None,
    forcing: ForcingFormula = None,
    forcing_column: ForcingColumn = None,
    experiment: Experiment = None,
    weight: Weight = None,
    initial: Initial = None,
    order: Annotated[int | None, typer.Option(help="Order of the equation; 1 and 2 are tried if not given.")] = None,
    stable: Annotated[bool | None, typer.Option("--stable/--unstable", help="What is known of stability.")] = None,
    autonomous: Annotated[bool, typer.Option("--autonomous", help="Time does not appear by itself.")] = False,
    functions: Annotated[str | None, typer.Option(help="The only functions allowed, such as sin,cos.")] = None,
    bounds: Annotated[list[str] | None, typer.Option(help="Such as u^3=negative or u=-10:0; repeat it.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="A term that must be there; repeat it.")] = None,
    start: Annotated[list[str] | None, typer.Option(help="An equation to try first; repeat it.")] = None,
    model: Annotated[
        str, typer.Option(help="standard, b1, b2, b3, or the path of a grammar or of a trained model.")
    ] = "standard",
    preset: Annotated[str, typer.Option(help="default or paper.")] = "default",
    settings_file: Annotated[
        Path | None, typer.Option("--settings", metavar="FILE", help="TOML with settings in place of the preset's.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Time for the search.")] = None,
    evaluations: Annotated[int | None, typer.Option(help="Equations to fit: the same result on any machine.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processors to use; -1 for all.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; runs/NAME if not given.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Discover the equation behind measured data."""
    from lgf.cli.discovery import asked, finish, new_folder, prepared
    from lgf.cli.problem import Columns, parse_bounds, read_problem, split_names
    from lgf.cli.terminal import compile_kernels, make_console
    from lgf.errors import LgfError, quoted
    from lgf.runs.folder import read_journal, read_request
    from lgf.runs.presets import model_named, preset_named, settings_in, with_budget
    from lgf.runs.request import Request
    from lgf.search.mixture import foreign_proposers

    console = make_console(stderr=True)
    if jobs < 1 and jobs != -1:
        raise LgfError(f"--jobs is {jobs}; give a number of processors, or -1 for all.")
    if seed < 0:
        raise LgfError(f"--seed is {seed}; give a whole number that is not negative.")
    if resume is not None:
        if data is not None or out is not None:
            raise LgfError("a run that is resumed has its own data and folder; drop DATA and --out.")
        if settings_file is not None:
            raise LgfError("a run that is resumed has its own settings; drop --settings.")
        request = read_request(resume, resume=True)
        foreign = foreign_proposers(request.settings)
        if foreign:
            raise LgfError(
                f"the run in {resume} asks a proposer {quoted(foreign[0])} that is not of this package; resume it from "
                "Python, with that proposer given to `execute`."
            )
        # Seconds count from now on; evaluations from the very start.
        request = replace(request, settings=with_budget(request.settings, evaluations, seconds))
        folder, lines = resume, read_journal(resume)
    else:
        if data is None:
            raise LgfError("there is nothing to discover from; name a CSV file or a record (see `lgf records`).")
        known = {
            "order": order, "stable": stable, "autonomous": autonomous or None, "functions": split_names(functions),
            "bounds": parse_bounds(bounds), "required": tuple(require) if require else None,
        }  # fmt: skip
        columns = Columns(time, value, derivative, forcing_column, experiment, weight)
        problem, notes = read_problem(data, columns, forcing, initial, known)
        settings = preset_named(preset)
        if settings_file is not None:
            settings = settings_in(settings_file, settings)
        settings = with_budget(settings, evaluations, seconds)
        grammar, trained = model_named(model)
        request = Request(problem, grammar, settings, seed, tuple(start or ()), trained, data)
        folder, lines = prepared(request, out or new_folder(data), notes, console), []
    compile_kernels(console)
    run = asked(request, folder, lines, jobs, console)
    finish(run, folder, as_json, console)
