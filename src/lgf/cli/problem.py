"""Reading a problem from command-line arguments."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from lgf.data import Knowledge, Problem, Record, make_inputs, read_observations, records
from lgf.data.column_roles import DEFAULT_INPUT
from lgf.data.column_units import unit_pairs_from_text
from lgf.data.quantities import read_quantity
from lgf.errors import LgfError, quoted


@dataclass(frozen=True)
class Columns:
    """The column roles that the user specified."""

    time: str | None = None
    value: list[str] | None = None
    derivative: list[str] | None = None
    forcing: list[str] | None = None
    experiment: list[str] | None = None
    weight: str | None = None
    unit: list[str] | None = None
    wide: bool = False


def read_problem(
    data: str, columns: Columns, forcing: list[str] | None, initial: str | None, known: dict[str, Any]
) -> tuple[Problem, tuple[str, ...]]:
    """(problem in the file or record, notes on guessed columns); `known` holds fields of `Knowledge`."""
    formulas = parse_inputs(forcing)
    if columns.forcing and DEFAULT_INPUT in formulas:
        raise LgfError("--forcing and --forcing-column are both given; the input is a formula or a column, not both.")
    record = None if Path(data).exists() else records().get(data)
    if record is None and not Path(data).exists() and not Path(data).suffix:
        raise LgfError(f"there is no file and no record {data}; check the name and the folder, or see `lgf records`.")
    if record is not None:
        columns = _filled(columns, record)
        formulas = formulas or ({} if record.forcing is None else {DEFAULT_INPUT: record.forcing})
        known = {"forced": record.forced, **known}
        known = {**known, **{k: getattr(record, k) for k in ("order", "stable") if known.get(k) is None}}
    start = parse_initial(initial) if initial is not None else record.initial if record is not None else None
    packaged = None if record is None else as_file(files("lgf.data").joinpath("records", record.file))
    with packaged or nullcontext(Path(data)) as path:
        reading = read_observations(
            path, time=columns.time, value=columns.value or None, derivative=parse_derivative(columns.derivative),
            forcing=columns.forcing or None, experiment=columns.experiment or None, weight=columns.weight,
            initial=start, units=unit_pairs_from_text(columns.unit), by_name=bool(known.get("hidden")),
            wide=columns.wide,
        )  # fmt: skip
    observations, notes = reading.observations, reading.notes
    known = {**known, "units": dict(reading.units) or None}
    if formulas:
        known = {**known, "inputs": make_inputs(formulas, observations[0].t)}
        if not columns.forcing:  # The user's formulas override a column that was guessed to be the input.
            observations = tuple(replace(o, inputs={}) for o in observations)
            notes = tuple(note for note in notes if "is a known input" not in note)
    return Problem(observations, Knowledge(**known)), notes


def _filled(columns: Columns, record: Record) -> Columns:
    return replace(
        columns,
        time=columns.time or record.time,
        value=columns.value or list(record.value),
        derivative=columns.derivative or ([] if columns.value else [str(d) for d in record.derivative]),
        experiment=columns.experiment or ([] if record.experiment is None else [record.experiment]),
    )


def parse_inputs(texts: list[str] | None) -> dict[str, str]:
    """Formulas by the name of their input, from texts such as cos(2*t), which is the input F, and a=cos(2*t)."""
    formulas: dict[str, str] = {}
    for text in texts or ():
        name, equal, formula = text.partition("=")
        name, formula = (name.strip(), formula) if equal else (DEFAULT_INPUT, text)
        if name in formulas:
            raise LgfError(f"the input {quoted(name)} is given twice; name each input once.")
        formulas[name] = formula
    return formulas


def parse_derivative(texts: list[str] | None) -> list[int] | dict[str, int] | None:
    """Measured derivatives, one for each column from texts such as 2, or by column from texts such as x=2."""
    if not texts:
        return None
    pairs = [text.rpartition("=") for text in texts]
    try:
        orders = [int(order) for _, _, order in pairs]
    except ValueError as error:
        raise LgfError(
            f"--derivative is {quoted(' '.join(texts))}; give 0, 1 or 2 for each value column, or a column and a "
            "number, such as x=2."
        ) from error
    named = [name.strip() for name, equal, _ in pairs if equal]
    if named and len(named) < len(pairs):
        raise LgfError("--derivative is given with and without a column; name the column in each.")
    return dict(zip(named, orders, strict=True)) if named else orders


InitialState = tuple[Any, ...] | dict[str, Any]  # numbers, or quantities


def parse_initial(text: str) -> InitialState | list[InitialState]:
    """The initial state in text such as 0,1.5 or prey=8.3,predator=3.4; one for each experiment, separated by `;`.

    A value with a unit, such as u=30 cm, is a quantity.
    """
    try:
        states = [_initial_state(part) for part in text.split(";")]
    except LgfError as error:
        raise LgfError(
            f"the initial state {quoted(text)} cannot be read ({str(error).rstrip('.')}); give numbers separated by "
            "commas, such as 0,1.5 or prey=8.3."
        ) from error
    return states[0] if len(states) == 1 else states


def _initial_state(text: str) -> InitialState:
    if "=" not in text:
        return tuple(read_quantity(x) for x in text.split(","))
    pairs = (part.partition("=") for part in text.split(","))
    return {name.strip(): read_quantity(value) for name, _, value in pairs}


def parse_bounds(texts: list[str] | None) -> dict[str, Any] | None:
    """Bounds by term from texts such as u^3=negative and u=-10:0."""
    bounds: dict[str, Any] = {}
    for text in texts or ():
        term, equal, limits = text.rpartition("=")
        if not equal:
            raise LgfError(f"the bound {quoted(text)} has no '='; write it like u^3=negative or u=-10:0.")
        bounds[term] = tuple(limits.split(":")) if ":" in limits else limits
    return bounds or None


def parse_order(text: str | None) -> int | dict[str, int] | None:
    """The order in text such as 2, or by state in text such as x=2,y=1."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        pairs = (part.partition("=") for part in text.split(","))
        return {name.strip(): int(order) for name, _, order in pairs}
    except ValueError as error:
        raise LgfError(f"--order is {quoted(text)}; give a whole number, or one for each state: x=2,y=1.") from error


def parse_functions(texts: list[str] | None) -> tuple[str, ...] | dict[str, tuple[str, ...]] | None:
    """Allowed functions from texts such as sin,cos, or by state from texts such as x: sin,cos."""
    common: list[str] = []
    by_state: dict[str, tuple[str, ...]] = {}
    for text in texts or ():
        state, colon, names = text.rpartition(":")
        functions = tuple(name.strip() for name in names.split(",") if name.strip())
        if colon:
            by_state[state.strip()] = by_state.get(state.strip(), ()) + functions
        else:
            common += functions
    if by_state and common:
        raise LgfError("functions are allowed for all states and for single ones; say which for each state.")
    return None if texts is None else by_state or tuple(common)
