"""The commands `check`, `simulate`, `plot`, `suggest` and `records`."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lgf.cli.options import (
    Data,
    Derivative,
    Experiment,
    ForcingColumn,
    ForcingFormula,
    Initial,
    RunFolder,
    Time,
    Unit,
    Value,
    Weight,
    Wide,
)
from lgf.errors import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lgf.solver.trajectory import Trajectory

MOST_TIMES = 10_000_000
MOST_LISTED = 6  # experiments that `check` describes


def check(
    data: Data,
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
) -> None:
    """Check the data before a search, and report problems."""
    from lgf.cli.problem import Columns, read_problem
    from lgf.cli.terminal import show_findings
    from lgf.data import check as check_problem
    from lgf.errors import LgfError
    from lgf.report.sentences import experiments
    from lgf.standard_error import make_console

    columns = Columns(time, value, derivative, forcing_column, experiment, weight, unit, wide)
    problem, notes = read_problem(data, columns, forcing, initial, {})
    for note in notes:
        typer.echo(note)
    typer.echo(
        f"States: {', '.join(problem.states)}." + f" Inputs: {', '.join(problem.inputs)}." * bool(problem.inputs)
    )
    for line in experiments(problem, MOST_LISTED):
        typer.echo(line)
    findings = check_problem(problem)
    first_error = next((finding for finding in findings if finding.severity == "error"), None)
    show_findings(tuple(finding for finding in findings if finding is not first_error), make_console(stdout=True))
    if first_error is not None:
        raise LgfError(first_error.sentence)


def simulate(
    run: RunFolder,
    t0: Annotated[str | None, typer.Option("--t0", help="First time. Default: start of the record.")] = None,
    t1: Annotated[str | None, typer.Option("--t1", help="Last time, as 20 or '2 min'. Default: end of it.")] = None,
    n: Annotated[int | None, typer.Option("--n", help="Number of times. Default: 500.")] = None,
    initial: Annotated[str | None, typer.Option(help="Initial state at the first time, as 1,0 or 'u=3 cm'.")] = None,
    forcing: ForcingFormula = None,
    forcing_file: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with times and samples of the inputs. Its times are those of the table by default."
        ),
    ] = None,
    forcing_column: ForcingColumn = None,
    time: Annotated[str | None, typer.Option(help="Column of the times in that file. Default: guessed.")] = None,
    units: Annotated[bool, typer.Option("--units", help="Write the units into the header.")] = False,
    interval: Annotated[
        float | None, typer.Option(help="Probability such as 0.9: add the lower and upper ends of the band.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write. Default: print to the terminal.")] = None,
) -> None:
    """Solve the equation of a run from any initial state, with any input, and write a table."""
    import numpy as np

    from lgf.cli.problem import parse_initial, parse_inputs
    from lgf.data.experiments import make_inputs
    from lgf.data.quantities import read_quantity
    from lgf.equation.units import unit_text
    from lgf.errors import LgfError
    from lgf.files import write_atomically
    from lgf.runs.bands import Bands
    from lgf.runs.folder import read_run
    from lgf.runs.forecast import forecast
    from lgf.runs.input_table import check_window, read_inputs, sample_times
    from lgf.runs.quantities import initial_in_numbers, times_in_numbers, units_of
    from lgf.solver.trajectory import SolveStatus, Trajectory

    result = read_run(run)
    formulas, sampled = parse_inputs(forcing), {}
    if forcing_file is not None:
        sampled = read_inputs(result, forcing_file, time, forcing_column or ())
        if (twice := next((name for name in sampled if name in formulas), None)) is not None:
            raise LgfError(
                f"the input {quoted(twice)} is given by a formula and by {forcing_file}; keep one of the two."
            )
    elif forcing_column or time is not None:
        raise LgfError("--forcing-column and --time say what is in a file of inputs; name it by --forcing-file.")
    own = sample_times(sampled) if sampled else np.array(result.request.problem.observations[0].window)
    given = [None if text is None else float(times_in_numbers(result, read_quantity(text))) for text in (t0, t1)]
    begin, end = (float(default) if t is None else t for default, t in zip(own[[0, -1]], given, strict=True))
    as_sampled = bool(sampled) and n is None and given == [None, None]
    n = 500 if n is None else n
    if not 2 <= n <= MOST_TIMES:
        raise LgfError(f"--n is {n}; give a number of times from 2 to {MOST_TIMES}.")
    if not (np.isfinite(begin) and np.isfinite(end) and begin < end):
        raise LgfError(f"the times go from {begin:g} to {end:g}; the last one must be later than the first.")
    check_window(sampled, begin, end, str(forcing_file))
    t = own if as_sampled else np.linspace(begin, end, n)
    start = parse_initial(initial) if initial is not None else None
    if isinstance(start, list):
        raise LgfError(f"the initial state is {quoted(initial)}; give a single one.")
    start = initial_in_numbers(result, start)
    inputs = {**sampled, **make_inputs(formulas, t)} or None
    if start is None and inputs:
        raise LgfError("a new forcing needs an initial state; give it by --initial.")
    ends: dict[str, Trajectory] = {}
    if interval is not None:
        bands = Bands(result)
        if start is not None:
            solved, lower, upper = bands.of_simulation(t, start, inputs, interval)
        else:
            solved, lower, upper = bands.of_experiment(0, t, interval)
        ends = {"lower": lower, "upper": upper}
    elif start is not None:
        solved = result.simulate(t, start, inputs)
    else:
        solved = forecast(result, 0, t)
    text = _csv(solved, ends, {name: unit_text(unit) for name, unit in units_of(result).items()} if units else {})
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text.encode())
    if solved.status is not SolveStatus.OK:
        what = "blows up" if solved.status is SolveStatus.BLEW_UP else f"ends early ({solved.status.value})"
        typer.echo(f"The solution {what} at t = {solved.end:.6g}; what was not reached is empty.", err=True)


def _csv(solved: "Trajectory", ends: "Mapping[str, Trajectory]", units: "Mapping[str, str]") -> str:
    """The table of the trajectory, followed by the ends of its band, if there are any."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = ["t", *map(str, solved.variables), *solved.inputs]
    columns = [solved.t, *solved.values.T, *solved.inputs.values(), *(c for end in ends.values() for c in end.values.T)]
    names += [f"{end} {variable}" for end in ends for variable in solved.variables]
    known = (units.get(name.split(" ")[-1]) for name in names)
    writer.writerow([f"{name} [{unit}]" if unit else name for name, unit in zip(names, known, strict=True)])
    for row in zip(*columns, strict=True):
        writer.writerow(["" if x != x else f"{x:.10g}" for x in row])
    return file.getvalue()


