"""`lgf discover`: reads the data, runs the search, writes the equation and its report."""

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
    Unit,
    Value,
    Weight,
    Wide,
    options_given,
)

_WHEN_RESUMED = frozenset({"resume", "seconds", "evaluations", "patience", "jobs", "as_json"})


def discover(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...", help="CSV file, or name of an example record; with --batch also folders and patterns."
        ),
    ] = None,
    time: Time = None,
    value: Value = None,
    derivative: Derivative = None,
    forcing: ForcingFormula = None,
    forcing_column: ForcingColumn = None,
    experiment: Experiment = None,
    wide: Wide = False,
    weight: Weight = None,
    unit: Unit = None,
    initial: Initial = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="Order of the equation, or of each: x=2,y=1. Default: 1 and 2 are tried; of systems, by the data."
        ),
    ] = None,
    stable: Annotated[
        bool | None, typer.Option("--stable/--unstable", help="The system is known to be stable or unstable.")
    ] = None,
    autonomous: Annotated[
        bool, typer.Option("--autonomous", help="The equation does not contain t explicitly.")
    ] = False,
    functions: Annotated[
        list[str] | None,
        typer.Option(help="Allowed functions, such as sin,cos, or x: sin for one state. Default: all. Repeatable."),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(help="Bounds of a coefficient, such as u^3=negative, u=-10:0 or x: x*y=negative. Repeatable."),
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(help="Term that must occur, such as u, or x: x*y in one equation. Repeatable.")
    ] = None,
    forbid: Annotated[
        list[str] | None, typer.Option(help="Term that must not occur, such as u^2 or y: x^2. Repeatable.")
    ] = None,
    known: Annotated[
        list[str] | None, typer.Option(help="Known equation, such as x' = v; its numbers stay. Repeatable.")
    ] = None,
    shared: Annotated[
        list[str] | None, typer.Option(help="Coefficients that are one constant: S: S*I = -I: S*I. Repeatable.")
    ] = None,
    conserved: Annotated[
        list[str] | None, typer.Option(help="Sum of states that does not change, such as S + I + R. Repeatable.")
    ] = None,
    population: Annotated[
        list[str] | None, typer.Option(help="State whose right-hand side is divisible by it. Repeatable.")
    ] = None,
    hidden: Annotated[
        list[str] | None,
        typer.Option(help="State that was not measured, such as lynx; it gets an equation and a path."),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="Term whose coefficient differs between experiments, or auto or none. Default: auto."),
    ] = None,
    start: Annotated[list[str] | None, typer.Option(help="Equation to try first. Repeatable.")] = None,
    model: Annotated[
        str, typer.Option(help="standard, b1, b2, b3, or path of a grammar or trained model.")
    ] = "standard",
    preset: Annotated[str, typer.Option(help="Preset of the settings: default or paper.")] = "default",
    settings_file: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="TOML file with settings that override the preset."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Time limit of the search in seconds.")] = None,
    evaluations: Annotated[
        int | None, typer.Option(help="Most equations to fit; the result is the same on any machine.")
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(help="Equations fitted without a better one before the search ends. Default: by its course."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same result.")] = 0,
    jobs: Annotated[int, typer.Option(help="Number of processors; -1 for all.")] = 1,
    batch: Annotated[
        Path | None, typer.Option(help="Answer each of many records, in this folder. Run it again to go on.")
    ] = None,
    one_structure: Annotated[
        bool, typer.Option("--one-structure", help="With --batch: one equation for all, constants of each record.")
    ] = False,
    workers: Annotated[
        str, typer.Option(help="With --batch: processes, threads, or the address of a Dask scheduler.")
    ] = "processes",
    out: Annotated[Path | None, typer.Option(help="Folder for the run. Default: runs/NAME.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Resume the run in this folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Discover the differential equation behind measured data."""
    from lgf.cli.discovery import prepare_folder, search_and_write
    from lgf.cli.problem import Columns, parse_bounds, parse_functions, parse_order, read_problem
    from lgf.errors import LgfError, quoted
    from lgf.runs.folder import evaluations_so_far, read_journal, read_request
    from lgf.runs.presets import longer, model_named, preset_named, settings_in, with_budget
    from lgf.runs.progress import budgets_of_killed
    from lgf.runs.request import Request
    from lgf.search.mixture import foreign_proposers
    from lgf.standard_error import make_console

    console = make_console()
    if jobs < 1 and jobs != -1:
        raise LgfError(f"--jobs is {jobs}; give a number of processors, or -1 for all.")
    if seed < 0:
        raise LgfError(f"--seed is {seed}; give a whole number that is not negative.")
    if batch is None and one_structure:
        raise LgfError("--one-structure is for many records; name a folder for them: --batch FOLDER.")
    if resume is not None:
        if data or out is not None or batch is not None:
            raise LgfError("a run that is resumed has its own data and folder; drop DATA, --out and --batch.")
        if settings_file is not None:
            raise LgfError("a run that is resumed has its own settings; drop --settings.")
        if others := options_given(context, beside=_WHEN_RESUMED):
            raise LgfError(
                f"a run that is resumed has its own data, knowledge, settings and seed; drop {', '.join(others)}, or "
                "start a new run."
            )
        request = read_request(resume, resume=True)
        foreign = foreign_proposers(request.settings)
        if foreign:
            raise LgfError(
                f"the run in {resume} asks a proposer {quoted(foreign[0])} that is not of this package; resume it from "
                "Python, with that proposer given to `execute`."
            )
        # Seconds count from now; evaluations count from the start of the run.
        fitted, ended = evaluations_so_far(resume)
        if evaluations is not None and evaluations < fitted:
            raise LgfError(
                f"--evaluations is {evaluations}, but {fitted} equations were fitted in {resume} already; give a "
                "larger number, or none."
            )
        settings, budgets = request.settings, budgets_of_killed(resume)
        if budgets is None:
            settings = longer(settings, fitted if ended else 0)
        else:  # killed in its last step it may have a result, and goes on to the same one
            settings = replace(settings, search=replace(settings.search, **budgets))
        request = replace(request, settings=with_budget(settings, evaluations, seconds, patience))
        folder, lines = resume, read_journal(resume)
    else:
        if not data:
            raise LgfError("there is nothing to discover from; name a CSV file or a record (see `lgf records`).")
        knowledge = {
            "order": parse_order(order), "stable": stable, "autonomous": autonomous or None,
            "functions": parse_functions(functions), "bounds": parse_bounds(bounds), "required": require,
            "forbidden": forbid, "known": known, "shared": shared, "conserved": conserved, "populations": population,
            "hidden": hidden, "vary": vary or "auto",
        }  # fmt: skip
        columns = Columns(time, value, derivative, forcing_column, experiment, weight, unit, wide)
        settings = preset_named(preset)
        if settings_file is not None:
            settings = settings_in(settings_file, settings)
        settings = with_budget(settings, evaluations, seconds, patience)
        if batch is not None:
            from lgf.batch.answer import Question
            from lgf.cli.batch import ReadRecord, answer_batch

            if out is not None:
                raise LgfError("a batch has its own folder; drop --out.")
            question = Question(
                ReadRecord(columns, forcing, initial, knowledge), model, settings, seed, tuple(start or ())
            )
            answer_batch(question, data, batch, jobs, workers, one_structure, as_json, console)
            return
        if len(data) > 1:
            raise LgfError(
                f"{len(data)} files are given, and one record is searched at a time; answer each of them with "
                "--batch FOLDER, or put them into one table with a column for --experiment."
            )
        problem, notes = read_problem(data[0], columns, forcing, initial, knowledge)
        grammar, trained = model_named(model)
        request = Request(problem, grammar, settings, seed, tuple(start or ()), trained, data[0], notes)
        folder, lines = prepare_folder(request, out, notes, console), []
    search_and_write(request, folder, lines, jobs, as_json, console, resumed=resume is not None)
