"""The form of the page: what each column is and what is known, as a `Request`."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from lgf.app.answers import Answers
from lgf.data import Knowledge, Problem, Record, Table, make_inputs, read_observations
from lgf.data.column_roles import DEFAULT_INPUT, Roles, guess_roles, measured_variables
from lgf.data.column_variables import column_variables
from lgf.data.times import days_and_clock
from lgf.errors import LgfError
from lgf.expression.frame import HIGHEST_ORDER, Variable
from lgf.runs.presets import grammar_named, preset_named, with_budget
from lgf.runs.request import Request

Role = Literal["time", "value", "replicate", "input", "experiment", "weight", "unused"]
Text = Annotated[str, Field(max_length=3000)]
LONGEST_SEARCH = 86_400.0  # seconds


class ColumnUse(Answers):
    """The role of one column, its unit, and the derivative that a measured one holds; None if its name says it."""

    role: Role
    derivative: Annotated[int, Field(ge=0, le=HIGHEST_ORDER)] | None = None
    unit: Annotated[str, Field(max_length=60)] | None = None


class Input(Answers):
    """A known input as a formula in t."""

    name: Text = DEFAULT_INPUT
    formula: Text


class Bound(Answers):
    """What is known about the coefficient of a term: a sign, or limits such as -10:0."""

    term: Text
    limits: Text


class Form(Answers):
    """The answers on the page. None means that the user does not know, or leaves it to the program."""

    columns: tuple[ColumnUse, ...] | None = None
    order: int | None = None
    stable: bool | None = None
    autonomous: bool | None = None
    forced: bool | None = None
    inputs: tuple[Input, ...] = ()
    functions: tuple[Text, ...] | None = None
    bounds: tuple[Bound, ...] = ()
    required: tuple[Text, ...] = ()
    forbidden: tuple[Text, ...] = ()
    known: tuple[Text, ...] = ()
    shared: tuple[Text, ...] = ()
    conserved: tuple[Text, ...] = ()
    populations: tuple[Text, ...] = ()
    hidden: tuple[Text, ...] = ()
    vary: tuple[Text, ...] = ()
    start: tuple[Text, ...] = ()
    initial: dict[str, float] = Field(default_factory=dict)
    seconds: Annotated[float, Field(gt=0, le=LONGEST_SEARCH)] = 60.0
    evaluations: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


def form_of_record(record: Record, table: Table) -> dict[str, Any]:
    """The answers that describe a shipped record."""
    roles = guess_roles(table, record.time, record.value, record.derivative, None, record.experiment, None)
    uses = list(column_uses(table, roles))
    for position, derivative in zip(roles.values, record.derivative, strict=True):
        uses[position] = ColumnUse(role="value", derivative=derivative or None)
    states = list(dict.fromkeys(v.name for v in roles.variables))
    named = [Variable(states[0], d) if len(states) == 1 else Variable(s) for d, s in enumerate(states * HIGHEST_ORDER)]
    return {
        "columns": [use.model_dump() for use in uses],
        "order": record.order,
        "stable": record.stable,
        "forced": record.forced,
        "inputs": [] if record.forcing is None else [{"name": DEFAULT_INPUT, "formula": record.forcing}],
        "initial": {str(v): value for v, value in zip(named, record.initial or (), strict=False)},
    }


def column_uses(table: Table, roles: Roles) -> tuple[ColumnUse, ...]:
    """The roles, column by column."""
    uses = [ColumnUse(role="unused")] * len(table.names)
    uses[roles.time] = ColumnUse(role="time")
    if roles.clock is not None:
        uses[roles.clock] = ColumnUse(role="time")
    for position in roles.values:
        uses[position] = ColumnUse(role="replicate" if roles.wide else "value")
    for _, position in roles.inputs:
        uses[position] = ColumnUse(role="input")
    for position in roles.experiment:
        uses[position] = ColumnUse(role="experiment")
    if roles.weight is not None:
        uses[roles.weight] = ColumnUse(role="weight")
    return tuple(uses)


def guessed_uses(table: Table) -> tuple[tuple[ColumnUse, ...], tuple[str, ...]]:
    """(the role of each column, notes), guessed from names and values."""
    roles = guess_roles(table, None, None, None, None, None, None)
    return column_uses(table, roles), roles.notes


def checked_uses(table: Table, form: Form) -> tuple[ColumnUse, ...]:
    """The role of each column in the form; LgfError if there is not one for each."""
    if form.columns is None or len(form.columns) != len(table.names):
        raise LgfError(f"{table.source} has {len(table.names)} columns; say what each of them is.")
    return form.columns


def derivatives(table: Table, uses: Sequence[ColumnUse]) -> list[int] | dict[str, int] | None:
    """The derivatives of the measured columns as `read_observations` takes them; None leaves them to the names."""
    measured = [(table.names[k], use.derivative) for k, use in enumerate(uses) if use.role == "value"]
    chosen = {name: derivative for name, derivative in measured if derivative is not None}
    if not chosen:
        return None
    spelled = column_variables([name for name, _ in measured])
    orders = [v.derivative if d is None else d for v, (_, d) in zip(spelled, measured, strict=True)]
    return orders if len(set(orders)) == len(orders) else chosen  # different derivatives are those of one state


def variables(table: Table, uses: Sequence[ColumnUse]) -> dict[int, str]:
    """What each measured column was taken for, by position."""
    measured = [k for k, use in enumerate(uses) if use.role == "value"]
    time = next((k for k, use in enumerate(uses) if use.role == "time"), None)
    experiment = [k for k, use in enumerate(uses) if use.role == "experiment"]
    known = derivatives(table, uses)
    taken = measured_variables(table, measured, known, False, time, experiment) if measured else ()
    return {k: str(v) for k, v in zip(measured, taken, strict=True)}


def read_problem(table: Table, form: Form) -> tuple[Problem, tuple[str, ...]]:
    """(the problem in the table, notes) with the roles and the knowledge of the form."""
    uses = checked_uses(table, form)
    # Only columns with a role go on, so that nothing is left to be guessed.
    used = [k for k, use in enumerate(uses) if use.role != "unused"]
    if not used:
        raise LgfError("No column has a role; choose the column of the times and one that was measured.")
    reduced = Table(
        tuple(table.names[k] for k in used), tuple(table.columns[k] for k in used), table.source, table.lines,
        table.notes,
    )  # fmt: skip
    places = {role: [i for i, k in enumerate(used) if uses[k].role == role] for role in Role.__args__}
    days = days_and_clock(reduced, places["time"][0], places["time"][1:]) if len(places["time"]) == 2 else None
    if days is not None:
        places["time"] = [days[0]]
    for role, name in (("time", "the times"), ("weight", "the weights")):
        if len(places[role]) > 1:
            raise LgfError(f"{len(places[role])} columns are said to hold {name}; choose one.")
    if not places["time"]:
        raise LgfError("No column is the time; choose one.")
    if not places["value"] and not places["replicate"]:
        raise LgfError("No column is measured; choose at least one.")
    if places["value"] and places["replicate"]:
        raise LgfError(
            "Some measured columns are states and some are experiments of one quantity; choose the same for all."
        )
    reading = read_observations(
        reduced,
        time=places["time"][0],
        value=places["value"] or places["replicate"],
        derivative=derivatives(table, uses),
        forcing=places["input"] or None,
        experiment=places["experiment"] or None,
        weight=places["weight"][0] if places["weight"] else None,
        initial=form.initial or None,
        by_name=bool(form.hidden),
        wide=bool(places["replicate"]),
        units={table.names[k]: unit for k in used if (unit := uses[k].unit) is not None},
    )
    formulas = _formulas(form)
    if formulas and places["input"]:
        raise LgfError("The input is given by a column and by a formula; keep one of the two.")
    inputs = make_inputs(formulas, reading.observations[0].t)
    # An empty unit is one that the user took away.
    units = {name: unit for name, unit in reading.units.items() if unit}
    return Problem(reading.observations, _knowledge(form, inputs, units)), reading.notes


def make_request(table: Table, form: Form) -> Request:
    """The request that the form describes."""
    problem, notes = read_problem(table, form)
    settings = with_budget(preset_named("default"), form.evaluations, form.seconds)
    start = tuple(text.strip() for text in form.start if text.strip())
    return Request(problem, grammar_named("standard"), settings, form.seed, start, source=table.source, notes=notes)


def _formulas(form: Form) -> dict[str, str]:
    formulas: dict[str, str] = {}
    for given in form.inputs:
        if given.name in formulas:
            raise LgfError(f"Two formulas are given for the input {given.name}; keep one.")
        formulas[given.name] = given.formula
    return formulas


def _knowledge(form: Form, inputs: Any, units: dict[str, str]) -> Knowledge:
    # A list that is left empty states nothing, except that no function is allowed.
    stated = {name: getattr(form, name, None) for name in Knowledge.__dataclass_fields__}
    stated = {name: value for name, value in stated.items() if value != () or name == "functions"}
    bounds = {b.term: tuple(b.limits.split(":")) if ":" in b.limits else b.limits for b in form.bounds}
    return Knowledge(**{**stated, "inputs": inputs, "bounds": bounds or None, "units": units or None})