def plot(run: RunFolder) -> None:
    """Write the figures and the report of a run again."""
    from lgf.report.page import write_report
    from lgf.runs.folder import read_run

    typer.echo(write_report(read_run(run), run))


def suggest(
    run: RunFolder,
    n: Annotated[int, typer.Option("--n", help="Number of experiments, each after those before it.")] = 1,
    start: Annotated[
        list[str] | None,
        typer.Option(help="Allowed initial values, as u=-1:2. Repeatable. Default: range of the data."),
    ] = None,
    duration: Annotated[list[float] | None, typer.Option(help="Allowed duration. Repeatable.")] = None,
    samples: Annotated[int | None, typer.Option(help="Number of samples. Default: as in the data.")] = None,
    forcing: ForcingFormula = None,
) -> None:
    """Suggest the experiment that tells the equally good equations of a run apart, and draw their predictions."""
    from lgf.cli.problem import parse_bounds, parse_inputs
    from lgf.data import make_inputs
    from lgf.files import write_atomically
    from lgf.report.canvas import png
    from lgf.report.figures import suggestion_figure
    from lgf.runs.folder import read_run
    from lgf.runs.suggestion import Allowed, allowed_starts, useful
    from lgf.runs.suggestion import suggest as suggest_experiments

    result = read_run(run)
    window = result.request.problem.observations[0].t
    allowed = Allowed(
        starts=allowed_starts(parse_bounds(start) or {}),
        durations=tuple(duration) if duration else None,
        samples=samples,
        inputs=(make_inputs(parse_inputs(forcing), window),) if forcing else None,
    )
    found = useful(suggest_experiments(result, n, allowed))
    for number, suggestion in enumerate(found, start=1):
        path = run / f"suggestion-{number}.png"
        write_atomically(path, png(suggestion_figure(suggestion)))
        typer.echo(f"{number}. {suggestion}")
        typer.echo(f"   {path}")
    if len(found) < n:
        typer.echo("No further experiment that is allowed is expected to tell equations apart.")


def records() -> None:
    """List the example records of the package."""
    from lgf.data import records as shipped

    for record in shipped().values():
        typer.echo(f"{record.name:10s} {record.description}")
