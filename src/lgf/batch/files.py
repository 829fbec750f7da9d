"""`fit_files`: the answers to many files or tables, with the settings of an estimator."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from lgf.batch.answer import Question
from lgf.batch.common_structure import answer_with_one_structure
from lgf.batch.sources import find_sources, name_records
from lgf.batch.table import check_any, table_rows, write_table
from lgf.batch.workers import answer_all
from lgf.data import Knowledge, Problem, make_inputs, read_observations
from lgf.data.row_terms import texts
from lgf.errors import LgfError, quoted
from lgf.estimator import LatentGrammarFlow, folder_named, jobs_of, seed_of


@dataclass(frozen=True)
class ReadTable:
    """Reads a problem from a file or a table."""

    columns: Mapping[str, Any]
    initial: Any
    forcing: Any
    knowledge: Knowledge

    def __call__(self, source: Any) -> tuple[Problem, tuple[str, ...]]:
        """(the problem in the source, notes on how it was read)."""
        reading = read_observations(source, **self.columns, initial=self.initial, units=self.knowledge.units)
        knowledge = replace(self.knowledge, units=dict(reading.units) or None)
        if self.forcing is not None:
            knowledge = replace(knowledge, inputs=make_inputs(self.forcing, reading.observations[0].t))
        return Problem(reading.observations, knowledge), reading.notes


def fit_files(
    model: LatentGrammarFlow,
    sources: str | Path | Sequence[str | Path] | Mapping[str, Any],
    folder: str | Path,
    *,
    one_structure: bool = False,
    workers: str | None = "processes",
    time: str | None = None,
    value: str | Sequence[str] | None = None,
    derivative: Any = None,
    forcing_column: str | Sequence[str] | None = None,
    experiment: str | Sequence[str] | None = None,
    wide: bool = False,
    weight: str | None = None,
    initial: Any = None,
    forcing: Any = None,
) -> pd.DataFrame:
    """The table of the answers, one row a record; `model` says what is known and how to search.

    `sources` are files, folders or patterns such as "plates/*.csv", or tables by name: {"A1": frame}. Each record is
    answered in a run folder of its own in `folder`; what is answered there already is not done again. With
    `one_structure` all records have the same equation with constants of their own. `model.n_jobs` records are searched
    at a time, by `workers`: "processes", "threads", the address of a Dask scheduler, or None for the backend set by
    joblib.parallel_config. The other arguments say how a table is read, as in `lgf discover`.
    """
    if not isinstance(model, LatentGrammarFlow):
        raise LgfError(f"the model is {quoted(model)}; give a LatentGrammarFlow(...), which need not be fitted.")
    if model.proposers:
        raise LgfError("a batch takes no proposers of your own; leave them out, or fit the records one by one.")
    out, n_jobs = folder_named(folder), jobs_of(model.n_jobs)
    words = [sources] if isinstance(sources, (str, Path)) else list(sources) if isinstance(sources, Iterable) else []
    if not words:
        raise LgfError(f"the sources are {quoted(sources)}; give files, folders or patterns, or tables by name.")
    if isinstance(sources, Mapping):
        records = dict(zip(name_records([str(name) for name in sources], out), sources.values(), strict=True))
    else:
        records = name_records(find_sources([str(word) for word in words], out), out)
    columns = {
        "time": time, "value": value, "derivative": derivative, "forcing": forcing_column, "experiment": experiment,
        "wide": wide, "weight": weight,
    }  # fmt: skip
    question = Question(
        ReadTable(columns, initial, forcing, Knowledge.stated({}, model.knowledge)), str(model.model),
        model.search_settings(), seed_of(model.random_state), texts(model.initial_equations, "initial equations"),
    )  # fmt: skip
    answers = answer_all(question, records, out, n_jobs=n_jobs, workers=workers)
    common = None
    check_any(answers)
    if one_structure:
        common, answers = answer_with_one_structure(question, records, answers, out, n_jobs=n_jobs, workers=workers)
    write_table(answers, out, common)
    return pd.DataFrame(table_rows(answers, common))
