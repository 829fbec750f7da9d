"""The example records of the package; LICENCES.md beside them names their sources."""

from dataclasses import dataclass
from importlib.resources import as_file, files

from lgf.data.column_roles import DEFAULT_INPUT
from lgf.data.experiments import read_observations
from lgf.data.knowledge import Knowledge
from lgf.data.problem import Problem
from lgf.errors import LgfError, quoted
from lgf.solver.forcing import Forcing


@dataclass(frozen=True)
class Record:
    """A shipped record: its description, its columns and the knowledge about the system."""

    name: str
    description: str
    time: str
    value: tuple[str, ...]
    derivative: tuple[int, ...] = (0,)
    experiment: str | None = None
    order: int | None = None
    forcing: str | None = None
    forced: bool | None = None
    initial: tuple[float, ...] | None = None
    stable: bool | None = None

    @property
    def file(self) -> str:
        """The name of the file in `lgf/data/records`."""
        return f"{self.name}.csv"


_RECORDS = (
    Record(
        "duffing",
        "Made, not measured: acceleration of a forced Duffing oscillator with 5 % noise (problem b3/duffing, seed 0).",
        time="t",
        value=("acceleration",),
        derivative=(2,),
        order=2,
        forcing="cos(2*t)",
        initial=(0.0, 1.5),
        stable=True,
    ),
    Record(
        "impact",
        "Impact test: the ringing of a lightly damped structure after a hammer blow, one mode near 212 Hz.",
        time="time",
        value=("response",),
        forced=False,
        stable=True,
    ),
    Record(
        "growth",
        "Growth of one bacterial strain in 12 wells of a plate: optical density over 12 hours, 52 times each.",
        time="time",
        value=("od",),
        experiment="well",
    ),
    Record(
        "hares",
        "Hares and lynxes: furs traded by the Hudson's Bay Company, in thousands a year, 1900 to 1920.",
        time="year",
        value=("hare", "lynx"),
        derivative=(0, 0),
    ),
    Record(
        "cold",
        "A common cold on the island of Tristan da Cunha (published in 1971): infected and recovered people, 21 days.",
        time="day",
        value=("infected", "recovered"),
        derivative=(0, 0),
    ),
)


def records() -> dict[str, Record]:
    """The shipped records by name."""
    return {record.name: record for record in _RECORDS}


def load_record(name: str) -> Problem:
    """The shipped record as a problem: its experiments and the knowledge about the system."""
    record = records().get(name)
    if record is None:
        raise LgfError(f"there is no record named {quoted(name)}; the records are {', '.join(records())}.")
    with as_file(files("lgf.data").joinpath("records", record.file)) as path:
        reading = read_observations(
            path,
            time=record.time,
            value=record.value,
            derivative=record.derivative,
            experiment=record.experiment,
            initial=record.initial,
        )
    inputs = {} if record.forcing is None else {DEFAULT_INPUT: Forcing.from_formula(record.forcing)}
    knowledge = Knowledge(order=record.order, stable=record.stable, forced=record.forced, inputs=inputs)
    return Problem(reading.observations, knowledge)
