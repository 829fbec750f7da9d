"""The constants of the chosen equation as rows: term, value, standard error, spread between experiments."""

import math
from collections.abc import Sequence
from typing import Any

from lgf.equation.system import System
from lgf.equation.units import unit_text
from lgf.runs.request import Run
from lgf.search.candidate import Candidate


def constant_rows(run: Run) -> list[dict[str, Any]]:
    """One row for each constant of the displayed system, or of the fitted one if a constant varies by experiment.

    `spread` is the standard deviation between experiments and `experiments` the value in each; both are None for a
    common constant. With units each row has the `unit` of its constant.
    """
    fit = run.best.fit
    varying = {v.constant: v.deviation for v in fit.sharing.varying}
    units = run.request.problem.units
    system = System(fit.skeleton, fit.values, fit.errors, units=units) if varying else run.system
    errors = system.errors or (math.nan,) * len(system.values)
    return [
        {
            "term": term,
            "value": value,
            "error": error,
            **({"unit": "" if unit is None else unit_text(unit)} if units else {}),
            "spread": varying.get(i),
            "experiments": fit.by_experiment[:, i].tolist() if i in varying else None,
        }
        for i, (term, value, error, unit) in enumerate(
            zip(system.terms, system.values, errors, system.constant_units, strict=True)
        )
    ]


def varying_terms(candidate: Candidate) -> list[str]:
    """The terms whose constant differs between experiments."""
    fit = candidate.fit
    terms = System(fit.skeleton, fit.values).terms
    return [terms[v.constant] for v in fit.sharing.varying]


def with_varying(equation: str, terms: Sequence[str]) -> str:
    """The equation with a remark on the terms whose constant differs between experiments."""
    return f"{equation}  ({', '.join(terms)} by experiment)" if terms else equation
