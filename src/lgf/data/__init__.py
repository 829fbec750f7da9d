"""Measurements and prior knowledge."""

from lgf.data.data_check import Finding, check
from lgf.data.experiments import Reading, make_forcing, make_inputs, observations_from_arrays, read_observations
from lgf.data.knowledge import Knowledge
from lgf.data.observation import Observation
from lgf.data.problem import Problem
from lgf.data.records import Record, load_record, records
from lgf.data.table import Table, read_table

__all__ = [
    "Finding",
    "Knowledge",
    "Observation",
    "Problem",
    "Reading",
    "Record",
    "Table",
    "check",
    "load_record",
    "make_forcing",
    "make_inputs",
    "observations_from_arrays",
    "read_observations",
    "read_table",
    "records",
]
