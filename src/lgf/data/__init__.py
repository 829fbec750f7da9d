"""What was measured, what is known, and the smooth record made from it."""

from lgf.data.checking import Finding, check
from lgf.data.experiments import Reading, make_forcing, observations_from_arrays, read_observations
from lgf.data.knowledge import DataError, Knowledge
from lgf.data.observation import Observation, Problem
from lgf.data.problems import NamedProblem, Score, problem_named, problems
from lgf.data.records import Record, load_record, records
from lgf.data.smoothing import Completion, complete
from lgf.data.tables import Table, read_table

__all__ = [
    "Completion",
    "DataError",
    "Finding",
    "Knowledge",
    "NamedProblem",
    "Observation",
    "Problem",
    "Reading",
    "Record",
    "Score",
    "Table",
    "check",
    "complete",
    "load_record",
    "make_forcing",
    "observations_from_arrays",
    "problem_named",
    "problems",
    "read_observations",
    "read_table",
    "records",
]
